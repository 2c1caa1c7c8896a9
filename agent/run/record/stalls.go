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
	"github.com/benchwatch/benchwatch/agent/run/stall"
)

const (
	// StallsFile is the name of the file with what servers and machines said while the run stalled.
	StallsFile = "stalls.jsonl"
	// mostStallBytes bounds the file, mostCaptureBytes one capture, so that a run has room for 20 and for 20 that replace
	// milder ones. mostCaptures bounds what is read.
	mostStallBytes   = 16 << 20
	mostCaptureBytes = mostStallBytes / 40
	mostCaptures     = 1000
	mostMoments      = 100
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

// Write appends a whole capture, without literals and secrets. Of one that is too large, every second moment is left out,
// as often as needed.
func (w *CaptureWriter) Write(c *Capture) error {
	for i := range c.Moments {
		for j := range c.Moments[i].Answers {
			redact(&c.Moments[i].Answers[j])
		}
	}
	for {
		data, err := jsonLines(c.lines()...)
		if err != nil {
			return fmt.Errorf("write what was captured: %w", err)
		}
		if len(data) <= mostCaptureBytes || len(c.Moments) == 0 {
			return w.append(data)
		}
		c.thin()
	}
}

// lines are the lines of the file.
func (c *Capture) lines() []any {
	lines := []any{captureLine{Capture: c.Number, At: c.Begin, Trigger: secret.Text(c.Trigger), Clients: c.Clients}}
	for i := range c.Moments {
		lines = append(lines, captureLine{Capture: c.Number, At: c.Moments[i].At, Answers: c.Moments[i].Answers})
	}
	return append(lines, captureLine{Capture: c.Number, At: c.End, Over: true})
}

// thin leaves out every second moment, and the sessions of the only one.
func (c *Capture) thin() {
	if len(c.Moments) == 1 {
		answers := c.Moments[0].Answers
		for i := range answers {
			if n := len(answers[i].Sessions) / 2; n > 0 {
				answers[i].Sessions = answers[i].Sessions[:n]
				return
			}
		}
		c.Moments = nil
		return
	}
	kept := c.Moments[:0]
	for i := 0; i < len(c.Moments); i += 2 {
		kept = append(kept, c.Moments[i])
	}
	c.Moments = kept
}

// around is how far a look may be from the seconds that it is taken for: a dip is known when its first interval ends, and
// looks are a second apart.
const around = 2

// During returns the looks of captures that show a dip, each with the seconds of the dip that are nearest to it, and the
// number of the capture, 0 if there is none that shows a second of it, or half of a shorter one. elapsed is the place of a time on the run's axis.
func During(captures []Capture, d *stall.Dip, elapsed func(time.Time) float64) (moments []evidence.Moment, number int, clients float64) {
	seconds := 0.0
	for j := range captures {
		c := &captures[j]
		if elapsed(c.End) < d.From-around || elapsed(c.Begin) > d.To+around {
			continue
		}
		number, clients = c.Number, c.Clients
		for i := range c.Moments {
			at := elapsed(c.Moments[i].At)
			from, to := max(d.From, at-around), min(d.To, at+around)
			if i > 0 {
				from = max(from, (at+elapsed(c.Moments[i-1].At))/2)
			}
			if i+1 < len(c.Moments) {
				to = min(to, (at+elapsed(c.Moments[i+1].At))/2)
			}
			if m := c.Moments[i]; to > from {
				m.Seconds = to - from
				seconds += m.Seconds
				moments = append(moments, m)
			}
		}
	}
	if seconds < min(1, d.Seconds/2) {
		return nil, 0, 0
	}
	return moments, number, clients
}

// Replace notes that a worse stall took the place of a capture.
func (w *CaptureWriter) Replace(number int, at time.Time) error {
	data, err := jsonLines(captureLine{Capture: number, At: at, Replaced: true})
	if err != nil {
		return fmt.Errorf("write what was captured: %w", err)
	}
	return w.append(data)
}

func (w *CaptureWriter) append(data []byte) error {
	if space, err := rundir.SpaceOf(string(w.dir)); err == nil && space.Low() {
		return ErrDiskLow
	}
	w.mu.Lock()
	defer w.mu.Unlock()
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
