package report

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/history"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// runsOverMonths are runs of two kinds. After 60 of them a new version is a tenth slower; a
// label that numbers the runs has nothing to do with that.
func runsOverMonths(n int) []review.Row {
	random := rand.New(rand.NewPCG(3, 3))
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var rows []review.Row
	for i := range n {
		for _, threads := range []int{4, 16} {
			tps, version := float64(1000*threads), "1.2"
			if i >= 60 {
				tps, version = tps*0.9, "1.3"
			}
			rows = append(rows, review.Row{
				ID: fmt.Sprintf("r%03d-t%d", i, threads), Tool: "sysbench", Workload: "oltp", Threads: threads, StartedAt: start.Add(time.Duration(i) * 20 * time.Hour),
				Labels: map[string]string{"version": version, "build": fmt.Sprint(i)}, Values: tool.Values{{Measure: tool.Throughput, Value: tps * (1 + 0.02*random.NormFloat64())}},
			})
		}
	}
	return rows
}

func TestTrend(t *testing.T) {
	settings := func(id string) map[string]string {
		if id < "r060" {
			return map[string]string{"innodb_buffer_pool_size": "8G", "sync_binlog": "1"}
		}
		return map[string]string{"innodb_buffer_pool_size": "4G", "sync_binlog": "1"}
	}
	trend, err := history.NewTrend(runsOverMonths(100), history.TrendOptions{Measure: "tps", By: history.KindFacts, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	if len(trend.Series) != 2 || trend.Series[0].Title() != "4 threads" {
		t.Fatalf("%d series: %s", len(trend.Series), trend.Series[0].Title())
	}
	for i := range trend.Series {
		s := &trend.Series[i]
		if len(s.Changes) != 1 || !strings.HasPrefix(s.Changes[0].After, "r060") {
			t.Fatalf("%s: %+v", s.Title(), s.Changes)
		}
		c := s.Changes[0]
		if got := c.Text(); got != "version 1.2 → 1.3; innodb_buffer_pool_size 8G → 4G" || c.ChangePercent > -8 || c.ChangePercent < -12 {
			t.Errorf("%s: %.1f %%: %s", s.Title(), c.ChangePercent, got)
		}
	}
	var b bytes.Buffer
	if err := TrendPage(trend).HTML(&b); err != nil || strings.Count(b.String(), "<figure>") != 2 || !strings.Contains(b.String(), "<b>2 changes in 2 of 2 series</b>") || strings.Contains(b.String(), "NaN") {
		t.Errorf("page: %v\n%s", err, b.String())
	}
}

// The combinations of a sweep, and runs with other options of the tool, are separate series; a label of the user that
// changes may be the cause of a change.
func TestTrendOfParameters(t *testing.T) {
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var rows []review.Row
	for i := range 40 {
		appliers := []string{"1", "4"}[i%2]
		labels := map[string]string{"appliers": appliers, "repeat": fmt.Sprint(i/2%2 + 1), "build": fmt.Sprint(i / 20), "sweep": fmt.Sprintf("sweep-%d", i/20), "table_size": "1000", "rate": ""}
		tps := map[string]float64{"1": 1000, "4": 2000}[appliers]
		if i >= 36 {
			labels["table_size"] = "9000"
		}
		rows = append(rows, review.Row{
			ID: fmt.Sprintf("r%02d", i), Tool: "sysbench", Workload: "oltp", Threads: 8, StartedAt: start.Add(time.Duration(i) * time.Hour),
			Labels: labels, Options: []string{"table_size", "rate"}, Values: tool.Values{{Measure: tool.Throughput, Value: tps + float64(i%3)}},
		})
	}
	trend, err := history.NewTrend(rows, history.TrendOptions{Measure: "tps", By: history.KindFacts})
	if err != nil {
		t.Fatal(err)
	}
	var titles []string
	for i := range trend.Series {
		s := &trend.Series[i]
		titles = append(titles, fmt.Sprintf("%s: %d runs, %d changes", s.Title(), len(s.Runs), len(s.Changes)))
	}
	want := []string{
		"appliers 1, table_size 1000: 18 runs, 0 changes", "appliers 4, table_size 1000: 18 runs, 0 changes",
		"appliers 1, table_size 9000: 2 runs, 0 changes", "appliers 4, table_size 9000: 2 runs, 0 changes",
	}
	if !slices.Equal(titles, want) || trend.Verdict() != "no change in 2 series" {
		t.Errorf("%q, %s", titles, trend.Verdict())
	}
}

func TestTrendOfFew(t *testing.T) {
	trend, err := history.NewTrend(runsOverMonths(3), history.TrendOptions{Measure: "tps", By: history.KindFacts})
	if err != nil || len(trend.Series) != 2 || len(trend.Series[0].Changes) != 0 || len(trend.Notes) != 1 || trend.Notes[0] != "2 series with fewer than 8 runs: too few to find a change in" {
		t.Errorf("%+v, %v", trend, err)
	}
	rows := runsOverMonths(3)
	rows = append(rows, review.Row{ID: "alone", Tool: "sysbench", Threads: 64, StartedAt: rows[0].StartedAt, Values: rows[0].Values})
	trend, err = history.NewTrend(rows, history.TrendOptions{Measure: "tps", By: history.KindFacts})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := TrendPage(trend).HTML(&b); err != nil || strings.Count(b.String(), "<figure>") != 2 || !strings.Contains(b.String(), "<summary>1 series of one run</summary>") {
		t.Errorf("page: %v\n%s", err, b.String())
	}
	if _, err := history.NewTrend(runsOverMonths(3), history.TrendOptions{Measure: "p99", By: history.KindFacts}); err == nil {
		t.Error("a measure that no run has is accepted")
	}
}

// Each place on the axis of dates has a different text, however short the time is.
func TestDateTicks(t *testing.T) {
	from := time.Date(2026, 11, 23, 17, 0, 12, 345e6, time.UTC)
	for _, span := range []time.Duration{0, time.Second, 50 * time.Second, 4 * time.Minute, 3 * time.Hour, 30 * time.Hour, 20 * 24 * time.Hour, 900 * 24 * time.Hour} {
		ticks, texts := dateTicks(from, from.Add(span)), map[string]bool{}
		for _, tick := range ticks {
			texts[tick.Text] = true
		}
		if len(ticks) == 0 || len(ticks) > mostTicks+1 || len(texts) != len(ticks) {
			t.Errorf("%s: %v", span, ticks)
		}
	}
}

// A history of runs that other programs disturbed says so before it says that there is no change, and a change names what
// other programs took before and after it.
func TestTrendOfDisturbedRuns(t *testing.T) {
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	series := func(values []float64) []review.Row {
		var rows []review.Row
		for i, tps := range values {
			rows = append(rows, review.Row{ID: fmt.Sprintf("r%02d", i), Tool: "sysbench", Threads: 8, StartedAt: start.Add(time.Duration(i) * time.Hour),
				Values: tool.Values{{Measure: tool.Throughput, Value: tps}}})
		}
		return rows
	}
	taken := func(shares ...float64) func(string) float64 {
		return func(id string) float64 {
			var i int
			fmt.Sscanf(id, "r%d", &i)
			return shares[i%len(shares)]
		}
	}
	noisy := series([]float64{900, 410, 700, 980, 300, 820, 560, 1050, 350, 640})
	trend, err := history.NewTrend(noisy, history.TrendOptions{Measure: "tps", By: history.KindFacts, Others: taken(0.05, 0.6, 0.3)})
	if err != nil {
		t.Fatal(err)
	}
	want := "other programs took 5 to 60 % of the CPU of the tool's machine, which differs between the runs; 10 runs, "
	if text := trend.LevelText(&trend.Series[0]); !strings.HasPrefix(text, want) || !strings.Contains(text, "no change found, as runs differ by a factor of 3.5, mean") {
		t.Error(text)
	}
	var step []float64
	var shares []float64
	for i := range 40 {
		tps, share := 1000.0, 0.05
		if i >= 20 {
			tps, share = 600, 0.45
		}
		step, shares = append(step, tps+float64(i%3)), append(shares, share)
	}
	trend, err = history.NewTrend(series(step), history.TrendOptions{Measure: "tps", By: history.KindFacts, Others: taken(shares...)})
	if err != nil || len(trend.Series[0].Changes) != 1 {
		t.Fatalf("%+v, %v", trend, err)
	}
	if text := trend.Series[0].Changes[0].Text(); text != "CPU taken by other programs 5 % → 45 %" {
		t.Error(text)
	}
}
