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

// Replace writes a file in one step: a reader, even after a crash, finds either the old or the
// complete new content. If write fails, the old content remains. The mode is perm, regardless of
// the umask.
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

// access is who may use a file of a run directory: perm if the runs folder belongs to one user;
// shared if the users of the machine share it with an agent that runs as another user, with the
// files' group.
type access struct{ perm, shared os.FileMode }

var (
	// outputAccess keeps other users from the tool's output, which may contain passwords.
	outputAccess = access{0o600, 0o640}
	recordAccess = access{0o644, 0o664}
	// lockAccess keeps other users from locks: who can read a file can take a shared lock of it,
	// and so keep its owner from taking the lock.
	lockAccess = access{0o600, 0o660}
)

// OpenRecord opens a file of a run directory to which its owner and the agent both append, and
// creates it if necessary.
func OpenRecord(path string) (*os.File, error) {
	return openFile(path, os.O_RDWR|os.O_APPEND, recordAccess)
}

// openFile opens a file, and creates it if it does not exist. It does not follow a symbolic link:
// in a shared folder it could lead an agent to another user's file.
func openFile(path string, flag int, a access) (*os.File, error) {
	for {
		f, err := openRegular(path, flag)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		f, err = createFile(path, flag, a, isSharedRun(filepath.Dir(path)))
		if errors.Is(err, fs.ErrExist) {
			continue // another process was faster
		}
		return f, err
	}
}

// createFile creates a file in a run directory, which may be shared. The error matches fs.ErrExist if the file exists.
func createFile(path string, flag int, a access, shared bool) (*os.File, error) {
	f, err := os.OpenFile(path, flag|os.O_CREATE|os.O_EXCL, a.perm)
	if err != nil || !shared {
		return f, err
	}
	if err = f.Chmod(a.shared); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Open opens a file of a run directory for reading. Like the functions that create files it does
// not follow symbolic links, and it does not wait for the writer of a named pipe: in a shared
// folder the directory may belong to anybody. The error matches fs.ErrNotExist if the file does not
// exist. A file that is almost entirely a hole is refused, see follow.CheckHole.
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

// makeOwnDir makes the folder of a run that belongs to one user, regardless of the umask.
func makeOwnDir(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755)
}
