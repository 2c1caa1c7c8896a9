package replay

import (
	"fmt"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
)

// scaled is a clock that is stopped until start and then runs at a multiple of the
// speed of another one.
type scaled struct {
	of      *clock.Clock
	speed   float64
	base    time.Duration // of's Boot when it was made
	wall    time.Time     // its own Wall then
	id      string
	mu      sync.Mutex
	started time.Duration // of's Boot at start; 0: not started
}

// newScaled returns a clock whose wall clock is ahead of that of another one.
func newScaled(of *clock.Clock, speed float64, ahead time.Duration) *scaled {
	s := &scaled{of: of, speed: speed, base: of.Boot(), wall: of.Wall().Add(ahead).UTC().Truncate(time.Millisecond)}
	s.id = fmt.Sprintf("replay %s %d", of.ID, s.base)
	return s
}

func (s *scaled) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = s.of.Boot()
}

// spent is how long the clock has run, by the other one.
func (s *scaled) spent() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started == 0 {
		return 0
	}
	return s.of.Boot() - s.started
}

// passed is how long the clock has run, by itself.
func (s *scaled) passed() time.Duration { return time.Duration(float64(s.spent()) * s.speed) }

// until is how long it takes, by the other clock, until this one has run for d.
func (s *scaled) until(d time.Duration) time.Duration {
	return time.Duration(float64(d)/s.speed) - s.spent()
}

// Clock is the clock as others read it.
func (s *scaled) Clock() *clock.Clock {
	return &clock.Clock{
		Wall: func() time.Time { return s.wall.Add(s.passed()) },
		Boot: func() time.Duration { return s.base + s.passed() },
		ID:   s.id,
	}
}
