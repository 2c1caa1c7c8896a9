// Package mysqlslap reads the command lines and the output of mysqlslap and mariadb-slap, which
// print one block of text, or one row of CSV, per concurrency at the end. Formats:
// client/mysqlslap.c(c) of MySQL 5.1 to 8.4 and MariaDB 10.11.
package mysqlslap

import (
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Name is the tool's name in reports.
const Name = "mysqlslap"

// Tool is mysqlslap.
var Tool = &tool.Tool{
	Name:      Name,
	Programs:  []string{"mysqlslap", "mariadb-slap"},
	Describe:  Describe,
	NewParser: func(tool.Description) tool.Parser { return NewParser() },
	Sniff:     Sniff,
}

// Sniff returns from 0 to 100 how much an output that begins with head resembles mysqlslap's.
func Sniff(head []byte) int {
	p := NewParser()
	score := 0
	tool.ParseAll(p, tool.Stdout, head, func(r *tool.Report) {
		switch {
		case r.Kind == tool.Summary && p.csv:
			score = max(score, 60) // seven columns
		case r.Kind == tool.Summary:
			score = 100
		case r.Kind == tool.Error:
			score = max(score, 70)
		}
	})
	return score
}
