package rundir

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

func wholeFile() *unix.Flock_t {
	return &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
}

// lock takes an open file description lock: EAGAIN or EACCES if it is held, unless
// wait is set.
func lock(f *os.File, wait bool) error {
	how := unix.F_OFD_SETLK
	if wait {
		how = unix.F_OFD_SETLKW
	}
	return unix.FcntlFlock(f.Fd(), how, wholeFile())
}

// locked reports whether the file is locked through another open file. A shared lock does not
// count: only another user takes one.
func locked(fd uintptr) bool {
	asked := wholeFile()
	if err := unix.FcntlFlock(fd, unix.F_OFD_GETLK, asked); err != nil {
		return false
	}
	return asked.Type == unix.F_WRLCK
}
