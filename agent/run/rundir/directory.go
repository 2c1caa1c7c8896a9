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
	"time"

	"golang.org/x/sys/unix"
)

// Names in a run directory.
const (
	MetaFile    = "run.json"
	StdoutFile  = "stdout.log"
	StderrFile  = "stderr.log"
	StatusFile  = "status.jsonl"
	MarkersFile = "markers.jsonl"
	// LatenciesFile is an HdrHistogram log of the latencies that the tool wrote into its own files.
	// It is written after the tool's end.
	LatenciesFile = "latencies.hlog"

	// metaLock guards run.json. The tool and its children hold ToolLock, `benchwatch run` holds
	// wrapperLock, ObserverLock belongs to the process that records the servers and closes the
	// run, and MarkersLock to the one that sends a marker.
	metaLock     = ".meta.lock"
	ToolLock     = ".tool.lock"
	wrapperLock  = ".wrapper.lock"
	ObserverLock = ".observer.lock"
	MarkersLock  = ".markers.lock"
)

// maxMeta is more than the size of any run.json, in bytes. In a shared folder anybody can write
// one.
const maxMeta = 1 << 20

// ErrExists is returned by Create if the id exists.
var ErrExists = errors.New("run id already exists")

// Directory is one run's folder.
type Directory string

// Root is the folder of all runs in a data directory.
func Root(dataDir string) string { return filepath.Join(dataDir, "runs") }

// At returns the folder of the run id. It need not exist.
func At(dataDir, id string) Directory { return Directory(filepath.Join(Root(dataDir), id)) }

// systemDataDir is where root and the packaged agent store runs.
var systemDataDir = "/var/lib/benchwatch"

// DataDirVariable is the environment variable that names the data directory.
const DataDirVariable = "BENCHWATCH_DATA_DIR"

// DefaultDataDir is the data directory unless a flag or the configuration sets another:
// $BENCHWATCH_DATA_DIR; /var/lib/benchwatch for root, and for all users while an agent there shares
// its runs folder; otherwise benchwatch in $XDG_DATA_HOME or ~/.local/share.
func DefaultDataDir() string {
	if dir := os.Getenv(DataDirVariable); dir != "" {
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

// Claim is held by the process that will record a run's end, until Release or the process's death.
type Claim struct{ lock *os.File }

// Release gives up the claim.
func (c *Claim) Release() { c.lock.Close() }

// Create makes the directory of a new run, with run.json and, unless the tool writes a log file by
// itself, empty output files. The directory appears complete and claimed: Create prepares it under
// another name and renames it. If meta has no ID, it gets a free one.
//
// The error is ErrExists if meta's ID exists.
func Create(dataDir string, meta Meta) (Directory, *Claim, error) {
	return CreateWith(dataDir, meta, func(Directory) error { return nil })
}

// CreateWith is like Create, but calls fill to add files before the directory appears.
func CreateWith(dataDir string, meta Meta, fill func(Directory) error) (Directory, *Claim, error) {
	meta.redact() // the id is derived from it
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

// Adopt makes a run directory from files that fill writes, for a run that another machine recorded.
// The directory appears complete, or not at all if fill fails. The error is ErrExists if the id
// exists.
func Adopt(dataDir, id string, fill func(Directory) error) (Directory, error) {
	if err := CheckID(id); err != nil {
		return "", err
	}
	root := Root(dataDir)
	if err := errors.Join(checkRoot(root), os.MkdirAll(root, 0o755)); err != nil {
		return "", fmt.Errorf("create data directory: %w", err)
	}
	err := At(dataDir, id).Make(func(tmp Directory) error {
		if err := os.WriteFile(tmp.Path(adoptedFile), nil, 0o644); err != nil {
			return err
		}
		return fill(tmp)
	})
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
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return name[:min(len(name), longestFileName)]
}

// longestFileName bounds the name of a log in an id: the title has it, too.
const longestFileName = 20

func create(root string, meta *Meta, fill func(Directory) error) (Directory, *Claim, error) {
	if err := CheckID(meta.ID); err != nil {
		return "", nil, err
	}
	dir := Directory(filepath.Join(root, meta.ID))
	// This early check avoids a fill that may read a large log. place decides if another process
	// takes the id meanwhile.
	if _, err := os.Lstat(string(dir)); err == nil {
		return "", nil, fmt.Errorf("%w: %s", ErrExists, meta.ID)
	}
	var claim *Claim
	err := dir.Make(func(tmp Directory) (err error) {
		claim, err = tmp.prepare(meta, fill)
		return err
	})
	if err == nil {
		return dir, claim, nil
	}
	if claim != nil {
		claim.Release()
	}
	if errors.Is(err, fs.ErrExist) {
		return "", nil, fmt.Errorf("%w: %s", ErrExists, meta.ID)
	}
	return "", nil, fmt.Errorf("create run directory: %w", err)
}

// Make makes the folder with what fill writes into it: it appears complete, or not at all if fill fails. The error is
// fs.ErrExist if the folder exists.
func (d Directory) Make(fill func(Directory) error) error {
	tmp := d.Sibling(".new-" + rand.Text())
	if err := makeDir(string(tmp)); err != nil {
		return err
	}
	err := fill(tmp)
	if err == nil {
		err = place(string(tmp), string(d))
	}
	if err != nil {
		os.RemoveAll(string(tmp))
	}
	return err
}

func (d Directory) prepare(meta *Meta, fill func(Directory) error) (*Claim, error) {
	if err := d.write(meta, meta.Log == nil); err != nil { // the follower of a log syncs many runs at once
		return nil, err
	}
	// Files made here belong to the run's owner. The owner could not write a file made by another
	// user's agent.
	own := map[string]access{metaLock: lockAccess, ToolLock: lockAccess, ObserverLock: lockAccess}
	shared := isSharedRun(string(d))
	if shared {
		own[MarkersLock], own[MarkersFile] = lockAccess, recordAccess
	}
	if meta.Log == nil {
		own[StdoutFile], own[StderrFile] = outputAccess, outputAccess
	}
	for name, access := range own {
		f, err := createFile(d.Path(name), os.O_RDWR, access, shared)
		if err != nil {
			return nil, err
		}
		f.Close()
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

// OpenOutput opens an output file for appending. Only its owner can read it, plus the agent in a
// shared runs folder: the tool may print passwords.
func (d Directory) OpenOutput(name string) (*os.File, error) {
	f, err := openFile(d.Path(name), os.O_WRONLY|os.O_APPEND, outputAccess)
	if err != nil {
		return nil, fmt.Errorf("open output file: %w", err)
	}
	return f, nil
}

// OpenCopy opens the output file of a run that is copied from a log with the given mode. Whoever
// can read the log can read the copy.
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

// place renames a prepared folder. If the name exists, it does not replace it: the error is
// fs.ErrExist.
func place(tmp, dir string) error {
	err := renameNew(tmp, dir)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) { // the file system does not support that
		if _, statErr := os.Lstat(dir); statErr == nil {
			return fs.ErrExist
		}
		return os.Rename(tmp, dir)
	}
	return err
}

// LastWrite is when the tool last wrote its output, the assumed end of a run whose end was not observed; start if that is
// later. Files have times of the wall clock: ahead is how far it is ahead of the run's axis.
func (d Directory) LastWrite(start time.Time, ahead time.Duration) time.Time {
	last := start
	for _, name := range []string{StdoutFile, StderrFile} {
		if info, err := os.Stat(d.Path(name)); err == nil && info.ModTime().Add(-ahead).After(last) {
			last = info.ModTime().Add(-ahead)
		}
	}
	return last.UTC()
}

// Path returns the path of a file in the folder.
func (d Directory) Path(name string) string { return filepath.Join(string(d), name) }

// Sibling returns the folder of another run in the same data directory.
func (d Directory) Sibling(id string) Directory {
	return Directory(filepath.Join(filepath.Dir(string(d)), id))
}

// ID is the run's id, the folder's name.
func (d Directory) ID() string { return filepath.Base(string(d)) }

// Load reads run.json. The error matches fs.ErrNotExist if it does not exist.
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

// ParseMeta parses the text of a run.json, which must belong to the run id.
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

// Update changes run.json under a lock, so that concurrent changes by two processes both succeed.
// It returns what was written.
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

// Within reports whether this is a real directory, not a symbolic link, among the runs of a data
// directory.
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

// Removed reports whether the run was deleted: its runs folder exists without this entry. An
// unreadable or unmounted folder has not lost a run.
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

// ListIDs returns the subfolders whose names are ids, sorted; none if the folder does not exist.
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
