package rundir

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ErrLocked is returned when another process holds a lock.
var ErrLocked = errors.New("locked by another process")

// Lock takes a lock file, which is made if need be; closing the file, or the
// death of the process, gives it back.
func Lock(path string) (*os.File, error) { return lockFile(path, false) }

// Lock takes one of the folder's locks; closing the file, or the death of all
// processes that have it open, gives it back.
func (d Directory) Lock(name string, wait bool) (*os.File, error) {
	return lockFile(d.Path(name), wait)
}

// lockFile takes an open file description lock: like flock's it is inherited,
// and one can ask for it without taking it.
func lockFile(path string, wait bool) (*os.File, error) {
	f, err := openFile(path, os.O_RDWR, recordAccess)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	how := unix.F_OFD_SETLK
	if wait {
		how = unix.F_OFD_SETLKW
	}
	for {
		err = unix.FcntlFlock(f.Fd(), how, wholeFile())
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		err = ErrLocked
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

func wholeFile() *unix.Flock_t {
	return &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
}

// held reports whether a process holds the lock.
func (d Directory) held(name string) bool { return lockHeld(d.Path(name)) }

func lockHeld(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false // nobody has made it yet
	}
	defer f.Close()
	asked := wholeFile()
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, asked); err != nil {
		return false
	}
	return asked.Type != unix.F_UNLCK
}
