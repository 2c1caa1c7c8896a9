// Package mysql samples servers of the MySQL family: MySQL, MariaDB, Percona Server and
// derivatives. It reads the counters that all of them have (SHOW GLOBAL STATUS, one statement per
// tick). What only some of them have (Galera, replicas, group members, …) is read by details, one
// package each, listed where the engine is registered.
package mysql

import (
	"context"
	"log/slog"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Detail reads what one kind of server has in addition to the common counters. It belongs to one
// prober and may keep state between ticks. A detail with its own connections implements io.Closer.
type Detail interface {
	// Needs returns what the detail reads. The result never changes.
	Needs() Needs
	// Read adds values to out. It returns at once if the server is of another kind, which can
	// change between ticks. If the server refuses a statement (Refused), Read adds to out.Missing
	// or ignores it. A refusal that Read returns is added to out.Missing; any other error fails the
	// sample.
	Read(ctx context.Context, q Querier, tick *Tick, out *engine.Status) error
}

// StatementDetail is a Detail that reads the server's counts by statement, see
// [engine.StatementReader].
type StatementDetail interface {
	Detail
	ReadStatements(ctx context.Context, q Querier, target *engine.Target, server *Server, before *engine.StatementReading) (*engine.StatementReading, error)
}

// Needs is what a detail reads. One statement of each kind reads the names of all details.
type Needs struct {
	// Status are the variables of SHOW GLOBAL STATUS that Read needs, Variables the system
	// variables that it needs in Server.
	Status, Variables []string
	// Settings are the system variables that ReadSettings needs. ReadSettings adds settings to out,
	// none if the server is of another kind.
	Settings     []string
	ReadSettings func(server *Server, variables Values, out engine.Settings)
	// Growing are gauges that only grow, such as positions: their differences count what happened in between.
	Growing []*measure.Metric
	// Options are the detail's options in a target's configuration.
	Options engine.OptionChecks
}

// Tick is what has been read before a detail is called. It is valid until the detail returns.
type Tick struct {
	Target *engine.Target
	Server *Server
	Status Values
}

// Querier runs read-only statements.
type Querier interface {
	// Rows returns the whole answer. A statement that the server refused (missing privilege, unknown in this version)
	// is not sent again for a minute; Rows returns the same error instead.
	Rows(ctx context.Context, statement string) ([]Row, error)
}

// socket returns where client libraries connect for localhost at the usual port. Each distribution has its own path.
func socket(port string, _ bool) []string {
	if port != defaultPort {
		return nil
	}
	return []string{"/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"}
}

const defaultPort = "3306"

// Family returns the engine `mysql`. Each prober gets its own details. They are called in the given
// order; the first one that sets position or role wins.
func Family(details ...func() Detail) *engine.Engine {
	return &engine.Engine{
		Name: Name, Also: []string{"MariaDB", "Percona Server", "Galera", "Aurora", "TiDB"},
		DefaultPort: defaultPort, Switch: toggle, Dumps: dumps(details),
		Socket: socket,
		Open: func(t engine.Target, log *slog.Logger) (engine.Prober, error) {
			var ds []Detail
			for _, newDetail := range details {
				ds = append(ds, newDetail())
			}
			return newProber(t, ds, log)
		},
	}
}
