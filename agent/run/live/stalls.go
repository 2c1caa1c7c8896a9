package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/stall"
)

const (
	// watchEvery is how often a missing interval is looked for, captureEvery the distance of the moments of a capture.
	watchEvery   = 500 * time.Millisecond
	captureEvery = time.Second
	// mostMoments bounds a capture, mostCaptures those of a run. captureDistance is the time between the begins of two,
	// falseDistance if the first one was not during a stall.
	mostMoments     = 30
	mostCaptures    = 20
	captureDistance = 10 * time.Second
	falseDistance   = 3 * time.Second
	// lateness is how late an interval may be beside half of its length: the time until a line is read.
	lateness = 200 * time.Millisecond
	// manyErrors is the number of errors for each transaction from which errors begin.
	manyErrors = 0.1
)

// stalls is the tracker's state of the dips of its run. mu guards all but what belongs to the goroutine that captures.
type stalls struct {
	mu       sync.Mutex
	detector stall.Detector
	watched  stall.Watched
	// elapsed is the end of the last interval on the run's axis, reported when it was read, by the wall clock and on the
	// axis.
	elapsed  float64
	reported time.Time
	onAxis   time.Time
	calm     int // intervals without errors in a row
	counts   []ingest.StallCount
	failing  map[string]bool // targets that did not answer
	onsets   engine.Onsets

	asked    chan string // a condition of --capture-when holds
	triggers chan string // has room for one: while it is dealt with, others are of the same stall
	// The rest belongs to the goroutine that captures. next is when the next capture may begin.
	number int
	next   time.Time
	kept   []keptCapture
	told   int // the number of dips that are explained
}

// keptCapture is a capture in stalls.jsonl and how many transactions the stall cost.
type keptCapture struct {
	number int
	lost   float64
}

// noteInterval looks for a dip in an interval of the tool. The feed's mutex is held.
func (s *stalls) noteInterval(elapsed float64, r *tool.Report, fresh bool, now time.Time) {
	if r.Kind != tool.Interval || r.Phase == tool.Warmup {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, wasDip := s.detector.Current()
	isDip := s.detector.Follow(&s.watched, elapsed, r)
	s.elapsed, s.reported, s.onAxis = elapsed, time.Now(), now
	errorsBegin := s.noteErrors(r)
	switch {
	case !fresh:
	case isDip && !wasDip:
		d, _ := s.detector.Current()
		s.trigger(d.String())
	case errorsBegin:
		s.trigger("errors began")
	}
}

// noteErrors reports whether errors begin. mu is held.
func (s *stalls) noteErrors(r *tool.Report) bool {
	rate := r.Value(tool.ErrorRate)
	throughput := r.Value(tool.Throughput)
	if !rate.Known || !(rate.Value > manyErrors*max(1, throughput.Value)) {
		s.calm++
		return false
	}
	began := s.calm >= 5
	s.calm = 0
	return began
}

// noteFrame looks for servers that stop answering, and for flow control and queues that begin. Before the first interval
// that is measured, nothing is captured.
func (s *stalls) noteFrame(f *engine.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := s.onsets.Began(f)
	warm := !s.reported.IsZero()
	if began != "" && warm {
		s.trigger(began)
	}
	if s.failing == nil {
		s.failing = map[string]bool{}
	}
	for i := range f.Samples {
		x := &f.Samples[i]
		was, known := s.failing[x.Target.Name]
		s.failing[x.Target.Name] = !x.Up()
		if known && !was && !x.Up() && warm {
			s.trigger(x.Target.Name + " stopped answering")
		}
	}
}

// trigger requests a capture. It never blocks.
func (s *stalls) trigger(why string) {
	select {
	case s.triggers <- why:
	default:
	}
}

// isLate reports whether an interval is due and not there.
func (s *stalls) isLate() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	length := s.detector.Length()
	return !s.reported.IsZero() && time.Since(s.reported).Seconds() > 1.5*length+lateness.Seconds()
}

// isOver reports whether a stall that began some time ago is over.
func (s *stalls) isOver(ago time.Duration) bool {
	if s.isLate() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, isDip := s.detector.Current()
	length := s.detector.Length()
	if !(length > 0) {
		length = 1
	}
	return !isDip && ago.Seconds() > 1.5*length+lateness.Seconds()
}

// unexplained returns the dips of the run, and the first one that ended after a place on the run's axis and was not
// returned before: a trigger may closely follow the end of a dip.
func (s *stalls) unexplained(since float64) (all []stall.Dip, first int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = slices.Clone(s.detector.Dips)
	if d, isDip := s.detector.Current(); isDip {
		all = append(all, d)
	}
	first = s.told
	for first < len(all) && all[first].To < since {
		first++
	}
	s.told = len(all)
	return all, first
}

// position is the place of now on the run's axis, as far as it is known.
func (s *stalls) position() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reported.IsZero() {
		return 0
	}
	return s.elapsed + time.Since(s.reported).Seconds()
}

// time is when a place on the run's axis was.
func (s *stalls) time(elapsed float64) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.onAxis.Add(time.Duration((elapsed - s.elapsed) * float64(time.Second)))
}

// place is where a time is on the run's axis.
func (s *stalls) place(at time.Time) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.elapsed + at.Sub(s.onAxis).Seconds()
}

// snapshot returns the stalls by reason.
func (s *stalls) snapshot() []ingest.StallCount {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.counts)
}

// count adds a stall.
func (s *stalls) count(reason, text string, seconds float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.counts, func(c ingest.StallCount) bool { return c.Reason == reason })
	if i < 0 {
		i = len(s.counts)
		s.counts = append(s.counts, ingest.StallCount{Reason: reason})
	}
	for j := range s.counts {
		s.counts[j].Text = ""
	}
	s.counts[i].Text, s.counts[i].Ended = text, time.Now()
	s.counts[i].Count++
	s.counts[i].Seconds += seconds
}

// armStalls keeps the connections of the run's servers open, with which they are asked during a stall.
func (t *tracker) armStalls() {
	t.mu.Lock()
	due := t.owner != nil && !t.meta.Ended() && t.meta.Mirror == nil
	targets := t.targets()
	t.mu.Unlock()
	if due {
		t.opts.Witnesses.Arm(t.dir.ID(), targets)
	}
}

// startWatch looks for stalls until the returned function was called and the watch has ended.
func (t *tracker) startWatch(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watches sync.WaitGroup
	watches.Go(func() { t.watchStalls(ctx) })
	t.mu.Lock()
	meta := t.meta
	t.mu.Unlock()
	if len(meta.CaptureWhen) > 0 && meta.Mirror == nil && t.opts.AwaitCondition != nil {
		watches.Go(func() { t.watchConditions(ctx, &meta) })
	}
	return sync.OnceFunc(func() {
		cancel()
		watches.Wait()
		t.opts.Witnesses.Disarm(t.dir.ID())
	})
}

// watchStalls captures what servers say during stalls, until ctx is done.
func (t *tracker) watchStalls(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	late := false
	for {
		select {
		case <-ctx.Done():
			return
		case why := <-t.stalls.triggers:
			t.capture(ctx, why, false)
		case why := <-t.stalls.asked:
			t.capture(ctx, why, true)
		case <-tick.C:
			was := late
			if late = t.stalls.isLate(); late && !was {
				t.stalls.trigger("the tool's next report is late")
			}
		}
	}
}

// conditionPause is how long after a condition held the conditions are watched again.
const conditionPause = 30 * time.Second

// watchConditions has the servers asked when a condition of --capture-when holds, until ctx is done.
func (t *tracker) watchConditions(ctx context.Context, meta *rundir.Meta) {
	for ctx.Err() == nil {
		condition := t.opts.AwaitCondition(ctx, t.dir, meta)
		if condition == "" {
			return
		}
		select {
		case t.stalls.asked <- condition:
		default:
		}
		select {
		case <-ctx.Done():
		case <-time.After(conditionPause):
		}
	}
}

// capture asks servers and machines until the stall is over. A capture that was asked for is kept without a dip.
func (t *tracker) capture(ctx context.Context, why string, isAsked bool) {
	s := &t.stalls
	t.mu.Lock()
	owner, meta := t.owner != nil && t.meta.Mirror == nil && !t.meta.Ended(), t.meta
	t.mu.Unlock()
	if !owner || !t.dir.Running(&meta) && meta.Log == nil {
		return
	}
	noticed := time.Now()
	begin := max(0, s.position()-3)
	if !t.awaitNext(ctx, noticed) {
		t.finishStall(ctx, begin, nil, false)
		return
	}
	begun := time.Now()
	s.next = begun.Add(captureDistance)
	threads := t.feed.Snapshot(meta, t.now()).Threads
	c := &record.Capture{Trigger: why, Clients: float64(threads.Value), Begin: t.now().UTC().Truncate(time.Millisecond)}
	next := time.NewTicker(captureEvery)
	defer next.Stop()
	for len(c.Moments) < mostMoments {
		c.Moments = append(c.Moments, t.moment(ctx))
		if ctx.Err() != nil || s.isOver(time.Since(begun)) {
			break
		}
		select {
		case <-ctx.Done():
		case <-next.C:
		}
		if s.isOver(time.Since(begun)) {
			break
		}
	}
	c.End = t.now().UTC().Truncate(time.Millisecond)
	t.await(ctx, begun)
	if !t.finishStall(ctx, begin, c, isAsked) {
		s.next = begun.Add(falseDistance)
	}
}

// awaitNext waits until a capture may begin. It returns false if the stall is over, or ctx done, before that.
func (t *tracker) awaitNext(ctx context.Context, noticed time.Time) bool {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for time.Now().Before(t.stalls.next) {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if t.stalls.isOver(time.Since(noticed)) {
			return false
		}
	}
	return true
}

// await waits until a stall is over, or ctx is done.
func (t *tracker) await(ctx context.Context, begun time.Time) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for !t.stalls.isOver(time.Since(begun)) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// moment asks all servers and machines once.
func (t *tracker) moment(ctx context.Context) evidence.Moment {
	m := evidence.Moment{At: t.now().UTC().Truncate(time.Millisecond)}
	t.mu.Lock()
	if t.meta.PID != 0 && !t.meta.IsElsewhere() {
		m.Answers = append(m.Answers, *t.programs.Testify())
	}
	t.mu.Unlock()
	m.Answers = append(m.Answers, t.opts.Witnesses.Testify(ctx, t.dir.ID())...)
	ahead := t.axis.Ahead()
	for i := range m.Answers {
		a := &m.Answers[i]
		a.At = a.At.Add(-ahead).UTC().Truncate(time.Millisecond)
	}
	return m
}

// finishStall records a capture if there was a dip, explains and marks what ended since a place on the run's axis. It
// returns false if there was no dip: nothing needs an explanation.
func (t *tracker) finishStall(ctx context.Context, since float64, c *record.Capture, isAsked bool) bool {
	s := &t.stalls
	all, first := s.unexplained(since)
	var captures []record.Capture
	lost := 0.0
	if c != nil {
		captures = append(captures, *c)
	}
	for i := first; i < len(all); i++ {
		d := &all[i]
		lost += d.Lost
		moments, _, clients := record.During(captures, d, s.place)
		e := evidence.Explain(clients, d.Seconds, moments)
		s.count(e.Reason, fmt.Sprintf("%.1f s from %s: %s", d.Seconds, table.Clock(d.From), e.Text), d.Seconds)
		t.log.Info("run stalled", "seconds", fmt.Sprintf("%.1f", d.Seconds), "from", table.Clock(d.From), "reason", e.Reason, "what", e.Text)
		if ctx.Err() == nil {
			t.mark(fmt.Sprintf("stalled for %.1f s: %s", d.Seconds, e.Text), s.time(d.From))
		}
	}
	if c != nil && (first < len(all) || isAsked) {
		t.keep(c, lost)
	}
	t.opts.Sink.Changed()
	return first < len(all)
}

// keep writes a capture, in the place of the mildest one if there are too many.
func (t *tracker) keep(c *record.Capture, lost float64) {
	s := &t.stalls
	writer, last := record.NewCaptureWriter(t.dir)
	defer writer.Close()
	if len(s.kept) >= mostCaptures {
		mildest := 0
		for i := range s.kept {
			if s.kept[i].lost < s.kept[mildest].lost {
				mildest = i
			}
		}
		if s.kept[mildest].lost >= lost {
			return
		}
		if err := writer.Replace(s.kept[mildest].number, c.End); err != nil {
			t.fault("record a stall", err)
			return
		}
		s.kept = slices.Delete(s.kept, mildest, mildest+1)
	}
	c.Number = max(last, s.number) + 1
	s.number = c.Number
	switch err := writer.Write(c); {
	case err == nil:
		s.kept = append(s.kept, keptCapture{c.Number, lost})
	case !errors.Is(err, record.ErrDiskLow) && !errors.Is(err, record.ErrStallsFull):
		t.fault("record a stall", err)
	}
}

// stallsOf prepares the state of a run.
func stallsOf() stalls { return stalls{triggers: make(chan string, 1), asked: make(chan string, 1)} }
