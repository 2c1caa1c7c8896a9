package ingest_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/benchbase"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// benchbaseFiles are a log of BenchBase and its files, by their names. Their run has two phases of 4 s, with 20 and 40
// transactions per second.
func benchbaseFiles(t *testing.T) map[string]string {
	t.Helper()
	const folder = "../../model/tool/benchbase/testdata/2023/ycsb-phases"
	files := map[string]string{"bench.log": filepath.Join(folder, "stdout.txt")}
	results, err := filepath.Glob(filepath.Join(folder, "results", "*"))
	if err != nil || len(results) == 0 {
		t.Fatal(err)
	}
	for _, path := range results {
		files["results/"+filepath.Base(path)] = path
	}
	for name, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(content)
	}
	return files
}

// importFolder imports a folder with these files.
func importFolder(t *testing.T, files map[string]string) (made []ingest.Imported, runs []*record.History) {
	t.Helper()
	folder, data := t.TempDir(), t.TempDir()
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, name), content)
	}
	tools := tool.Set{benchbase.Tool}
	found, err := ingest.Search(folder, tools, nil, nil, func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	logs, err := ingest.Pair(t.Context(), found.Logs)
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range logs {
		im := ingest.Import{DataDir: data, Log: log}
		parts, err := im.Run(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", log.Path, err)
		}
		made = append(made, parts...)
	}
	for _, m := range made {
		h, err := record.Read(t.Context(), rundir.At(data, m.Meta.ID), tools)
		if err != nil || len(h.DamageLines()) > 0 {
			t.Fatalf("%v: %v", err, h.DamageLines())
		}
		runs = append(runs, h)
	}
	return made, runs
}

// TestSideFiles imports a log and the files that belong to its run, and parts of them.
func TestSideFiles(t *testing.T) {
	const summary, windows, raw, results = ".summary.json", ".samples.csv", ".raw.csv", ".results.csv"
	for _, test := range []struct {
		name      string
		without   []string // suffixes of files
		seconds   float64  // of the run
		intervals int
		p95       float64 // 0: unknown
		ops       bool    // there are latencies of each operation
		estimated bool    // p95 is a bucket of a histogram
	}{
		{"all", nil, 8.000375832, 8, 0.031255, true, false},
		{"without latencies of transactions", []string{raw}, 8.000375832, 8, 0.031255, false, false},
		{"without the summary", []string{summary}, 8.000375832, 8, 0, true, true},
		{"the log alone", []string{raw, summary, windows, results}, 8.000375832, 0, 0, false, false},
		{"without the log", []string{".log"}, 8.000375832, 8, 0.031255, true, false},
		{"summary and windows", []string{".log", raw}, 8.000375832, 8, 0.031255, false, false},
		{"latencies of transactions", []string{".log", summary}, 7.979528, 7, 0.029375, true, true},
		{"windows", []string{".log", summary, raw}, 8, 8, 0, false, false},
		{"results", []string{".log", summary, raw, windows}, 10, 2, 0, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := benchbaseFiles(t)
			for name := range files {
				for _, suffix := range test.without {
					if strings.HasSuffix(name, suffix) {
						delete(files, name)
					}
				}
			}
			made, runs := importFolder(t, files)
			if len(made) != 1 {
				t.Fatalf("%d runs", len(made))
			}
			sum := runs[0].Snapshot.Summary.Report()
			if got := sum.ElapsedSeconds.Value; math.Abs(got-test.seconds) > 1e-9 {
				t.Errorf("%v s", got)
			}
			if n := sum.Count(tool.Transaction); n.Known && n.Value != 240 {
				t.Errorf("%d transactions", n.Value)
			}
			if got := runs[0].Intervals.N; got != test.intervals {
				t.Errorf("%d intervals", got)
			}
			p95 := sum.Latency(tool.Transaction, "p95")
			if test.estimated {
				p95.Known, p95.Value = test.p95 > 0, test.p95
			}
			if p95.Value != test.p95 {
				t.Errorf("p95 %v", p95.Value)
			}
			operations := map[string]uint64{}
			for _, d := range runs[0].Snapshot.Summary.Histograms {
				operations[d.Operation] = d.Count()
			}
			if got := len(operations) > 0; got != test.ops || got && (operations["read_record"] != 121 || operations[tool.Transaction] != 240) {
				t.Errorf("histograms of %v", operations)
			}
		})
	}
}
