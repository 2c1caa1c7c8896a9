// Package clock measures time correctly while the machine's wall clock is set.
//
// A run has one [Axis]: the wall clock as it was when the run began, continued by the time since
// boot, which nothing sets. All times recorded for a run are on this axis, whichever process on the
// machine takes them.
package clock

import (
	"context"
	"time"
)

// Clock reads a machine's two clocks.
type Clock struct {
	// Wall is the wall clock, which may be set at any moment.
	Wall func() time.Time
	// Boot is the time since the machine booted, suspended time included.
	Boot func() time.Duration
	// ID identifies the boot and the time namespace. The Boot times of two processes are comparable
	// if their IDs are equal and not empty.
	ID string
}

// System is the clock of this machine.
var System = &Clock{Wall: time.Now, Boot: boot, ID: id()}

// processStart replaces the time of the boot where the system does not report it.
var processStart = time.Now()

// BootedAt returns when the machine booted according to its wall clock. It changes only when the
// wall clock is set.
func (c *Clock) BootedAt() time.Time {
	best, shortest := time.Time{}, time.Duration(0)
	for range 3 { // the process may pause between two readings
		before := c.Boot()
		wall := c.Wall().Round(0)
		took := c.Boot() - before
		if best.IsZero() || took < shortest {
			best, shortest = wall.Add(-before-took/2), took
		}
	}
	return best.UTC()
}

// Axis returns an axis that begins with the wall clock as it is now.
func (c *Clock) Axis() Axis { return Axis{c, c.BootedAt()} }

// Axis is time that is never set. The zero Axis is the wall clock.
type Axis struct {
	clock *Clock
	// BootedAt is when the machine booted, on the axis.
	BootedAt time.Time
}

// Continue returns the axis of a process whose clock returned this BootedAt when its axis began.
func (c *Clock) Continue(bootedAt time.Time) Axis { return Axis{c, bootedAt} }

// Now returns the current time.
func (a Axis) Now() time.Time {
	if a.clock == nil {
		return time.Now()
	}
	return a.At(a.clock.Boot())
}

// At returns the time on the axis at which the clock's Boot had this value.
func (a Axis) At(boot time.Duration) time.Time { return a.BootedAt.Add(boot) }

// precision is the smallest difference between two axes that counts. Two clocks are read one after
// the other, so smaller differences mean nothing.
const precision = 50 * time.Millisecond

// Ahead returns how far the wall clock is ahead of the axis: by how much it was set since the axis
// began, 0 if it was not set.
func (a Axis) Ahead() time.Duration {
	if a.clock == nil {
		return 0
	}
	return difference(a.clock.BootedAt(), a.BootedAt)
}

// AheadOf returns how far the axis is ahead of another axis of the same clock.
func (a Axis) AheadOf(other Axis) time.Duration {
	if a.clock == nil || other.clock == nil {
		return 0
	}
	return difference(a.BootedAt, other.BootedAt)
}

func difference(a, b time.Time) time.Duration {
	d := a.Sub(b)
	if d.Abs() < precision {
		return 0
	}
	return d
}

// Sleep waits for d. It returns ctx's error if ctx is done first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
