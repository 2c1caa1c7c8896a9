package rundir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// removedPrefix begins the names of removed runs until their files are deleted. No id begins so.
const removedPrefix = ".removed-"

// Remove deletes a run. The directory disappears in one step, so an observer that is writing to it leaves nothing
// behind. The error matches fs.ErrNotExist if another process removed it.
func (d Directory) Remove() error {
	gone, err := d.withdraw()
	if err == nil {
		err = os.RemoveAll(gone)
	}
	if err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	return nil
}

// RemoveIf deletes a run unless refuse returns an error for its facts, which it then returns. Nobody can change
// run.json between the two. The error is ErrLocked if another process is changing it.
func (d Directory) RemoveIf(refuse func(*Meta) error) error {
	lock, err := d.Lock(metaLock, false)
	switch {
	case err == nil:
		defer lock.Close()
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT): // nothing can change run.json then
	default:
		return fmt.Errorf("remove run: %w", err)
	}
	meta, err := d.Load()
	if err != nil {
		return err
	}
	if err := refuse(&meta); err != nil {
		return err
	}
	return d.Remove()
}

// MayRemove reports whether this user can delete the run: its files, and its entry in a folder of runs that users share.
func (d Directory) MayRemove() bool {
	if unix.Access(string(d), unix.W_OK|unix.X_OK) != nil {
		return false
	}
	root := filepath.Dir(string(d))
	info, err := os.Stat(root)
	return err == nil && (info.Mode()&os.ModeSticky == 0 || os.Geteuid() == 0 || Own(string(d)) || Own(root))
}

// withdraw renames the folder to a name that is never read as a run. A folder whose files this user can't delete keeps
// its name.
func (d Directory) withdraw() (gone string, err error) {
	if info, err := os.Lstat(string(d)); err != nil {
		return "", err
	} else if !info.IsDir() {
		return "", fmt.Errorf("%s is no directory", d)
	}
	if err := unix.Access(string(d), unix.W_OK|unix.X_OK); err != nil {
		return "", &fs.PathError{Op: "delete the files in", Path: string(d), Err: err}
	}
	gone = filepath.Join(filepath.Dir(string(d)), removedPrefix+d.ID()+"-"+rand.Text()[:8])
	return gone, os.Rename(string(d), gone)
}

// FinishRemovals deletes what is left of removed runs, after a process was killed meanwhile, and returns how many there
// were. The error has each one that remains.
func FinishRemovals(dataDir string) (finished int, err error) {
	entries, err := os.ReadDir(Root(dataDir))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err == nil {
		err = checkRoot(Root(dataDir))
	}
	if err != nil {
		return 0, fmt.Errorf("look for removed runs: %w", err)
	}
	var left []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), removedPrefix) || !e.IsDir() {
			continue
		}
		if err := os.RemoveAll(filepath.Join(Root(dataDir), e.Name())); err != nil {
			left = append(left, fmt.Errorf("finish a removal: %w", err))
			continue
		}
		finished++
	}
	return finished, errors.Join(left...)
}
