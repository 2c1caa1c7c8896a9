package ingest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/table"
)

// titleOf returns the name of a file, with its folder if the name says only what kind of file it is.
func titleOf(path string) string {
	name := filepath.Base(path)
	switch strings.TrimSuffix(name, filepath.Ext(name)) {
	case "stdout", "output", "out", "log":
		if whole, err := filepath.Abs(path); err == nil {
			return filepath.Join(filepath.Base(filepath.Dir(whole)), name)
		}
	}
	return name
}

// placeOf returns " (2 of 3)" for the title of a part if titles would not distinguish the runs of the log; else nothing.
func placeOf(i int, parts []*Part) string {
	threads := map[int]bool{}
	for _, p := range parts {
		threads[p.Snapshot().Threads.Value] = true
	}
	if len(threads) == len(parts) {
		return ""
	}
	return fmt.Sprintf(" (%d of %d)", i+1, len(parts))
}

// withThreads adds the number of threads to a title; 0 is unknown.
func withThreads(title string, threads int) string {
	if threads > 0 {
		title += " " + table.Plural(threads, "thread")
	}
	return title
}

// NameLogs gives the logs of one import names for their titles. If two logs, or a log and an earlier import, have the same
// file name, the names of all logs include the parts of their paths that differ.
func NameLogs(logs []Log, earlier *Earlier) {
	var paths []string // those of the logs come first
	seen := map[string]bool{}
	names := map[string]int{}
	add := func(path string) {
		if abs, err := filepath.Abs(path); err == nil && !seen[abs] {
			seen[abs] = true
			names[titleOf(abs)]++
			paths = append(paths, abs)
		}
	}
	for _, l := range logs {
		add(l.Path)
	}
	own := len(paths)
	for part := range earlier.byPart {
		if names[titleOf(part.path)] > 0 {
			add(part.path)
		}
	}
	if len(names) == len(paths) {
		return // all differ
	}
	slices.Sort(paths[own:])
	distinct := differingParts(paths)
	for i := range logs {
		if abs, err := filepath.Abs(logs[i].Path); err == nil {
			logs[i].name = distinct[slices.Index(paths, abs)]
		}
	}
}

// differingParts shortens different paths to their file names and as many folders above as distinguish them, without
// folders that have the same name in all paths.
func differingParts(paths []string) []string {
	parts := make([][]string, len(paths))
	for i, path := range paths {
		parts[i] = strings.Split(strings.Trim(filepath.ToSlash(path), "/"), "/")
		slices.Reverse(parts[i]) // the file's name is first
	}
	part := func(i, level int) string {
		if level < len(parts[i]) {
			return parts[i][level]
		}
		return ""
	}
	short := make([]string, len(paths))
	for i := range paths {
		short[i] = part(i, 0)
	}
	for level := 1; ; level++ {
		counts := map[string]int{}
		deepest := 0
		for i := range paths {
			counts[short[i]]++
			deepest = max(deepest, len(parts[i]))
		}
		if len(counts) == len(paths) || level >= deepest {
			return withoutCommonEnds(short)
		}
		same := true
		for i := range paths {
			same = same && part(i, level) == part(0, level)
		}
		for i := range paths {
			if folder := part(i, level); !same && folder != "" {
				short[i] = folder + "/" + short[i]
			}
		}
	}
}

// separators end a word of a file name.
const separators = "/-_. "

// withoutCommonEnds removes the words with which all names begin or end.
func withoutCommonEnds(names []string) []string {
	prefix, suffix := names[0], names[0]
	for _, name := range names {
		for !strings.HasPrefix(name, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
		for !strings.HasSuffix(name, suffix) {
			suffix = suffix[1:]
		}
	}
	prefix = prefix[:strings.LastIndexAny(prefix, separators)+1]
	suffix = suffix[max(0, strings.IndexAny(suffix, separators)):]
	short := make([]string, len(names))
	for i, name := range names {
		if strings.IndexAny(suffix, separators) != 0 || len(prefix)+len(suffix) >= len(name) {
			suffix = ""
		}
		if len(prefix) >= len(name) {
			return names
		}
		short[i] = name
	}
	for i, name := range short {
		short[i] = strings.TrimSuffix(strings.TrimPrefix(name, prefix), suffix)
	}
	return short
}
