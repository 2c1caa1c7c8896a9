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

// openLoop is the mode with --rate, in which an event's latency includes the time
// that it waited in the queue. The rate of 0.4 only pauses the threads.
func openLoop(version string, rate int) bool {
	return rate > 0 && !strings.HasPrefix(version, "0.4")
}

// Sniff returns how much an output that begins with head looks like sysbench's.
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
