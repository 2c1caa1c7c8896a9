// Package abort watches a run in progress for conditions that should end it. It reads
// what is recorded in the run directory, so it does not matter which process samples the
// servers.
package abort

import (
	"context"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/report"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// poll is how often the record is looked at; what the tool prints is read as it is
// written.
const poll = 250 * time.Millisecond

// Watch is the conditions of one run.
type Watch struct {
	Dir        rundir.Directory
	Meta       rundir.Meta
	Tool       *tool.Tool // nil: only servers can meet a condition
	Conditions []*report.Condition

	mu     sync.Mutex
	latest *report.Row // of the newest interval; nil: none since it was read
	since  []time.Time // when each condition began to hold
	words  []string    // the values, then
	known  []bool      // a value was known
}

// Wait returns the condition that holds, with the value, or an empty text once ctx is
// done. An interval of the warm-up meets no condition, nor does an unknown value.
func (w *Watch) Wait(ctx context.Context) string {
	w.since, w.words = make([]time.Time, len(w.Conditions)), make([]string, len(w.Conditions))
	w.known = make([]bool, len(w.Conditions))
	ctx, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	arrived := make(chan struct{}, 1)
	w.read(ctx, &readers, arrived)

	servers := history.NewNewest(w.Dir)
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-arrived:
			w.mu.Lock()
			row := w.latest
			w.latest = nil
			w.mu.Unlock()
			if row != nil {
				w.apply(row, false)
			}
		case <-tick.C:
			rows, err := servers.Read()
			if row := report.NewestRow(rows); err == nil && len(row.Servers) > 0 {
				w.apply(&row, true)
			}
		}
		for i, c := range w.Conditions {
			if since := w.since[i]; !since.IsZero() && time.Since(since) >= c.Lasting() {
				return w.words[i]
			}
		}
	}
}

// read follows the tool's output.
func (w *Watch) read(ctx context.Context, readers *sync.WaitGroup, arrived chan<- struct{}) {
	if w.Tool == nil {
		return
	}
	counts := w.Tool.CountsFailures != nil && w.Tool.CountsFailures(w.Meta.Verb)
	feed := ingest.NewFeed(w.Tool, &w.Meta)
	feed.Growing = true
	feed.OnReport = func(r *tool.Report, _ float64, _, _ bool) {
		if r.Kind != tool.Interval || r.Phase == tool.Warmup {
			return
		}
		row := report.IntervalRow(r.Clone(), counts)
		w.mu.Lock()
		w.latest = &row
		w.mu.Unlock()
		select {
		case arrived <- struct{}{}:
		default:
		}
	}
	for name, stream := range map[string]tool.Stream{rundir.StdoutFile: tool.Stdout, rundir.StderrFile: tool.Stderr} {
		readers.Go(func() {
			// What can't be read is reported by the process that records the run.
			_ = feed.Follow(ctx, w.Dir.Path(name), stream, nil, nil)
		})
	}
}

// apply applies the conditions about servers, or those about the tool, to their newest values.
func (w *Watch) apply(row *report.Row, servers bool) {
	for i, c := range w.Conditions {
		if c.OfServers() != servers {
			continue
		}
		words, met := c.Met(row)
		switch {
		case !met:
			w.since[i] = time.Time{}
		case w.since[i].IsZero():
			w.since[i] = time.Now()
		}
		w.words[i] = words
		w.known[i] = w.known[i] || words != ""
	}
}

// Unknown returns the conditions of whose measure no value was known, after Wait has
// returned.
func (w *Watch) Unknown() []*report.Condition {
	var all []*report.Condition
	for i, c := range w.Conditions {
		if i < len(w.known) && !w.known[i] {
			all = append(all, c)
		}
	}
	return all
}
