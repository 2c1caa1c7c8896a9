package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"sync"
	"time"
)

// Shares of the interval. A probe has to answer within probeShare. The frame closes a little later,
// so that a prober that keeps its deadline can still report why it failed.
const (
	probeShare = 0.90
	frameShare = 0.95
	// extraShare is the minimum share of the interval for an extra tick.
	extraShare = 0.15
)

// ErrNotSampled is returned for a target before its first sample.
var ErrNotSampled = errors.New("not sampled yet")

// errLate is returned for a target that is still busy with an earlier tick.
var errLate = errors.New("no answer to an earlier tick yet")

// Options of a Sampler. The zero value is usable.
type Options struct {
	// Logger receives changes of a target's state; nil: slog.Default().
	Logger *slog.Logger
	// Now is the clock of all samples. Differences must be durations even if the machine's wall
	// clock is set; nil: time.Now.
	Now func() time.Time
}

// Sampler asks all targets at the same instants. Ticks are whole intervals of its clock, each probe
// has a deadline within its tick, and a slow or dead target never delays the others. Latest and
// subscriptions never cause a query.
//
// Each target has a member, and only the member's goroutine uses the target's prober. Run's
// goroutine hands out the ticks, closes the frames and publishes them. mu guards all other state
// and is never held during a probe.
type Sampler struct {
	open     func(Target) (Prober, error)
	interval time.Duration
	log      *slog.Logger
	now      func() time.Time
	extra    chan struct{} // SampleNow was called

	mu          sync.Mutex
	ctx         context.Context // of Run; nil before
	members     []*member
	current     *openFrame // nil between frames
	complete    chan struct{}
	missed      uint64                  // ticks at which the sampler did not run
	late        time.Duration           // sum of the delays before ticks began
	due         time.Time               // time of the next tick; zero: unknown
	trackers    map[string]*lagTracker  // by cluster
	subscribers map[chan Frame]struct{} // closed while mu is held
	ended       bool
	running     sync.WaitGroup // members' goroutines
}

// tick is an instant at which all targets are asked.
type tick struct {
	at time.Time
	// window is the time until the next tick; answers have to arrive within a share of it.
	window time.Duration
	// extra: SampleNow asked for it. Only answers count, since a shorter window is no reason to
	// report a target as down.
	extra bool
	// missed is the number of ticks missed before this one.
	missed int
}

// late reports whether an answer came so long after its deadline that this process itself must have
// stood still.
func (t *tick) late(at time.Time) bool { return at.Sub(t.at) > t.window+t.window/2 }

// openFrame is a tick that still receives answers.
type openFrame struct {
	tick
	members []*member
	waiting map[*member]struct{}
	stalled bool // answers are missing because this process stood still
}

// NewSampler returns a sampler of targets with distinct names. It calls open on a target's own
// goroutine before its first probe.
func NewSampler(targets []Target, open func(Target) (Prober, error), interval time.Duration, opts Options) *Sampler {
	s := &Sampler{
		open:        open,
		interval:    interval,
		log:         opts.Logger,
		now:         opts.Now,
		extra:       make(chan struct{}, 1),
		complete:    make(chan struct{}, 1),
		trackers:    map[string]*lagTracker{},
		subscribers: map[chan Frame]struct{}{},
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.Update(targets)
	return s
}

// Run samples until ctx ends. It then closes the probers and the subscribers' channels. It waits at
// most one interval for a prober that ignores its context.
func (s *Sampler) Run(ctx context.Context) error {
	if s.interval <= 0 {
		return fmt.Errorf("sample interval %v is not positive", s.interval)
	}
	s.mu.Lock()
	if s.ctx != nil {
		s.mu.Unlock()
		return errors.New("sampler was already started")
	}
	s.ctx = ctx
	for _, m := range s.members {
		s.start(m)
	}
	s.mu.Unlock()

	defer s.shutDown()
	var last time.Time
	for {
		next, ok := s.awaitTick(ctx, last)
		if !ok {
			return nil
		}
		if !next.extra {
			last = next.at
		}
		s.begin(next)
		if _, ok := wait(ctx, share(next.window, frameShare)-max(0, s.now().Sub(next.at)), s.complete); !ok {
			return nil
		}
		frame, stuck := s.finish()
		for _, m := range stuck {
			m.log.Error("target can't be sampled", "err", "the connection ignores its deadline")
		}
		if len(frame.Samples) > 0 || !next.extra {
			s.publish(frame)
		}
	}
}

// SampleNow asks the targets as soon as no tick is open. It does nothing shortly before the next
// tick, which serves the same purpose.
func (s *Sampler) SampleNow() {
	select {
	case s.extra <- struct{}{}:
	default:
	}
}

// MissedTicks returns how many ticks passed without samples because this process or its machine
// stood still.
func (s *Sampler) MissedTicks() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missed
}

// Late returns the total delay of all ticks so far, including the one that is due now: this process had no core, or its
// machine was stalled.
func (s *Sampler) Late() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.late
	if !s.due.IsZero() {
		late += max(0, s.now().Sub(s.due))
	}
	return late
}

// awaitTick sleeps until the next whole interval or until SampleNow. It counts a tick as missed if
// it wakes up too late, because the machine was suspended or the process stopped.
func (s *Sampler) awaitTick(ctx context.Context, last time.Time) (tick, bool) {
	for {
		now := s.now()
		next := now.Add(s.interval - now.Sub(now.Truncate(s.interval)))
		if !last.IsZero() && next.Sub(last) < s.interval/2 { // woken slightly too early
			next = next.Add(s.interval)
		}
		extra, ok := wait(ctx, next.Sub(now), s.extra)
		if !ok {
			return tick{}, false
		}
		now = s.now()
		if extra {
			if window := next.Sub(now); window > share(s.interval, extraShare) {
				return tick{at: now, window: window, extra: true}, true
			}
			continue
		}
		if now.Sub(next) > s.interval/2 {
			continue
		}
		t := tick{at: next, window: s.interval}
		if !last.IsZero() {
			t.missed = max(0, int(math.Round(next.Sub(last).Seconds()/s.interval.Seconds()))-1)
		}
		return t, true
	}
}

// begin hands the tick to every member that is free and due.
func (s *Sampler) begin(t tick) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select { // a signal left over from a frame that closed at its deadline
	case <-s.complete:
	default:
	}
	f := &openFrame{tick: t, members: s.members, waiting: map[*member]struct{}{}}
	s.current = f
	s.missed += uint64(t.missed)
	now := s.now()
	if !t.extra {
		if !s.due.IsZero() {
			s.late += max(0, now.Sub(s.due))
		}
		s.due = t.at.Add(s.interval)
	}
	for _, m := range f.members {
		switch {
		case t.extra && (m.busy || m.failures > 0):
		case m.busy:
			m.record(failure(m, t.at, now, errLate))
		case now.Before(m.retryAt):
			m.record(failure(m, t.at, now, m.last.Err))
		default:
			m.busy = true
			f.waiting[m] = struct{}{}
			m.ticks <- t
		}
	}
	s.settle(f)
}

// wait waits for d or until there is a signal. It returns false if ctx ends first.
func wait(ctx context.Context, d time.Duration, signal <-chan struct{}) (signalled, ok bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, false
	case <-signal:
		return true, true
	case <-timer.C:
		return false, true
	}
}

// answered takes a member's answer. It drops an answer that comes after its frame has closed.
func (s *Sampler) answered(m *member, sample Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.busy = false
	if sample.Err == nil {
		m.failures = 0
	} else {
		m.failures++
		m.retryAt = sample.Answered.Add(backoff(m.failures, s.interval, sample.Err))
	}
	f := s.current
	if f == nil || !f.at.Equal(sample.Tick) {
		return
	}
	if _, ok := f.waiting[m]; ok {
		delete(f.waiting, m)
		if s.counts(f, sample.Err, sample.Answered) {
			m.record(sample)
		}
		s.settle(f)
	}
}

// counts reports whether a sample is evidence about its target. A failure is not if this process
// had no time to receive the answer.
func (s *Sampler) counts(f *openFrame, err error, at time.Time) bool {
	switch {
	case err == nil:
		return true
	case f.extra:
		return false
	case f.late(at):
		f.stalled = true
		return false
	}
	return true
}

// settle computes the lag of each cluster whose members have all answered, and signals Run when no
// member is pending.
func (s *Sampler) settle(f *openFrame) {
	waiting := map[string]bool{}
	for m := range f.waiting {
		waiting[m.target.Cluster] = true
	}
	clusters := map[string][]*Sample{}
	for _, m := range f.members {
		name := m.target.Cluster
		sample := &m.last
		if !sample.Tick.Equal(f.at) { // not asked, or does not count
			sample = &Sample{Target: m.target, Err: ErrNotSampled}
		}
		switch _, open := f.waiting[m]; {
		case open || m.lagTick.Equal(f.at):
			continue
		case name == "":
			ownLag(sample)
		case waiting[name]:
			continue
		default:
			clusters[name] = append(clusters[name], sample)
		}
		m.lagTick = f.at
	}
	for name, samples := range clusters {
		t := s.trackers[name]
		if t == nil {
			t = &lagTracker{}
			s.trackers[name] = t
		}
		t.measure(samples)
	}
	if len(f.waiting) == 0 {
		select {
		case s.complete <- struct{}{}:
		default:
		}
	}
}

// finish closes the open frame. A target that has not answered is down. It also returns the members
// that missed their deadline.
func (s *Sampler) finish() (frame Frame, stuck []*member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.current
	now := s.now()
	for m := range f.waiting {
		if err := deadlineError(s.interval); s.counts(f, err, now) {
			m.record(failure(m, f.at, now, err))
			stuck = append(stuck, m)
		}
	}
	clear(f.waiting)
	s.settle(f)
	s.current = nil

	if f.stalled {
		s.missed++
	}
	frame = Frame{Tick: f.at, Interval: s.interval, Missed: f.missed, Samples: make([]Sample, 0, len(f.members))}
	for _, m := range f.members {
		if m.last.Tick.Equal(f.at) { // otherwise removed since the tick, or does not count
			frame.Samples = append(frame.Samples, m.last)
		}
	}
	return frame, stuck
}

// Latest returns each target's newest sample, never older than two ticks. It does not wait for
// slower targets: until the whole cluster has answered, a sample has the lag of the previous tick.
func (s *Sampler) Latest() Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	frame := Frame{Interval: s.interval, Samples: make([]Sample, len(s.members))}
	for i, m := range s.members {
		sample := m.last
		if sample.Err == nil && now.Sub(sample.Answered) > 2*s.interval {
			sample = failure(m, sample.Tick, now, errors.New("no sample for two intervals"))
		}
		if sample.Tick.After(frame.Tick) {
			frame.Tick = sample.Tick
		}
		frame.Samples[i] = sample
	}
	return frame
}

// Targets returns the targets in the order of the configuration.
func (s *Sampler) Targets() []Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	targets := make([]Target, len(s.members))
	for i, m := range s.members {
		targets[i] = *m.target
	}
	return targets
}

// Update replaces the targets. An unchanged target keeps its connection and its history; a changed
// one starts over.
func (s *Sampler) Update(targets []Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := map[string]*member{}
	for _, m := range s.members {
		old[m.target.Name] = m
	}
	members := make([]*member, 0, len(targets))
	clusters := map[string]bool{}
	for _, t := range targets {
		clusters[t.Cluster] = true
		if m := old[t.Name]; m != nil && sameTarget(m.target, &t) {
			delete(old, t.Name)
			members = append(members, m)
			continue
		}
		m := newMember(s, t)
		if was := old[t.Name]; was != nil && sameServer(was.target, &t) {
			m.settings, m.settingsDue, m.restarts, m.said = was.settings, was.settingsDue, was.restarts, was.said
		}
		members = append(members, m)
		if s.ctx != nil && !s.ended {
			s.start(m)
		}
	}
	for _, m := range old {
		m.cancel()
		if s.current != nil {
			delete(s.current.waiting, m)
		}
	}
	if s.current != nil {
		s.settle(s.current)
	}
	maps.DeleteFunc(s.trackers, func(name string, _ *lagTracker) bool { return !clusters[name] })
	s.members = members
}

// start starts a member's goroutine. The caller holds mu.
func (s *Sampler) start(m *member) {
	ctx, cancel := context.WithCancel(s.ctx)
	m.cancel = cancel
	s.running.Go(func() { m.run(ctx) })
}

// shutDown ends the members and the subscriptions.
func (s *Sampler) shutDown() {
	s.mu.Lock()
	s.ended = true
	for _, m := range s.members {
		m.cancel()
	}
	for sub := range s.subscribers {
		close(sub)
	}
	clear(s.subscribers)
	s.mu.Unlock()

	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	timer := time.NewTimer(max(s.interval, time.Second))
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		s.log.Warn("a target's connection did not close in time")
	}
}

func share(d time.Duration, part float64) time.Duration {
	return time.Duration(float64(d) * part)
}

func failure(m *member, tick, now time.Time, err error) Sample {
	return Sample{Target: m.target, Tick: tick, Asked: now, Answered: now, Err: err}
}

func deadlineError(interval time.Duration) error {
	return fmt.Errorf("no answer within %v", share(interval, probeShare))
}

// Subscribe returns a channel that receives each complete frame once, and a function that ends the
// subscription. The channel is closed then, or when the sampler ends. A reader that falls more than
// buffer frames behind loses the oldest frames, so it never delays the sampling.
func (s *Sampler) Subscribe(buffer int) (frames <-chan Frame, cancel func()) {
	sub := make(chan Frame, max(buffer, 1))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		close(sub)
		return sub, func() {}
	}
	s.subscribers[sub] = struct{}{}
	return sub, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, ok := s.subscribers[sub]; ok {
			delete(s.subscribers, sub)
			close(sub)
		}
	}
}

// publish sends the frame to the subscribers without waiting for them.
func (s *Sampler) publish(frame Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.subscribers {
		for sent := false; !sent; {
			select {
			case sub <- frame:
				sent = true
			default:
				select { // full: make room
				case <-sub:
				default:
				}
			}
		}
	}
}
