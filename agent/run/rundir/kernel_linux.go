package rundir

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// renameNew renames a folder; EEXIST if the new name exists.
func renameNew(from, to string) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
}

// allocate reserves space for a file up to end without changing its size.
func allocate(f *os.File, end int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, end)
}

// changed is when the file's inode last changed.
func changed(st *syscall.Stat_t) time.Time { return time.Unix(st.Ctim.Unix()) }
