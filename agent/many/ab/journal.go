package ab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// journal is the promise to restore a setting. It is on disk before the first switch, and locked by the process that
// switches, so that another process can keep the promise after its death.
type journal struct {
	// Folder is the inode of the journals' folder, which differs in a copy of the data directory.
	Folder  uint64   `json:"folder"`
	Restore []change `json:"restore"`

	path string
	lock *os.File
}

// journals returns the folder of this user's journals. In a shared data directory each user has one.
func journals(dataDir string) string {
	return filepath.Join(sweep.Root(dataDir), fmt.Sprintf(".toggles-%d", os.Geteuid()))
}

const journalSuffix = ".json"

// openJournal writes a journal.
func openJournal(dataDir, id string, restore []change) (*journal, error) {
	folder := journals(dataDir)
	err := os.MkdirAll(sweep.Root(dataDir), 0o755)
	if err == nil {
		err = os.Mkdir(folder, 0o700)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("journal of the setting: %w", err)
	}
	j, err := claim(folder, id+journalSuffix)
	if err != nil {
		return nil, fmt.Errorf("journal of the setting: %w", err)
	}
	j.Folder, j.Restore = rundir.Directory(folder).Inode(), restore
	err = rundir.Replace(j.path, 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(j) })
	if err == nil {
		err = j.read() // the next start must be able to trust it
	}
	if err != nil {
		j.lock.Close()
		return nil, fmt.Errorf("journal of the setting: %w", err)
	}
	return j, nil
}

// claim locks a journal. The error is [rundir.ErrLocked] if another process has it.
func claim(folder, name string) (*journal, error) {
	lock, err := rundir.Directory(folder).Lock(name+".lock", false)
	return &journal{path: filepath.Join(folder, name), lock: lock}, err
}

// read reads a journal that a process of this user wrote into this folder, which no other user can write to, because
// its commands and statements are executed. The error is [rundir.ErrForeign] for any other journal.
func (j *journal) read() error {
	folder, name := filepath.Split(j.path)
	folder = filepath.Clean(folder)
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	f, err := rundir.OpenTrusted(folder, name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, 1<<20)).Decode(j); err != nil {
		return fmt.Errorf("%s: %w", j.path, err)
	}
	if info.Mode().Perm()&0o077 != 0 || j.Folder != rundir.Directory(folder).Inode() {
		return fmt.Errorf("%s: %w", j.path, rundir.ErrForeign)
	}
	return nil
}

// restoreTimeout limits the restoring of a setting after the context has ended.
const restoreTimeout = 1500 * time.Millisecond

// restore keeps the promise, also after the context has ended. If that fails, the journal stays for the
// next start.
func (j *journal) restore(ctx context.Context, connect Connect) error {
	defer j.lock.Close()
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(restoreTimeout, cancel) })()
	if err := apply(own, j.Restore, connect); err != nil {
		return fmt.Errorf("restore the setting: %w; each start of benchwatch tries again as long as %s exists", err, j.path)
	}
	if err := os.Remove(j.path); err != nil {
		return fmt.Errorf("journal of the setting: %w", err)
	}
	_ = os.Remove(j.path + ".lock") // the next journal has another name
	return nil
}

// RestoreLeft restores the settings that killed comparisons of this user left, and reports each with notice. Without
// such comparisons, it only looks for the folder.
func RestoreLeft(ctx context.Context, dataDir string, connect Connect, notice func(format string, args ...any)) error {
	folder := journals(dataDir)
	if !rundir.Own(folder) {
		return nil // it does not exist, or another user made it
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("journals of settings: %w", err)
	}
	var all []error
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), journalSuffix) {
			all = append(all, restoreOne(ctx, folder, entry.Name(), connect, notice))
		}
	}
	return errors.Join(all...)
}

func restoreOne(ctx context.Context, folder, name string, connect Connect, notice func(format string, args ...any)) error {
	j, err := claim(folder, name)
	if errors.Is(err, rundir.ErrLocked) {
		return nil // its process switches, or another one restores
	}
	if err != nil {
		return fmt.Errorf("journal of the setting: %w", err)
	}
	if err := j.read(); err != nil {
		j.lock.Close()
		if errors.Is(err, fs.ErrNotExist) { // restored meanwhile
			return nil
		}
		return fmt.Errorf("journal of the setting: %w", err)
	}
	if err := j.restore(ctx, connect); err != nil {
		return err
	}
	for _, c := range j.Restore {
		notice("restored a setting that a killed comparison left: %s %s", c.Server.Name, c.Text)
	}
	return nil
}
