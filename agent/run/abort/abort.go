// Package abort watches a run in progress for conditions that should end it. It reads the run
// directory, so it works with any process that samples the servers.
package abort

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// poll is the interval for reading the record. The tool's output is read as it is written.
const poll = 250 * time.Millisecond

// Watch watches the conditions of one run.
type Watch struct {
	Dir        rundir.Directory
	Meta       rundir.Meta
	Tool       *tool.Tool // nil: no condition needs the tool
	Conditions []*Condition
	Prometheus *Prometheus // nil: no condition is a query
	// Warn is called with each condition on a percentile that the first interval after the warm-up lacks, and with what
	// to do. Nil: no warnings.
	Warn func(condition, why string)

	mu     sync.Mutex
	latest *review.Row // of the newest interval; nil: no new one since the last look
	warned bool
	since  []time.Time // when each condition began to hold
	words  []string    // the values at that time
	known  []bool      // a value was known
	errs   []error     // why the last value was unknown, for queries
}

// Wait returns the condition that holds, with its value, or an empty text when ctx is done. A
// warm-up interval and an unknown value never meet a condition.
func (w *Watch) Wait(ctx context.Context) string {
	w.since, w.words = make([]time.Time, len(w.Conditions)), make([]string, len(w.Conditions))
	w.known, w.errs = make([]bool, len(w.Conditions)), make([]error, len(w.Conditions))
	ctx, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	arrived := make(chan struct{}, 1)
	w.read(ctx, &readers, arrived)

	answers := make(chan answer)
	for i, c := range w.Conditions {
		if c.IsQuery() {
			readers.Go(func() { w.ask(ctx, i, answers) })
		}
	}
	servers, machines := record.NewNewest(w.Dir.Path(rundir.StatusFile)), record.NewNewest(w.Dir.Path(host.File))
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
				w.apply(row, measure.Run)
			}
		case a := <-answers:
			if w.errs[a.condition] = a.err; a.err == nil {
				w.known[a.condition] = true
			}
			w.set(a.condition, a.holds, w.Conditions[a.condition].text+": "+a.text)
		case <-tick.C:
			for scope, newest := range map[measure.Scope]*record.Newest{measure.Server: servers, measure.Host: machines} {
				rows, err := newest.Read()
				if row := review.NewestRow(scope, rows); err == nil && row != nil {
					w.apply(row, scope)
				}
			}
		}
		for i, c := range w.Conditions {
			if since := w.since[i]; !since.IsZero() && time.Since(since) >= c.lasting {
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
	feed := ingest.NewFeed(w.Tool, &w.Meta)
	feed.Growing = true
	feed.OnReport = func(r *tool.Report, _ float64, _, _ bool) {
		if r.Kind != tool.Interval || r.Phase == tool.Warmup {
			return
		}
		w.warn(r)
		row := review.IntervalRow(r.Clone(), w.Tool.IncludesFailures(w.Meta.Verb))
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
			// The process that records the run reports read errors.
			_ = feed.Follow(ctx, w.Dir.Path(name), stream, nil, nil)
		})
	}
}

// warn warns of conditions on percentiles that the first interval lacks.
func (w *Watch) warn(r *tool.Report) {
	w.mu.Lock()
	first := !w.warned
	w.warned = true
	w.mu.Unlock()
	if !first || w.Warn == nil {
		return
	}
	headline, printed := r.Headline(), []string{}
	for _, l := range r.Latencies {
		if headline.Known && l.Operation == headline.Value.Operation && isPercentile(l.Stat) {
			printed = append(printed, l.Stat)
		}
	}
	for _, c := range w.Conditions {
		if c.IsQuery() || !isPercentile(c.measure.Name()) || slices.Contains(printed, c.measure.Name()) {
			continue
		}
		why := w.Tool.Name + " prints no percentile while it runs"
		if len(printed) > 0 {
			why = w.Tool.Name + " prints " + table.Join(printed)
		}
		if ask := w.Tool.AskPercentile; ask != nil && ask(c.measure.Name()) != "" {
			why += "; add " + ask(c.measure.Name())
		}
		w.Warn(c.text, why)
	}
}

// isPercentile reports whether a statistic or a measure is a percentile such as p99.9.
func isPercentile(name string) bool {
	rest, ok := strings.CutPrefix(name, "p")
	_, err := strconv.ParseFloat(rest, 64)
	return ok && err == nil
}

// apply applies the conditions about the tool, servers or machines to the newest values.
func (w *Watch) apply(row *review.Row, scope measure.Scope) {
	for i, c := range w.Conditions {
		if c.IsQuery() || c.measure.Scope() != scope {
			continue
		}
		value, met := c.measure.Met(row)
		w.known[i] = w.known[i] || value != ""
		w.set(i, met, c.text+": "+value)
	}
}

// set records whether a condition holds.
func (w *Watch) set(i int, holds bool, words string) {
	switch {
	case !holds:
		w.since[i] = time.Time{}
	case w.since[i].IsZero():
		w.since[i] = time.Now()
	}
	w.words[i] = words
}

// Unknown returns the conditions that never had a known value, each followed by a colon and the
// reason if known. Call it after Wait.
func (w *Watch) Unknown() []string {
	var all []string
	for i, c := range w.Conditions {
		switch {
		case i >= len(w.known) || w.known[i]:
		case w.errs[i] != nil:
			all = append(all, fmt.Sprintf("%s: %v", c, w.errs[i]))
		default:
			all = append(all, c.String())
		}
	}
	return all
}

// Condition ends a run when it holds.
type Condition struct {
	text    string
	measure *review.Condition // nil: a query
	query   string            // PromQL
	lasting time.Duration
}

// queryPrefix begins conditions that Prometheus evaluates.
const queryPrefix = "promql:"

// Parse reads a limit of a measure such as lag>10s, or promql: and an expression, optionally
// followed by how long it has to hold: flow_control>40% for 5s.
func Parse(text string) (*Condition, error) {
	c := &Condition{text: strings.TrimSpace(text)}
	rest, isQuery := strings.CutPrefix(c.text, queryPrefix)
	if isQuery {
		c.query = rest
		// An expression may itself contain " for ": only a duration after it counts.
		if i := strings.LastIndex(c.query, " for "); i >= 0 {
			if d, err := time.ParseDuration(strings.TrimSpace(c.query[i+len(" for "):])); err == nil && d > 0 {
				c.query, c.lasting = c.query[:i], d
			}
		}
		c.query = strings.TrimSpace(c.query)
		if c.query == "" {
			return nil, fmt.Errorf("%q: no expression, expected %sup == 0", c.text, queryPrefix)
		}
		return c, nil
	}
	bound, lasting, ok := strings.Cut(c.text, " for ")
	var err error
	if c.measure, err = review.ParseCondition(bound); err != nil {
		return nil, err
	}
	if c.measure.AtEnd() {
		return nil, fmt.Errorf("%q: %s is known only at the end of a run", c.text, c.measure.Name())
	}
	if ok {
		if c.lasting, err = time.ParseDuration(strings.TrimSpace(lasting)); err != nil || c.lasting <= 0 {
			return nil, fmt.Errorf("%q: %s is not a duration such as 5s", c.text, strings.TrimSpace(lasting))
		}
	}
	return c, nil
}

// String returns the condition as the user wrote it.
func (c *Condition) String() string { return c.text }

// NeedsServers reports whether the condition has a value only if servers are sampled.
func (c *Condition) NeedsServers() bool { return !c.IsQuery() && c.measure.Scope() == measure.Server }

// IsQuery reports whether Prometheus evaluates the condition.
func (c *Condition) IsQuery() bool { return c.query != "" }
