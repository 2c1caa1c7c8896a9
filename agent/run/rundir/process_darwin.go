package rundir

import "golang.org/x/sys/unix"

// zombie is SZOMB of <sys/proc.h>.
const zombie = 5

// StartTicks is when a process began, on macOS in microseconds since 1970; false if it does not
// exist.
func StartTicks(pid int) (uint64, bool) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || p.Proc.P_stat == zombie {
		return 0, false
	}
	start := p.Proc.P_starttime
	return uint64(start.Sec)*1e6 + uint64(start.Usec), true
}
