package sysbench

import (
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Name is the tool's name in reports.
const Name = "sysbench"

// Tool is sysbench 0.4 to 1.1.
var Tool = &tool.Tool{
	Name:      Name,
	Programs:  []string{"sysbench"},
	Describe:  Describe,
	NewParser: func(d tool.Description) tool.Parser { return NewParser(d) },
	OpenLoop:  openLoop,
	Sniff:     Sniff,
}

// openLoop reports whether the run is in the mode of --rate, in which latencies include the time in
// the queue. In 0.4 the rate only pauses the threads.
func openLoop(version string, rate int) bool {
	return rate > 0 && !strings.HasPrefix(version, "0.4")
}

// Sniff returns from 0 to 100 how much an output that begins with head resembles sysbench's.
func Sniff(head []byte) int {
	p := NewParser(tool.Description{})
	score := 0
	tool.ParseAll(p, tool.Stdout, head, func(r *tool.Report) {
		switch {
		case r.Kind == tool.Start && r.Version != "":
			score = max(score, 100)
		case r.Kind == tool.Interval && p.run.family == luaCSV:
			score = max(score, 30) // ten columns of numbers
		case r.Kind == tool.Interval && p.run.family == luaJSON:
			score = max(score, 60)
		case r.Kind == tool.Interval, r.Kind == tool.Summary && r.Count(tool.Transaction).Known:
			score = max(score, 90)
		case r.Kind == tool.Summary, r.Kind == tool.Error:
			score = max(score, 10)
		}
	})
	return score
}
