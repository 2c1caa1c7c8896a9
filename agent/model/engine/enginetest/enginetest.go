// Package enginetest contains helpers for the tests of all engines: a port for a fake server, and
// checks of how an engine opens targets, of a status' values, of a sample's lag, and of the
// measures that an engine declares.
package enginetest

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Want reports an error unless the value of m in s is want.
func Want(t testing.TB, s *engine.Status, want float64, m *measure.Metric, labels ...string) {
	t.Helper()
	if v, ok := s.Get(m, labels...); !ok || v != want {
		t.Errorf("%s %q is %v (known: %v), want %v", m.Name, labels, v, ok, want)
	}
}

// Absent reports an error if s has a value of m.
func Absent(t testing.TB, s *engine.Status, m *measure.Metric, labels ...string) {
	t.Helper()
	if v, ok := s.Get(m, labels...); ok {
		t.Errorf("%s %q is %v, want no value", m.Name, labels, v)
	}
}

// Value returns a value of s, or fails the test if it is missing.
func Value(t testing.TB, s *engine.Sample, m *measure.Metric, labels ...string) float64 {
	t.Helper()
	if !s.Up() {
		t.Fatalf("%s is down: %v", s.Target.Name, s.Err)
	}
	v, ok := s.Status.Get(m, labels...)
	if !ok {
		t.Fatalf("%s has no %s %q", s.Target.Name, m.Name, labels)
	}
	return v
}

// WellFormed reports an error for each value of s that is set twice or has the wrong number of
// labels, since /metrics would drop it. It returns s.
func WellFormed(t testing.TB, s *engine.Status) *engine.Status {
	t.Helper()
	seen := map[string]bool{}
	for i := range s.Values {
		v := &s.Values[i]
		if len(v.Labels) != len(v.Metric.Labels) {
			t.Errorf("%s %q has %d label values, want %d", v.Metric.Name, v.Labels, len(v.Labels), len(v.Metric.Labels))
			continue
		}
		if seen[v.Name()] {
			t.Errorf("%s is set twice", v.Name())
		}
		seen[v.Name()] = true
	}
	return s
}

// Lag reports an error unless s is behind by this many transactions, and by this many seconds
// within a tolerance.
func Lag(t testing.TB, s *engine.Sample, transactions, seconds, tolerance float64) {
	t.Helper()
	if l := s.LagTransactions; !l.Known || l.Value != transactions {
		t.Errorf("lag %v transactions, want %v", l, transactions)
	}
	if l := s.LagSeconds; !l.Known || math.Abs(l.Value-seconds) > tolerance {
		t.Errorf("lag %v seconds, want %v", l, seconds)
	}
}

// Measures reports an error unless two statuses of one server, a second apart, give a value for
// each measure with these ids.
func Measures(t testing.TB, previous, current *engine.Status, ids ...string) {
	t.Helper()
	now := time.Now()
	target := &engine.Target{}
	w := engine.NewWindow(&engine.Sample{Target: target, Answered: now.Add(-time.Second), Status: previous},
		&engine.Sample{Target: target, Answered: now, Status: current})
	for _, id := range ids {
		i := slices.IndexFunc(measure.All(measure.Server), func(m *measure.Measure) bool { return m.ID == id })
		if i < 0 {
			t.Errorf("there is no measure %s", id)
			continue
		}
		if m := measure.All(measure.Server)[i]; !w.Now(m).Known {
			t.Errorf("measure %s has no value", id)
		}
	}
}
