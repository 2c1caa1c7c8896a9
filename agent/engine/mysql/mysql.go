// Package mysql samples servers of the MySQL family: MySQL, MariaDB, Percona
// Server, and what builds on them. It reads the counters that all of them have
// (SHOW GLOBAL STATUS, one statement a tick); what only some have (Galera,
// replicas, group members, …) is read by details, one package each, which are
// listed where the engine is registered.
package mysql

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/benchwatch/benchwatch/agent/engine"
)

// Detail reads what one kind of server has beyond the common counters. It belongs
// to one prober and may keep state between ticks. A detail with connections of
// its own implements io.Closer.
type Detail interface {
	// Status returns the variables of SHOW GLOBAL STATUS that Read needs. They
	// are read by one statement for all details.
	Status() []string
	// Variables returns the system variables that Read needs in Server.
	Variables() []string
	// Read adds values to out. It returns at once if the server is of another
	// kind, which may change from tick to tick. If the server refuses a statement
	// (Refused), Read adds to out.Missing or ignores it. A refusal that Read
	// returns is added to out.Missing; any other error fails the sample.
	Read(ctx context.Context, q Querier, tick *Tick, out *engine.Status) error
}

// Optioner is a Detail with options of its own in a target's configuration.
type Optioner interface {
	// Options returns their names.
	Options() []string
	// CheckOptions reports what is wrong with those of the target.
	CheckOptions(t *engine.Target) error
}

// Tick is what has been read when a detail is called.
type Tick struct {
	Target *engine.Target
	Server *Server
	Status Values
}

// Querier runs statements that only read.
type Querier interface {
	// Rows returns the whole answer. A statement that the server refused (no
	// right, unknown to this version) is not sent again for a minute; the same
	// error is returned instead.
	Rows(ctx context.Context, statement string) ([]Row, error)
}

// Family returns the engine `mysql`. Each prober gets details of its own. They are
// called in the given order; the first one that sets position or role wins.
func Family(details ...func() Detail) *engine.Engine {
	return &engine.Engine{
		Name: "mysql",
		Open: func(t engine.Target, log *slog.Logger) (engine.Prober, error) {
			var ds []Detail
			for _, newDetail := range details {
				ds = append(ds, newDetail())
			}
			if err := checkOptions(&t, ds); err != nil {
				return nil, err
			}
			return newProber(t, ds, log)
		},
	}
}

// checkOptions lets the details check their options and rejects unknown ones.
func checkOptions(t *engine.Target, details []Detail) error {
	var known []string
	for _, d := range details {
		if o, ok := d.(Optioner); ok {
			known = append(known, o.Options()...)
			if err := o.CheckOptions(t); err != nil {
				return err
			}
		}
	}
	for key := range t.Options {
		if !slices.Contains(known, key) {
			return fmt.Errorf("engine mysql has no option %q", key)
		}
	}
	return nil
}
