package rundir_test

import (
	"fmt"
	"os"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func ExampleCreate() {
	dataDir, err := os.MkdirTemp("", "benchwatch")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dataDir)

	dir, claim, err := rundir.Create(dataDir, rundir.Meta{
		Benchmark: rundir.Benchmark{Tool: "sysbench", Workload: "oltp_read_write", Threads: 16},
		Timing:    rundir.Timing{StartedAt: time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC)},
	})
	if err != nil {
		panic(err)
	}
	defer claim.Release() // until then, the run counts as alive

	code := 1
	meta, err := dir.Update(func(m *rundir.Meta) {
		now := time.Now()
		m.EndedAt, m.ExitCode = &now, &code
		m.Conclude(rundir.Output{Complaint: "FATAL: unable to connect"})
	})
	fmt.Println(dir.ID(), meta.Outcome, meta.Reason, err)
	// Output: 20261121T021403Z-oltp_read_write-t16 failed exit status 1: FATAL: unable to connect <nil>
}
