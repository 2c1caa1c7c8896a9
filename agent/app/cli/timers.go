package cli

import (
	"os"
	"strconv"
)

// timerSlack is how many nanoseconds the kernel may delay this process's timers, 50,000 by default. A thread of Go's
// runtime sleeps for 20 µs again and again while any part of the agent works. With this slack the agent interrupts a
// benchmark on the same machine half as often.
const timerSlack = 500_000

// relaxTimers sets the slack of all threads and of those that they start. Only root may; the service gets it from
// its unit.
func relaxTimers() {
	threads, _ := os.ReadDir("/proc/self/task") // none without /proc
	for _, thread := range threads {
		_ = os.WriteFile("/proc/"+thread.Name()+"/timerslack_ns", strconv.AppendInt(nil, timerSlack, 10), 0)
	}
}
