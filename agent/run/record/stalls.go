package record

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// StallsFile is the name of the file with what servers and machines said while the run stalled.
	StallsFile = "stalls.jsonl"
	// mostStallBytes bounds the file, mostCaptures what is read of it.
	mostStallBytes = 16 << 20
	mostCaptures   = 1000
	mostMoments    = 100
)

// captureLine is one line of stalls.jsonl: the begin of a capture with its trigger, what was said at one moment, its
// end, or that a worse stall took its place.
type captureLine struct {
	Capture  int               `json:"capture"`
	At       time.Time         `json:"at"`
	Trigger  string            `json:"trigger,omitempty"`
	Clients  float64           `json:"clients,omitempty"`
	Answers  []evidence.Answer `json:"answers,omitempty"`
	Over     bool              `json:"over,omitempty"`
	Replaced bool              `json:"replaced,omitempty"`
}

// Capture is what was said during one stall. Begin and End are on the run's axis; End is the last moment if the capture
// was not ended.
type Capture struct {
	Number     int
	Trigger    string
	Clients    float64
	Begin, End time.Time
	Moments    []evidence.Moment
}

// CaptureWriter appends to stalls.jsonl.
type CaptureWriter struct {
	dir  rundir.Directory
	file *lineFile

	mu   sync.Mutex
	size int64
}

// ErrStallsFull is returned for a capture that would make stalls.jsonl too large.
var ErrStallsFull = errors.New("stalls.jsonl is full")

// NewCaptureWriter returns a writer, and the number of the last capture in the file.
func NewCaptureWriter(dir rundir.Directory) (w *CaptureWriter, last int) {
	w = &CaptureWriter{dir: dir, file: &lineFile{path: dir.Path(StallsFile)}}
	_ = eachLine(dir.Path(StallsFile), func(l captureLine) { last = max(last, l.Capture) })
	if f, err := rundir.Open(dir.Path(StallsFile)); err == nil {
		if info, err := f.Stat(); err == nil {
			w.size = info.Size()
		}
		f.Close()
	}
	return w, last
}

// Write appends a whole capture, without literals and secrets.
func (w *CaptureWriter) Write(c *Capture) error {
	lines := []any{captureLine{Capture: c.Number, At: c.Begin, Trigger: secret.Text(c.Trigger), Clients: c.Clients}}
	for i := range c.Moments {
		m := &c.Moments[i]
		for j := range m.Answers {
			redact(&m.Answers[j])
		}
		lines = append(lines, captureLine{Capture: c.Number, At: m.At, Answers: m.Answers})
	}
	return w.append(append(lines, captureLine{Capture: c.Number, At: c.End, Over: true})...)
}

// Replace notes that a worse stall took the place of a capture.
func (w *CaptureWriter) Replace(number int, at time.Time) error {
	return w.append(captureLine{Capture: number, At: at, Replaced: true})
}

func (w *CaptureWriter) append(lines ...any) error {
	if space, err := rundir.SpaceOf(string(w.dir)); err == nil && space.Low() {
		return ErrDiskLow
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	data, err := jsonLines(lines...)
	if err != nil {
		return fmt.Errorf("write what was captured: %w", err)
	}
	if w.size+int64(len(data)) > mostStallBytes {
		return ErrStallsFull
	}
	if err := w.file.append(data); err != nil {
		return fmt.Errorf("write what was captured: %w", err)
	}
	w.size += int64(len(data))
	return nil
}

// Close closes the file.
func (w *CaptureWriter) Close() { w.file.close() }

// redact blanks secrets in the texts of an answer.
func redact(a *evidence.Answer) {
	for i := range a.Sessions {
		s := &a.Sessions[i]
		s.Statement, s.User, s.Host = secret.Text(s.Statement), secret.Text(s.User), secret.Text(s.Host)
	}
	for name, text := range a.Texts {
		a.Texts[name] = secret.Text(text)
	}
	for i, text := range a.Missing {
		a.Missing[i] = secret.Text(text)
	}
	a.Error = secret.Text(a.Error)
}

// ReadCaptures returns what was captured, in the order of time. Damaged lines are left out. The error is for a file that
// can't be read.
func ReadCaptures(d rundir.Directory) ([]Capture, error) {
	var all []*Capture
	err := eachLine(d.Path(StallsFile), func(l captureLine) {
		i := slices.IndexFunc(all, func(c *Capture) bool { return c.Number == l.Capture })
		switch {
		case l.Replaced && i >= 0:
			all = slices.Delete(all, i, i+1)
			return
		case l.Replaced || i < 0 && len(all) >= mostCaptures:
			return
		case i < 0:
			i = len(all)
			all = append(all, &Capture{Number: l.Capture, Trigger: l.Trigger, Clients: l.Clients, Begin: l.At})
		}
		c := all[i]
		c.End = l.At
		if len(l.Answers) > 0 && len(c.Moments) < mostMoments {
			c.Moments = append(c.Moments, evidence.Moment{At: l.At, Answers: l.Answers})
		}
	})
	captures := make([]Capture, len(all))
	for i, c := range all {
		captures[i] = *c
	}
	if err != nil {
		err = fmt.Errorf("read what was captured: %w", err)
	}
	return captures, err
}
