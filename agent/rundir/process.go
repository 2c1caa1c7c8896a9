package rundir

import (
	"os"
	"strings"

	"github.com/prometheus/procfs"
)

// Running reports whether the tool, or the wrapper that will say how it ended,
// still lives. The tool and all it starts inherit a lock, which works from
// within a container too; where something in between closed it (sudo does),
// the process itself is looked up.
func (d Directory) Running(m *Meta) bool {
	return d.held(wrapperLock) || d.held(ToolLock) || m.processLives()
}

// processLives looks for the process that run.json names: the number alone
// could be another's by now.
func (m *Meta) processLives() bool {
	if m.PID <= 0 || m.PIDStartTicks == 0 || m.BootID != BootID() {
		return false
	}
	ticks, alive := StartTicks(m.PID)
	return alive && ticks == m.PIDStartTicks
}

// StartTicks returns when a process began, in clock ticks after boot; false if
// there is no such process.
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

// BootID returns the id of the current boot of the machine, empty if unknown.
func BootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
