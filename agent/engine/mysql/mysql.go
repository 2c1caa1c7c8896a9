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

// Detail reads what one kind of server has beyond the common counters. One
// detail belongs to one connection's prober and may keep state between ticks.
// One that holds connections of its own is an io.Closer.
type Detail interface {
	// Status names the variables of SHOW GLOBAL STATUS that Read wants to see,
	// so that they come with the one statement of the tick.
	Status() []string
	// Variables names the system variables that Read wants to find in Server.
	Variables() []string
	// Read adds to out what the server says. It returns at once if the server
	// is not of its kind, which may change from tick to tick. Statements that
	// the server refuses (Refused) belong into out.Missing or are left out; an
	// error fails the whole sample.
	Read(ctx context.Context, q Querier, tick *Tick, out *engine.Status) error
}

// Optioner is a Detail with settings of its own in a target's options.
type Optioner interface {
	// Options names them.
	Options() []string
	// CheckOptions reports what is wrong with those of the target.
	CheckOptions(t *engine.Target) error
}

// Tick is what is already known when a detail is asked.
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

// Family returns the engine `mysql`. Each prober gets its own details, which
// are asked in the given order; for position and role the first that sets them
// counts.
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

// checkOptions lets the details check their options; others there are none.
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
