package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/host"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/series"
)

// Status is one line of status.jsonl: what one target answered at one tick.
type Status struct {
	Tick     time.Time  `json:"tick"`
	Asked    *time.Time `json:"asked,omitempty"`
	Answered time.Time  `json:"answered"`
	Target   string     `json:"target"`
	Engine   string     `json:"engine"`
	Cluster  string     `json:"cluster,omitempty"`
	Role     string     `json:"role,omitempty"`
	Version  string     `json:"version,omitempty"`
	Flavour  string     `json:"flavour,omitempty"`
	Up       bool       `json:"up"`
	Error    string     `json:"error,omitempty"`
	Restarts uint64     `json:"restarts,omitempty"`

	LagTransactions series.Optional[float64] `json:"lag_transactions,omitzero"`
	LagSeconds      series.Optional[float64] `json:"lag_seconds,omitzero"`
	Position        string                   `json:"position,omitempty"`
	// Values by metric name without prefix, labels in braces behind it.
	Values map[string]float64 `json:"values,omitempty"`
}

// recorder appends to status.jsonl, host.jsonl and settings.jsonl. A nil recorder
// records nothing.
type Recorder struct {
	status, hosts *lineFile
	settings      settingsRecorder // of the goroutine that records
}

// newRecorder records a run that began at start.
func NewRecorder(dir rundir.Directory, start time.Time) *Recorder {
	return &Recorder{
		status: &lineFile{path: dir.Path(rundir.StatusFile)}, hosts: &lineFile{path: dir.Path(host.File)},
		settings: settingsRecorder{file: &lineFile{path: dir.Path(SettingsFile)}, start: start, seen: map[string]*engine.SettingsReading{}},
	}
}

// record appends a tick: the targets' answers, their settings where these are
// new, and the host's CPU if it is known.
func (r *Recorder) Record(f engine.Frame, machine *host.Sample) error {
	if r == nil {
		return nil
	}
	var lines []any
	for i := range f.Samples {
		lines = append(lines, statusOf(&f.Samples[i]))
	}
	err := r.status.append(lines)
	if machine != nil {
		err = errors.Join(err, r.hosts.append([]any{machine}))
	}
	err = errors.Join(err, r.settings.record(f))
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

func (r *Recorder) Close() {
	if r != nil {
		r.status.close()
		r.hosts.close()
		r.settings.file.close()
	}
}

// lineFile is a file of JSON lines that is made with its first line. mu is there
// because frames and the end of the run come from different goroutines.
type lineFile struct {
	path string

	mu     sync.Mutex
	file   *os.File
	torn   bool // the file ends within a line
	closed bool
}

// append adds whole lines with one write. A write that fails half way is made
// good by beginning the next one on a new line.
func (l *lineFile) append(lines []any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(lines) == 0 {
		return nil
	}
	if err := l.open(); err != nil {
		return err
	}
	var b []byte
	if l.torn {
		b = append(b, '\n')
	}
	for _, line := range lines {
		data, err := json.Marshal(line)
		if err != nil {
			return err
		}
		b = append(append(b, data...), '\n')
	}
	n, err := l.file.Write(b)
	if n > 0 {
		l.torn = b[n-1] != '\n'
	}
	return err
}

func (l *lineFile) open() error {
	if l.file != nil {
		return nil
	}
	f, err := rundir.OpenRecord(l.path)
	if err != nil {
		return err
	}
	l.file = f
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		end := make([]byte, 1)
		_, err := f.ReadAt(end, info.Size()-1)
		l.torn = err != nil || end[0] != '\n'
	}
	return nil
}

func (l *lineFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

func statusOf(s *engine.Sample) Status {
	line := Status{
		Tick: s.Tick.UTC(), Answered: s.Answered.UTC(), Target: s.Target.Name, Engine: s.Target.Engine,
		Cluster: s.Target.Cluster, Role: s.Target.Role, Up: s.Up(), Restarts: s.Restarts,
		LagTransactions: s.LagTransactions, LagSeconds: s.LagSeconds,
	}
	if !s.Up() {
		if s.Err != nil {
			line.Error = s.Err.Error()
		}
		return line
	}
	if line.Role == "" {
		line.Role = s.Status.Role
	}
	asked := s.Asked.UTC()
	line.Asked = &asked
	line.Version, line.Flavour = s.Status.Version, s.Status.Flavour
	line.Values = make(map[string]float64, len(s.Status.Values)+1)
	if s.Status.Position != nil {
		line.Position = s.Status.Position.String()
		line.Values[engine.ReplicationPosition.Name] = s.Status.Position.Scalar()
	}
	for i := range s.Status.Values {
		v := &s.Status.Values[i]
		line.Values[v.Name()] = v.V
	}
	return line
}
