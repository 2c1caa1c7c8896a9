package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// seqno is a position in the history called cluster.
type seqno struct {
	cluster string
	n       uint64
}

func (p seqno) Behind(other Position) (uint64, bool) {
	o, ok := other.(seqno)
	if !ok || o.cluster != p.cluster {
		return 0, false
	}
	return o.n - min(p.n, o.n), true
}
func (p seqno) Scalar() float64 { return float64(p.n) }
func (p seqno) String() string  { return fmt.Sprintf("%s:%d", p.cluster, p.n) }

// fake is a server as its prober sees it.
type fake struct {
	mu     sync.Mutex
	probes []time.Time
	closed bool
	answer func(ctx context.Context) (*Status, error)
}

func (f *fake) Probe(ctx context.Context) (*Status, error) {
	f.mu.Lock()
	f.probes = append(f.probes, time.Now())
	answer := f.answer
	f.mu.Unlock()
	return answer(ctx)
}

func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

func (f *fake) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.probes)
}

func (f *fake) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

func after(d time.Duration, s *Status) func(context.Context) (*Status, error) {
	return func(ctx context.Context) (*Status, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(d):
			fresh := *s
			return &fresh, nil
		}
	}
}

func fails(err error) func(context.Context) (*Status, error) {
	return func(context.Context) (*Status, error) { return nil, err }
}

// rig runs a sampler over fakes inside a synctest bubble.
type rig struct {
	*Sampler
	logs   *bytes.Buffer
	frames <-chan Frame
	stop   func()
}

func newRig(t *testing.T, targets []Target, fakes map[string]*fake) *rig {
	t.Helper()
	logs := &bytes.Buffer{}
	s := NewSampler(targets, func(target Target) (Prober, error) {
		f := fakes[target.Name]
		if f == nil {
			return nil, fmt.Errorf("unknown target %s", target.Name)
		}
		return f, nil
	}, time.Second, Options{Logger: slog.New(slog.NewTextHandler(logs, nil))})
	frames, _ := s.Subscribe(100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return &rig{Sampler: s, logs: logs, frames: frames, stop: func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}}
}

func (r *rig) sample(f Frame, name string) *Sample {
	for i := range f.Samples {
		if f.Samples[i].Target.Name == name {
			return &f.Samples[i]
		}
	}
	return &Sample{Err: fmt.Errorf("no sample of %s", name)}
}

func targets(cluster string, names ...string) []Target {
	ts := make([]Target, len(names))
	for i, n := range names {
		ts[i] = Target{Name: n, Cluster: cluster}
	}
	return ts
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTicksAreWholeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(300 * time.Millisecond)
		r := newRig(t, targets("", "a"), map[string]*fake{"a": {answer: after(time.Millisecond, &Status{})}})
		defer r.stop()
		for i := range 3 {
			f := <-r.frames
			if want := time.Date(2000, 1, 1, 0, 0, i+1, 0, time.UTC); !f.Tick.Equal(want) {
				t.Errorf("tick %d at %v, want %v", i, f.Tick.UTC(), want)
			}
			if s := f.Samples[0]; !s.Up() || s.Answered.Sub(s.Asked) != time.Millisecond {
				t.Errorf("tick %d: %+v", i, s)
			}
		}
	})
}

// A server that is stopped or unreachable must not delay the others, and is down within the tick.
func TestDeadTargetDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, targets("", "dead", "alive"), map[string]*fake{
			"dead":  {answer: after(time.Hour, nil)},
			"alive": {answer: after(2*time.Millisecond, &Status{Version: "1"})},
		})
		defer r.stop()
		time.Sleep(time.Second + 10*time.Millisecond)
		if s := r.sample(r.Latest(), "alive"); !s.Up() {
			t.Errorf("alive not visible while dead is waited for: %v", s.Err)
		}
		f := <-r.frames
		if late := time.Since(f.Tick); late > 950*time.Millisecond {
			t.Errorf("frame closed %v after its tick", late)
		}
		if s := r.sample(f, "dead"); s.Up() || !strings.Contains(s.Err.Error(), "no answer within 900ms") {
			t.Errorf("dead: %v", s.Err)
		}
		if s := r.sample(f, "alive"); !s.Up() || !s.Asked.Equal(f.Tick) {
			t.Errorf("alive: %+v", s)
		}
	})
}

// A prober that ignores its context is skipped until it returns, and never asked twice at once.
func TestStuckProberIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stuck := &fake{}
		stuck.answer = func(context.Context) (*Status, error) {
			if stuck.asked() == 1 {
				<-release
			}
			return &Status{}, nil
		}
		r := newRig(t, targets("", "stuck", "alive"), map[string]*fake{
			"stuck": stuck, "alive": {answer: after(time.Millisecond, &Status{})},
		})
		defer r.stop()
		for i := range 4 {
			f := <-r.frames
			if r.sample(f, "stuck").Up() || !r.sample(f, "alive").Up() {
				t.Errorf("frame %d: %+v", i, f)
			}
		}
		if n := stuck.asked(); n != 1 {
			t.Errorf("asked %d times while stuck", n)
		}
		if n := strings.Count(r.logs.String(), "target=stuck"); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, r.logs)
		}
		close(release)
		<-r.frames
		if f := <-r.frames; !r.sample(f, "stuck").Up() {
			t.Errorf("not back: %v", r.sample(f, "stuck").Err)
		}
	})
}

// An answer that comes after its frame has closed is not shown as new.
func TestLateAnswerIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := &fake{answer: func(context.Context) (*Status, error) {
			time.Sleep(1500 * time.Millisecond)
			return &Status{}, nil
		}}
		r := newRig(t, targets("", "late"), map[string]*fake{"late": late})
		defer r.stop()
		for range 5 {
			if f := <-r.frames; f.Samples[0].Up() {
				t.Errorf("late answer shown at %v", f.Tick)
			}
			if f := r.Latest(); f.Samples[0].Up() {
				t.Errorf("late answer in Latest")
			}
		}
	})
}

func TestBackoffAndRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: fails(errors.New("wrong password"))}
		r := newRig(t, targets("", "a"), map[string]*fake{"a": f})
		defer r.stop()
		for range 100 {
			if s := (<-r.frames).Samples[0]; s.Err == nil || s.Err.Error() != "wrong password" {
				t.Fatalf("err %v", s.Err)
			}
		}
		if n := f.asked(); n < 5+15 || n > 5+30 {
			t.Errorf("%d attempts in 100 s", n)
		}
		for i, at := range f.probes[:5] {
			if !at.Equal(f.probes[0].Add(time.Duration(i) * time.Second)) {
				t.Errorf("quick retry %d came %v after the first", i, at.Sub(f.probes[0]))
			}
		}
		if n := strings.Count(r.logs.String(), "wrong password"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		f.mu.Lock()
		f.answer = after(0, &Status{})
		f.mu.Unlock()
		up := 0
		for range 12 {
			if (<-r.frames).Samples[0].Up() {
				up++
			}
		}
		if up < 1 || !strings.Contains(r.logs.String(), "answers again") {
			t.Errorf("no recovery: %d\n%s", up, r.logs)
		}
	})
}

// Asking a closed port costs nothing, so a starting server is seen at once.
func TestRefusedIsRetriedAtOnce(t *testing.T) {
	for failures := range 1000 {
		if d := backoff(failures, time.Second, fmt.Errorf("dial: %w", syscall.ECONNREFUSED)); d != 0 {
			t.Fatalf("after %d failures: %v", failures, d)
		}
		if d := backoff(failures, time.Second, errors.New("x")); d < 0 || d > maxBackoff {
			t.Fatalf("after %d failures: %v", failures, d)
		}
	}
}

func TestPanicIsAFailedProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, targets("", "a", "b"), map[string]*fake{
			"a": {answer: func(context.Context) (*Status, error) { panic("index out of range") }},
			"b": {answer: after(0, &Status{})},
		})
		defer r.stop()
		f := <-r.frames
		if r.sample(f, "a").Up() || !r.sample(f, "b").Up() {
			t.Errorf("%+v", f)
		}
	})
}

func TestUnopenableTargetIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, targets("", "nobody"), nil)
		defer r.stop()
		if f := <-r.frames; f.Samples[0].Err == nil {
			t.Errorf("%+v", f.Samples[0])
		}
	})
}

func TestMissingRightsAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, targets("", "a"), map[string]*fake{
			"a": {answer: after(0, &Status{Missing: []string{"SLAVE MONITOR: replication state"}})},
		})
		defer r.stop()
		for range 4 {
			<-r.frames
		}
		if v, ok := r.sample(<-r.frames, "a").Status.Get(MissingDetails); !ok || v != 1 {
			t.Errorf("missing details: %v (known: %v), want 1", v, ok)
		}
		if n := strings.Count(r.logs.String(), "SLAVE MONITOR"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, r.logs)
		}
	})
}

func TestLatestBeforeTheFirstTick(t *testing.T) {
	s := NewSampler(targets("", "a"), nil, time.Second, Options{})
	if f := s.Latest(); !errors.Is(f.Samples[0].Err, ErrNotSampled) {
		t.Errorf("%+v", f.Samples[0])
	}
}

// If a sampler no longer ticks, its series must vanish instead of freezing.
func TestLatestIsNeverOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, targets("", "a"), map[string]*fake{"a": {answer: after(0, &Status{})}})
		<-r.frames
		r.stop()
		if !r.Latest().Samples[0].Up() {
			t.Error("sample gone at once")
		}
		time.Sleep(2*time.Second + time.Millisecond)
		if r.Latest().Samples[0].Up() {
			t.Error("sample shown after two intervals")
		}
	})
}

func TestUpdateKeepsUnchangedTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fakes := map[string]*fake{
			"keep":  {answer: after(0, &Status{})},
			"gone":  {answer: after(time.Hour, nil)},
			"fresh": {answer: after(0, &Status{})},
		}
		r := newRig(t, targets("", "keep", "gone"), fakes)
		defer r.stop()
		<-r.frames
		time.Sleep(200 * time.Millisecond) // the next tick is open and waits for gone
		r.Update(targets("", "fresh", "keep"))
		if f := <-r.frames; len(f.Samples) != 1 || f.Samples[0].Target.Name != "keep" {
			t.Errorf("frame open during the update: %+v", f)
		}
		f := <-r.frames
		if len(f.Samples) != 2 || f.Samples[0].Target.Name != "fresh" || !f.Samples[0].Up() || !f.Samples[1].Up() {
			t.Errorf("frame after the update: %+v", f)
		}
		if fakes["keep"].isClosed() || !fakes["gone"].isClosed() {
			t.Errorf("closed: keep %v, gone %v", fakes["keep"].isClosed(), fakes["gone"].isClosed())
		}
		if got := r.Targets(); got[0].Name != "fresh" || got[1].Name != "keep" {
			t.Errorf("targets %v", got)
		}
	})
}

// A target that changes its state every second does not fill the log.
func TestFlappingIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flap := &fake{}
		flap.answer = func(context.Context) (*Status, error) {
			if flap.asked()%2 == 0 {
				return nil, errors.New("slow")
			}
			return &Status{}, nil
		}
		r := newRig(t, targets("", "a"), map[string]*fake{"a": flap})
		defer r.stop()
		for range 180 {
			<-r.frames
		}
		if n := strings.Count(r.logs.String(), "err=slow"); n != 3 {
			t.Errorf("logged %d times in 3 minutes:\n%s", n, r.logs)
		}
	})
}

// A reader that stops reading loses frames; the sampling continues.
func TestSlowSubscriberHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, targets("", "a"), map[string]*fake{"a": {answer: after(0, &Status{})}})
		slow, _ := r.Subscribe(2)
		cancelled, cancel := r.Subscribe(2)
		cancel()
		cancel()
		if _, open := <-cancelled; open {
			t.Error("frame after cancel")
		}
		for range 10 {
			<-r.frames
		}
		r.stop()
		var ticks []int
		for f := range slow {
			ticks = append(ticks, f.Tick.UTC().Second())
		}
		if fmt.Sprint(ticks) != "[9 10]" {
			t.Errorf("got %v, want the newest two", ticks)
		}
	})
}

// At the end of a run the servers are sampled at once. That disturbs no tick.
func TestSampleNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, dead := &fake{answer: after(200*time.Millisecond, &Status{})}, &fake{answer: fails(syscall.ECONNREFUSED)}
		r := newRig(t, targets("", "a", "slow", "dead"), map[string]*fake{
			"a": {answer: after(time.Millisecond, &Status{})}, "slow": slow, "dead": dead,
		})
		defer r.stop()
		first := <-r.frames
		time.Sleep(300 * time.Millisecond)
		r.SampleNow()
		r.SampleNow()
		f := <-r.frames
		if since := f.Tick.Sub(first.Tick); since != 500*time.Millisecond || len(f.Samples) != 2 || !f.Samples[0].Up() || !f.Samples[1].Up() {
			t.Errorf("extra frame after %v: %+v", since, f.Samples)
		}
		slow.mu.Lock()
		slow.answer = after(400*time.Millisecond, &Status{})
		slow.mu.Unlock()
		for i := range 3 { // no answer before the next tick is not a failure here
			time.Sleep(time.Duration(i) * 100 * time.Millisecond)
			r.SampleNow()
		}
		for i := 2; i < 5; {
			f := <-r.frames
			if f.Tick.Nanosecond() != 0 {
				if s := r.sample(f, "dead"); !strings.Contains(s.Err.Error(), "no sample") {
					t.Errorf("dead target was asked at an extra tick: %v", s.Err)
				}
				continue
			}
			if since := f.Tick.Sub(first.Tick); since != time.Duration(i-1)*time.Second || !r.sample(f, "slow").Up() || r.sample(f, "dead").Up() {
				t.Errorf("tick %d after %v: %+v", i, since, f.Samples)
			}
			i++
		}
		if n := r.MissedTicks(); n != 0 {
			t.Errorf("%d ticks missed", n)
		}
	})
}

// If the process stood still, that is no reason to report servers as down.
func TestMissedTicksAreTheSamplersOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stood atomic.Int64
		inFlight, dead := &fake{}, &fake{answer: after(time.Hour, nil)}
		inFlight.answer = func(ctx context.Context) (*Status, error) {
			if inFlight.asked() == 3 { // the process is stopped here; when it continues, the deadline is over
				<-ctx.Done()
				stood.Add(int64(3700 * time.Millisecond))
				return nil, ctx.Err()
			}
			return &Status{}, nil
		}
		s := NewSampler(targets("", "a", "dead"), func(target Target) (Prober, error) {
			return map[string]*fake{"a": inFlight, "dead": dead}[target.Name], nil
		}, time.Second, Options{
			Logger: slog.New(slog.DiscardHandler),
			Now:    func() time.Time { return time.Now().Add(time.Duration(stood.Load())) },
		})
		frames, _ := s.Subscribe(100)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		down := 0
		var ticks []int
		for range 6 {
			f := <-frames
			ticks = append(ticks, f.Tick.UTC().Second())
			for i := range f.Samples {
				if f.Samples[i].Target.Name == "a" && !f.Samples[i].Up() {
					down++
				}
			}
		}
		cancel()
		<-done
		if down != 0 {
			t.Errorf("the server is called down %d times", down)
		}
		// The third tick had no answer, and the ticks at seconds 4 to 7 did not begin.
		if n := s.MissedTicks(); n != 5 || fmt.Sprint(ticks) != "[1 2 3 8 9 10]" {
			t.Errorf("%d ticks missed; frames of the seconds %v", n, ticks)
		}
		if late := s.Late(); late < 4*time.Second || late > 4100*time.Millisecond { // the tick of second 4
			t.Errorf("ticks were late for %v", late)
		}
	})
}

// A password corrected in its file is used at the next attempt, without a reload. An unchanged
// password does not cost a connection.
func TestPasswordIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inFile atomic.Value
		inFile.Store(Secret("old"))
		target := Target{Name: "a", Password: "old", ReadPassword: func() (Secret, error) { return inFile.Load().(Secret), nil }}
		var opened []Secret
		s := NewSampler([]Target{target}, func(target Target) (Prober, error) {
			opened = append(opened, target.Password)
			return &fake{answer: func(context.Context) (*Status, error) {
				if target.Password != "new" {
					return nil, errors.New("login refused")
				}
				return &Status{}, nil
			}}, nil
		}, time.Second, Options{Logger: slog.New(slog.DiscardHandler)})
		frames, _ := s.Subscribe(100)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		for range 3 {
			if f := <-frames; f.Samples[0].Up() {
				t.Error("up with the wrong password")
			}
		}
		inFile.Store(Secret("new"))
		up := false
		for range 8 {
			f := <-frames
			up = up || f.Samples[0].Up()
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if !up || !slices.Equal(opened, []Secret{"old", "new"}) {
			t.Errorf("up %v; opened with %d passwords", up, len(opened))
		}
	})
}
