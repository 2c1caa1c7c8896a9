package rundir

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// isShared reports whether all users of the machine and an agent share a runs folder: it is sticky,
// and has the setgid bit, so its contents belong to the agent's group.
func isShared(root string) bool {
	info, err := os.Stat(root)
	return err == nil && info.Mode()&os.ModeSetgid != 0 && info.Mode()&os.ModeSticky != 0
}

// isSharedRun reports whether a run directory was made in such a folder.
func isSharedRun(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode()&os.ModeSetgid != 0
}

// makeDir makes the folder of a run. In a shared runs folder it inherits the group by the setgid
// bit, and the group may write.
func makeDir(path string) error {
	if !isShared(filepath.Dir(path)) {
		return makeOwnDir(path)
	}
	// The umask must not apply, and chmod can't replace that: for a user outside the group it
	// clears the setgid bit. The umask is changed for this thread only; since it stays locked, the
	// thread ends with the goroutine.
	made := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			made <- fmt.Errorf("make a folder for the group: %w", err)
			return
		}
		unix.Umask(0o002)
		made <- unix.Mkdir(path, 0o775)
	}()
	return <-made
}
