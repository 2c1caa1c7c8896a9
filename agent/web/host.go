package web

import (
	"time"

	"github.com/prometheus/procfs"
)

// hostKept is how many seconds of this machine's CPU are remembered: 12 hours.
const hostKept = 12 * 60 * 60

// host is this machine's CPU, read once a second. It is remembered, not
// recorded: after a restart of the agent there is none of the time before.
type host struct {
	fs     procfs.FS
	before procfs.CPUStat
	past   []hostSecond
}

type hostSecond struct {
	at                  time.Time
	busy, iowait, steal float64
}

func newHost() (*host, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, err
	}
	return &host{fs: fs}, nil
}

// read takes the shares of time since the reading before; false if there was
// none or /proc can't be read.
func (h *host) read(now time.Time) (hostSecond, bool) {
	stat, err := h.fs.Stat()
	if err != nil {
		h.before = procfs.CPUStat{}
		return hostSecond{}, false
	}
	was, is := h.before, stat.CPUTotal
	h.before = is
	total := cpuTime(is) - cpuTime(was)
	if cpuTime(was) == 0 || total <= 0 {
		return hostSecond{}, false
	}
	share := func(now, before float64) float64 { return min(1, max(0, (now-before)/total)) }
	s := hostSecond{
		at:     now,
		busy:   1 - share(is.Idle+is.Iowait, was.Idle+was.Iowait),
		iowait: share(is.Iowait, was.Iowait),
		steal:  share(is.Steal, was.Steal),
	}
	if len(h.past) >= hostKept {
		h.past = append(h.past[:0:0], h.past[hostKept/4:]...)
	}
	h.past = append(h.past, s)
	return s, true
}

// cpuTime is all the time that all CPUs had. Guest time is in user and nice.
func cpuTime(c procfs.CPUStat) float64 {
	return c.User + c.Nice + c.System + c.Idle + c.Iowait + c.IRQ + c.SoftIRQ + c.Steal
}

func (s hostSecond) cells() []cell {
	return []cell{
		{name{"cpu", "busy", ""}, s.busy},
		{name{"cpu", "iowait", ""}, s.iowait},
		{name{"cpu", "steal", ""}, s.steal},
	}
}

// hostTable is what is remembered of a time, in seconds since zero.
func hostTable(past []hostSecond, zero, from, to time.Time) table {
	var t table
	for _, s := range past {
		if !s.at.Before(from) && !s.at.After(to) {
			t.append(s.at.Sub(zero).Seconds(), s.cells())
		}
	}
	return t
}
