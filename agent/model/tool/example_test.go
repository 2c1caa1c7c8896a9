package tool_test

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
)

// A parser turns the lines of a tool's output into reports.
func Example() {
	output := []byte(`sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 4
Threads started!
[ 1s ] thds: 4 tps: 10.50 qps: 210.00 (r/w/o: 147.00/42.00/21.00) lat (ms,95%): 1.04 err/s: 0.00 reconn/s: 0.00
`)
	t := registry.Tools.Sniff(output)
	parser := t.NewParser(tool.Description{})
	tool.ParseAll(parser, tool.Stdout, output, func(r *tool.Report) {
		switch r.Kind {
		case tool.Start:
			fmt.Println(r.Tool, r.Version, r.Threads.Value)
		case tool.Interval:
			fmt.Println(r.ElapsedSeconds.Value, r.Rate(tool.Transaction).Value, r.Headline().Value)
		}
	})
	// Output:
	// sysbench 1.0.20 4
	// 1 10.5 {transaction p95 0.00104}
}

// A command line is understood before the tool prints anything.
func ExampleTool() {
	sysbench := registry.Tools.ByName("sysbench")
	d := sysbench.Describe(tool.Invocation{
		Args: []string{"oltp_read_write", "--threads=16", "--mysql-host=db1", "--mysql-password=***", "run"},
	})
	fmt.Println(d.Workload, d.Threads, d.Target)
	fmt.Println(d.Insert)
	// Output:
	// oltp_read_write 16 db1:3306
	// [{4 [--report-interval=1]}]
}
