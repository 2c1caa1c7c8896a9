package rundir

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked is returned for a lock that another process holds.
var ErrLocked = errors.New("locked by another process")

// foreignPatience limits the wait for a lock in another user's directory, since that user may hold
// it for ever.
const foreignPatience = 2 * time.Second

// Lock takes one of the directory's locks, and creates its file if necessary. Closing the file, or the death of all processes that
// have it open, releases it. With wait it waits, but at most 2 s in another user's directory. The
// error is ErrLocked if another process still holds the lock.
func (d Directory) Lock(name string, wait bool) (*os.File, error) {
	if !wait || Own(string(d)) {
		return lockFile(d.Path(name), wait)
	}
	for deadline := time.Now().Add(foreignPatience); ; {
		f, err := lockFile(d.Path(name), false)
		if !errors.Is(err, ErrLocked) || time.Now().After(deadline) {
			return f, err
		}
		<-time.After(5 * time.Millisecond)
	}
}

// lockFile takes a lock that belongs to the open file, so child processes inherit it. Its state can
// be read without taking it.
func lockFile(path string, wait bool) (*os.File, error) {
	f, err := openFile(path, os.O_RDWR, lockAccess)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	for {
		err = lock(f, wait)
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

// Locked reports whether any process holds a lock of the folder.
func (d Directory) Locked(name string) bool { return d.held(name) }

// held reports whether any process holds the lock.
func (d Directory) held(name string) bool { return lockHeld(d.Path(name)) }

func lockHeld(path string) bool {
	// Without package os, which takes four more system calls: live runs are checked several times a second.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false // does not exist yet
	}
	defer unix.Close(fd)
	return locked(uintptr(fd))
}
