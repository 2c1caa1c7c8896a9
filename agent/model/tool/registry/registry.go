// Package registry lists the supported benchmark tools. A new tool is added only here.
package registry

import (
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/benchbase"
	"github.com/benchwatch/benchwatch/agent/model/tool/commandline"
	"github.com/benchwatch/benchwatch/agent/model/tool/gotpc"
	"github.com/benchwatch/benchwatch/agent/model/tool/goycsb"
	"github.com/benchwatch/benchwatch/agent/model/tool/hammerdb"
	"github.com/benchwatch/benchwatch/agent/model/tool/hdrlog"
	"github.com/benchwatch/benchwatch/agent/model/tool/mysqlslap"
	"github.com/benchwatch/benchwatch/agent/model/tool/pgbench"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/model/tool/tpccmysql"
	"github.com/benchwatch/benchwatch/agent/model/tool/ycsb"
)

// Tools in the order in which they are tried. A new tool is one line here.
var Tools = withCommands(tool.Set{
	sysbench.Tool,
	ycsb.Tool,
	goycsb.Tool,
	tpccmysql.Tool,
	gotpc.Tool,
	mysqlslap.Tool,
	pgbench.Tool,
	hammerdb.Tool,
	benchbase.Tool,
	hdrlog.Tool,
})

// withCommands makes the tools recognise their commands in logs, as a shell understands them.
func withCommands(tools tool.Set) tool.Set {
	for _, t := range tools {
		t.Pasted = commandline.Pasted
	}
	return tools
}
