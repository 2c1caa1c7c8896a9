package metrics

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// The histogram of an ended run is exposed, and exported with the same series.
func TestHistogramOfARun(t *testing.T) {
	output, err := os.ReadFile("../../model/tool/sysbench/testdata/1.0.20/oltp_point_select-th4-histogram.txt")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	end := start.Add(6 * time.Second)
	meta := rundir.Meta{
		ID:        "20261121T010000Z-x",
		Benchmark: rundir.Benchmark{Tool: sysbench.Name},
		Timing:    rundir.Timing{StartedAt: start},
		End:       rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
		Closing:   rundir.Closing{ClosedAt: &end},
	}
	dir, claim, err := rundir.Create(t.TempDir(), meta)
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	if err := os.WriteFile(dir.Path(rundir.StdoutFile), output, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := record.Read(t.Context(), dir, tool.Set{sysbench.Tool})
	if err != nil {
		t.Fatal(err)
	}
	exposed := expose(t, Sources{Runs: func() []ingest.Snapshot { return []ingest.Snapshot{h.Snapshot} }})
	for _, want := range []string{
		`_bucket{op="transaction",run="20261121T010000Z-x",le="100"} 192067`, `_count{op="transaction",run="20261121T010000Z-x"} 192067`,
		`_bucket{op="transaction",run="20261121T010000Z-x",le="1e-05"} 0`,
	} {
		if !strings.Contains(exposed, want) {
			t.Errorf("no %s in\n%s", want, exposed)
		}
	}
	if n := strings.Count(exposed, "_bucket{"); n != len(histogram.Ladder)+1 {
		t.Errorf("%d buckets", n)
	}
	b := NewBackfill()
	defer b.Close()
	if err := b.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	var exported bytes.Buffer
	if _, err := b.WriteTo(&exported); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(exported.String(), "# TYPE "+summaryHistogram.Name+" histogram"); n != 1 {
		t.Errorf("%d families of the histogram are exported", n)
	}
	for line := range strings.SplitSeq(exposed, "\n") {
		m := regexp.MustCompile(`^\S*_bucket.*le="([^"]+)"} (\d+)$`).FindStringSubmatch(line)
		if m == nil {
			continue
		}
		want := regexp.MustCompile(`_bucket\{run="20261121T010000Z-x",op="transaction",le="` + regexp.QuoteMeta(m[1]) + `"\} ` + m[2] + ` `)
		if !want.MatchString(exported.String()) {
			t.Errorf("not exported: %s", line)
		}
	}
}
