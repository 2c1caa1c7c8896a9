package report

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/hdrlog"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// A log with a histogram of each interval has a heat map that counts each value of each
// operation once, in the report and as a picture.
func TestHeatMap(t *testing.T) {
	output, err := os.ReadFile("../../model/tool/hdrlog/testdata/tagged-Log.logV2.txt")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	end := start.Add(time.Minute)
	dir, claim, err := rundir.Create(t.TempDir(), rundir.Meta{
		ID:        "log",
		Benchmark: rundir.Benchmark{Tool: hdrlog.Name},
		Timing:    rundir.Timing{StartedAt: start, ClockStartedAt: &start},
		End:       rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
		Closing:   rundir.Closing{ClosedAt: &end},
	})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	if err := os.WriteFile(dir.Path(rundir.StdoutFile), output, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := record.Read(t.Context(), dir, tool.Set{hdrlog.Tool})
	if err != nil {
		t.Fatal(err)
	}
	r := New(h)
	maps := r.HeatMaps()
	if len(maps) != 2 || maps[0].Title != "Latency of a over time" || len(maps[0].Cells) == 0 {
		t.Fatalf("heat maps: %d", len(maps))
	}
	for _, d := range r.Distributions {
		counted := uint64(0)
		for _, s := range h.Intervals.Distributions[d.Operation].Slices {
			counted += s.N
		}
		if counted != d.Count {
			t.Errorf("%s: %d of %d values over time", d.Operation, counted, d.Count)
		}
	}
	for _, c := range maps[0].Cells {
		if c.Share <= 0 || c.Share > 1 || c.ToX <= c.X || c.ToY <= c.Y {
			t.Fatalf("cell %+v", c)
		}
	}
	var page bytes.Buffer
	doc := Document{Runs: []Report{r}}
	if err := doc.Page().HTML(&page); err != nil || strings.Count(page.String(), `class="cell"`) != len(maps[0].Cells)+len(maps[1].Cells) {
		t.Errorf("report: %v", err)
	}
	var picture bytes.Buffer
	if err := maps[0].WriteSVG(&picture); err != nil || picture.Len() < 5000 {
		t.Errorf("picture of %d bytes: %v", picture.Len(), err)
	}
}
