package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// boot reads mach_continuous_time: nothing sets it, and it continues while the machine sleeps
// (macOS, clock_gettime(3)).
func boot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &t) != nil {
		return time.Since(processStart)
	}
	return time.Duration(t.Nano())
}

// BootID identifies the boot of the machine; empty if it is unknown.
func BootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

func id() string { return BootID() }
