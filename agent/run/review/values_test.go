package review_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// TestNumberOfIntervals guards that a number which the tool prints of its intervals only is part of
// the run's row as soon as its measure has a short name: as a column, in JSON, and read back.
func TestNumberOfIntervals(t *testing.T) {
	tool.QueueLength.Short = "queue"
	t.Cleanup(func() { tool.QueueLength.Short = "" })
	dir := recorded.Sysbench(t, []float64{100, 100, 100})
	out, err := os.ReadFile(dir.Path(rundir.StdoutFile))
	if err != nil {
		t.Fatal(err)
	}
	text := string(out)
	for i, length := range []int{3, 7, 2} {
		line := fmt.Sprintf("[ %ds ] thds", i+1)
		at := strings.Index(text, line)
		end := at + strings.IndexByte(text[at:], '\n') + 1
		text = text[:end] + fmt.Sprintf("[ %ds ] queue length: %d, concurrency: 1\n", i+1, length) + text[end:]
	}
	if err := os.WriteFile(dir.Path(rundir.StdoutFile), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	h := recorded.Read(t, dir)
	row := review.NewObservedRow(h)
	if got := row.Values.Of(tool.QueueLength); got != series.Some(7.0) {
		t.Errorf("longest queue %v", got)
	}
	if !slices.ContainsFunc(review.Measures([]review.Row{row}), func(m review.Measure) bool { return m.Name == "queue" && m.Value(&row) == 7 }) {
		t.Error("no column")
	}
	data, err := json.Marshal(review.Run{Row: row, Details: review.Details{Command: []string{"sysbench"}}})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil || fields["queue_length"] != 7.0 || fields["transactions_per_second"] == nil || fields["command"] == nil || fields["id"] != "r" {
		t.Errorf("%v %s", err, data)
	}
	again, err := review.RestoreRow(data, &h.Snapshot.Meta)
	if err != nil || !slices.Equal(again.Values, row.Values) {
		t.Errorf("%v, read back %v of %v", err, again.Values, row.Values)
	}
}
