package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
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
	// RunID is the run's of the last attempt; an attempt that was cut off is
	// made again under another id.
	RunID   string `json:"run_id,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Began is when its hooks and its run were started, Seconds what all of it
	// took.
	Began   time.Time `json:"began,omitzero"`
	Seconds float64   `json:"seconds,omitempty"`
	// Reason says why it failed or was skipped.
	Reason string `json:"reason,omitempty"`
}

// Over reports whether nothing is left to do for the step.
func (s *Step) Over() bool { return s.State == Done || s.State == Failed || s.State == Skipped }

// Sweep is sweep.json: what was asked for and how far it came. Secrets in its
// command are blanked.
type Sweep struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	Sets      []Set     `json:"sets"`
	Repeat    int       `json:"repeat"`
	Order     Order     `json:"order"`
	// Command has placeholders. Redacted: secrets in the command or a hook were
	// blanked, so it must be given again to go on.
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

const (
	file = "sweep.json"
	lock = ".lock"
)

// ErrBusy is returned for a sweep that another process runs.
var ErrBusy = errors.New("another process runs this sweep")

// Root is the folder of all sweeps in a data directory.
func Root(dataDir string) string { return filepath.Join(dataDir, "sweeps") }

// Create writes a new sweep. Its id must not be taken.
func Create(dataDir string, s *Sweep) error {
	s.dir = filepath.Join(Root(dataDir), s.ID)
	if err := os.MkdirAll(Root(dataDir), 0o755); err != nil {
		return fmt.Errorf("create sweep: %w", err)
	}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return fmt.Errorf("create sweep: %w", err)
	}
	if err := s.Save(); err != nil {
		os.RemoveAll(s.dir)
		return err
	}
	return nil
}

// Load reads a sweep.
func Load(dataDir, id string) (*Sweep, error) {
	if err := rundir.CheckID(id); err != nil {
		return nil, fmt.Errorf("sweep %q: %w", id, err)
	}
	s := &Sweep{dir: filepath.Join(Root(dataDir), id)}
	data, err := os.ReadFile(filepath.Join(s.dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no sweep %s in %s", id, dataDir)
	}
	if err != nil {
		return nil, fmt.Errorf("read sweep: %w", err)
	}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("read sweep %s: damaged %s: %w", id, file, err)
	}
	if s.ID != id || len(s.Sets) == 0 || len(s.Steps) == 0 {
		return nil, fmt.Errorf("read sweep %s: damaged %s", id, file)
	}
	return s, nil
}

// List returns the ids of all sweeps, oldest first.
func List(dataDir string) ([]string, error) {
	entries, err := os.ReadDir(Root(dataDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list sweeps: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && rundir.CheckID(e.Name()) == nil {
			ids = append(ids, e.Name())
		}
	}
	sort.Strings(ids)
	return ids, nil
}

// Claim makes this process the one that runs the sweep, until release.
func (s *Sweep) Claim() (release func(), err error) {
	f, err := rundir.Lock(filepath.Join(s.dir, lock))
	if errors.Is(err, rundir.ErrLocked) {
		return nil, fmt.Errorf("sweep %s: %w", s.ID, ErrBusy)
	}
	if err != nil {
		return nil, fmt.Errorf("sweep %s: %w", s.ID, err)
	}
	return func() { f.Close() }, nil
}

// Reload reads the sweep again, as another process may have left it.
func (s *Sweep) Reload(dataDir string) error {
	now, err := Load(dataDir, s.ID)
	if err != nil {
		return err
	}
	*s = *now
	return nil
}

// Path is the path of a file in the sweep's folder.
func (s *Sweep) Path(name string) string { return filepath.Join(s.dir, name) }

// Save writes sweep.json whole: a crash leaves the old or the new one.
func (s *Sweep) Save() error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write sweep: %w", err)
	}
	tmp, err := os.CreateTemp(s.dir, ".sweep-*.json")
	if err != nil {
		return fmt.Errorf("write sweep: %w", err)
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
		err = os.Rename(tmp.Name(), filepath.Join(s.dir, file))
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

// Left estimates the time that the rest takes from what was done so far, or
// from what a step is asked to take; 0 if neither is known.
func (s *Sweep) Left(asked time.Duration) time.Duration {
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
	case asked > 0:
		return asked*time.Duration(left) + time.Duration(pause*float64(time.Second))
	}
	return 0
}
