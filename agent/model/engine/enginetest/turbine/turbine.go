// Package turbine is an invented engine with one metric and one measure. It shows that an engine
// takes one package and one line of the registry: a test adds that line and finds the measure
// everywhere.
package turbine

import (
	"context"
	"log/slog"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Engine is the turbine. Its servers turn 50 times per second at any address.
var Engine = &engine.Engine{
	Name: "turbine",
	Open: func(engine.Target, *slog.Logger) (engine.Prober, error) { return prober{}, nil },
}

var (
	turns = measure.NewCounter("turbine_turns_total", "Turns of the turbine.")

	_ = measure.New(measure.Measure{
		ID: "turns", Title: "Turns of the turbine", Short: "Turns", Note: "per second",
		Unit: measure.PerSecond, Scope: measure.Server, Summary: measure.Mean, Column: measure.EachServer, Rank: 500,
	}).Or(measure.RateOf(turns))
)

type prober struct{}

var start = time.Now()

// Probe implements engine.Prober.
func (prober) Probe(context.Context) (*engine.Status, error) {
	s := &engine.Status{Version: "1.0", Flavour: "turbine", Uptime: time.Hour + time.Since(start)}
	s.Set(turns, 50*time.Since(start).Seconds())
	return s, nil
}

// Close implements engine.Prober.
func (prober) Close() error { return nil }
