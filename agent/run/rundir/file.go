package rundir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/base/follow"
)

// Replace writes a file in one step: a reader, also one after a crash, finds the old
// content or all of the new one. If write fails, the old content stays. The file has
// the mode perm, whatever the umask.
func Replace(path string, perm os.FileMode, write func(io.Writer) error) error {
	return replace(path, perm, true, write)
}

func replace(path string, perm os.FileMode, sync bool, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Chmod(perm)
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// access is who may use a file of a run directory: perm if the runs folder
// belongs to one user, shared if it is shared by the users of the machine and an
// agent that runs as another user, who has the files' group.
type access struct{ perm, shared os.FileMode }

var (
	// outputAccess keeps the tool's output, which may have passwords, from other
	// users.
	outputAccess = access{0o600, 0o640}
	recordAccess = access{0o644, 0o664}
)

// OpenRecord opens a file of a run directory that its owner and the agent both
// append to, creating it if need be.
func OpenRecord(path string) (*os.File, error) {
	return openFile(path, os.O_RDWR|os.O_APPEND, recordAccess)
}

// openFile opens a file, and creates it if it does not exist. It follows no
// symbolic link, which in a shared folder could lead an agent to a file of
// another user's.
func openFile(path string, flag int, a access) (*os.File, error) {
	for {
		f, err := openRegular(path, flag)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		f, err = os.OpenFile(path, flag|os.O_CREATE|os.O_EXCL, a.perm)
		if errors.Is(err, fs.ErrExist) {
			continue // another process was faster
		}
		if err == nil && isSharedRun(filepath.Dir(path)) {
			if err = f.Chmod(a.shared); err != nil {
				f.Close()
				return nil, err
			}
		}
		return f, err
	}
}

// Open opens a file of a run directory to read it. Like those that create files it
// follows no symbolic link, and it does not wait for the writer of a named pipe:
// in a shared folder the directory may be anybody's. The error matches
// fs.ErrNotExist if there is no such file. A file that is little else than a hole is
// refused, see follow.CheckHole.
func Open(path string) (*os.File, error) {
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	err = follow.CheckHole(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func openRegular(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// makeOwnDir makes the folder of a run that belongs to one user, whatever the umask.
func makeOwnDir(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755)
}
