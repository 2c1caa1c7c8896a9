package clock

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func boot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return time.Since(processStart)
	}
	return time.Duration(t.Nano())
}

// BootID identifies the boot of the machine; empty if it is unknown.
func BootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// initialNamespace is the time namespace of a machine that uses no other.
const initialNamespace = "time:[4026531834]"

func id() string {
	id := BootID()
	if namespace, err := os.Readlink("/proc/self/ns/time"); id != "" && err == nil && namespace != initialNamespace {
		id += " " + namespace
	}
	return id
}
