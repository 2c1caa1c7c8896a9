// Package goycsb reads go-ycsb: its command line, its intervals in three output styles, and its
// summary. Formats: pkg/measurement and pkg/client of https://github.com/pingcap/go-ycsb, April
// 2024.
//
// go-ycsb prints everything cumulatively since the first operation of each kind. Intervals are
// differences; the percentiles of an interval cannot be derived and are left out.
package goycsb

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Name of the tool.
const Name = "go-ycsb"

// Tool is go-ycsb.
var Tool = &tool.Tool{
	Name:      Name,
	Programs:  []string{"go-ycsb"},
	Describe:  describe,
	NewParser: newParser,
	Sniff:     sniff,
}

func sniff(head []byte) int {
	for _, c := range [...]struct {
		text  string
		score int
	}{
		{"operation,timestamp_us,latency_us", 95},
		{"should be bigger than threadCount: ", 95},
		{"Using request distribution '", 90},
		{"\nRun finished, takes ", 85},
		{`"debug.pprof"="`, 90},
	} {
		if bytes.Contains(head, []byte(c.text)) {
			return c.score
		}
	}
	// go-tpc prints the same rows with TPM instead of OPS.
	for _, c := range [...][2]string{
		{" - Takes(s): ", ", OPS: "}, {"| OPERATION | TAKES(S) |", "  OPS  |"}, {`"Takes(s)":"`, `"OPS":"`},
	} {
		if bytes.Contains(head, []byte(c[0])) && bytes.Contains(head, []byte(c[1])) {
			return 97
		}
	}
	for _, p := range [...]string{"create db ", "create workload "} {
		if bytes.HasPrefix(head, []byte(p)) {
			return 70
		}
	}
	return 0
}
