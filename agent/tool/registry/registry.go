// Package registry lists the benchmark tools that benchwatch knows.
package registry

import (
	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/gotpc"
	"github.com/benchwatch/benchwatch/agent/tool/goycsb"
	"github.com/benchwatch/benchwatch/agent/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/tool/tpccmysql"
	"github.com/benchwatch/benchwatch/agent/tool/ycsb"
)

// Tools in the order in which they are tried. A new tool is one line here.
var Tools = []*tool.Tool{
	sysbench.Tool,
	ycsb.Tool,
	goycsb.Tool,
	tpccmysql.Tool,
	gotpc.Tool,
}

// ByName returns the tool called name, or nil.
func ByName(name string) *tool.Tool {
	for _, t := range Tools {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Sniff returns the tool whose output head most looks like, or nil.
func Sniff(head []byte) *tool.Tool {
	var best *tool.Tool
	score := 0
	for _, t := range Tools {
		if s := t.Sniff(head); s > score {
			best, score = t, s
		}
	}
	return best
}
