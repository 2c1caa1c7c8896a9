// Package tpccmysql reads the command lines and the output of tpcc-mysql (tpcc_start and
// tpcc_load), from the first version of 2008 to the last of 2017. Formats: src/main.c, src/rthist.c
// and src/load.c of https://github.com/Percona-Lab/tpcc-mysql and its history. The program prints
// no version, so each line is recognised by its own form.
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
	// Builds of several versions are installed side by side, as tpcc_start_2012 and so on.
	MatchArgs: func(base string, _ []string) bool {
		return hasPrefix(base, start) || hasPrefix(base, load)
	},
	Describe:  Describe,
	NewParser: func(tool.Description) tool.Parser { return NewParser() },
	Sniff:     Sniff,
}

// hasPrefix reports whether base is program followed by a suffix.
func hasPrefix(base, program string) bool {
	if len(base) <= len(program) || base[:len(program)] != program {
		return false
	}
	c := base[len(program)]
	return c == '_' || c == '-' || c == '.'
}

// Sniff returns from 0 to 100 how much an output that begins with head resembles tpcc-mysql's.
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
