package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Log is the output of a tool, in one file or, for a tool that also reports on standard error, in
// two.
type Log struct {
	Path string
	Tool *tool.Tool
	// Others are the tools whose output is in the same file, too.
	Others []*tool.Tool
	// Stderr is the file with standard error; empty: Path has everything.
	Stderr string
	// Latencies are the files into which the threads of the tool wrote the latency of each
	// transaction of the run.
	Latencies []string
	// Intervals are such files with sums over intervals instead.
	Intervals []string
	// Files are the files with latencies and statistics that the tool wrote about the runs in the log, by the common part
	// of their names; with one run in the log, the name may be empty.
	Files map[string][]string
	// Generators are the logs of the other generators of the same run.
	Generators []string

	name  string    // for the title; empty: from Path
	began time.Time // according to Latencies or Intervals; zero: unknown
}

// Of returns the log of another tool that wrote into the same file.
func (l *Log) Of(other *tool.Tool) Log { return Log{Path: l.Path, Tool: other, name: l.name} }

// Pair joins the logs of one run. Two streams with matching names, such as a.out and a.err, are one
// run. If a tool reports on standard error, one file can have the summary and another everything
// else; they also belong together if they count the same operations. The logs of a tool's threads
// belong to the summary in their folder with the same number of transactions or, if they have intervals, which leave out
// the end of the run, with about the same number and length, and the same name if there are several. Without a summary
// they are a run whose threads count as generators.
func Pair(ctx context.Context, logs []Log) ([]Log, error) {
	heads := make([]*Snapshot, len(logs)) // nil: the log is not exactly one run, and neither stream
	began := make([]time.Time, len(logs))
	named := namedPairs(logs)
	for i, l := range logs {
		if !l.Tool.ReportsOnStderr && !named[i] {
			continue
		}
		parts, err := splitFile(ctx, l.Path, l.Tool)
		if err != nil {
			return nil, err
		}
		if len(parts) == 1 {
			snap := parts[0].Snapshot()
			heads[i], began[i] = &snap, parts[0].Began
		}
	}
	joined := make([]bool, len(logs)) // to another log, which has its run
	if err := pairFiles(ctx, logs, joined); err != nil {
		return nil, err
	}
	pairThreads(logs, heads, began, joined)
	pairStreams(logs, heads, joined)
	var left []Log
	for i, l := range logs {
		if !joined[i] {
			left = append(left, l)
		}
	}
	return left, nil
}

// namedPairs reports which logs are named like the two streams of one run.
func namedPairs(logs []Log) []bool {
	at := make(map[string]int, len(logs))
	for i, l := range logs {
		at[filepath.Clean(l.Path)] = i
	}
	named := make([]bool, len(logs))
	for i, l := range logs {
		if out, ok := at[summaryName(l.Path)]; ok && out != i && logs[out].Tool == l.Tool {
			named[i], named[out] = true, true
		}
	}
	return named
}

// streamKey is a way to find the rest of the output for a summary.
type streamKey struct {
	tool  *tool.Tool
	name  string // the name of the summary's file or folder
	total float64
}

func pairStreams(logs []Log, heads []*Snapshot, joined []bool) {
	others := map[streamKey][]int{}
	for i, snap := range heads {
		if snap == nil || joined[i] || hasSummary(snap) {
			continue
		}
		if name := summaryName(logs[i].Path); name != filepath.Clean(logs[i].Path) {
			named := streamKey{tool: logs[i].Tool, name: name}
			others[named] = append(others[named], i)
		}
		if n := snap.Totals[tool.Transaction]; n > 0 {
			for _, counted := range []streamKey{{logs[i].Tool, filepath.Dir(logs[i].Path), n}, {tool: logs[i].Tool, total: n}} {
				others[counted] = append(others[counted], i)
			}
		}
	}
	for out, snap := range heads {
		if snap == nil || joined[out] {
			continue
		}
		keys := []streamKey{{tool: logs[out].Tool, name: filepath.Clean(logs[out].Path)}}
		if hasSummary(snap) {
			n := snap.Totals[tool.Transaction]
			keys = append(keys, streamKey{logs[out].Tool, filepath.Dir(logs[out].Path), n}, streamKey{tool: logs[out].Tool, total: n})
		}
		for _, key := range keys {
			i := only(others[key], joined)
			if i >= 0 && i != out && !(snap.IntervalSeconds.Known && heads[i].IntervalSeconds.Known) {
				logs[out].Stderr = logs[i].Path
				joined[i] = true
				break
			}
		}
	}
}

// joinStreams joins two parts of a log that are the streams of one run, one after the other, as "tool 2>err >out; cat out
// err > log" makes them: a summary without intervals, and then intervals without a summary that count as much.
func joinStreams(ctx context.Context, log io.ReaderAt, t *tool.Tool, parts []*Part) ([]*Part, error) {
	if !t.ReportsOnStderr {
		return parts, nil
	}
	for i := 0; i+1 < len(parts); i++ {
		out, err := parts[i].Snapshot(), parts[i+1].Snapshot()
		if !hasSummary(&out) || out.IntervalSeconds.Known || hasSummary(&err) || !err.IntervalSeconds.Known ||
			out.Totals[tool.Transaction] == 0 || out.Totals[tool.Transaction] != err.Totals[tool.Transaction] {
			continue
		}
		p := &Part{Offset: parts[i].Offset, End: parts[i+1].End, stderr: parts[i+1].Offset, Feed: NewFeed(t, new(rundir.Meta)),
			Seconds: max(parts[i].Seconds, parts[i+1].Seconds), Began: parts[i+1].Began}
		for _, s := range []struct {
			stream   tool.Stream
			from, to int64
		}{{tool.Stdout, p.Offset, p.stderr}, {tool.Stderr, p.stderr, p.End}} {
			if err := p.Feed.readSection(ctx.Err, s.stream, io.NewSectionReader(log, s.from, s.to-s.from)); err != nil {
				return nil, err
			}
		}
		p.Feed.Close(p.Began)
		parts = slices.Replace(parts, i, i+2, p)
	}
	return parts, nil
}

// threadLogs are the files that the threads of one process wrote.
type threadLogs struct {
	logs    []int
	total   float64 // transactions
	began   time.Time
	sampled bool
	unknown bool // a file has no latencies, or not exactly one run
	// Of files with intervals, instead of latencies.
	intervals       bool
	seconds, length float64 // of all intervals, and of the longest one
}

// runsIn are one folder's logs of a tool whose threads write logs: sets of thread logs and
// summaries, by their number of transactions. All of them are also at allTotals.
type runsIn struct {
	sets      map[float64][]*threadLogs
	summaries map[float64][]int
}

const allTotals = -1

// add adds log number i.
func (s *threadLogs) add(i int, snap *Snapshot, began time.Time) {
	s.logs = append(s.logs, i)
	if snap == nil || snap.Summary == nil {
		s.unknown = true
		return
	}
	if len(snap.Summary.Histograms) == 0 {
		s.unknown, s.intervals = true, true
		s.seconds = max(s.seconds, snap.Summary.ElapsedSeconds.Value)
		s.length = max(s.length, snap.IntervalSeconds.Value)
	}
	n := snap.Summary.Report().Count(tool.Transaction)
	s.total += float64(n.Value)
	s.sampled = s.sampled || !n.Known
	if s.began.IsZero() || began.Before(s.began) {
		s.began = began
	}
}

func pairThreads(logs []Log, heads []*Snapshot, began []time.Time, joined []bool) {
	type folder struct {
		tool *tool.Tool
		path string
	}
	sets := map[streamKey]*threadLogs{}
	folders := map[folder]*runsIn{}
	var order []streamKey
	in := func(i int) *runsIn {
		at := folder{logs[i].Tool, filepath.Dir(logs[i].Path)}
		if folders[at] == nil {
			folders[at] = &runsIn{sets: map[float64][]*threadLogs{}, summaries: map[float64][]int{}}
		}
		return folders[at]
	}
	for i, snap := range heads {
		run := threadRun(&logs[i])
		if run == "" {
			if snap != nil && hasSummary(snap) {
				n := snap.Totals[tool.Transaction]
				in(i).summaries[n] = append(in(i).summaries[n], i)
				in(i).summaries[allTotals] = append(in(i).summaries[allTotals], i)
			}
			continue
		}
		key := streamKey{tool: logs[i].Tool, name: filepath.Join(filepath.Dir(logs[i].Path), run)}
		set := sets[key]
		if set == nil {
			set = &threadLogs{}
			sets[key] = set
			order = append(order, key)
		}
		set.add(i, snap, began[i])
	}
	for _, key := range order {
		if set := sets[key]; !set.unknown {
			r := in(set.logs[0])
			r.sets[set.total] = append(r.sets[set.total], set)
			r.sets[allTotals] = append(r.sets[allTotals], set)
		}
	}
	for i, summary := range summariesOfIntervals(logs, heads, sets, order) {
		set := sets[i]
		for _, i := range set.logs {
			joined[i] = true
			logs[summary].Intervals = append(logs[summary].Intervals, logs[i].Path)
		}
		logs[summary].began = set.began
		delete(sets, i)
	}
	for _, key := range order {
		set := sets[key]
		if set == nil {
			continue
		}
		first := set.logs[0]
		for _, i := range set.logs[1:] {
			joined[i] = true
		}
		if summary := in(first).summaryOf(set); summary >= 0 {
			joined[first] = true
			for _, i := range set.logs {
				logs[summary].Latencies = append(logs[summary].Latencies, logs[i].Path)
			}
			logs[summary].began = set.began
			continue
		}
		for _, i := range set.logs[1:] {
			logs[first].Generators = append(logs[first].Generators, logs[i].Path)
		}
	}
}

// summaryOf returns the summary of the process that wrote the logs; -1 if missing or ambiguous. A
// sample does not have the number of transactions, so it matches the folder's only summary.
func (r *runsIn) summaryOf(set *threadLogs) int {
	total := set.total
	if set.sampled {
		total = allTotals
	}
	if set.unknown || len(r.sets[total]) != 1 || len(r.summaries[total]) != 1 {
		return -1
	}
	return r.summaries[total][0]
}

// summariesOfIntervals returns the summary of each set of thread logs with intervals that has one.
func summariesOfIntervals(logs []Log, heads []*Snapshot, sets map[streamKey]*threadLogs, order []streamKey) map[streamKey]int {
	fits := map[streamKey][]int{} // by number and length
	wanted := map[int]int{}       // how many sets fit a summary
	for _, key := range order {
		set := sets[key]
		if !set.intervals || key.tool.JoinThreads == nil {
			continue
		}
		for i, snap := range heads {
			if snap != nil && logs[i].Tool == key.tool && filepath.Dir(logs[i].Path) == filepath.Dir(key.name) && set.fits(snap) {
				fits[key] = append(fits[key], i)
				wanted[i]++
			}
		}
	}
	found := map[streamKey]int{}
	for key, summaries := range fits {
		run := filepath.Base(strings.TrimSuffix(key.name, filepath.Ext(key.name))) // without the process id
		for _, i := range summaries {
			name := filepath.Base(logs[i].Path)
			if strings.TrimSuffix(name, filepath.Ext(name)) == run || len(summaries) == 1 && wanted[i] == 1 {
				found[key] = i
			}
		}
	}
	return found
}

// fits reports whether a snapshot can be the summary of the process that wrote the intervals: the last one, and in some
// versions the first one, may be missing.
func (s *threadLogs) fits(snap *Snapshot) bool {
	if !hasSummary(snap) || snap.IntervalSeconds.Known || len(snap.Summary.Histograms) > 0 {
		return false
	}
	missing := snap.Summary.ElapsedSeconds.Value - s.seconds
	if missing < -2*s.length || missing > 2*s.length {
		return false
	}
	n := snap.Totals[tool.Transaction]
	return s.total <= n && s.total >= n*(1-3*s.length/max(s.seconds, 3*s.length))
}

// threadRun returns what the names of all thread logs of a run share; empty if the log is not a
// thread's.
func threadRun(l *Log) string {
	if l.Tool.ThreadLog == nil {
		return ""
	}
	file, _, err := openLog(l.Path)
	if err != nil {
		return ""
	}
	defer file.Close()
	head := make([]byte, 512)
	n, _ := io.ReadFull(file, head) // a shorter file is read whole
	return l.Tool.ThreadLog(filepath.Base(l.Path), head[:n])
}

func hasSummary(s *Snapshot) bool { return s.Summary != nil && !s.Summary.FromIntervals }

// summaryName returns where the summary would be for a file with the rest of the output: stdout for
// stderr, a.out for a.err.
func summaryName(path string) string {
	return filepath.Join(filepath.Dir(path), strings.ReplaceAll(filepath.Base(path), "err", "out"))
}

// only returns the only log that is not joined yet, or -1.
func only(logs []int, joined []bool) int {
	index := -1
	for _, i := range logs {
		if joined[i] {
			continue
		}
		if index >= 0 {
			return -1
		}
		index = i
	}
	return index
}

// joinThreads writes the intervals of the run's threads into a temporary file in the data directory.
func (im *Import) joinThreads(ctx context.Context) (path string, err error) {
	var logs []io.Reader
	for _, path := range im.Intervals {
		file, _, err := openLog(path)
		if err != nil {
			return "", err
		}
		defer file.Close()
		logs = append(logs, file)
	}
	if err := os.MkdirAll(im.DataDir, 0o755); err != nil {
		return "", fmt.Errorf("create data directory: %w", err)
	}
	out, err := os.CreateTemp(im.DataDir, ".intervals-")
	if err != nil {
		return "", fmt.Errorf("join intervals of threads: %w", err)
	}
	err = errors.Join(im.Tool.JoinThreads(ctx, out, logs), out.Close())
	if err != nil {
		return "", errors.Join(fmt.Errorf("join intervals of threads: %w", err), os.Remove(out.Name()))
	}
	return out.Name(), nil
}

// join returns the run that consists of two files, one per stream.
func (l *Log) join(ctx context.Context, size int64, stderr string) (*Part, error) {
	p := &Part{End: size, Feed: NewFeed(l.Tool, new(rundir.Meta))}
	over := make(chan struct{})
	close(over)
	for _, s := range []struct {
		path   string
		stream tool.Stream
	}{{l.Path, tool.Stdout}, {stderr, tool.Stderr}} {
		if err := p.Feed.Follow(ctx, s.path, s.stream, nil, over); err != nil {
			return nil, err
		}
		alone, err := splitFile(ctx, s.path, l.Tool)
		if err != nil {
			return nil, err
		}
		for _, a := range alone {
			p.Seconds = max(p.Seconds, a.Seconds)
			if p.Began.IsZero() {
				p.Began = a.Began
			}
		}
	}
	p.Feed.Close(p.Began)
	return p, nil
}
