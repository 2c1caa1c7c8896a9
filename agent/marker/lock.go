package marker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// errLocked is returned when another process delivers from a queue.
var errLocked = errors.New("another process delivers these markers")

// lockQueue takes the right to deliver a queue's markers. Closing the file
// gives it back, and so does the death of the process. The lock is on the
// queue file itself, which is never replaced; appending needs no lock.
func lockQueue(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0) // NFS locks only what can be written
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, fmt.Errorf("lock markers: %w", err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errLocked
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock markers %s: %w", path, err)
	}
	return f, nil
}
