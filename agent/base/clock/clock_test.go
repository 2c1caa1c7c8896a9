package clock

import (
	"testing"
	"time"
)

func TestAxisIsNotSet(t *testing.T) {
	wall, boot := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC), 100*time.Hour
	c := &Clock{Wall: func() time.Time { return wall }, Boot: func() time.Duration { return boot }, ID: "boot"}
	a := c.Axis()
	start := a.Now()
	if !start.Equal(wall) || a.Ahead() != 0 {
		t.Errorf("begins at %v, %v ahead", start, a.Ahead())
	}
	pass := func(d time.Duration) { wall, boot = wall.Add(d), boot+d }
	total := time.Duration(0)
	for _, step := range []time.Duration{time.Hour, -time.Hour, -40 * time.Second, time.Second, -time.Second, -240 * time.Hour} {
		pass(time.Second)
		wall, total = wall.Add(step), total+step
		if a.Ahead() != total {
			t.Errorf("ahead %v after a step of %v, want %v", a.Ahead(), step, total)
		}
	}
	if took := a.Now().Sub(start); took != 6*time.Second {
		t.Errorf("6 seconds took %v", took)
	}
	if later := c.Axis(); later.AheadOf(a) != total || !c.Continue(a.BootedAt).Now().Equal(a.Now()) {
		t.Errorf("a later axis is ahead by %v", later.AheadOf(a))
	}
	wall = wall.Add(time.Millisecond) // two clocks are not read at one instant
	if a.Ahead() != total+time.Millisecond || c.Axis().AheadOf(c.Axis()) != 0 {
		t.Errorf("ahead %v", a.Ahead())
	}
	if b := c.Axis(); true {
		wall = wall.Add(10 * time.Millisecond)
		if b.Ahead() != 0 {
			t.Errorf("%v is a step", b.Ahead())
		}
	}
}

func TestSystem(t *testing.T) {
	a := System.Axis()
	if System.ID == "" || System.Boot() <= 0 || a.Ahead() != 0 || time.Since(a.Now()).Abs() > time.Second {
		t.Errorf("%q, up %v, %v ahead, now %v", System.ID, System.Boot(), a.Ahead(), a.Now())
	}
	if now := (Axis{}).Now(); time.Since(now).Abs() > time.Second || (Axis{}).Ahead() != 0 || (Axis{}).AheadOf(a) != 0 {
		t.Error("the zero axis is not the wall clock")
	}
}
