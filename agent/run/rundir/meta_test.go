package rundir

import (
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
)

// TestAxisOnAnotherMachine: a run whose wall clock was set continues on its axis after a
// reboot or a move, where only the wall clock is known.
func TestAxisOnAnotherMachine(t *testing.T) {
	here := &clock.Clock{Wall: time.Now, Boot: func() time.Duration { return 42 * time.Hour }, ID: "another boot"}
	for _, steps := range [][]ClockStep{nil, {{Seconds: 3600}}, {{Seconds: 864000}, {Seconds: -90}}} {
		m := Meta{Timing: Timing{Clock: &Clock{ID: "first boot", Steps: steps}}}
		axis := m.Axis(here)
		if ahead := axis.Ahead(); (ahead - m.Clock.Ahead()).Abs() > 50*time.Millisecond {
			t.Errorf("%v: the wall clock is ahead by %v", steps, ahead)
		}
		if off := time.Until(axis.Now().Add(m.Clock.Ahead())); off.Abs() > 10*time.Second {
			t.Errorf("%v: the axis is off by %v", steps, off)
		}
	}
	if axis := (&Meta{}).Axis(here); axis.Ahead().Abs() > 50*time.Millisecond {
		t.Errorf("a run without a clock is ahead by %v", axis.Ahead())
	}
}
