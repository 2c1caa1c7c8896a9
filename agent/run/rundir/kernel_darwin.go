package rundir

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// renameNew renames a folder; EEXIST if there is something with the new name.
func renameNew(from, to string) error { return unix.RenamexNp(from, to, unix.RENAME_EXCL) }

// allocate takes no space: macOS has no call that reserves it for another process.
func allocate(*os.File, int64) error { return errors.ErrUnsupported }

// changed is when the file's inode last changed.
func changed(st *syscall.Stat_t) time.Time { return time.Unix(st.Ctimespec.Unix()) }
