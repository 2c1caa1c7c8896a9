// Package history reads a run back from its directory onto one time axis: the
// tool's intervals, the servers, the host, the settings and the markers. It also
// records the servers: the writer and the reader of each file are side by side.
package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/benchwatch/benchwatch/agent/host"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/marker"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// History is everything that is known of one run on one time axis: seconds since
// Zero. The raw output is read by the same parser as live. A value takes 8 bytes:
// 10 hours at one interval a second with three servers of 80 values each take
// about 80 MB.
type History struct {
	// Snapshot is the run's state: the final one or, of a live run, the current one.
	Snapshot ingest.Snapshot
	// Zero is the wall time of 0 on the axis, by the clock of this machine: the
	// start of the tool's own clock if that is known, else of its process.
	Zero time.Time

	Intervals ingest.Intervals
	// Servers are in the order of their first appearance.
	Servers []*ServerHistory
	// Host is the CPU of the machine that made the load.
	Host host.History
	// Settings are how the servers were configured; empty if that was not
	// recorded.
	Settings SettingsHistory
	// Markers are in the order of their times, without the run's own region.
	Markers []marker.Marker

	Damage Damage
}

// Damage is what could not be read. None of it ends the reading.
type Damage struct {
	// TornOutput: the tool's output ends within a line.
	TornOutput bool
	// TornStatus: status.jsonl ends within a line, as after a crash.
	TornStatus bool
	// UnreadableStatus counts damaged lines of status.jsonl, MisplacedStatus those
	// whose tick is not after the target's previous one.
	UnreadableStatus, MisplacedStatus int
	// Problems are the errors of files that could not be read to their end.
	Problems []string
}

// DamageLines describes the damage, a line each; nothing if there is none.
func (h *History) DamageLines() []string {
	var lines []string
	count := func(n int, one, many string) {
		switch {
		case n == 1:
			lines = append(lines, "1 "+one)
		case n > 1:
			lines = append(lines, fmt.Sprintf("%d %s", n, many))
		}
	}
	count(int(h.Snapshot.Lines.Malformed), "line of the tool's output is damaged", "lines of the tool's output are damaged")
	count(h.Intervals.Misplaced, "report has no place on the time axis", "reports have no place on the time axis")
	count(h.Intervals.Dropped, "value left out: too many series", "values left out: too many series")
	count(h.Damage.UnreadableStatus, "line of "+rundir.StatusFile+" is unreadable", "lines of "+rundir.StatusFile+" are unreadable")
	count(h.Damage.MisplacedStatus, "server status out of order left out", "server statuses out of order left out")
	if h.Damage.TornOutput {
		lines = append(lines, "the tool's output ends within a line")
	}
	if h.Damage.TornStatus {
		lines = append(lines, rundir.StatusFile+" ends within a line")
	}
	return append(lines, h.Damage.Problems...)
}

// At returns the wall time at a place on the axis.
func (h *History) At(elapsed float64) time.Time {
	return h.Zero.Add(time.Duration(math.Round(elapsed * float64(time.Second))))
}

// Elapsed returns the place of a time on the axis, in seconds.
func (h *History) Elapsed(t time.Time) float64 { return t.Sub(h.Zero).Seconds() }

// Server returns a target's history, nil if it was never sampled.
func (h *History) Server(target string) *ServerHistory {
	for _, s := range h.Servers {
		if s.Target == target {
			return s
		}
	}
	return nil
}

// Read reads a run. t may be nil: then there are no intervals. Of a run that goes
// on it reads what is there now. The error is for a run.json that is missing
// (fs.ErrNotExist) or damaged, or for a ctx that is done; what is missing or
// unreadable beside that is in Damage.
func Read(ctx context.Context, dir rundir.Directory, t *tool.Tool) (*History, error) {
	h, err := ReadOutput(ctx, dir, t)
	if err != nil {
		return nil, err
	}
	return h, h.ReadServers(ctx, dir, nil)
}

// ReadServers completes what ReadOutput returned, once. Of the servers' values it
// reads those of the metrics that keep wants, which takes less time and memory;
// nil wants all. The error is that of a ctx that is done.
func (h *History) ReadServers(ctx context.Context, dir rundir.Directory, keep func(metric string) bool) error {
	if err := h.readStatus(ctx, dir.Path(rundir.StatusFile), keep); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.Damage.Problems = append(h.Damage.Problems, err.Error())
	}
	return ctx.Err()
}

// ReadOutput is Read without the servers, whose record is by far the largest file
// of a long run.
func ReadOutput(ctx context.Context, dir rundir.Directory, t *tool.Tool) (*History, error) {
	meta, err := dir.Load()
	if err != nil {
		return nil, err
	}
	h := &History{}
	f := ingest.NewFeed(t, &meta)
	f.Series, f.Growing = &h.Intervals, !meta.Ended()
	if err := f.ReadAll(ctx, dir, &meta); err != nil {
		h.Damage.Problems = append(h.Damage.Problems, err.Error())
	}
	if !f.Growing {
		f.Close(time.Now())
	}
	h.Damage.TornOutput = f.Torn()
	h.Snapshot = f.Snapshot(meta, time.Now())
	h.Zero = h.zero()
	if h.Host, err = host.Read(dir.Path(host.File), h.Zero); err != nil {
		h.Damage.Problems = append(h.Damage.Problems, err.Error())
	}
	if h.Settings, err = ReadSettings(dir); err != nil {
		h.Damage.Problems = append(h.Damage.Problems, err.Error())
	}
	if h.Markers, err = marker.Read(dir); err != nil {
		h.Damage.Problems = append(h.Damage.Problems, err.Error())
	}
	return h, ctx.Err()
}

// zero returns the start of the tool's clock: as it was seen live, else the end
// minus the tool's own duration if it printed a summary. A tool may need seconds
// before its clock begins: for a JVM, for many connections, for a warm-up that it
// does not report.
func (h *History) zero() time.Time {
	m := &h.Snapshot.Meta
	if m.ClockStartedAt != nil {
		return *m.ClockStartedAt
	}
	sum := h.Snapshot.Summary
	if m.EndedAt == nil || m.Log != nil || sum == nil || sum.FromIntervals || !sum.ElapsedSeconds.Known {
		return m.StartedAt
	}
	length := sum.ElapsedSeconds.Value
	if n := len(h.Intervals.Elapsed); n > 0 {
		length = max(length, h.Intervals.Elapsed[n-1])
	}
	zero := m.EndedAt.Add(-time.Duration(length * float64(time.Second)))
	if zero.Before(m.StartedAt) {
		return m.StartedAt
	}
	return zero
}
