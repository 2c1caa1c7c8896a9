package rundir

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// isShared reports whether a runs folder is shared by all users of the machine and
// an agent: sticky, and with the setgid bit, so that what is in it belongs to the
// agent's group.
func isShared(root string) bool {
	info, err := os.Stat(root)
	return err == nil && info.Mode()&os.ModeSetgid != 0 && info.Mode()&os.ModeSticky != 0
}

// isSharedRun reports whether a run directory was made in such a folder.
func isSharedRun(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode()&os.ModeSetgid != 0
}

// makeDir makes the folder of a run. In a shared runs folder its group, which it
// inherits with the setgid bit, may write.
func makeDir(path string) error {
	if !isShared(filepath.Dir(path)) {
		return makeOwnDir(path)
	}
	// The umask must not apply, and chmod won't do: by a user outside the group
	// it clears the setgid bit. Of this thread alone the umask can be changed; not
	// unlocked, the thread ends with the goroutine.
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
