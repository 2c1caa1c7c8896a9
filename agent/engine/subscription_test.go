package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// A reader that stops reading loses frames; the sampling goes on.
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
