package retention

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// keeperStand is a Keeper that runs, whose clock and configuration the test sets.
type keeperStand struct {
	*stand
	keeper *Keeper
	log    *lockedBuffer

	mu      sync.Mutex
	rule    Rule
	failure error
	busy    bool
	wall    time.Time
	boot    time.Duration
}

// lockedBuffer is a log that a test reads while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func startKeeper(t *testing.T, s *stand, rule Rule) *keeperStand {
	t.Helper()
	k := &keeperStand{stand: s, log: &lockedBuffer{}, rule: rule, wall: testNow, boot: time.Hour}
	k.keeper = NewKeeper(KeeperOptions{DataDir: s.dir, Log: slog.New(slog.NewTextHandler(k.log, nil)),
		Options: func() (Options, error) {
			k.mu.Lock()
			defer k.mu.Unlock()
			return Options{Rule: k.rule}, k.failure
		},
		Busy: func() bool { k.mu.Lock(); defer k.mu.Unlock(); return k.busy },
		Clock: &clock.Clock{ID: "boot",
			Wall: func() time.Time { k.mu.Lock(); defer k.mu.Unlock(); return k.wall },
			Boot: func() time.Duration { k.mu.Lock(); defer k.mu.Unlock(); return k.boot }},
	})
	k.keeper.interval, k.keeper.poll = 10*time.Millisecond, time.Millisecond
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); k.keeper.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return k
}

func (k *keeperStand) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

// await waits until a condition holds for the statistics.
func (k *keeperStand) await(t *testing.T, what string, holds func(Stats) bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(k.keeper.Stats()); {
		if time.Now().After(deadline) {
			t.Fatalf("not seen: %s\n%+v\n%s", what, k.keeper.Stats(), k.log)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// TestKeeper guards what the agent does: nothing without a limit; nothing while a run is in progress; then what the
// configuration says, counted by limit and logged, with what it leaves counted.
func TestKeeper(t *testing.T) {
	s := newStand(t, rand.New(rand.NewPCG(3, 3)), 120)
	half := filepath.Join(rundir.Root(s.dir), ".removed-20250101T000000Z-x")
	must(t, os.MkdirAll(half, 0o755))
	k := startKeeper(t, s, Rule{})
	k.await(t, "finished removals", func(Stats) bool { _, err := os.Lstat(half); return err != nil })
	if got := k.keeper.Stats(); got.Enabled || s.count(t) != 121 {
		t.Errorf("without a limit: %+v, %d runs", got, s.count(t))
	}

	want := s.rest(t, Rule{MaxCount: 50})
	k.set(func() { k.rule, k.busy = Rule{MaxCount: 50}, true })
	k.keeper.Kick()
	k.await(t, "a plan", func(s Stats) bool { return s.Kept > 0 })
	if n := s.count(t); n != 121 {
		t.Errorf("%d runs while one is in progress", n)
	}
	k.set(func() { k.busy = false })
	k.await(t, "removals", func(st Stats) bool { return st.Removed[Count] == uint64(121-len(want)) })
	if got := k.keeper.Stats(); got.Bytes == 0 || got.Failing || got.Removed[Age] != 0 {
		t.Errorf("%+v", got)
	}
	if n := strings.Count(k.log.String(), `msg="run removed"`); n != 121-len(want) {
		t.Errorf("%d removals are logged, %d were made", n, 121-len(want))
	}

	k.set(func() { k.failure = errors.New("archive: no credentials") })
	k.await(t, "failures", func(s Stats) bool { return s.Failing && s.Failures > 3 })
	if n := strings.Count(k.log.String(), "no credentials"); n != 1 {
		t.Errorf("one cause is logged %d times", n)
	}
	k.set(func() { k.failure = nil })
	k.await(t, "success", func(s Stats) bool { return !s.Failing })
	s.checkWhole(t)
}

// TestKeeperClock guards that a wall clock that jumps a year ahead removes nothing by age, while count still does; that
// this is logged once and is no failure; and that it works again when the clock is set back.
func TestKeeperClock(t *testing.T) {
	s := newStand(t, rand.New(rand.NewPCG(4, 4)), 100)
	const day = 24 * time.Hour
	byCount := s.rest(t, Rule{MaxCount: 90})
	byBoth := s.rest(t, Rule{MaxCount: 90, MaxAge: 20 * day})
	k := startKeeper(t, s, Rule{MaxAge: 365 * day})
	k.await(t, "a look", func(s Stats) bool { return s.Enabled })
	k.set(func() { k.wall = k.wall.AddDate(1, 0, 0) })
	k.await(t, "doubt", func(Stats) bool { return strings.Contains(k.log.String(), "the clock jumped by 366 days") })
	if got := k.keeper.Stats(); s.count(t) != 101 || got.Failing {
		t.Errorf("%d runs are left: %+v", s.count(t), got)
	}
	k.set(func() { k.rule.MaxCount = 90 })
	k.await(t, "count", func(st Stats) bool { return st.Removed[Count] == uint64(101-len(byCount)) && st.Removed[Age] == 0 })
	k.set(func() { k.wall, k.rule.MaxAge = k.wall.AddDate(-1, 0, 0), 20*day })
	k.await(t, "age", func(Stats) bool { return s.count(t) == len(byBoth) })
	if n := strings.Count(k.log.String(), "the clock jumped"); n != 1 {
		t.Errorf("the jump is logged %d times:\n%s", n, k.log)
	}
}

func (s *stand) count(t *testing.T) int {
	t.Helper()
	ids, err := rundir.List(s.dir)
	must(t, err)
	return len(slices.Compact(ids))
}
