package ingest

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// Log is the output of a tool in one file or, of a tool that reports on standard
// error too, in two.
type Log struct {
	Path string
	Tool *tool.Tool
	// Stderr is the file with what the tool printed on standard error; empty: Path
	// has everything.
	Stderr string
	// Generators are the logs of the other generators of the same run.
	Generators []string
}

// Pair joins the logs that are the two streams of one run: of one of them only the
// summary is there, of the other everything else. They belong together if they are
// called alike, such as a.out and a.err, or count the same operations.
func Pair(ctx context.Context, logs []Log) ([]Log, error) {
	heads := make([]*Snapshot, len(logs)) // of one run each; nil: neither stream
	for i, l := range logs {
		if !l.Tool.ReportsOnStderr {
			continue
		}
		parts, err := splitFile(ctx, l.Path, l.Tool)
		if err != nil {
			return nil, err
		}
		if len(parts) == 1 {
			snap := parts[0].Snapshot()
			heads[i] = &snap
		}
	}
	paired := map[int]bool{}
	for out, snap := range heads {
		if snap == nil || snap.IntervalSeconds.Known || !hasSummary(snap) {
			continue
		}
		same := func(err int) bool {
			other := heads[err]
			return other != nil && !paired[err] && logs[err].Tool == logs[out].Tool && !hasSummary(other)
		}
		alike := func(err int) bool { return same(err) && calledAlike(logs[out].Path, logs[err].Path) }
		counted := func(err int) bool {
			n := snap.Totals[tool.Transaction]
			return same(err) && n > 0 && heads[err].Totals[tool.Transaction] == n
		}
		for _, matches := range []func(int) bool{alike, counted} {
			if i := only(len(logs), matches); i >= 0 {
				logs[out].Stderr = logs[i].Path
				paired[i] = true
				break
			}
		}
	}
	var left []Log
	for i, l := range logs {
		if !paired[i] {
			left = append(left, l)
		}
	}
	return left, nil
}

func hasSummary(s *Snapshot) bool { return s.Summary != nil && !s.Summary.FromIntervals }

// calledAlike reports whether the names of two files differ as stdout and stderr,
// or out and err, do.
func calledAlike(out, err string) bool {
	return filepath.Dir(out) == filepath.Dir(err) && out != err &&
		filepath.Base(out) == strings.ReplaceAll(filepath.Base(err), "err", "out")
}

// only returns the only i below n that matches, or -1.
func only(n int, matches func(int) bool) int {
	var found []int
	for i := range n {
		if matches(i) {
			found = append(found, i)
		}
	}
	if len(found) != 1 {
		return -1
	}
	return found[0]
}

// join returns the run whose streams are two files.
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
