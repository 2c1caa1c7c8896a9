package rundir

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes a lock with flock, which also belongs to the open file: EAGAIN if it is
// held, unless wait is set.
func lock(f *os.File, wait bool) error {
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	return unix.Flock(int(f.Fd()), how)
}

// locked reports whether the file is locked through another open file. On macOS fcntl
// sees the locks of flock: fcntl(2), F_GETLK.
func locked(fd uintptr) bool {
	asked := &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(fd, unix.F_GETLK, asked); err != nil {
		return false
	}
	return asked.Type != unix.F_UNLCK
}
