package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/commandline"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// State of a step.
type State string

const (
	Pending State = "pending"
	// Running: the run was started, or is about to be.
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
	// Skipped: a step with fewer threads met --stop-when.
	Skipped State = "skipped"
)

// Step is one run of a sweep.
type Step struct {
	Number int               `json:"number"`
	Values map[string]string `json:"values"`
	Repeat int               `json:"repeat"`
	Warmup bool              `json:"warmup,omitempty"`
	// Arm is what {arm} means in command and hooks if the values name the control of an A/B comparison.
	Arm   string `json:"arm,omitempty"`
	State State  `json:"state"`
	// RunID is the run of the last attempt. An attempt that was cut off is repeated with another
	// id.
	RunID   string `json:"run_id,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Began is when the first hook started, Seconds how long hooks and run took.
	Began   time.Time `json:"began,omitzero"`
	Seconds float64   `json:"seconds,omitempty"`
	// Reason is why the step failed or was skipped.
	Reason string `json:"reason,omitempty"`
	// Throughput is the throughput of the run, in transactions per second.
	Throughput series.Optional[float64] `json:"throughput,omitzero"`
	// Judgement is whether the run met the conditions of seek; Reason then has the values.
	Judgement Judgement `json:"judgement,omitempty"`
	// Measured are values of the run by the name of the measure, where the next step depends on them.
	Measured map[string]float64 `json:"measured,omitempty"`
}

// filling returns the values for the placeholders of the command and the hooks.
func (s *Step) filling() map[string]string {
	if s.Arm == "" {
		return s.Values
	}
	values := maps.Clone(s.Values)
	values[ArmSet] = s.Arm
	return values
}

// Over reports whether nothing is left to do for the step.
func (s *Step) Over() bool { return s.State == Done || s.State == Failed || s.State == Skipped }

// Sweep is the content of sweep.json: what to do, and how much of it is done. Secrets in its
// commands are blanked.
type Sweep struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	Sets      []Set     `json:"sets"`
	Repeat    int       `json:"repeat"`
	Order     Order     `json:"order"`
	Commands
	// Redacted: secrets in the commands were blanked, so they must be given again to resume the
	// sweep.
	Redacted bool `json:"redacted,omitempty"`

	CooldownSeconds float64 `json:"cooldown_seconds,omitempty"`
	StopWhen        string  `json:"stop_when,omitempty"`
	// Seek is set if the sweep is a search.
	Seek *Seek `json:"seek,omitempty"`
	// Plan is what a [Course] of another package keeps here: the plan of an A/B comparison.
	Plan json.RawMessage `json:"plan,omitempty"`

	Title  string            `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Tool   string            `json:"tool,omitempty"`
	// RunOptions are passed on to each run.
	RunOptions []string `json:"run_options,omitempty"`

	Steps []Step `json:"steps"`

	dir string
}

// Commands are the commands that a sweep starts, with placeholders: the benchmark, and the hooks
// before and after each run.
type Commands struct {
	Command []string `json:"command"`
	Before  string   `json:"before,omitempty"`
	After   string   `json:"after,omitempty"`
	// Arms are the commands of the arms of an A/B comparison that have their own command.
	Arms map[string][]string `json:"arms,omitempty"`
}

// ArmSet is the set whose values are the keys of Commands.Arms.
const ArmSet = "arm"

// of returns the command of a step.
func (c Commands) of(values map[string]string) []string {
	if own, ok := c.Arms[values[ArmSet]]; ok {
		return own
	}
	return c.Command
}

// filled returns the command of a step with its values.
func (c Commands) filled(values map[string]string) []string {
	var filled []string
	for _, a := range c.of(values) {
		filled = append(filled, Fill(a, values))
	}
	return filled
}

// Stored returns c in the form for the disk, with secrets blanked.
func (c Commands) Stored(tools tool.Set) Commands {
	stored := Commands{Before: c.hook(c.Before, tools), After: c.hook(c.After, tools)}
	if len(c.Command) > 0 {
		stored.Command = c.read(tools).Redacted
	}
	for arm, command := range c.Arms {
		if stored.Arms == nil {
			stored.Arms = map[string][]string{}
		}
		stored.Arms[arm] = Commands{Command: command}.read(tools).Redacted
	}
	return stored
}

// hook returns shell text with secrets blanked.
func (Commands) hook(text string, tools tool.Set) string {
	return Commands{Command: []string{"sh", "-c", text}}.read(tools).Redacted[2]
}

// Equal reports whether c and other are equal.
func (c Commands) Equal(other Commands) bool {
	return slices.Equal(c.Command, other.Command) && c.Before == other.Before &&
		c.After == other.After && maps.EqualFunc(c.Arms, other.Arms, slices.Equal)
}

// Describe returns the description of the benchmark's command line with the values of a step.
func (c Commands) Describe(values map[string]string, tools tool.Set) tool.Description {
	return Commands{Command: c.filled(values)}.read(tools).Description
}

func (c Commands) read(tools tool.Set) commandline.Command {
	env := commandline.OS()
	env.NoInject = true
	return commandline.Read(c.Command, tools, env)
}

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

// Next returns the next step, nil if all are over. A step that was running comes first.
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

// Left estimates the duration of the remaining steps, from the finished ones or from the requested
// duration of one; 0 if both are unknown.
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
