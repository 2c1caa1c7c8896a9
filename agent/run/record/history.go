// Package record reads a run back from its directory onto one time axis: the
// tool's intervals, the servers, the host, the settings and the markers. It also
// records the servers: the writer and the reader of each file are side by side.
package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// History is the record of one run on one time axis: seconds since Zero. The raw
// output is read by the same parser as live. Its memory does not grow with the length
// of the run: what is drawn is thinned, what depends on each row is summed up. Intervals
// and samples themselves are read part by part, by EachInterval and EachSample.
type History struct {
	// Snapshot is the run's state: the final one or, of a live run, the current one.
	Snapshot ingest.Snapshot
	// Zero is the wall time of 0 on the axis, by the clock of this machine: the
	// start of the tool's own clock if that is known, else of its process.
	Zero time.Time

	Intervals Intervals
	// Servers are in the order of their first appearance, Samples their measures.
	Servers []*Server
	Samples series.Thinned[ServerMeasure]
	// Hosts are the run's machines in the order of their first appearance, HostSamples their measures. Host generated
	// the load.
	Hosts       []*Host
	HostSamples series.Thinned[ServerMeasure]
	Host        Host
	// Settings are how the servers were configured; empty if that was not
	// recorded.
	Settings SettingsHistory
	// Statements are what the servers executed; empty if that was not recorded.
	Statements []ServerStatements
	// Captures are what servers and machines said while the run stalled.
	Captures []Capture
	// Markers are in the order of their times, without the run's own region.
	Markers []marker.Marker

	Damage Damage

	dir  rundir.Directory
	tool *tool.Tool
	part series.Span
	// within is the part of the axis whose samples are read, and the last tick before it.
	within series.Span
}

// Whole is the whole history as a part.
var Whole = series.Span{From: math.Inf(-1), To: math.Inf(1)}

// Damage is what could not be read. It never stops the reading.
type Damage struct {
	// TornOutput: the tool's output ends within a line.
	TornOutput bool
	// TornStatus: status.jsonl ends within a line, as after a crash.
	TornStatus bool
	// UnreadableStatus counts damaged lines of status.jsonl, MisplacedStatus those
	// whose tick is not after the target's previous one.
	UnreadableStatus, MisplacedStatus int
	// Output is why the tool's output could not be read to its end; nil if it was.
	Output error
	// Problems are the errors of files that could not be read to their end.
	Problems []string
}

// DamageLines describes the damage, a line for each.
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

// ToolEnd returns the place of the tool's end on the axis, +Inf if it is still running.
func (h *History) ToolEnd() float64 {
	if end := h.Snapshot.Meta.EndedAt; end != nil {
		return h.Elapsed(*end)
	}
	return math.Inf(1)
}

// Tool returns the tool of the run; nil if it is not one of those that the run was read with.
func (h *History) Tool() *tool.Tool { return h.tool }

// Server returns a target, nil if it was never sampled.
func (h *History) Server(target string) *Server {
	for _, s := range h.Servers {
		if s.Target == target {
			return s
		}
	}
	return nil
}

// Read reads a run. If its tool is unknown, there are no intervals. If the run is active, it reads what exists now. The
// error is about a run.json that is missing (fs.ErrNotExist) or damaged, or a ctx that is done; everything else that is
// missing or unreadable is in Damage.
func Read(ctx context.Context, dir rundir.Directory, tools tool.Set) (*History, error) {
	h, err := ReadOutput(ctx, dir, tools, Whole)
	if err != nil {
		return nil, err
	}
	return h, h.ReadServers(ctx, nil)
}

// ReadServers completes what ReadOutput returned, once. It reads only the metrics for which keep returns true, which
// takes less time; nil: all metrics. The error is from a ctx that is done.
func (h *History) ReadServers(ctx context.Context, keep func(metric string) bool) error {
	h.Samples.Sorted = hasSpread
	h.Samples.ToolEnd, h.Samples.MaxColumns = h.ToolEnd(), maxServers*len(measure.All(measure.Server))
	damage, err := h.eachSample(ctx, keep, func(servers []*ServerRows) error {
		h.addSamples(servers)
		return nil
	})
	h.Samples.Settle()
	cover(h.Servers, h.Samples.ToolEnd)
	h.Samples.KeepExtents(unrepresented(h.Servers))
	if err != nil {
		h.Damage.Problems = append(h.Damage.Problems, err.Error())
	}
	h.Damage.UnreadableStatus, h.Damage.MisplacedStatus = damage.UnreadableStatus, damage.MisplacedStatus
	h.Damage.TornStatus = damage.TornStatus && h.Snapshot.Meta.Ended()
	return ctx.Err()
}

// EachSample reads the samples of the servers again and calls visit with one part of the time after the other: the rows
// from Begin of all servers that were sampled so far. An error of visit ends it.
func (h *History) EachSample(ctx context.Context, visit func([]*ServerRows) error) error {
	_, err := h.eachSample(ctx, nil, visit)
	return err
}

// AllSamples reads all samples of the servers and of the machines into memory. Only a replay needs them.
func (h *History) AllSamples(ctx context.Context) (servers, machines []*ServerRows, err error) {
	for name, all := range map[string]*[]*ServerRows{rundir.StatusFile: &servers, host.File: &machines} {
		_, e := readStatus(ctx, h.dir.Path(name), h.Zero, Whole, math.MaxInt, nil, func(rows []*ServerRows) error {
			*all = rows
			return nil
		})
		if !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return servers, machines, err
}

// partRows is about how many rows of each server are read before they are visited.
const partRows = 1024

func (h *History) eachSample(ctx context.Context, keep func(metric string) bool, visit func([]*ServerRows) error) (Damage, error) {
	damage, err := readStatus(ctx, h.dir.Path(rundir.StatusFile), h.Zero, h.within, partRows, keep, visit)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return damage, err
}

// ReadOutput is Read without the servers, whose record is by far the largest file of a long run. It thins values for
// drawing only as far as the given part of the axis needs it.
func ReadOutput(ctx context.Context, dir rundir.Directory, tools tool.Set, part series.Span) (*History, error) {
	meta, err := dir.Load()
	if err != nil {
		return nil, err
	}
	h := &History{dir: dir, tool: tools.ByName(meta.Tool), part: part, within: Whole}
	h.Intervals = newIntervals()
	rows := &ingest.Intervals{}
	f, err := readIntervals(ctx, dir, h.tool, &meta, rows, func() { h.Intervals.add(rows, part) })
	h.Intervals.Settle()
	if meta.Ended() {
		h.Intervals.Stalls.Close()
	}
	if err != nil {
		h.Damage.Output = err
		h.Damage.Problems = append(h.Damage.Problems, err.Error())
	}
	h.Damage.TornOutput = f.Torn()
	h.Snapshot = f.Snapshot(meta, time.Now())
	h.Zero = h.zero()
	if err := h.readHosts(ctx); err != nil {
		h.Damage.Problems = append(h.Damage.Problems, err.Error())
	}
	if h.Settings, err = ReadSettings(dir); err != nil {
		h.Damage.Problems = append(h.Damage.Problems, err.Error())
	}
	if h.Statements, err = ReadStatements(dir); err != nil {
		h.Damage.Problems = append(h.Damage.Problems, err.Error())
	}
	if h.Captures, err = ReadCaptures(dir); err != nil {
		h.Damage.Problems = append(h.Damage.Problems, err.Error())
	}
	if h.Markers, err = marker.Read(dir); err != nil {
		h.Damage.Problems = append(h.Damage.Problems, err.Error())
	}
	return h, ctx.Err()
}

// EachInterval reads the tool's intervals again and calls visit with one part of them after the other. An error of
// visit ends it. Problems of the output are in Damage.
func (h *History) EachInterval(ctx context.Context, visit func(*ingest.Intervals) error) error {
	return h.eachInterval(ctx, &ingest.Intervals{}, visit)
}

// EachTotal is EachInterval with the counters since the start.
func (h *History) EachTotal(ctx context.Context, visit func(*ingest.Intervals) error) error {
	return h.eachInterval(ctx, &ingest.Intervals{Totals: true}, visit)
}

func (h *History) eachInterval(ctx context.Context, rows *ingest.Intervals, visit func(*ingest.Intervals) error) error {
	meta := h.Snapshot.Meta
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	_, err := readIntervals(ctx, h.dir, h.tool, &meta, rows, func() {
		if failed == nil {
			failed = visit(rows)
		}
		if failed != nil {
			cancel()
		}
	})
	if failed != nil {
		return failed
	}
	if h.Damage.Output != nil {
		return nil // the same error
	}
	return err
}

// readIntervals reads a run's output into rows and calls visit with one part of the intervals after the other.
func readIntervals(ctx context.Context, dir rundir.Directory, t *tool.Tool,
	meta *rundir.Meta, rows *ingest.Intervals, visit func()) (*ingest.Feed, error) {
	rows.Full = visit
	f := ingest.NewFeed(t, meta)
	f.Series, f.Growing = rows, !meta.Ended()
	err := f.ReadAll(ctx, dir)
	if !f.Growing {
		f.Close(time.Now())
	}
	visit()
	return f, err
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
	if h.Intervals.N > 0 {
		length = max(length, h.Intervals.Last)
	}
	zero := m.EndedAt.Add(-time.Duration(length * float64(time.Second)))
	if zero.Before(m.StartedAt) {
		return m.StartedAt
	}
	return zero
}
