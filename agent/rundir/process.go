package rundir

import (
	"os"
	"strings"

	"github.com/prometheus/procfs"
)

// Running reports whether the tool is alive, or the wrapper that will record how it
// ended. The tool and its children inherit a lock, which also works across
// containers. If that was closed, as sudo does, the process itself is looked up.
func (d Directory) Running(m *Meta) bool {
	return d.held(wrapperLock) || d.held(ToolLock) || m.processRuns()
}

// processRuns looks up the process in run.json. The number alone could belong to
// another one by now.
func (m *Meta) processRuns() bool {
	if m.PID <= 0 || m.PIDStartTicks == 0 || m.BootID != BootID() {
		return false
	}
	ticks, alive := StartTicks(m.PID)
	return alive && ticks == m.PIDStartTicks
}

// StartTicks is when a process began, in clock ticks after boot; false if there is
// none.
func StartTicks(pid int) (uint64, bool) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, false
	}
	stat, err := p.Stat()
	if err != nil || stat.State == "Z" {
		return 0, false
	}
	return stat.Starttime, true
}

// BootID identifies the boot of the machine; empty if it is unknown.
func BootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
