// Package ycsb reads YCSB, the Java program: its command line, its status lines and its summary.
// Formats: 0.17.0 and the main branch, which calls itself 0.18.0-SNAPSHOT (StatusThread,
// Measurements and its exporters).
//
// YCSB prints no latency over all operations, counts failed operations as ended ones, and always
// exits with 0. The parser therefore uses counts and messages to decide whether a run failed.
package ycsb

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Name of the tool.
const Name = "ycsb"

// Tool is YCSB.
var Tool = &tool.Tool{
	Name:      Name,
	Programs:  []string{"ycsb"},
	MatchArgs: matchArgs,
	Describe:  describe,
	NewParser: func(tool.Description) tool.Parser { return newParser() },
	Sniff:     sniff,

	CountsFailures:  func(verb string) bool { return verb != "load" },
	ReportsOnStderr: true,
}

// mainClasses are YCSB's entry points, now and before 0.15.
var mainClasses = []string{"site.ycsb.Client", "com.yahoo.ycsb.Client"}

// matchArgs recognises a JVM that runs YCSB, and a Python that runs its launcher.
func matchArgs(base string, args []string) bool {
	base = strings.TrimSuffix(base, ".exe")
	switch {
	case base == "java":
		return mainClass(args) >= 0
	case strings.HasPrefix(base, "python"):
		return len(args) > 0 && isLauncher(args[0])
	}
	return false
}

// isLauncher reports whether arg is the path of one of YCSB's scripts.
func isLauncher(arg string) bool {
	switch path.Base(arg) {
	case "ycsb", "ycsb.sh", "ycsb.py":
		return true
	}
	return false
}

// mainClass returns the index of YCSB's main class, or -1.
func mainClass(args []string) int {
	for i, a := range args {
		if slices.Contains(mainClasses, a) {
			return i
		}
	}
	return -1
}

// sniff recognises texts that only YCSB prints, on either stream.
func sniff(head []byte) int {
	for _, c := range [...]struct {
		text  string
		score int
	}{
		{"YCSB Client ", 98},
		{"site.ycsb.Client -", 98},
		{"com.yahoo.ycsb.Client -", 98},
		{"[OVERALL], RunTime(ms), ", 98},
		{" current ops/sec; ", 95},
		{`"metric" : "OVERALL"`, 95},
		{`"metric":"OVERALL"`, 95},
		{" operations; est completion in ", 95},
		{"DBWrapper: report latency for each error", 95},
		{"Command line: -", 70},
		{"mongo client connection created with mongodb", 90},
		{"Adding shard node URL: jdbc:", 90},
		{"Raw data measurement: will output to ", 85},
		{" latency raw data: op, timestamp(ms), latency(us)", 90},
		{"the threadcount will be recordcount!", 90},
		{"at site.ycsb.", 85},
		{"Failed check required properties.", 80},
		{"Unable to open the properties file ", 80},
		{"-db site.ycsb.", 80},
		{`"workload"="site.ycsb.`, 90},
		{" sec: 0 operations; ", 80},
		{"Unknown DB site.ycsb.", 80},
	} {
		if bytes.Contains(head, []byte(c.text)) {
			return c.score
		}
	}
	if i := statusAt(head); i >= 0 {
		return 80
	}
	return 0
}
