package ingest

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// fileSet are the files that a tool wrote about one run, by what they have.
type fileSet struct {
	tool   *tool.Tool
	folder string
	run    string // the common part of their names
	all    []int  // logs
	byKind map[tool.SideKind]int
}

// pairFiles joins the files that tools write about a run beside its output. They belong to the run in the log that names
// them or, if no log does, to the file with the run's statistics.
func pairFiles(ctx context.Context, logs []Log, joined []bool) error {
	sets, outputs := fileSets(logs)
	used := map[*fileSet]bool{}
	for _, i := range outputs {
		if len(sets) == 0 {
			break
		}
		parts, err := splitFile(ctx, logs[i].Path, logs[i].Tool)
		if err != nil {
			return err
		}
		for _, p := range parts {
			snap := p.Snapshot()
			set := named(sets, &logs[i], snap.Files)
			if set == nil || used[set] {
				continue
			}
			used[set] = true
			set.join(&logs[i], snap.Files, len(parts) == 1 && !snap.IntervalSeconds.Known, logs)
			for _, file := range set.all {
				joined[file] = true
			}
		}
	}
	for _, set := range sets {
		if !used[set] {
			set.alone(logs, joined)
		}
	}
	return nil
}

// fileSets returns the sets of files among the logs, and the logs of tools that write such files.
func fileSets(logs []Log) (sets []*fileSet, outputs []int) {
	type key struct {
		tool        *tool.Tool
		folder, run string
	}
	known := map[key]*fileSet{}
	for i, l := range logs {
		if l.Tool.SideFile == nil {
			continue
		}
		head, err := Head(l.Path)
		run, kind := l.Tool.SideFile(filepath.Base(l.Path), head)
		if err != nil || run == "" {
			outputs = append(outputs, i)
			continue
		}
		k := key{l.Tool, filepath.Dir(l.Path), run}
		set := known[k]
		if set == nil {
			set = &fileSet{tool: l.Tool, folder: k.folder, run: run, byKind: map[tool.SideKind]int{}}
			known[k] = set
			sets = append(sets, set)
		}
		set.all = append(set.all, i)
		if _, twice := set.byKind[kind]; !twice {
			set.byKind[kind] = i
		}
	}
	return sets, outputs
}

// named returns the set of the run that a log names: the only one, or the only one below the log's folder.
func named(sets []*fileSet, l *Log, run string) *fileSet {
	if run == "" {
		return nil
	}
	var found, near []*fileSet
	for _, s := range sets {
		if s.tool != l.Tool || s.run != run {
			continue
		}
		found = append(found, s)
		if path, err := filepath.Rel(filepath.Dir(l.Path), s.folder); err == nil && filepath.IsLocal(path) {
			near = append(near, s)
		}
	}
	switch {
	case len(near) == 1:
		return near[0]
	case len(found) == 1:
		return found[0]
	}
	return nil
}

// join adds the files to the log of the run. Its intervals come from a file if intervals are wanted and no file has
// the latencies of the transactions, from which they follow.
func (s *fileSet) join(l *Log, run string, intervals bool, logs []Log) {
	if l.Files == nil {
		l.Files = map[string][]string{}
	}
	for _, kind := range []tool.SideKind{tool.SideLatencies, tool.SideSummary} {
		if i, ok := s.byKind[kind]; ok && logs[i].Path != l.Path {
			l.Files[run] = append(l.Files[run], logs[i].Path)
		}
	}
	_, transactions := s.byKind[tool.SideLatencies]
	if i, ok := s.intervals(); ok && intervals && !transactions && l.Stderr == "" {
		l.Stderr = logs[i].Path
	}
}

// intervals returns the file whose intervals have the most values.
func (s *fileSet) intervals() (file int, ok bool) {
	if file, ok = s.byKind[tool.SideIntervals]; !ok {
		file, ok = s.byKind[tool.SideFewerValues]
	}
	return file, ok
}

// alone makes one run of the files, whose log is the most complete one of them.
func (s *fileSet) alone(logs []Log, joined []bool) {
	for _, kind := range []tool.SideKind{tool.SideSummary, tool.SideLatencies, tool.SideIntervals, tool.SideFewerValues} {
		first, ok := s.byKind[kind]
		if !ok {
			continue
		}
		for _, i := range s.all {
			joined[i] = i != first
		}
		if kind == tool.SideSummary {
			s.join(&logs[first], "", true, logs)
		}
		logs[first].name = cmp.Or(logs[first].name, s.run)
		return
	}
}
