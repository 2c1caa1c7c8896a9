package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Config is what is tracked. Without measures nothing is.
type Config struct {
	// Measures are named as conditions name them: tps, p95, lag …
	Measures []string
	// By are the labels and facts whose values are a series each, beside report.KindFacts.
	By []string
	// MaxSeries bounds the series of a measure.
	MaxSeries int
}

// Level is the current level of a measure of one kind of runs, in the base unit.
type Level struct {
	Measure string
	// Facts are those that distinguish the kinds: report.KindFacts, then Config.By.
	Facts []rundir.Fact
	// Last is the value of the newest run, which began at Started.
	Last    float64
	Started time.Time
	// Mean is of the Runs since the last change, the first of which began at Since; of all
	// if there was no change.
	Mean  float64
	Runs  int
	Since time.Time
	// Change is by what share the level changed last; unknown without a change.
	Change series.Optional[float64]
}

// checkTime is how often a Tracker checks whether there are new runs, by default.
const checkTime = 5 * time.Second

// TrackerOptions of a Tracker; all but Every are needed.
type TrackerOptions struct {
	Reader *Reader
	// Config returns the present configuration.
	Config func() Config
	// Busy reports whether a run is in progress: meanwhile nothing is read.
	Busy func() bool
	// Ended returns how many ended runs are known, and when the last one was closed.
	Ended func() (int, time.Time)
	Log   *slog.Logger
	// Every is how often that is checked; 0: every 5 s.
	Every time.Duration
}

// Tracker keeps the levels of the configured measures up to date.
type Tracker struct {
	opts TrackerOptions

	mu      sync.Mutex
	levels  []Level
	dropped int
}

// NewTracker returns a tracker that has no levels until Run.
func NewTracker(o TrackerOptions) *Tracker { return &Tracker{opts: o} }

// Levels returns the present levels, and how many series MaxSeries left out.
func (t *Tracker) Levels() ([]Level, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.levels, t.dropped
}

// Run tracks until ctx is done.
func (t *Tracker) Run(ctx context.Context) {
	tick := time.NewTicker(cmp.Or(t.opts.Every, checkTime))
	defer tick.Stop()
	type state struct {
		config Config
		runs   int
		closed time.Time
	}
	var done *state
	for {
		now := state{config: t.opts.Config()}
		now.runs, now.closed = t.opts.Ended()
		if (done == nil || !reflect.DeepEqual(*done, now)) && !t.opts.Busy() {
			levels, dropped, err := t.opts.Reader.Levels(ctx, now.config, t.opts.Busy)
			switch {
			case errors.Is(err, ErrStopped), ctx.Err() != nil:
			case err != nil:
				t.opts.Log.Error("history not tracked", "err", err)
				done = &now
			default:
				done = &now
				t.mu.Lock()
				t.levels, t.dropped = levels, dropped
				t.mu.Unlock()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Levels returns the present levels of the configured measures, of each the MaxSeries with
// the newest runs, and how many series were left out. stop is Query.Stop.
func (r *Reader) Levels(ctx context.Context, c Config, stop func() bool) (levels []Level, dropped int, err error) {
	by := KindOf(c.By)
	for _, name := range c.Measures {
		condition, err := review.ParseName(name)
		if err != nil {
			return nil, 0, err
		}
		rows, _, err := r.Rows(ctx, Query{Observed: condition.Scope() != measure.Run, Stop: stop})
		if err != nil {
			return nil, 0, err
		}
		all, err := NewTrend(rows, TrendOptions{Measure: name, By: by, KeepFacts: true})
		if err != nil {
			continue // no run has it
		}
		all.Series = newestOf(all.Series, len(by))
		newest := func(s *TrendSeries) time.Time { return s.Runs[len(s.Runs)-1].StartedAt }
		slices.SortStableFunc(all.Series, func(a, b TrendSeries) int { return newest(&b).Compare(newest(&a)) })
		if n := len(all.Series) - c.MaxSeries; n > 0 {
			dropped += n
			all.Series = all.Series[:c.MaxSeries]
		}
		for i := range all.Series {
			levels = append(levels, level(all, &all.Series[i], name))
		}
	}
	return levels, dropped, nil
}

// newestOf returns of the series with the same first facts the one with the newest run: they
// differ in parameters, which metrics do not have.
func newestOf(all []TrendSeries, facts int) []TrendSeries {
	var kept []TrendSeries
	at := map[string]int{}
	for _, s := range all {
		s.Facts = s.Facts[:facts]
		key := fmt.Sprintf("%q", s.Facts)
		i, known := at[key]
		switch {
		case !known:
			at[key] = len(kept)
			kept = append(kept, s)
		case s.Runs[len(s.Runs)-1].StartedAt.After(kept[i].Runs[len(kept[i].Runs)-1].StartedAt):
			kept[i] = s
		}
	}
	return kept
}

func level(t *Trend, s *TrendSeries, name string) Level {
	last, present := s.Runs[len(s.Runs)-1], s.Levels[len(s.Levels)-1]
	l := Level{Measure: name, Last: t.Base(last.Value), Started: last.StartedAt, Mean: t.Base(present.Mean), Runs: present.Runs, Since: s.Runs[0].StartedAt}
	for _, f := range s.Facts {
		l.Facts = append(l.Facts, rundir.Fact{Name: f.Name, Value: f.Value})
	}
	if n := len(s.Changes); n > 0 {
		c := &s.Changes[n-1]
		l.Since = c.At
		if c.From != 0 {
			l.Change = series.Some(c.To/c.From - 1)
		}
	}
	return l
}

// KindOf returns the facts whose values make a series each: report.KindFacts and others.
func KindOf(others []string) []string {
	by := slices.Clone(KindFacts)
	for _, name := range others {
		if !slices.Contains(by, name) {
			by = append(by, name)
		}
	}
	return by
}

// Check returns an error for a configuration that names no measure, or a label that no
// metric can have.
func (c *Config) Check() error {
	for _, name := range c.Measures {
		if _, err := review.ParseName(name); err != nil {
			return err
		}
	}
	facts := rundir.FactNames()
	for _, name := range c.By {
		if name == "measure" {
			return fmt.Errorf("%q is a label of the metrics themselves", name)
		}
		if err := rundir.CheckLabel(name); err != nil && !slices.Contains(facts, name) {
			return err
		}
	}
	return nil
}
