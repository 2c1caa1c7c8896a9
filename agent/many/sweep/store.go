package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// The files in a sweep's folder.
const (
	stateFile = "sweep.json"
	lockFile  = ".lock"
	logFile   = "sweep.log" // output of runs and hooks
)

// Errors that callers can test for.
var (
	// ErrBusy is returned if another process runs the sweep.
	ErrBusy = errors.New("another process runs this sweep")
	// ErrNone is returned if there is no sweep at all.
	ErrNone = errors.New("no sweep")
)

// Root returns the folder of all sweeps in a data directory.
func Root(dataDir string) string { return filepath.Join(dataDir, "sweeps") }

// unfinished is the pattern for folders that Create prepares.
const unfinished = ".new-*"

// abandoned is the age after which an unfinished folder counts as left by a killed Create.
const abandoned = time.Minute

// Create writes a new sweep, with an id made of its creation time and name. Its folder appears only
// when the state in it is complete.
func Create(dataDir, name string, s *Sweep) error {
	return rundir.CreateNew(Root(dataDir), s.CreatedAt, name, 0, func(id string) error {
		s.ID = id
		return create(dataDir, s)
	})
}

// create writes a sweep. The error is [fs.ErrExist] if the id exists.
func create(dataDir string, s *Sweep) error {
	if err := os.MkdirAll(Root(dataDir), 0o755); err != nil {
		return fmt.Errorf("create sweep: %w", err)
	}
	removeAbandoned(dataDir)
	prepared, err := os.MkdirTemp(Root(dataDir), unfinished)
	if err != nil {
		return fmt.Errorf("create sweep: %w", err)
	}
	defer os.RemoveAll(prepared) // it is gone after the rename
	s.dir = prepared
	if err := s.Save(); err != nil {
		return err
	}
	s.dir = filepath.Join(Root(dataDir), s.ID)
	if err := os.Chmod(prepared, 0o755); err != nil {
		return fmt.Errorf("create sweep: %w", err)
	}
	if err := os.Rename(prepared, s.dir); err != nil { // fails if there is a sweep
		return fmt.Errorf("create sweep: %w", err)
	}
	return nil
}

// removeAbandoned removes what killed calls of Create left. It ignores errors, since the next
// creation tries again.
func removeAbandoned(dataDir string) {
	left, _ := filepath.Glob(filepath.Join(Root(dataDir), unfinished)) // the pattern is valid
	for _, folder := range left {
		if info, err := os.Lstat(folder); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = os.RemoveAll(folder)
		}
	}
}

// Load reads a sweep, which contains the commands to continue it. The error is [fs.ErrNotExist] if
// no sweep has this id, and [rundir.ErrForeign] if another user may have written it.
func Load(dataDir, id string) (*Sweep, error) {
	return load(dataDir, id, rundir.OpenTrusted)
}

// LoadToShow reads a sweep of any user: it must not be continued.
func LoadToShow(dataDir, id string) (*Sweep, error) {
	return load(dataDir, id, func(dir, name string) (*os.File, error) { return rundir.Open(filepath.Join(dir, name)) })
}

// File returns the path of a sweep's state.
func File(dataDir, id string) string { return filepath.Join(Root(dataDir), id, stateFile) }

func load(dataDir, id string, open func(dir, name string) (*os.File, error)) (*Sweep, error) {
	if err := rundir.CheckID(id); err != nil {
		return nil, fmt.Errorf("sweep %q: %w", id, err)
	}
	s := &Sweep{dir: filepath.Join(Root(dataDir), id)}
	data, err := readState(s.dir, open)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no sweep %s in %s: %w", id, dataDir, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("read sweep: %w", err)
	}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("read sweep %s: damaged %s: %w", id, stateFile, err)
	}
	if s.ID != id || len(s.Sets) == 0 || len(s.Steps) == 0 {
		return nil, fmt.Errorf("read sweep %s: damaged %s", id, stateFile)
	}
	return s, nil
}

// maxState is the maximum size of sweep.json in bytes, more than any real one has.
const maxState = 16 << 20

func readState(dir string, open func(dir, name string) (*os.File, error)) ([]byte, error) {
	f, err := open(dir, stateFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxState+1))
	if err == nil && len(data) > maxState {
		err = fmt.Errorf("%s is longer than %d bytes", stateFile, maxState)
	}
	return data, err
}

// Last reads the user's newest readable sweep, with a plan or without; skipped are the errors of newer
// ones. The error is ErrNone if there is none.
func Last(dataDir string, planned bool) (s *Sweep, skipped []error, err error) {
	ids, err := List(dataDir)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range slices.Backward(ids) {
		if !rundir.Own(filepath.Join(Root(dataDir), id)) {
			continue // only its owner can continue it
		}
		s, err := Load(dataDir, id)
		switch {
		case err == nil && (s.Plan != nil) == planned:
			return s, skipped, nil
		case err == nil:
			continue
		}
		skipped = append(skipped, err)
	}
	return nil, skipped, fmt.Errorf("%w of yours in %s that can be read", ErrNone, dataDir)
}

// List returns the ids of all sweeps, oldest first.
func List(dataDir string) ([]string, error) {
	ids, err := rundir.ListIDs(Root(dataDir))
	if err != nil {
		return nil, fmt.Errorf("list sweeps: %w", err)
	}
	return ids, nil
}

// Ongoing returns the runs of the sweeps that are not over, each with its sweep. A sweep that can't be read is skipped.
func Ongoing(dataDir string) map[string]string {
	ids, _ := List(dataDir)
	runs := map[string]string{}
	for _, id := range ids {
		s, err := LoadToShow(dataDir, id)
		if err != nil || s.Next() == nil && !rundir.Directory(s.dir).Locked(lockFile) {
			continue
		}
		for i := range s.Steps {
			if run := s.Steps[i].RunID; run != "" {
				runs[run] = id
			}
		}
	}
	return runs
}

// Claim reserves the sweep for this process until release. The error is ErrBusy if
// another process does.
func (s *Sweep) Claim() (release func(), err error) {
	f, err := rundir.Directory(s.dir).Lock(lockFile, false)
	if errors.Is(err, rundir.ErrLocked) {
		return nil, fmt.Errorf("sweep %s: %w", s.ID, ErrBusy)
	}
	if err != nil {
		return nil, fmt.Errorf("sweep %s: %w", s.ID, err)
	}
	return func() { f.Close() }, nil
}

// Reload reads the sweep again, since another process may have continued it.
func (s *Sweep) Reload(dataDir string) error {
	now, err := Load(dataDir, s.ID)
	if err != nil {
		return err
	}
	*s = *now
	return nil
}

// Path returns the path of a file in the sweep's folder.
func (s *Sweep) Path(name string) string { return filepath.Join(s.dir, name) }

// Save writes sweep.json. A crash leaves the old or the new content.
func (s *Sweep) Save() error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = rundir.Replace(s.Path(stateFile), 0o644, func(w io.Writer) error {
			_, err := w.Write(append(data, '\n'))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("write sweep: %w", err)
	}
	return nil
}
