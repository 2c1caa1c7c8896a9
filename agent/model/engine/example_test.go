package engine_test

import (
	"context"
	"fmt"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// An invented engine: its metric, and the measure that people see.
var (
	evictedTotal = measure.NewCounter("cache_evicted_total", "Entries evicted.")
	evictions    = measure.New(measure.Measure{
		ID: "evictions", Title: "Evictions", Note: "per second", Unit: measure.PerSecond, Scope: measure.Server, Summary: measure.Mean, Rank: 500,
	}).Or(measure.RateOf(evictedTotal))
)

// cache is its prober. A real prober would ask a server.
type cache struct{ evicted float64 }

func (c *cache) Probe(context.Context) (*engine.Status, error) {
	c.evicted += 250
	s := &engine.Status{Version: "1.0", Flavour: "cache"}
	s.Set(evictedTotal, c.evicted)
	s.Set(engine.Connections, 12)
	return s, nil
}

func (c *cache) Close() error { return nil }

// A sampler asks the probers of all targets at the same time. Two samples of a target give the
// current values of its measures.
func Example() {
	targets := []engine.Target{{Name: "c1", Engine: "cache"}}
	open := func(engine.Target) (engine.Prober, error) { return &cache{}, nil }
	sampler := engine.NewSampler(targets, open, 100*time.Millisecond, engine.Options{})
	frames, _ := sampler.Subscribe(1)

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- sampler.Run(ctx) }()
	previous, current := <-frames, <-frames
	cancel()
	if err := <-done; err != nil {
		fmt.Println(err)
	}

	now := engine.NewWindow(&previous.Samples[0], &current.Samples[0]).Now
	fmt.Println("connections:", now(engine.OpenConnections).Value)
	fmt.Println("evictions known:", now(evictions).Known)
	fmt.Println("queries known:", now(engine.QueryRate).Known)
	// Output:
	// connections: 12
	// evictions known: true
	// queries known: false
}
