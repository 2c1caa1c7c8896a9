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

	"github.com/benchwatch/benchwatch/agent/rundir"
)

// State of a step.
type State string

const (
	Pending State = "pending"
	// Running: its run was started or is just about to be.
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
	// Skipped: --stop-when was met by a step with fewer threads.
	Skipped State = "skipped"
)

// Step is one run of a sweep.
type Step struct {
	Number int               `json:"number"`
	Values map[string]string `json:"values"`
	Repeat int               `json:"repeat"`
	Warmup bool              `json:"warmup,omitempty"`
	State  State             `json:"state"`
	// RunID is the run of the last attempt. An attempt that was cut off is repeated
	// with another id.
	RunID   string `json:"run_id,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Began is when the first hook was started, Seconds how long hooks and run took.
	Began   time.Time `json:"began,omitzero"`
	Seconds float64   `json:"seconds,omitempty"`
	// Reason is why it failed or was skipped.
	Reason string `json:"reason,omitempty"`
}

// Over reports whether nothing is left to do for the step.
func (s *Step) Over() bool { return s.State == Done || s.State == Failed || s.State == Skipped }

// Sweep is sweep.json: what to do, and how much of it is done. Secrets in its
// command are blanked.
type Sweep struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	Sets      []Set     `json:"sets"`
	Repeat    int       `json:"repeat"`
	Order     Order     `json:"order"`
	// Command has placeholders. If secrets in it or in a hook were blanked (Redacted),
	// it must be given again to resume the sweep.
	Command  []string `json:"command"`
	Before   string   `json:"before,omitempty"`
	After    string   `json:"after,omitempty"`
	Redacted bool     `json:"redacted,omitempty"`

	CooldownSeconds float64           `json:"cooldown_seconds,omitempty"`
	StopWhen        string            `json:"stop_when,omitempty"`
	Title           string            `json:"title,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Tool            string            `json:"tool,omitempty"`
	// RunOptions are passed on to each run.
	RunOptions []string `json:"run_options,omitempty"`

	Steps []Step `json:"steps"`

	dir string
}

// The files in a sweep's folder.
const (
	stateFile = "sweep.json"
	lockFile  = ".lock"
	LogFile   = "sweep.log" // what the runs and hooks printed
)

// Errors that callers can test for.
var (
	// ErrBusy is returned for a sweep that another process runs.
	ErrBusy = errors.New("another process runs this sweep")
	// ErrNone is returned if there is no sweep at all.
	ErrNone = errors.New("no sweep")
)

// Root returns the folder of all sweeps in a data directory.
func Root(dataDir string) string { return filepath.Join(dataDir, "sweeps") }

// Create writes a new sweep. Its folder appears with the state in it or not at
// all. The error is [fs.ErrExist] if the id is taken.
func Create(dataDir string, s *Sweep) error {
	if err := os.MkdirAll(Root(dataDir), 0o755); err != nil {
		return fmt.Errorf("create sweep: %w", err)
	}
	prepared, err := os.MkdirTemp(Root(dataDir), ".new-*")
	if err != nil {
		return fmt.Errorf("create sweep: %w", err)
	}
	defer os.RemoveAll(prepared) // is gone after the rename
	s.dir = prepared
	if err := s.Save(); err != nil {
		return err
	}
	s.dir = filepath.Join(Root(dataDir), s.ID)
	if err := os.Chmod(prepared, 0o755); err != nil {
		return fmt.Errorf("create sweep: %w", err)
	}
	if err := os.Rename(prepared, s.dir); err != nil { // fails if there is a sweep in it
		return fmt.Errorf("create sweep: %w", err)
	}
	return nil
}

// Load reads a sweep. The error is [fs.ErrNotExist] if there is none of that id.
func Load(dataDir, id string) (*Sweep, error) {
	if err := rundir.CheckID(id); err != nil {
		return nil, fmt.Errorf("sweep %q: %w", id, err)
	}
	s := &Sweep{dir: filepath.Join(Root(dataDir), id)}
	data, err := os.ReadFile(s.Path(stateFile))
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

// Last reads the newest sweep that can be read; skipped are the errors of newer
// ones. The error is ErrNone if there is none.
func Last(dataDir string) (s *Sweep, skipped []error, err error) {
	ids, err := List(dataDir)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range slices.Backward(ids) {
		s, err := Load(dataDir, id)
		if err == nil {
			return s, skipped, nil
		}
		skipped = append(skipped, err)
	}
	return nil, skipped, fmt.Errorf("%w in %s that can be read", ErrNone, dataDir)
}

// List returns the ids of all sweeps, oldest first.
func List(dataDir string) ([]string, error) {
	ids, err := rundir.ListIDs(Root(dataDir))
	if err != nil {
		return nil, fmt.Errorf("list sweeps: %w", err)
	}
	return ids, nil
}

// Claim makes this process the one that runs the sweep, until release. The error is
// ErrBusy if another one does.
func (s *Sweep) Claim() (release func(), err error) {
	f, err := rundir.Lock(s.Path(lockFile))
	if errors.Is(err, rundir.ErrLocked) {
		return nil, fmt.Errorf("sweep %s: %w", s.ID, ErrBusy)
	}
	if err != nil {
		return nil, fmt.Errorf("sweep %s: %w", s.ID, err)
	}
	return func() { f.Close() }, nil
}

// Reload reads the sweep again: another process may have continued it.
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

// Save writes sweep.json: a crash leaves the old or the new one.
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

// Next returns the step to do next, nil if all are over. One that was running
// comes first.
func (s *Sweep) Next() *Step {
	for _, want := range []State{Running, Pending} {
		for i := range s.Steps {
			if s.Steps[i].State == want {
				return &s.Steps[i]
			}
		}
	}
	return nil
}

// NewAttempt gives a step the id of its next run.
func (s *Sweep) NewAttempt(step *Step) {
	step.Attempt++
	step.RunID = fmt.Sprintf("%s-%03d", s.ID, step.Number)
	if step.Attempt > 1 {
		step.RunID += fmt.Sprintf("-try%d", step.Attempt)
	}
	step.State = Running
}

// Left estimates how long the remaining steps take, from the steps done so far or
// from the requested duration of one; 0 if neither is known.
func (s *Sweep) Left(requested time.Duration) time.Duration {
	done, left, sum := 0, 0, 0.0
	for i := range s.Steps {
		step := &s.Steps[i]
		switch {
		case step.Seconds > 0:
			done++
			sum += step.Seconds
		case !step.Over():
			left++
		}
	}
	pause := s.CooldownSeconds * float64(max(0, left-1))
	switch {
	case left == 0:
		return 0
	case done > 0:
		return time.Duration((sum/float64(done)*float64(left) + pause) * float64(time.Second))
	case requested > 0:
		return requested*time.Duration(left) + time.Duration(pause*float64(time.Second))
	}
	return 0
}
