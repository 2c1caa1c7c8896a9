package ingest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func ExampleImport() {
	dataDir, err := os.MkdirTemp("", "benchwatch")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dataDir)

	log := filepath.Join(dataDir, "old.log")
	run := `
Running the test with following options:
Number of threads: 16
Report intermediate results every 10 second(s)

Threads started!

[ 10s ] thds: 16 tps: 100.00 qps: 2000.00 (r/w/o: 1400.00/400.00/200.00) lat (ms,95%): 1.04 err/s: 0.00 reconn/s: 0.00
`
	if err := os.WriteFile(log, []byte(run), 0o600); err != nil {
		panic(err)
	}
	im := ingest.Import{DataDir: dataDir, Log: ingest.Log{Path: log, Tool: sysbench.Tool}}
	runs, err := im.Run(context.Background())
	if err != nil {
		panic(err)
	}
	for _, r := range runs {
		snap, err := ingest.Read(context.Background(), rundir.At(dataDir, r.Meta.ID), tool.Set{sysbench.Tool})
		fmt.Println(r.Meta.Title, r.Meta.Outcome, snap.Totals["transaction"], err)
	}
	// Output: old.log 16 threads lost 1000 <nil>
}
