package rundir

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Names in a run directory.
const (
	MetaFile    = "run.json"
	StdoutFile  = "stdout.log"
	StderrFile  = "stderr.log"
	StatusFile  = "status.jsonl"
	MarkersFile = "markers.jsonl"
	// LatenciesFile is an HdrHistogram log of the latencies that the tool wrote into files of
	// its own, made when it has ended.
	LatenciesFile = "latencies.hlog"

	// metaLock guards run.json. ToolLock is held by the tool and everything it
	// starts, wrapperLock by `benchwatch run`, and ObserverLock by the process
	// that records the servers, sends the markers and closes the run.
	metaLock     = ".meta.lock"
	ToolLock     = ".tool.lock"
	wrapperLock  = ".wrapper.lock"
	ObserverLock = ".observer.lock"
)

// maxMeta is longer than any run.json, in bytes. In a shared folder anybody can write one.
const maxMeta = 1 << 20

// ErrExists is returned by Create for an id that is taken.
var ErrExists = errors.New("run id already exists")

// Directory is one run's folder.
type Directory string

// Root is the folder of all runs in a data directory.
func Root(dataDir string) string { return filepath.Join(dataDir, "runs") }

// At returns the folder of the run id, which need not exist.
func At(dataDir, id string) Directory { return Directory(filepath.Join(Root(dataDir), id)) }

// systemDataDir is where root and the packaged agent keep runs.
var systemDataDir = "/var/lib/benchwatch"

// DefaultDataDir is where runs are kept unless a flag or the configuration names
// another place: $BENCHWATCH_DATA_DIR; for root, and for all users while an agent
// runs there that shares its runs folder, /var/lib/benchwatch; else benchwatch
// below $XDG_DATA_HOME or ~/.local/share.
func DefaultDataDir() string {
	if dir := os.Getenv("BENCHWATCH_DATA_DIR"); dir != "" {
		return dir
	}
	if os.Geteuid() == 0 || hasSharedAgent(systemDataDir) {
		return systemDataDir
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

func hasSharedAgent(dataDir string) bool {
	_, runs := Agent(dataDir)
	return runs && isShared(Root(dataDir))
}

// Claim is held by the process that will record how a run ends, until Release or
// the process's death.
type Claim struct{ lock *os.File }

// Release gives up the claim.
func (c *Claim) Release() { c.lock.Close() }

// Create makes the directory of a new run, with run.json and, unless the tool
// writes a log file by itself, empty output files. The directory appears complete
// and claimed: it is prepared under another name and renamed. If meta has no ID
// it gets one that is free.
//
// The error is ErrExists if meta's ID is taken.
func Create(dataDir string, meta Meta) (Directory, *Claim, error) {
	return CreateWith(dataDir, meta, func(Directory) error { return nil })
}

// CreateWith is Create with a function that fills the directory before it
// appears.
func CreateWith(dataDir string, meta Meta, fill func(Directory) error) (Directory, *Claim, error) {
	meta.redact() // the id is made of it
	root := Root(dataDir)
	if err := errors.Join(checkRoot(root), os.MkdirAll(root, 0o755)); err != nil {
		return "", nil, fmt.Errorf("create data directory: %w", err)
	}
	if meta.ID != "" {
		return create(root, &meta, fill)
	}
	var dir Directory
	var claim *Claim
	err := CreateNew(root, meta.StartedAt, meta.idName(), meta.Threads, func(id string) (err error) {
		meta.ID = id
		if meta.IsGroup() {
			meta.Group.Name = id
		}
		dir, claim, err = create(root, &meta, fill)
		return err
	})
	return dir, claim, err
}

// Adopt makes a run directory of files that fill writes: a run that another machine
// recorded. It appears complete, or not at all if fill fails. The error is ErrExists if
// the id is taken.
func Adopt(dataDir, id string, fill func(Directory) error) (Directory, error) {
	if err := CheckID(id); err != nil {
		return "", err
	}
	root := Root(dataDir)
	if err := errors.Join(checkRoot(root), os.MkdirAll(root, 0o755)); err != nil {
		return "", fmt.Errorf("create data directory: %w", err)
	}
	tmp := filepath.Join(root, ".new-"+rand.Text())
	err := makeDir(tmp)
	if err == nil {
		if err = os.WriteFile(filepath.Join(tmp, adoptedFile), nil, 0o644); err == nil {
			err = fill(Directory(tmp))
		}
		if err == nil {
			err = place(tmp, filepath.Join(root, id))
		}
		if err != nil {
			os.RemoveAll(tmp)
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return "", fmt.Errorf("%w: %s", ErrExists, id)
	case err != nil:
		return "", fmt.Errorf("create run directory: %w", err)
	}
	return At(dataDir, id), nil
}

// idName is what distinguishes the run in its id.
func (m *Meta) idName() string {
	path := ""
	switch {
	case m.Workload != "":
		return m.Workload
	case m.Log != nil:
		path = m.Log.Path
	case m.Import != nil:
		path = m.Import.Path
	default:
		return m.Tool
	}
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

func create(root string, meta *Meta, fill func(Directory) error) (Directory, *Claim, error) {
	if err := CheckID(meta.ID); err != nil {
		return "", nil, err
	}
	dir := Directory(filepath.Join(root, meta.ID))
	// Checked first because fill may read a large log. place decides if another process
	// takes the id now.
	if _, err := os.Lstat(string(dir)); err == nil {
		return "", nil, fmt.Errorf("%w: %s", ErrExists, meta.ID)
	}
	tmp := Directory(filepath.Join(root, ".new-"+rand.Text()))
	if err := makeDir(string(tmp)); err != nil {
		return "", nil, fmt.Errorf("create run directory: %w", err)
	}
	claim, err := tmp.prepare(meta, fill)
	if err == nil {
		if err = place(string(tmp), string(dir)); err == nil {
			return dir, claim, nil
		}
		claim.Release()
	}
	os.RemoveAll(string(tmp))
	if errors.Is(err, fs.ErrExist) {
		return "", nil, fmt.Errorf("%w: %s", ErrExists, meta.ID)
	}
	return "", nil, fmt.Errorf("create run directory: %w", err)
}

func (d Directory) prepare(meta *Meta, fill func(Directory) error) (*Claim, error) {
	if err := d.write(meta, meta.Log == nil); err != nil { // the follower of a log syncs many at a time
		return nil, err
	}
	// Made here, the files belong to the run's owner. One that an agent of another
	// user made could not be written by the owner.
	records := []string{metaLock, ToolLock, ObserverLock}
	if isSharedRun(string(d)) {
		records = append(records, MarkersFile)
	}
	for _, name := range records {
		f, err := OpenRecord(d.Path(name))
		if err != nil {
			return nil, err
		}
		f.Close()
	}
	if meta.Log == nil {
		for _, name := range []string{StdoutFile, StderrFile} {
			f, err := d.OpenOutput(name)
			if err != nil {
				return nil, err
			}
			f.Close()
		}
	}
	if err := fill(d); err != nil {
		return nil, err
	}
	lock, err := d.Lock(wrapperLock, false)
	if err != nil {
		return nil, err
	}
	return &Claim{lock}, nil
}

// OpenOutput opens an output file to append to it. Only its owner can read it, and
// in a shared runs folder the agent: the tool may print passwords.
func (d Directory) OpenOutput(name string) (*os.File, error) {
	f, err := openFile(d.Path(name), os.O_WRONLY|os.O_APPEND, outputAccess)
	if err != nil {
		return nil, fmt.Errorf("open output file: %w", err)
	}
	return f, nil
}

// OpenCopy opens the output file of a run whose output is copied from a log that has
// the given mode. Everybody can read it who can read the log.
func (d Directory) OpenCopy(log os.FileMode) (*os.File, error) {
	a := outputAccess
	if log&0o004 != 0 {
		a = access{0o644, 0o644}
	}
	f, err := openFile(d.Path(StdoutFile), os.O_RDWR|os.O_APPEND, a)
	if err != nil {
		return nil, fmt.Errorf("open output file: %w", err)
	}
	return f, nil
}

// place renames a prepared folder and never replaces another: then the error is
// fs.ErrExist.
func place(tmp, dir string) error {
	err := renameNew(tmp, dir)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) { // file system without that
		if _, statErr := os.Lstat(dir); statErr == nil {
			return fs.ErrExist
		}
		return os.Rename(tmp, dir)
	}
	return err
}

// Path returns the path of a file in the folder.
func (d Directory) Path(name string) string { return filepath.Join(string(d), name) }

// Sibling returns the folder of another run of the same data directory.
func (d Directory) Sibling(id string) Directory {
	return Directory(filepath.Join(filepath.Dir(string(d)), id))
}

// ID is the run's id, the folder's name.
func (d Directory) ID() string { return filepath.Base(string(d)) }

// Load reads run.json. The error matches fs.ErrNotExist if there is none.
func (d Directory) Load() (Meta, error) {
	f, err := Open(d.Path(MetaFile))
	if err != nil {
		return Meta{}, fmt.Errorf("read run: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxMeta+1))
	if err == nil && len(data) > maxMeta {
		err = fmt.Errorf("%s is longer than %d bytes", MetaFile, maxMeta)
	}
	if err != nil {
		return Meta{}, fmt.Errorf("read run %s: %w", d.ID(), err)
	}
	return ParseMeta(d.ID(), data)
}

// ParseMeta returns the facts in the text of a run.json, which must be that of the run
// id.
func ParseMeta(id string, data []byte) (Meta, error) {
	var m Meta
	if err := json.Unmarshal(data, &m); err != nil {
		return Meta{}, fmt.Errorf("read run %s: damaged %s: %w", id, MetaFile, err)
	}
	if m.ID != id {
		return Meta{}, fmt.Errorf("read run %s: %s says it is run %q", id, MetaFile, m.ID)
	}
	if err := m.Group.check(id); err != nil {
		return Meta{}, fmt.Errorf("read run %s: damaged %s: %w", id, MetaFile, err)
	}
	m.plain()
	return m, nil
}

// Update changes run.json under a lock, so that two processes that each change
// a part of it both succeed, and returns what was written.
func (d Directory) Update(change func(*Meta)) (Meta, error) {
	lock, err := d.Lock(metaLock, true)
	if err != nil {
		return Meta{}, err
	}
	defer lock.Close()
	m, err := d.Load()
	if err != nil {
		return Meta{}, err
	}
	change(&m)
	return m, d.write(&m, true)
}

func (d Directory) write(m *Meta, sync bool) error {
	m.redact()
	err := replace(d.Path(MetaFile), 0o644, sync, func(w io.Writer) error {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		return out.Encode(m)
	})
	if err != nil {
		return fmt.Errorf("write run: %w", err)
	}
	return nil
}

// Remove deletes a run. The directory disappears in one step, so that an observer
// that is writing into it does not leave a part behind.
func (d Directory) Remove() error {
	gone := filepath.Join(filepath.Dir(string(d)), ".removed-"+d.ID())
	if err := os.Rename(string(d), gone); err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	if err := os.RemoveAll(gone); err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	return nil
}

// Within reports whether this is a directory of its own, not a symbolic link,
// among the runs of a data directory.
func (d Directory) Within(dataDir string) bool {
	info, err := os.Lstat(string(d))
	if err != nil || !info.IsDir() || CheckID(d.ID()) != nil {
		return false
	}
	parent, err := os.Stat(filepath.Dir(string(d)))
	if err != nil {
		return false
	}
	root, err := os.Stat(Root(dataDir))
	return err == nil && os.SameFile(parent, root)
}

// Removed reports whether the run was deleted: its runs folder is there, and has no such
// entry. A folder that can't be read, or is not mounted, has lost no run.
func (d Directory) Removed() bool {
	_, err := os.Lstat(string(d))
	root, rootErr := os.Stat(filepath.Dir(string(d)))
	return errors.Is(err, fs.ErrNotExist) && rootErr == nil && root.IsDir()
}

// List returns the ids of all runs in a data directory, oldest first. A data
// directory without runs is empty, not an error.
func List(dataDir string) ([]string, error) {
	err := checkRoot(Root(dataDir))
	var ids []string
	if err == nil {
		ids, err = ListIDs(Root(dataDir))
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return ids, nil
}

// ListIDs returns the names of a folder's subfolders that are ids, sorted. It
// returns none if there is no such folder.
func ListIDs(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && CheckID(e.Name()) == nil {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil // ReadDir sorts
}
