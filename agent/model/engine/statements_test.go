package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
)

// counting is a fake that counts by statement.
type counting struct {
	*fake
	statements func(context.Context, *StatementReading) (*StatementReading, error)
}

func (c *counting) Statements(ctx context.Context, before *StatementReading) (*StatementReading, error) {
	return c.statements(ctx, before)
}

// TestReadStatements guards that a reading never lasts into the next tick and costs no sample, and
// that a server that does not answer is asked at most twice.
func TestReadStatements(t *testing.T) {
	forever := func(ctx context.Context, _ *StatementReading) (*StatementReading, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for name, c := range map[string]struct {
		answer     time.Duration
		statements func(context.Context, *StatementReading) (*StatementReading, error)
		asked      int
		err        string
	}{
		"answers":         {10 * time.Millisecond, func(context.Context, *StatementReading) (*StatementReading, error) { return &StatementReading{}, nil }, 1, ""},
		"hangs":           {10 * time.Millisecond, forever, 2, "the server took longer than 890ms"},
		"a right lacks":   {10 * time.Millisecond, func(context.Context, *StatementReading) (*StatementReading, error) { return nil, MissingError("no") }, 1, "no"},
		"panics":          {10 * time.Millisecond, func(context.Context, *StatementReading) (*StatementReading, error) { panic("no") }, 1, "internal error: no"},
		"a slow server":   {800 * time.Millisecond, forever, 0, "the server did not answer in time"},
		"no such details": {10 * time.Millisecond, nil, 0, ErrSwitchedOff.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				var p Prober = &fake{answer: after(c.answer, &Status{})}
				if c.statements != nil {
					p = &counting{p.(*fake), func(ctx context.Context, before *StatementReading) (*StatementReading, error) {
						if asked++; before == nil || before.UptimeSeconds != 7 {
							t.Errorf("asked with %+v", before)
						}
						return c.statements(ctx, before)
					}}
				}
				ctx, stop := context.WithCancel(t.Context())
				s := NewSampler([]Target{{Name: "n1"}, {Name: "n2"}}, func(t Target) (Prober, error) {
					if t.Name == "n2" {
						return &fake{answer: after(time.Millisecond, &Status{})}, nil
					}
					return p, nil
				}, time.Second, Options{Logger: slog.New(slog.DiscardHandler)})
				frames, cancel := s.Subscribe(100)
				defer cancel()
				done := make(chan error)
				go func() { done <- s.Run(ctx) }()
				<-frames
				wait, cancelWait := context.WithTimeout(ctx, 4*time.Second)
				defer cancelWait()
				all := s.ReadStatements(wait, map[string]*StatementReading{"n1": {UptimeSeconds: 7}, "unknown": nil})
				for range 3 {
					if f := <-frames; !f.Samples[0].Up() || !f.Samples[1].Up() {
						t.Errorf("%v: %v %v", f.Tick, f.Samples[0].Err, f.Samples[1].Err)
					}
				}
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
				a, ok := all["n1"]
				if !ok || len(all) != 1 || asked != c.asked || (a.Err == nil) != (c.err == "") || a.Err != nil && a.Err.Error() != c.err {
					t.Errorf("asked %d times, %v", asked, all)
				}
				if a.Err == nil && a.At.IsZero() {
					t.Error("the reading has no time")
				}
			})
		})
	}
}

// TestReadStatementsBesideADeadServer guards that waiting for a server that does not answer loses no
// other's answer.
func TestReadStatementsBesideADeadServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		targets, wanted := []Target{{Name: "dead"}}, map[string]*StatementReading{"dead": nil}
		for i := range 9 {
			targets = append(targets, Target{Name: fmt.Sprint(i)})
			wanted[fmt.Sprint(i)] = nil
		}
		ctx, stop := context.WithCancel(t.Context())
		s := NewSampler(targets, func(t Target) (Prober, error) {
			if t.Name == "dead" {
				return &fake{answer: after(time.Hour, &Status{})}, nil
			}
			return &counting{&fake{answer: after(time.Millisecond, &Status{})}, func(context.Context, *StatementReading) (*StatementReading, error) { return &StatementReading{}, nil }}, nil
		}, time.Second, Options{Logger: slog.New(slog.DiscardHandler)})
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		wait, cancelWait := context.WithTimeout(ctx, 4*time.Second)
		defer cancelWait()
		all := s.ReadStatements(wait, wanted)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for name, a := range all {
			if (a.Err == nil) != (name != "dead") {
				t.Errorf("%s: %v", name, a.Err)
			}
		}
	})
}

// reading returns a server's counts at a second of its uptime.
func reading(uptime float64, all ...Statement) *StatementReading {
	return &StatementReading{At: time.Unix(int64(1000+uptime), 0), UptimeSeconds: uptime, Statements: all}
}

func counted(digest string, first, executions, seconds float64) Statement {
	return Statement{Digest: digest, FirstSeen: first, StatementCounts: StatementCounts{Executions: executions, Seconds: seconds}}
}

// TestStatementsBetween guards that only executions in between count, and that counters that were
// reset are noticed.
func TestStatementsBetween(t *testing.T) {
	before := reading(100, counted("old", 1, 10, 5), counted("idle", 1, 100, 50))
	d, err := StatementsBetween(before, reading(160, counted("new", 120, 3, 9), counted("old", 1, 15, 6), counted("idle", 1, 100, 50)))
	if err != nil {
		t.Fatal(err)
	}
	want := []Statement{counted("new", 120, 3, 9), counted("old", 1, 5, 1)}
	if diff := cmp.Diff(want, d.Statements); diff != "" || !d.From.Equal(before.At) || d.To.Sub(d.From) != time.Minute {
		t.Errorf("%v to %v:\n%s", d.From, d.To, diff)
	}
	for name, c := range map[string]struct {
		after *StatementReading
		want  error
	}{
		"truncated":                   {reading(160, counted("old", 130, 4, 2)), ErrStatementsReset},
		"truncated, and more by now":  {reading(160, counted("old", 130, 40, 20)), ErrStatementsReset},
		"fewer of one counter":        {reading(160, counted("old", 1, 11, 4)), ErrStatementsReset},
		"restarted":                   {&StatementReading{At: before.At.Add(time.Minute), UptimeSeconds: 20}, ErrStatementsRestart},
		"restarted, and up as long":   {&StatementReading{At: before.At.Add(10 * time.Minute), UptimeSeconds: 300}, ErrStatementsRestart},
		"whole seconds of the uptime": {&StatementReading{At: before.At.Add(time.Minute + 900*time.Millisecond), UptimeSeconds: 160}, nil},
	} {
		if _, err := StatementsBetween(before, c.after); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPreparedStatements guards that executions of prepared statements count once, whether or not
// the server also counts them by text.
func TestPreparedStatements(t *testing.T) {
	for _, c := range []struct {
		questions float64
		text      float64
		want      float64
	}{{1010, 10, 1010}, {1010, 1010, 1010}} {
		before, after := reading(100), reading(160, counted(DigestPrepared, 0, 1000, 5), counted("a", 1, c.text, 5))
		before.Questions, after.Questions = series.Some(5.0), series.Some(5+c.questions)
		d, err := StatementsBetween(before, after)
		if err != nil {
			t.Fatal(err)
		}
		if total := d.Total(); total.Executions != c.want {
			t.Errorf("%v executions, want %v", total.Executions, c.want)
		}
	}
}

// TestStatementLatency guards that a histogram only covers the time in between: if an earlier
// histogram of a digest is unknown, there is none.
func TestStatementLatency(t *testing.T) {
	a, b := histogram.Bucket{Low: 0, High: 0.001, N: 4}, histogram.Bucket{Low: 0.001, High: math.Inf(1), N: 2}
	with := func(s Statement, l LatencyBuckets) Statement {
		s.Latency = l
		return s
	}
	twice := LatencyBuckets{{Low: 0, High: 0.001, N: 8}, b}
	before := reading(100, with(counted("known", 1, 4, 1), LatencyBuckets{a}), counted("unknown", 1, 4, 1), with(counted("reset", 1, 4, 1), LatencyBuckets{a, b}))
	after := reading(160, with(counted("known", 1, 10, 4), twice), with(counted("unknown", 1, 10, 3), twice), with(counted("reset", 1, 10, 2), LatencyBuckets{a}), with(counted("new", 120, 6, 0.5), LatencyBuckets{a, b}))
	data, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	var restored StatementReading
	if err := json.Unmarshal(data, &restored); err != nil {
		t.Fatal(err)
	}
	d, err := StatementsBetween(&restored, after)
	if err != nil {
		t.Fatal(err)
	}
	var got []LatencyBuckets
	for _, s := range d.Statements {
		got = append(got, s.Latency)
	}
	if diff := cmp.Diff([]LatencyBuckets{{a, b}, nil, nil, {a, b}}, got); diff != "" {
		t.Error(diff)
	}
}
