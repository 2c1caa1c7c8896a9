package ingest

import (
	"context"
	"io"
	"path/filepath"
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
	// Stderr is the file with standard error; empty: Path has everything.
	Stderr string
	// Latencies are the files into which the threads of the tool wrote the latency of each
	// transaction of the run.
	Latencies []string
	// Generators are the logs of the other generators of the same run.
	Generators []string

	began time.Time // according to Latencies; zero: unknown
}

// Pair joins the logs of one run. Two streams with matching names, such as a.out and a.err, are one
// run. If a tool reports on standard error, one file can have the summary and another everything
// else; they also belong together if they count the same operations. The logs of a tool's threads
// belong to the summary in their folder with the same number of transactions; without one they are
// a run whose threads count as generators.
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

// threadLogs are the files that the threads of one process wrote.
type threadLogs struct {
	logs    []int
	total   float64 // transactions
	began   time.Time
	sampled bool
	unknown bool // a file has no latencies, or not exactly one run
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
	if snap == nil || snap.Summary == nil || len(snap.Summary.Histograms) == 0 {
		s.unknown = true
		return
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
	for _, key := range order {
		set := sets[key]
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
	found := -1
	for _, i := range logs {
		if joined[i] {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// join returns the run that consists of two files, one per stream.
func (l *Log) join(ctx context.Context, size int64) (*Part, error) {
	p := &Part{End: size, Feed: NewFeed(l.Tool, new(rundir.Meta))}
	over := make(chan struct{})
	close(over)
	for _, s := range []struct {
		path   string
		stream tool.Stream
	}{{l.Path, tool.Stdout}, {l.Stderr, tool.Stderr}} {
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
