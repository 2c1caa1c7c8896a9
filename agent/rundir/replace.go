package rundir

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Replace writes a file in one step: a reader, also one after a crash, finds the old
// content or all of the new one. If write fails, the old content stays. The file has
// the mode perm, whatever the umask.
func Replace(path string, perm os.FileMode, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = errors.Join(f.Chmod(perm), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
