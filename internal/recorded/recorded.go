// Package recorded provides runs for tests: recorded ones, and ones composed from numbers.
package recorded

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

//go:embed testdata
var files embed.FS

// Start is the start of the runs of [Sysbench].
var Start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Galera copies a run on a Galera cluster of three nodes into a data directory.
func Galera(t testing.TB) rundir.Directory {
	return copied(t, "galera", "20261121T111538Z-oltp_write_only-t8")
}

// Starved copies a run of five seconds whose agent had no core and took two samples.
func Starved(t testing.TB) rundir.Directory {
	return copied(t, "starved", "20261123T171404Z-sweep-oltp_read_only-006")
}

func copied(t testing.TB, name, id string) rundir.Directory {
	t.Helper()
	dir := rundir.At(t.TempDir(), id)
	from, err := fs.Sub(files, "testdata/"+name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(string(dir), from); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Read reads a run of sysbench.
func Read(t testing.TB, dir rundir.Directory) *record.History {
	t.Helper()
	h, err := record.Read(context.Background(), dir, tool.Set{sysbench.Tool})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Sysbench writes a run without servers and without a summary. It has one interval per second with
// these rates; a negative rate leaves out the interval.
func Sysbench(t testing.TB, rates []float64, markers ...marker.Marker) rundir.Directory {
	t.Helper()
	var out strings.Builder
	out.WriteString("sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 16\n\nThreads started!\n\n")
	for i, tps := range rates {
		if tps >= 0 {
			fmt.Fprintf(&out, "[ %ds ] thds: 16 tps: %.2f qps: %.2f (r/w/o: %.2f/0.00/0.00) lat (ms,95%%): %d.00 err/s: 0.00 reconn/s: 0.00\n", i+1, tps, tps, tps, i%10+1)
		}
	}
	end := Start.Add(time.Duration(len(rates)) * time.Second)
	code := 0
	meta := rundir.Meta{
		ID: "r", Title: "r",
		Benchmark: rundir.Benchmark{Tool: "sysbench", Verb: "run", Threads: 16},
		Timing:    rundir.Timing{StartedAt: Start, ClockStartedAt: &Start},
		End:       rundir.End{EndedAt: &end, ExitCode: &code, Outcome: rundir.Succeeded},
		Closing:   rundir.Closing{ClosedAt: &end},
		Process:   rundir.Process{Generator: "g"},
	}
	dir, claim, err := rundir.Create(t.TempDir(), meta)
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	for _, name := range []string{rundir.StdoutFile, rundir.StderrFile} {
		if err := os.WriteFile(dir.Path(name), []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		out.Reset()
	}
	for _, m := range markers {
		if err := marker.Append(dir, m); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Counted returns a run of one minute with servers whose statements were recorded.
func Counted(lines ...record.ServerStatements) *record.History {
	zero := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	end := zero.Add(time.Minute)
	h := &record.History{Zero: zero, Snapshot: ingest.Snapshot{Meta: rundir.Meta{
		ID:        "run",
		Timing:    rundir.Timing{StartedAt: zero},
		End:       rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
		Placement: rundir.Placement{Servers: &rundir.Servers{Targets: []rundir.Server{{Target: "n1"}, {Target: "n2"}, {Target: "proxy", Proxy: true}}}},
	}}}
	for i := range lines {
		lines[i].From, lines[i].To = zero.Add(time.Second), end
	}
	h.Statements = lines
	return h
}

// Statement returns a server's counts of a statement, with one millisecond per bucket of its
// latency.
func Statement(text string, executions, seconds float64, latency ...uint64) engine.Statement {
	s := engine.Statement{Digest: "d" + text, Text: text,
		StatementCounts: engine.StatementCounts{Executions: executions, Seconds: seconds, RowsExamined: 2 * executions}}
	for i, n := range latency {
		if s.Latency == nil {
			s.Latency = engine.LatencyBuckets{}
		}
		s.Latency = append(s.Latency, engine.LatencyBuckets{{Low: float64(i) / 1000, High: float64(i+1) / 1000, N: n}}...)
	}
	return s
}
