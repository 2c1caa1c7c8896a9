package live

import (
	"fmt"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// timing is a run's time axis, and what the tracker knows of changes of the wall clock.
type timing struct {
	axis  clock.Axis    // never changes
	ahead time.Duration // how far the wall clock is ahead of it; the tracker's mu guards it
}

// recordClock writes the start of the tool's clock into run.json, once: the output does not show it
// later.
func (t *tracker) recordClock() {
	clock := t.feed.Clock()
	t.mu.Lock()
	due := t.owner != nil && t.meta.ClockStartedAt == nil && !clock.IsZero()
	t.mu.Unlock()
	if !due {
		return
	}
	meta, err := t.dir.Update(func(m *rundir.Meta) {
		if clock.Before(m.StartedAt) {
			clock = m.StartedAt
		}
		if m.ClockStartedAt == nil {
			at := clock.UTC().Truncate(time.Millisecond)
			m.ClockStartedAt = &at
		}
	})
	if err != nil {
		t.fault("record the tool's clock", err)
		return
	}
	t.setMeta(meta)
}

// watchClock records and marks changes of the wall clock during the run.
func (t *tracker) watchClock() {
	ahead := t.axis.Ahead()
	t.mu.Lock()
	step, owner := ahead-t.ahead, t.owner != nil && !t.meta.Closed()
	if step.Abs() < smallestStep || !owner {
		t.mu.Unlock()
		return
	}
	t.ahead = ahead
	t.mu.Unlock()
	at := t.now().UTC().Truncate(time.Millisecond)
	meta, err := t.dir.Update(func(m *rundir.Meta) {
		if m.Clock != nil {
			m.Clock.Steps = append(m.Clock.Steps, rundir.ClockStep{At: at, Seconds: step.Seconds()})
		}
	})
	if err != nil {
		t.fault("record that the clock was set", err)
	} else {
		t.setMeta(meta)
	}
	direction := "forward"
	if step < 0 {
		direction = "back"
	}
	text := fmt.Sprintf("the clock was set %s by %v", direction, step.Abs().Round(10*time.Millisecond))
	t.log.Warn(text)
	t.mark(text, at)
}

// onAxis returns the frame with its times on the run's axis; false if the run had not begun or is
// closed. The caller holds mu.
func (t *tracker) onAxis(f engine.Frame) (engine.Frame, bool) {
	if by := t.axis.AheadOf(t.opts.Samples); by != 0 {
		f.Tick, f.Samples = f.Tick.Add(by), slices.Clone(f.Samples)
		for i := range f.Samples {
			s := &f.Samples[i]
			s.Tick, s.Asked, s.Answered = s.Tick.Add(by), s.Asked.Add(by), s.Answered.Add(by)
		}
	}
	return f, !t.meta.Closed() && !f.Tick.Before(t.meta.StartedAt)
}

// now is the current time on the run's axis.
func (t *tracker) now() time.Time { return t.axis.Now() }

// smallestStep is the smallest change of the wall clock that counts as a step.
const smallestStep = 50 * time.Millisecond
