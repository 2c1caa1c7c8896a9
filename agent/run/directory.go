package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"golang.org/x/sys/unix"
)

// Names in a run directory.
const (
	MetaFile    = "run.json"
	StdoutFile  = "stdout.log"
	StderrFile  = "stderr.log"
	StatusFile  = "status.jsonl"
	MarkersFile = "markers.jsonl"

	// metaLock guards run.json; toolLock is held by the tool and everything it
	// starts, wrapperLock by `benchwatch run`, observerLock by whoever samples
	// for this run, sends its markers and closes it.
	metaLock     = ".meta.lock"
	toolLock     = ".tool.lock"
	wrapperLock  = ".wrapper.lock"
	observerLock = ".observer.lock"
)

// ErrExists is returned for an id that is taken.
var ErrExists = errors.New("run id already exists")

// Directory is one run's folder.
type Directory string

// Root is the folder of all runs in a data directory.
func Root(dataDir string) string { return filepath.Join(dataDir, "runs") }

// At returns the folder of the run id, which need not exist.
func At(dataDir, id string) Directory { return Directory(filepath.Join(Root(dataDir), id)) }

// DefaultDataDir is where runs are kept if nothing else is said: root's in
// /var/lib/benchwatch, others' under XDG_DATA_HOME or ~/.local/share.
func DefaultDataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/benchwatch"
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "benchwatch")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "benchwatch-data"
	}
	return filepath.Join(home, ".local", "share", "benchwatch")
}

// Create makes the folder of a new run and its run.json. The folder appears
// whole: it is prepared under another name and renamed.
func Create(dataDir string, meta Meta) (Directory, error) {
	if err := CheckID(meta.ID); err != nil {
		return "", err
	}
	root := Root(dataDir)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("create data directory: %w", err)
	}
	dir := At(dataDir, meta.ID)
	tmp, err := os.MkdirTemp(root, ".new-")
	if err != nil {
		return "", fmt.Errorf("create run directory: %w", err)
	}
	done := false
	defer func() {
		if !done {
			os.RemoveAll(tmp)
		}
	}()
	if err := os.Chmod(tmp, 0o755); err != nil {
		return "", fmt.Errorf("create run directory: %w", err)
	}
	if err := writeMeta(Directory(tmp), &meta); err != nil {
		return "", err
	}
	// Not os.Rename's replace: it would take an empty folder of that name.
	err = unix.Renameat2(unix.AT_FDCWD, tmp, unix.AT_FDCWD, string(dir), unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // file system without the flag
		if _, statErr := os.Lstat(string(dir)); statErr == nil {
			err = unix.EEXIST
		} else {
			err = os.Rename(tmp, string(dir))
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("%w: %s", ErrExists, meta.ID)
	}
	if err != nil {
		return "", fmt.Errorf("create run directory: %w", err)
	}
	done = true
	return dir, nil
}

// Path returns the path of a file in the folder.
func (d Directory) Path(name string) string { return filepath.Join(string(d), name) }

// ID is the run's id, the folder's name.
func (d Directory) ID() string { return filepath.Base(string(d)) }

// Load reads run.json.
func (d Directory) Load() (Meta, error) {
	data, err := os.ReadFile(d.Path(MetaFile))
	if err != nil {
		return Meta{}, fmt.Errorf("read run: %w", err)
	}
	var m Meta
	if err := json.Unmarshal(data, &m); err != nil {
		return Meta{}, fmt.Errorf("read run %s: damaged %s: %w", d.ID(), MetaFile, err)
	}
	if m.ID != d.ID() {
		return Meta{}, fmt.Errorf("read run %s: %s says it is run %q", d.ID(), MetaFile, m.ID)
	}
	return m, nil
}

// Update changes run.json under a lock, so that two processes that each change
// a part of it both succeed, and returns what was written.
func (d Directory) Update(change func(*Meta)) (Meta, error) {
	lock, err := d.lock(metaLock, true)
	if err != nil {
		return Meta{}, err
	}
	defer lock.Close()
	m, err := d.Load()
	if err != nil {
		return Meta{}, err
	}
	change(&m)
	return m, writeMeta(d, &m)
}

func writeMeta(d Directory, m *Meta) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write run: %w", err)
	}
	tmp, err := os.CreateTemp(string(d), ".run-*.json")
	if err != nil {
		return fmt.Errorf("write run: %w", err)
	}
	defer os.Remove(tmp.Name()) // fails after the rename, which is right
	if _, err = tmp.Write(append(data, '\n')); err == nil {
		err = tmp.Chmod(0o644)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), d.Path(MetaFile))
	}
	if err != nil {
		return fmt.Errorf("write run: %w", err)
	}
	return nil
}

// List returns the ids of all runs in a data directory, oldest first. A data
// directory without runs is empty, not an error.
func List(dataDir string) ([]string, error) {
	entries, err := os.ReadDir(Root(dataDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && CheckID(e.Name()) == nil {
			ids = append(ids, e.Name())
		}
	}
	sort.Strings(ids)
	return ids, nil
}
