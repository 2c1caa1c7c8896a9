package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestLatencyOfOperations guards that a tool that prints no latency of transactions
// has one in tables, with the operation's name.
func TestLatencyOfOperations(t *testing.T) {
	ycsb := review.NewRow(&ingest.Snapshot{Summary: &ingest.Summary{
		Rates: []tool.Rate{{Operation: tool.Transaction, PerSecond: 500}},
		Latencies: []tool.Latency{
			{Operation: "cleanup", Stat: "p95", Seconds: 9}, {Operation: "read", Stat: "p95", Seconds: 0.001},
			{Operation: "update", Stat: "p95", Seconds: 0.004}, {Operation: "update", Stat: "p99", Seconds: 0.005},
		},
	}})
	tpcc := review.NewRow(&ingest.Snapshot{Summary: &ingest.Summary{
		Latencies: []tool.Latency{{Operation: "delivery", Stat: "p95", Seconds: 3}, {Operation: tool.NewOrder, Stat: "p95", Seconds: 0.02}},
		Values:    tool.Values{{Measure: tool.TpmC, Value: 1234}},
	}})
	if got := ycsb.Headline(); got != "update p95 4.00 ms" {
		t.Errorf("headline %q", got)
	}
	if ycsb.LatencyOperation != "update" || ycsb.Latency["p99"] != 0.005 {
		t.Errorf("%+v", ycsb)
	}
	var list, csv bytes.Buffer
	if err := errors.Join(List(&list, []review.Row{ycsb, tpcc}, terminal.Terminal{}), CSV(&csv, []review.Row{ycsb, tpcc})); err != nil {
		t.Fatal(err)
	}
	for want, in := range map[string]string{
		"4.00 (update p95)": list.String(), "20.00 (new_order p95)": list.String(),
		",transactions_per_second,tpmc,latency_update_p95_seconds,latency_update_p99_seconds,latency_new_order_p95_seconds\n": csv.String(), ",,1234,,,0.02\n": csv.String(),
	} {
		if !strings.Contains(in, want) {
			t.Errorf("missing %q in\n%s", want, in)
		}
	}
	c := compare.Compare([]compare.Group{{Name: "a", Runs: []review.Row{ycsb}}, {Name: "b", Runs: []review.Row{ycsb}}}, nil)
	var lines []string
	for _, l := range c.Lines {
		lines = append(lines, l.Measure)
	}
	if got := strings.Join(lines, ", "); got != "tps, update p95, update p99" {
		t.Errorf("lines %s", got)
	}
}

// TestListFits guards that a list fits a terminal, keeps the latency as long as it can, and names what
// it lacks.
func TestListFits(t *testing.T) {
	row := review.NewRow(&ingest.Snapshot{Meta: rundir.Meta{
		ID:        "20261125T094222Z-oltp_write_only-t4",
		Benchmark: rundir.Benchmark{Tool: "sysbench", Workload: "oltp_write_only"},
		End:       rundir.End{Outcome: rundir.Succeeded},
	}, Summary: &ingest.Summary{
		Rates:     []tool.Rate{{Operation: tool.Transaction, PerSecond: 500}},
		Latencies: []tool.Latency{{Operation: tool.Transaction, Stat: "p95", Seconds: 0.02}},
	}})
	for width, lacks := range map[int]string{0: "", 120: "WORKLOAD", 80: "STARTED", 60: "P95 (ms)"} {
		var b bytes.Buffer
		if err := List(&b, []review.Row{row}, terminal.Terminal{Width: width}); err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(b.String(), "\n")
		_, left, isSaid := strings.Cut(b.String(), "too wide for this terminal: ")
		if isSaid != (width > 0) || !strings.Contains(left, lacks) || lacks != "" && strings.Contains(head, lacks) {
			t.Errorf("%d:\n%s", width, b.String())
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width > 0 && n > width {
				t.Errorf("%d: a line has %d characters:\n%s", width, n, b.String())
			}
		}
	}
}
