package record

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// A setting is switched after 20 of 40 seconds, the load doubles, and a fifth of it fails. Each part has the
// rates, the samples, the failures and the settings of its own seconds, and nothing of the other's.
func TestExcerpt(t *testing.T) {
	stdout, queries := banner, 0.0
	status := []string{`{"target":"n1","engine":"mysql","cluster":"c","interval":1,"columns":["db_queries_total","db_threads_running"]}` + "\n"}
	for second := 1; second <= 40; second++ {
		tps, failures := 100.0, 0.0
		if second > 20 {
			tps, failures = 200, 50
		}
		queries += 2 * tps
		stdout += strings.Replace(intervalLine(second, tps), "err/s: 0.00", fmt.Sprintf("err/s: %.2f", failures), 1)
		at := float64(historyStart.UnixMilli())/1000 + 0.5 + float64(second) // the end of the second on the tool's axis
		status = append(status, fmt.Sprintf("[\"n1\",%.1f,0,0,0,\"\",%g,%g]\n", at, queries, tps/10))
	}
	dir := recorded(t, stdout+summaryText(6000, 40), status)
	_, err := dir.Update(func(m *rundir.Meta) {
		end := historyStart.Add(60 * time.Second)
		m.EndedAt, m.ClosedAt, m.Drain = &end, &end, map[string]rundir.Drain{"n1": {TimedOut: true}}
	})
	if err != nil {
		t.Fatal(err)
	}
	line := func(second, flush int) string {
		at := historyStart.Add(time.Duration(second) * time.Second).Format(time.RFC3339)
		return fmt.Sprintf(`{"at":%q,"target":"n1","engine":"mysql","settings":{"flush":"%d","size":"7"}}`+"\n", at, flush)
	}
	write(t, dir.Path(SettingsFile), line(1, 1)+line(27, 2))
	h, err := Read(t.Context(), dir, tool.Set{sysbench.Tool})
	if err != nil {
		t.Fatal(err)
	}
	type values struct {
		Intervals                          int
		TPS, P95, Queries, Threads, Failed float64
		Flush                              string
	}
	unknown := series.Unknown() // P95 always: percentiles of intervals have no mean
	for _, c := range []struct {
		part series.Span
		want values
	}{
		{series.Span{From: 2, To: 20}, values{18, 100, unknown, 200, 10, 0, "1"}},
		{series.Span{From: 22.3, To: 40}, values{17, 200, unknown, 400, 20, 0.2, "2"}},
		{series.Span{From: 30, To: 35}, values{5, 200, unknown, 400, 20, 0.2, ""}}, // too short to know the setting
		{series.Span{From: 45, To: 59}, values{0, unknown, unknown, unknown, unknown, unknown, "2"}},
	} {
		e, err := h.Excerpt(t.Context(), c.part)
		if err != nil {
			t.Fatal(err)
		}
		got := values{Intervals: e.Intervals.N, TPS: unknown, P95: unknown, Queries: unknown, Threads: unknown, Failed: series.Number(e.Snapshot.FailedShare)}
		if sum := e.Snapshot.Summary; sum != nil {
			got.TPS, got.P95 = series.Number(sum.Report().Rate(tool.Transaction)), series.Number(sum.Report().Latency(tool.Transaction, "p95"))
		}
		queries, threads := e.Samples.Tally(ServerMeasure{"n1", engine.QueryRate}), e.Samples.Tally(ServerMeasure{"n1", engine.RunningThreads})
		got.Queries, got.Threads = queries.Mean(), threads.Max
		got.Flush = e.Settings[0].Settings["flush"]
		if d := cmp.Diff(c.want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-9)); d != "" {
			t.Errorf("%v: %s", c.part, d)
		}
		if e.Snapshot.Phase != ingest.Over || e.Snapshot.Meta.Drain != nil || math.Abs(e.ToolEnd()-(c.part.To-c.part.From)) > 1e-6 || e.Settings[0].Settings["size"] != "7" {
			t.Errorf("%v: %+v", c.part, e.Snapshot)
		}
	}
	if h.Settings[0].Settings["flush"] != "1" || len(h.Settings[0].Changes) != 1 {
		t.Errorf("the run's own settings were changed: %+v", h.Settings)
	}
}
