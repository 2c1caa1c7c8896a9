// Package gotpc reads the command lines and the output of go-tpc: TPC-C in the styles plain, table
// and json, and the rows of TPC-H and CH-benCHmark. Formats: tpcc/workload.go,
// pkg/measurement/hist.go and pkg/util/output.go of https://github.com/pingcap/go-tpc, up to
// version 1.0.12.
package gotpc

import (
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Name is the tool's name in reports.
const Name = "go-tpc"

// Tool is go-tpc.
var Tool = &tool.Tool{
	Name:      Name,
	Programs:  []string{"go-tpc"},
	Describe:  Describe,
	NewParser: func(d tool.Description) tool.Parser { return NewParser(d) },
	Sniff:     Sniff,
}

// Sniff returns from 0 to 100 how much an output that begins with head resembles go-tpc's.
func Sniff(head []byte) int {
	score := 0
	tool.ParseAll(NewParser(tool.Description{}), tool.Stdout, head, func(r *tool.Report) {
		switch {
		case r.Kind == tool.Interval || r.Kind == tool.Summary:
			score = 100 // no other tool's rows begin with [Current]
		case r.Command != "", strings.HasPrefix(r.Message, "failed to ping db, err "):
			score = max(score, 60)
		}
	})
	return score
}
