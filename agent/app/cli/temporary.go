package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"
)

// temporaryName is what follows the command in the name of a temporary folder.
var temporaryName = regexp.MustCompile(`^[0-9]+$`)

// temporaryFolder makes a folder for the command of this process; remove deletes it. It also deletes the folders of
// killed processes of the same command and user.
func temporaryFolder(command string) (path string, remove func(), err error) {
	prefix := "benchwatch-" + command + "-"
	removeAbandoned(os.TempDir(), prefix)
	for {
		path, err = os.MkdirTemp("", prefix)
		if err != nil {
			return "", nil, fmt.Errorf("create a folder for the %s: %w", command, err)
		}
		// Another process may have taken the folder for an abandoned one before it was locked.
		if lock, ok := lockOwnFolder(path); ok {
			return path, func() {
				_ = os.RemoveAll(path) // the next one tries again
				_ = lock.Close()
			}, nil
		}
	}
}

// removeAbandoned deletes folders whose process is gone. It ignores errors, since a remaining folder does no harm.
func removeAbandoned(dir, prefix string) {
	paths, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		return
	}
	for _, path := range paths {
		if !temporaryName.MatchString(filepath.Base(path)[len(prefix):]) {
			continue
		}
		if lock, ok := lockOwnFolder(path); ok {
			_ = os.RemoveAll(path)
			_ = lock.Close()
		}
	}
}

// lockOwnFolder locks a folder of this user until the file is closed or the process ends.
// False: it is another user's, no folder, in use, or gone.
func lockOwnFolder(path string) (*os.File, bool) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	f := os.NewFile(uintptr(fd), path)
	var locked, named unix.Stat_t
	if unix.Fstat(fd, &locked) != nil || locked.Uid != uint32(os.Geteuid()) ||
		unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil ||
		unix.Lstat(path, &named) != nil || named.Dev != locked.Dev || named.Ino != locked.Ino {
		_ = f.Close()
		return nil, false
	}
	return f, true
}
