package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// at returns the sample of a node that was at position n, seconds after epoch.
func at(seconds float64, n uint64) *Sample {
	return &Sample{
		Answered: epoch.Add(time.Duration(seconds * float64(time.Second))),
		Status:   &Status{Replicating: true, Position: seqno{"c", n}},
	}
}

// want checks lag in transactions and seconds; negative means absent.
func want(t *testing.T, what string, s *Sample, transactions, seconds float64) {
	t.Helper()
	check := func(name string, got series.Optional[float64], want float64) {
		t.Helper()
		switch {
		case want < 0 && got.Known:
			t.Errorf("%s: %s is %v, want absent", what, name, got.Value)
		case want >= 0 && !got.Known:
			t.Errorf("%s: %s is absent, want %v", what, name, want)
		case want >= 0 && math.Abs(got.Value-want) > 1e-6:
			t.Errorf("%s: %s is %v, want %v", what, name, got.Value, want)
		}
	}
	check("transactions", s.LagTransactions, transactions)
	check("seconds", s.LagSeconds, seconds)
}

const absent = -1

func TestLagInSecondsGoesByWhenTheLeaderWasThere(t *testing.T) {
	var tr lagTracker
	for i := range 10 { // 100 a second; the replica stays at 150
		a, b := at(float64(i), uint64(100*i)), at(float64(i), min(uint64(100*i), 150))
		tr.measure([]*Sample{a, b})
		want(t, "leader", a, 0, 0)
		switch i {
		case 0, 1:
			want(t, "level", b, 0, 0)
		case 2:
			want(t, "half a second behind", b, 50, 0.5)
		case 9:
			want(t, "far behind", b, 750, 7.5)
		}
	}
	// The load has ended: the leader stays, time passes until b has caught up.
	a, b := at(20, 900), at(20, 150)
	tr.measure([]*Sample{a, b})
	want(t, "idle leader", b, 750, 18.5)
	a, b = at(21, 900), at(21, 900)
	tr.measure([]*Sample{a, b})
	want(t, "caught up", b, 0, 0)
}

// A load begins after an idle hour. Its first transactions came at an unknown time within the last
// tick, so they do not count as old as the tick. A replica that receives nothing is behind by the
// time since they were seen.
func TestLagAfterIdling(t *testing.T) {
	var tr lagTracker
	for i := range 60 {
		tr.measure([]*Sample{at(float64(i), 10), at(float64(i), 10), at(float64(i), 10)})
	}
	b, stopped := at(60.01, 200), at(60, 10)
	tr.measure([]*Sample{at(60, 210), b, stopped})
	want(t, "first tick of the load", b, 10, absent)
	want(t, "first tick of the load, stopped", stopped, 200, absent)
	b, stopped = at(61, 1110), at(61, 10)
	tr.measure([]*Sample{at(61, 1210), b, stopped})
	want(t, "second tick of the load", b, 100, 0.1)
	want(t, "second tick of the load, stopped", stopped, 1200, 1)

	var single lagTracker // one transaction, then nothing
	for i := range 3 {
		single.measure([]*Sample{at(float64(i), 10), at(float64(i), 10)})
	}
	single.measure([]*Sample{at(3, 11), at(3, 10)})
	b = at(5, 10)
	single.measure([]*Sample{at(5, 11), b})
	want(t, "one transaction two seconds ago", b, 1, 2)
}

// Answers are milliseconds apart, so a replica can appear ahead of its primary. That is no lag of
// the primary.
func TestAPrimaryHasNoLag(t *testing.T) {
	var tr lagTracker
	for i := range 5 {
		p, r := at(float64(i), uint64(100*i)), at(float64(i)+0.02, uint64(100*i+2))
		p.Status.Role, r.Status.Role = "primary", "replica"
		tr.measure([]*Sample{p, r})
		want(t, "primary", p, absent, absent)
		want(t, "replica", r, 0, 0)
		if !p.Source || r.Source {
			t.Errorf("source: primary %v, replica %v", p.Source, r.Source)
		}
	}
	a, b := at(5, 500), at(5, 490) // in multi-primary mode each can be behind
	a.Status.Role, b.Status.Role = "primary", "primary"
	tr.measure([]*Sample{a, b})
	want(t, "one of two primaries", b, 10, 0.1)
	if a.Source || b.Source {
		t.Error("one of two primaries is the source")
	}
	alone := at(6, 600)
	alone.Status.Role = "primary"
	if tr.measure([]*Sample{alone, {Err: errors.New("down")}}); !alone.Source {
		t.Error("a primary whose replica is down is no source")
	}
}

// A member that lacks nothing has no lag, even if the server reports a past one.
func TestNoLagWhereNothingIsMissing(t *testing.T) {
	var tr lagTracker
	for i := range 5 {
		a, b := at(float64(i), 100), at(float64(i), 100)
		b.Status.LagSeconds = series.Some(0.25)
		tr.measure([]*Sample{a, b, {Err: errors.New("stopped")}})
		want(t, "complete member", b, 0, 0)
	}
	a, b := at(5, 200), at(5, 100)
	b.Status.LagSeconds = series.Some(0.25)
	tr.measure([]*Sample{a, b})
	want(t, "incomplete member", b, 100, 0.25)
	// The most advanced member is out of reach; this one applies what it received.
	b = at(6, 150)
	b.Status.LagSeconds = series.Some(0.7)
	tr.measure([]*Sample{{Err: errors.New("unreachable")}, b, at(6, 150)})
	want(t, "on the way to what was seen", b, 0, 0.7)
}

// Nodes that answer at different times within a tick are not behind because of that.
func TestLagUsesTheTimesOfTheAnswers(t *testing.T) {
	var tr lagTracker
	tr.measure([]*Sample{at(0, 0), at(0, 0)})
	a, b := at(1.5, 1500), at(1.2, 1200)
	tr.measure([]*Sample{a, b})
	want(t, "asked earlier", b, 300, 0)
}

func TestLagIsAbsentWhenItCannotBeKnown(t *testing.T) {
	var tr lagTracker
	alone := at(0, 5)
	tr.measure([]*Sample{alone})
	want(t, "cluster of one", alone, absent, absent)

	a, dead := at(1, 5), &Sample{Err: errors.New("down")}
	tr.measure([]*Sample{a, dead})
	want(t, "the only one that answers", a, absent, absent)
	want(t, "dead", dead, absent, absent)

	a, joining := at(2, 500), at(2, 10)
	b := at(2, 500)
	joining.Status.Replicating = false
	tr.measure([]*Sample{a, b, joining})
	want(t, "joining", joining, absent, absent)

	foreign := at(3, 1_000_000)
	foreign.Status.Position = seqno{"other", 1_000_000}
	a, b = at(3, 600), at(3, 590)
	tr.measure([]*Sample{foreign, a, b})
	want(t, "other history", foreign, absent, absent)
	want(t, "leader beside it", a, 0, 0)

	var fresh lagTracker
	a, b = at(4, 1000), at(4, 10)
	fresh.measure([]*Sample{a, b})
	want(t, "behind before the history began", b, 990, absent)
}

func TestLagOfTheServersOwn(t *testing.T) {
	coarse, fine := 7.0, 0.123
	var tr lagTracker
	tr.measure([]*Sample{at(0, 0), at(0, 0)})
	a, b, c := at(1, 100), at(1, 50), at(1, 50)
	b.Status.LagSeconds, b.Status.CoarseLagSeconds = series.Some(fine), series.Some(coarse)
	c.Status.CoarseLagSeconds = series.Some(coarse)
	tr.measure([]*Sample{a, b, c})
	want(t, "the engine's measure wins", b, 50, 0.123)
	want(t, "positions are finer than whole seconds", c, 50, 0.5)

	alone := &Sample{Status: &Status{CoarseLagSeconds: series.Some(coarse)}}
	tr.measure([]*Sample{alone})
	want(t, "no position", alone, absent, 7)
}

func TestConfiguredDelayIsNoLag(t *testing.T) {
	var tr lagTracker
	for i := range 20 {
		b := at(float64(i), uint64(max(0, 100*(i-6))))
		b.Status.Delay = 5 * time.Second
		tr.measure([]*Sample{at(float64(i), uint64(100*i)), b})
		if i > 6 {
			want(t, "delayed", b, 600, 1)
		}
	}
}

// If the leader is out of reach, its last position is not forgotten.
func TestHistoryOutlivesAnAbsentLeader(t *testing.T) {
	var tr lagTracker
	for i := range 10 {
		tr.measure([]*Sample{at(float64(i), uint64(100*i)), at(float64(i), min(100, uint64(100*i))), at(float64(i), min(90, uint64(100*i)))})
	}
	b, c := at(10, 100), at(10, 90)
	tr.measure([]*Sample{{Err: errors.New("unreachable")}, b, c})
	want(t, "the most advanced left", b, 0, 9)
	want(t, "and behind it", c, 10, 9.1)
	a, b, c := at(11, 1100), at(11, 100), at(11, 90)
	tr.measure([]*Sample{a, b, c})
	want(t, "leader back", b, 1000, 10)
}

// What a replica received while its source did not answer shows whether the source stood still or
// continued.
func TestHistoryGoesByWhatWasReceived(t *testing.T) {
	for _, c := range []struct {
		name string
		rate uint64 // rate of the source while it does not answer
		want float64
	}{{"stood still", 0, 1}, {"went on", 100, 11}} {
		var tr lagTracker
		for i := range 10 {
			tr.measure([]*Sample{at(float64(i), uint64(100*i)), at(float64(i), uint64(100*i))})
		}
		for i := range 10 {
			b := at(float64(10+i), 900)
			b.Status.Received = seqno{"c", 900 + c.rate*uint64(i+1)}
			tr.measure([]*Sample{{Err: errors.New("stopped")}, b})
		}
		reached := 900 + 10*c.rate
		tr.measure([]*Sample{at(20, reached+100), at(20, 900)})
		b := at(21, 900)
		tr.measure([]*Sample{at(21, reached+200), b})
		if got := b.LagSeconds; !got.Known || math.Abs(got.Value-c.want) > 1.01 {
			t.Errorf("%s: lag %v, want about %v s", c.name, got, c.want)
		}
	}
}

// If a cluster is set up again from an older state, its history goes back as well.
func TestHistoryFollowsAClusterThatWentBack(t *testing.T) {
	var tr lagTracker
	for i := range 10 {
		tr.measure([]*Sample{at(float64(i), uint64(100*i)), at(float64(i), uint64(100*i))})
	}
	tr.measure([]*Sample{at(20, 200), at(20, 200)})
	tr.measure([]*Sample{at(21, 210), at(21, 200)})
	b := at(22, 200)
	tr.measure([]*Sample{at(22, 220), b})
	want(t, "after going back", b, 20, 1)
}

func TestHistoryIsBounded(t *testing.T) {
	var h history
	for i := range 3 * historyLimit {
		h.add(seqno{"c", uint64(i)}, epoch.Add(time.Duration(i)*100*time.Millisecond), true)
	}
	if len(h.entries) > historyLimit {
		t.Errorf("%d entries", len(h.entries))
	}
	last := epoch.Add(time.Duration(3*historyLimit-1) * 100 * time.Millisecond)
	lag, ok := h.lag(seqno{"c", 3*historyLimit - 1 - 600}, last)
	if !ok || math.Abs(lag.Seconds()-60) > 0.2 {
		t.Errorf("lag %v %v, want a minute", lag, ok)
	}
	h.add(seqno{"c", 1 << 40}, last.Add(2*time.Hour), true)
	if _, ok := h.lag(seqno{"c", 5}, last.Add(2*time.Hour)); ok {
		t.Error("lag from before the history's age")
	}
}

// The sampler computes lag as soon as the whole cluster has answered, and shows a frame's lag from
// that frame's answers.
func TestSamplerMeasuresLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		node := func(wait time.Duration, limit uint64) *fake {
			return &fake{answer: func(context.Context) (*Status, error) {
				time.Sleep(wait)
				n := uint64(time.Since(start) / time.Millisecond)
				return &Status{Replicating: true, Position: seqno{"c", min(n, limit)}}, nil
			}}
		}
		r := newRig(t, targets("c", "n1", "n2"), map[string]*fake{"n1": node(0, math.MaxUint64), "n2": node(5*time.Millisecond, 2000)})
		defer r.stop()
		for range 5 {
			<-r.frames
		}
		f := <-r.frames // n1 at 6000, n2 at 2000 since the second tick
		n1, n2 := r.sample(f, "n1"), r.sample(f, "n2")
		want(t, "n1", n1, 0, 0)
		want(t, "n2", n2, 4000, 4.005)
		if l := r.sample(r.Latest(), "n2"); !l.LagSeconds.Known || l.LagSeconds != n2.LagSeconds {
			t.Errorf("Latest shows %v", l.LagSeconds)
		}
	})
}

// offset is a position whose transactions can't be counted.
type offset uint64

func (p offset) Behind(Position) (uint64, bool) { return 0, false }
func (p offset) Scalar() float64                { return float64(p) }
func (p offset) String() string                 { return fmt.Sprint(uint64(p)) }
func (p offset) Reaches(goal Position) bool {
	g, ok := goal.(offset)
	return ok && p >= g
}

func TestLagOfPositionsThatCannotBeCounted(t *testing.T) {
	var tr lagTracker
	for i := range 10 {
		a, b := at(float64(i), 0), at(float64(i), 0)
		a.Status.Position, b.Status.Position = offset(1000*i), offset(min(1000*i, 2500))
		tr.measure([]*Sample{b, a})
		want(t, "leader", a, absent, 0)
		if i > 2 {
			want(t, "behind", b, absent, float64(i)-2.5)
		}
	}
}
