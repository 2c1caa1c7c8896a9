package rundir

import (
	"fmt"
	"os"
	"syscall"
)

// Identify returns what identifies a file also after it is renamed.
func Identify(path string) (LogSource, error) {
	info, err := os.Stat(path)
	if err != nil {
		return LogSource{}, fmt.Errorf("log file: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return LogSource{}, fmt.Errorf("log file %s: no inode number", path)
	}
	return LogSource{Path: path, Device: uint64(st.Dev), Inode: st.Ino}, nil //nolint:unconvert // uint32 on some platforms
}
