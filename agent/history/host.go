package history

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sync"
	"time"

	"github.com/prometheus/procfs"

	"github.com/benchwatch/benchwatch/agent/rundir"
)

// HostFile holds the CPU of the machine that makes the load, a line a tick. It
// is there for runs whose tool was started on the agent's machine.
const HostFile = "host.jsonl"

// Host is one line of host.jsonl: shares of all CPUs' time since the line
// before it, 0 to 1.
type Host struct {
	At     time.Time `json:"at"`
	Cores  int       `json:"cores"`
	Busy   float64   `json:"busy"`
	IOWait float64   `json:"iowait"`
	Steal  float64   `json:"steal"`
}

// hostReader reads this machine's CPU.
type HostReader struct {
	mu     sync.Mutex
	fs     procfs.FS
	err    error
	before procfs.CPUStat
}

func NewHostReader() *HostReader {
	r := &HostReader{}
	r.fs, r.err = procfs.NewDefaultFS()
	return r
}

// read returns the shares since the reading before; nil for the first and where
// there is no /proc.
func (r *HostReader) Read(now time.Time) *Host {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return nil
	}
	stat, err := r.fs.Stat()
	if err != nil {
		r.before = procfs.CPUStat{}
		return nil
	}
	was, is := r.before, stat.CPUTotal
	r.before = is
	total := cpuTime(is) - cpuTime(was)
	if cpuTime(was) == 0 || total <= 0 {
		return nil
	}
	share := func(is, was float64) float64 {
		return math.Round(min(1, max(0, (is-was)/total))*1e4) / 1e4
	}
	return &Host{
		At: now.UTC().Truncate(time.Millisecond), Cores: len(stat.CPU),
		Busy:   math.Round((1-share(is.Idle+is.Iowait, was.Idle+was.Iowait))*1e4) / 1e4,
		IOWait: share(is.Iowait, was.Iowait), Steal: share(is.Steal, was.Steal),
	}
}

// cpuTime is all the time that all CPUs had. Guest time is in user and nice.
func cpuTime(c procfs.CPUStat) float64 {
	return c.User + c.Nice + c.System + c.Idle + c.Iowait + c.IRQ + c.SoftIRQ + c.Steal
}

// HostHistory is the load generator's CPU during a run, as columns of equal
// length; empty where it was not recorded.
type HostHistory struct {
	// Elapsed is in seconds on the history's axis, the end of what each row is
	// about.
	Elapsed             []float64
	Busy, IOWait, Steal []float64
	Cores               int
}

func (h *History) readHost(dir rundir.Directory) error {
	f, err := os.Open(dir.Path(HostFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read host: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if line, ok := decodeHost(lines.Bytes()); ok { // else half a line, as after a crash
			h.Host.add(&line, h.Elapsed(line.At))
		}
	}
	return lines.Err()
}

func (h *HostHistory) add(line *Host, at float64) {
	if n := len(h.Elapsed); n > 0 && at <= h.Elapsed[n-1] {
		return
	}
	h.Elapsed = append(h.Elapsed, at)
	h.Busy = append(h.Busy, line.Busy)
	h.IOWait = append(h.IOWait, line.IOWait)
	h.Steal = append(h.Steal, line.Steal)
	h.Cores = line.Cores
}
