package rundir

import "github.com/prometheus/procfs"

// StartTicks is when a process began, in clock ticks after boot; false if it does not exist.
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
