package rundir

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// renameNew renames a folder; EEXIST if the new name exists.
func renameNew(from, to string) error { return unix.RenamexNp(from, to, unix.RENAME_EXCL) }

// allocate does nothing: macOS has no call that reserves space for another process.
func allocate(*os.File, int64) error { return errors.ErrUnsupported }

// changed is when the file's inode last changed.
func changed(st *syscall.Stat_t) time.Time { return time.Unix(st.Ctimespec.Unix()) }
