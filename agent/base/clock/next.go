package clock

import "time"

// phase is the time after a whole period at which Next expires: apart from the sampling of the servers, which begins
// at whole periods and measures round trips.
const phase = 50 * time.Millisecond

// Next returns the time until a loop with a period runs again. All loops run at the same instants, since each timer
// wakes the process, which takes longer than most of them. The time is at most 1.1 periods.
func Next(period time.Duration) time.Duration {
	since := time.Duration((time.Now().UnixNano() - int64(phase)) % int64(period))
	wait := period - since
	if wait < period/10 { // a timer that expired too early by the wall clock
		wait += period
	}
	return wait
}
