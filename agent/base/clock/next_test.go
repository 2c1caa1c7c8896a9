package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestNext guards that loops that begin at any time run together, a period apart.
func TestNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 500 * time.Millisecond
		begin := time.Now()
		for _, after := range []time.Duration{0, 49 * time.Millisecond, 99 * time.Millisecond, 140 * time.Millisecond, 220 * time.Millisecond} {
			time.Sleep(after)
			time.Sleep(Next(period))
			for range 3 {
				if at := time.Since(begin) % period; at != phase {
					t.Errorf("begun %v later: runs %v after a whole period", after, at)
				}
				before := time.Now()
				time.Sleep(Next(period))
				if waited := time.Since(before); waited != period {
					t.Errorf("runs again after %v", waited)
				}
			}
		}
	})
}
