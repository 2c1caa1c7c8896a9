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
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// journal is the promise to restore a setting. It is on disk before the first switch, and locked by the
// process that switches, so that another one can keep the promise after its death.
type journal struct {
	Restore []change `json:"restore"`

	path string
	lock *os.File
}

// journals returns the folder of the journals in a data directory.
func journals(dataDir string) string { return filepath.Join(dataDir, "toggles") }

const journalSuffix = ".json"

// openJournal writes a journal.
func openJournal(dataDir, id string, restore []change) (*journal, error) {
	j := &journal{Restore: restore, path: filepath.Join(journals(dataDir), id+journalSuffix)}
	if err := os.MkdirAll(journals(dataDir), 0o700); err != nil {
		return nil, fmt.Errorf("journal of the setting: %w", err)
	}
	var err error
	if j.lock, err = rundir.Directory(journals(dataDir)).Lock(filepath.Base(j.path)+".lock", false); err != nil {
		return nil, fmt.Errorf("journal of the setting: %w", err)
	}
	err = rundir.Replace(j.path, 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(j) })
	if err != nil {
		j.lock.Close()
		return nil, fmt.Errorf("journal of the setting: %w", err)
	}
	return j, nil
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
		return fmt.Errorf("restore the setting: %w", err)
	}
	if err := os.Remove(j.path); err != nil {
		return fmt.Errorf("journal of the setting: %w", err)
	}
	_ = os.Remove(j.path + ".lock") // the next journal has another name
	return nil
}

// RestoreLeft restores the settings that killed comparisons of this user left, and reports each with
// notice. Without any it only looks for the folder.
func RestoreLeft(ctx context.Context, dataDir string, connect Connect, notice func(format string, args ...any)) error {
	entries, err := os.ReadDir(journals(dataDir))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("journals of settings: %w", err)
	}
	var all []error
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), journalSuffix) || !rundir.Own(filepath.Join(journals(dataDir), entry.Name())) {
			continue
		}
		all = append(all, restoreOne(ctx, dataDir, entry.Name(), connect, notice))
	}
	return errors.Join(all...)
}

func restoreOne(ctx context.Context, dataDir, name string, connect Connect, notice func(format string, args ...any)) error {
	j := &journal{path: filepath.Join(journals(dataDir), name)}
	var err error
	if j.lock, err = rundir.Directory(journals(dataDir)).Lock(filepath.Base(j.path)+".lock", false); errors.Is(err, rundir.ErrLocked) {
		return nil // its process switches, or another one restores
	}
	if err != nil {
		return fmt.Errorf("journal of the setting: %w", err)
	}
	f, err := rundir.OpenTrusted(journals(dataDir), name)
	if errors.Is(err, fs.ErrNotExist) { // restored meanwhile
		j.lock.Close()
		return nil
	}
	if err == nil {
		err = json.NewDecoder(io.LimitReader(f, 1<<20)).Decode(j)
		f.Close()
	}
	if err != nil {
		j.lock.Close()
		return fmt.Errorf("journal %s: %w", j.path, err)
	}
	if err := j.restore(ctx, connect); err != nil {
		return err
	}
	for _, c := range j.Restore {
		notice("restored a setting that a killed comparison left: %s %s", c.Server.Name, c.Text)
	}
	return nil
}
