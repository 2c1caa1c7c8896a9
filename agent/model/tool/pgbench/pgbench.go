// Package pgbench reads the command lines and the output of PostgreSQL's pgbench, versions 9.6 to
// 18: progress lines, the summary, and the files of --log, which have a line for each transaction
// or, with --aggregate-interval, for each interval. Format: src/bin/pgbench/pgbench.c.
package pgbench

import (
	"bytes"
	"regexp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Name is the tool's name in reports.
const Name = "pgbench"

// Tool is pgbench.
var Tool = &tool.Tool{
	Name:            Name,
	Programs:        []string{Name},
	Describe:        describe,
	NewParser:       func(d tool.Description) tool.Parser { return newParser(d) },
	Sniff:           sniff,
	ReportsOnStderr: true,
	ThreadLog:       threadLog,
	// With --rate, latencies count from the scheduled start of a transaction.
	OpenLoop: func(_ string, rate int) bool { return rate > 0 },
}

// threadLogName matches prefix.PID of the first thread and prefix.PID.N of the others.
var threadLogName = regexp.MustCompile(`^(.+?\.[0-9]+)(\.[0-9]+)?$`)

// threadLog recognises a file of --log.
func threadLog(name string, head []byte) string {
	m := threadLogName.FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	p := newParser(tool.Description{})
	line, _, _ := bytes.Cut(head, []byte("\n"))
	p.Parse(tool.Line{Text: line}, func(*tool.Report) {})
	if !p.streams[tool.Stdout].log.active() {
		return ""
	}
	return m[1]
}

// sniff recognises texts that only pgbench prints, on either stream, and lines of its log.
func sniff(head []byte) int {
	for _, text := range []string{
		"\ntransaction type: ", "number of transactions actually processed: ", " of pgbench_accounts done (elapsed ", "pgbench: error: ",
		"pgbench: fatal: ", " tuples (100%) done (elapsed ",
	} {
		if bytes.Contains(head, []byte(text)) {
			return 95
		}
	}
	for _, text := range []string{"transaction type: ", "pgbench ("} {
		if bytes.HasPrefix(head, []byte(text)) {
			return 90
		}
	}
	p := newParser(tool.Description{})
	score := 0
	for lines := 0; lines < 20 && score == 0; lines++ {
		line, rest, whole := bytes.Cut(head, []byte("\n"))
		if !whole {
			break
		}
		head = rest
		if p.Parse(tool.Line{Text: line}, func(*tool.Report) {}) == tool.Reported {
			score = 90
			if bytes.HasPrefix(line, []byte("progress: ")) {
				break
			}
			score = 60 // numbers
		}
	}
	return score
}
