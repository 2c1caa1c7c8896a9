// Package tpccmysql reads the command lines and the output of tpcc-mysql
// (tpcc_start and tpcc_load), from its first version of 2008 to the last one of
// 2017. The formats are those of src/main.c, src/rthist.c and src/load.c of
// https://github.com/Percona-Lab/tpcc-mysql and its history; the program names
// no version, so each line is read for what it is.
package tpccmysql

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Name is the tool's name in reports.
const Name = "tpcc-mysql"

const (
	start = "tpcc_start"
	load  = "tpcc_load"
)

// Tool is tpcc-mysql.
var Tool = &tool.Tool{
	Name:     Name,
	Programs: []string{start, load},
	// Builds of several versions are installed side by side as tpcc_start_2012 and so on.
	MatchArgs: func(base string, _ []string) bool {
		return hasPrefix(base, start) || hasPrefix(base, load)
	},
	Describe:  Describe,
	NewParser: func(tool.Description) tool.Parser { return NewParser() },
	Sniff:     Sniff,
}

// hasPrefix reports whether base is program with something more at its end.
func hasPrefix(base, program string) bool {
	if len(base) <= len(program) || base[:len(program)] != program {
		return false
	}
	c := base[len(program)]
	return c == '_' || c == '-' || c == '.'
}

// Sniff returns how much an output that begins with head looks like tpcc-mysql's.
func Sniff(head []byte) int {
	if bytes.Contains(head, []byte(startBanner)) || bytes.Contains(head, []byte(loadBanner)) {
		return 100
	}
	score := 0
	tool.ParseAll(NewParser(), tool.Stdout, head, func(r *tool.Report) {
		if r.Kind == tool.Interval || r.Kind == tool.Summary {
			score = 90
		}
	})
	return score
}
