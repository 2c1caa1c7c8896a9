// Package host samples machines: the agent's own by procfs, others by their
// node_exporter. Both give the same values, so that whether the generator, a server or
// neither was the limit is read in the same way.
package host

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// File is the name of the file in a run directory that holds what the run's machines
// did: a Sample a line of the machine that makes the load, for runs whose tool was
// started on the agent's machine, and the samples of all machines of the run in the
// format of the servers' record, see package record.
const File = "host.jsonl"

// Sample is what a machine did since the previous sample, in shares of all its
// CPUs' time, 0 to 1.
type Sample struct {
	At    time.Time `json:"at"`
	Cores int       `json:"cores"`
	// Busy is all but idle time and waiting for disks.
	Busy   float64 `json:"busy"`
	IOWait float64 `json:"iowait"`
	Steal  float64 `json:"steal"`
	// Interval is the usual distance of samples in seconds; 0: unknown.
	Interval float64 `json:"interval,omitempty"`
}

// History is a machine's CPU during a run, one row a sample. It is
// [measure.Columns]; the zero History has no rows.
type History struct {
	// Elapsed is the end of what each row is about.
	series.Table[string]
	// Begin is the first row that was not visited before, see Read.
	Begin int
	Cores int
}

// Names implements measure.Columns: no column has labels.
func (h *History) Names() []string { return nil }

// Rate implements measure.Columns.
func (h *History) Rate(name string) []float64 {
	values := h.Values(name)
	if values == nil {
		return nil
	}
	return series.Rates(values, h.Elapsed, nil)
}

// Add appends a sample at its place on the run's axis, in seconds. A sample that
// does not lie after the previous one is left out. Samples that are missing before
// it are rows without values.
func (h *History) Add(s *Sample, elapsed float64) {
	if !h.IsNext(elapsed) {
		return
	}
	if n := len(h.Elapsed); n > 0 {
		for _, missed := range series.Breaks([]float64{h.Elapsed[n-1], elapsed}, s.Interval) {
			h.Row(missed)
		}
	}
	if !h.Row(elapsed) {
		return
	}
	h.Set(BusyShare.Name, s.Busy)
	h.Set(IOWaitShare.Name, s.IOWait)
	h.Set(StealShare.Name, s.Steal)
	h.Cores = s.Cores
}

// Read reads the samples in a File onto an axis that begins at zero, and calls visit
// with up to about rows after the other. A line that is no sample, such as half
// a line after a crash, is left out. Without a file there are no samples and the error
// is nil.
func Read(path string, zero time.Time, rows int, visit func(*History)) error {
	f, err := rundir.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read host: %w", err)
	}
	defer f.Close()
	var h History
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var s Sample
		if json.Unmarshal(lines.Bytes(), &s) != nil || s.At.IsZero() {
			continue
		}
		if len(h.Elapsed) >= rows {
			visit(&h)
			h.Keep(1)
			h.Begin = 1
		}
		h.Add(&s, s.At.Sub(zero).Seconds())
	}
	visit(&h)
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read host: %w", err)
	}
	return nil
}

// Reader reads this machine's CPU. It may be used by several goroutines.
type Reader struct {
	mu       sync.Mutex
	files    files
	previous cpuTime
}

// NewReader returns a Reader of /proc.
func NewReader() *Reader { return &Reader{} }

// Read returns what the machine did since the previous reading; nil for the first
// one and where there is no /proc.
func (r *Reader) Read(now time.Time) *Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	stat, err := readStat(&r.files)
	if err != nil {
		r.previous = cpuTime{}
		return nil
	}
	was, is := r.previous, stat.all
	r.previous = is
	total := is.total() - was.total()
	if was.total() == 0 || total <= 0 {
		return nil
	}
	share := func(is, was float64) float64 {
		return math.Round(min(1, max(0, (is-was)/total))*1e4) / 1e4
	}
	return &Sample{
		At: now.UTC().Truncate(time.Millisecond), Cores: len(stat.cores),
		Busy:   math.Round((1-share(is.idle+is.iowait, was.idle+was.iowait))*1e4) / 1e4,
		IOWait: share(is.iowait, was.iowait), Steal: share(is.steal, was.steal),
	}
}
