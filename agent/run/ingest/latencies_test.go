package ingest_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/hammerdb"
	"github.com/benchwatch/benchwatch/agent/model/tool/pgbench"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// distributionsOf returns the distributions of pgbench's logs by operation, each parsed alone.
func distributionsOf(t *testing.T, logs ...string) map[string]*histogram.Histogram {
	t.Helper()
	all := map[string]*histogram.Histogram{}
	for _, log := range logs {
		tool.ParseAll(pgbench.Tool.NewParser(tool.Description{}), tool.Stdout, []byte(log), func(r *tool.Report) {
			if r.Kind == tool.Histogram && r.Cumulative {
				all[r.Operation] = histogram.Merge(all[r.Operation], r.Distribution())
			}
		})
	}
	return all
}

func recorded(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../model/tool/pgbench/testdata/log-15", name, "stdout.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pgbenchRun is a run of pgbench that has ended, in a folder with files of its logs.
func pgbenchRun(t *testing.T) (dir rundir.Directory, folder string, files *ingest.Latencies) {
	t.Helper()
	start := time.Now()
	end := start.Add(time.Second)
	dir, claim, err := rundir.Create(t.TempDir(), rundir.Meta{
		ID:        "r",
		Benchmark: rundir.Benchmark{Tool: pgbench.Name},
		Timing:    rundir.Timing{StartedAt: start},
		End:       rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
	})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	summary, err := os.ReadFile("../../model/tool/pgbench/testdata/15/select/stdout.txt")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir.Path(rundir.StdoutFile), string(summary))
	folder = filepath.Join(t.TempDir(), "with [a] star*")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	d := pgbench.Tool.Describe(tool.Invocation{Args: []string{"-l", "--log-prefix=" + folder + "/x"}})
	return dir, folder, &ingest.Latencies{Tool: pgbench.Tool, Patterns: d.LatencyLogs, PID: 4711, Since: start}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The histograms kept with a run equal the histograms of all lines in the files of its own process, bucket by bucket,
// in total and over time.
func TestKeepLatencies(t *testing.T) {
	for name, logs := range map[string][]string{
		"two threads":   {recorded(t, "limit"), recorded(t, "plain")},
		"two scripts":   {recorded(t, "scripts")},
		"a sample":      {recorded(t, "sampled")},
		"a line is cut": {recorded(t, "limit") + "1 99"},
		"within 4 days": {"0 1 100 0 1795399465 0\n0 2 200 0 1795399470 9\n0 3 300 0 1795399999 9\n0 4 300 0 1795400000 9\n0 5 7000 0 1795480000 9\n0 6 8000 0 1795560000 9\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, folder, files := pgbenchRun(t)
			write(t, folder+"/x.4711", logs[0])
			for _, more := range logs[1:] {
				write(t, folder+"/x.4711.1", more)
			}
			foreign := recorded(t, "tries")
			for _, other := range []string{"x.471", "x.47110", "x.4711.gz", "y.4711", "pgbench_log.4711"} {
				write(t, folder+"/"+other, foreign)
			}
			write(t, folder+"/x.4711.2", foreign)
			if err := os.Chtimes(folder+"/x.4711.2", time.Time{}, files.Since.Add(-2*time.Second)); err != nil {
				t.Fatal(err)
			}
			if err := files.Keep(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			h, err := record.Read(t.Context(), dir, tool.Set{pgbench.Tool})
			if err != nil || len(h.DamageLines()) > 0 || h.Snapshot.Summary == nil {
				t.Fatalf("%v: %+v", err, h)
			}
			want := distributionsOf(t, logs...)
			for _, d := range h.Snapshot.Summary.Histograms {
				if !d.Equal(want[d.Operation]) {
					t.Errorf("%s: %v instead of %v", d.Operation, d.Buckets(), want[d.Operation].Buckets())
				}
				over, n := h.Intervals.Distributions[d.Operation], uint64(0)
				for _, s := range over.Slices {
					n += s.N
				}
				if n != d.Count() {
					t.Errorf("%s: %d of %d values over time", d.Operation, n, d.Count())
				}
				delete(want, d.Operation)
			}
			for operation := range want {
				t.Errorf("%s has no histogram", operation)
			}
		})
	}
}

// TestKeepStatistics keeps the percentiles of a file that has the statistics of its runs, without a histogram. HammerDB
// appends to it: the last run counts.
func TestKeepStatistics(t *testing.T) {
	dir, folder, files := pgbenchRun(t)
	profile, err := os.ReadFile("../../model/tool/hammerdb/testdata/4.12/mariadb-hdbxtprofile/stdout.txt")
	if err != nil {
		t.Fatal(err)
	}
	write(t, folder+"/x.4711", strings.Replace(string(profile), "P95: ", "P95: 9", 1)+string(profile))
	files.Tool = hammerdb.Tool
	if err := files.Keep(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	h, err := record.Read(t.Context(), dir, tool.Set{pgbench.Tool})
	if err != nil {
		t.Fatal(err)
	}
	if got := h.Snapshot.Summary.Report().Latency(tool.NewOrder, "p95"); !got.Known || got.Value <= 0 || got.Value >= 9 {
		t.Errorf("p95 %+v", got)
	}
}

func TestNoLatencies(t *testing.T) {
	dir, folder, files := pgbenchRun(t)
	if err := files.Keep(t.Context(), dir); !errors.Is(err, ingest.ErrNoLatencies) {
		t.Errorf("without a file: %v", err)
	}
	write(t, folder+"/x.4711", "not a log\n")
	if err := files.Keep(t.Context(), dir); !errors.Is(err, ingest.ErrNoLatencies) || !strings.Contains(err.Error(), "x.4711") {
		t.Errorf("of another file: %v", err)
	}
	if _, err := os.Stat(dir.Path(rundir.LatenciesFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was kept: %v", err)
	}
}
