package tool_test

import (
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

func TestHeadline(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []tool.Latency
		want tool.Latency
	}{
		{
			"p95 of sysbench",
			[]tool.Latency{{"transaction", "min", 0.1}, {"transaction", "avg", 0.2}, {"transaction", "max", 9}, {"transaction", "p95", 0.3}},
			tool.Latency{"transaction", "p95", 0.3},
		},
		{"p99 before higher percentiles", []tool.Latency{{"transaction", "p99.9", 3}, {"transaction", "p99", 2}, {"transaction", "p50", 1}}, tool.Latency{"transaction", "p99", 2}},
		{"the highest percentile below p99", []tool.Latency{{"transaction", "p99.9", 4}, {"transaction", "p98", 3}, {"transaction", "p90", 2}, {"transaction", "p50", 1}}, tool.Latency{"transaction", "p98", 3}},
		{"the mean before higher percentiles", []tool.Latency{{"transaction", "p99.9", 3}, {"transaction", "p100", 3}, {"transaction", "avg", 1}}, tool.Latency{"transaction", "avg", 1}},
		{
			"the worst generator's p95 before its p99",
			[]tool.Latency{{"transaction", "p95_worst", 1}, {"transaction", "p99_worst", 2}, {"transaction", "p99.9_worst", 3}},
			tool.Latency{"transaction", "p95_worst", 1},
		},
		{
			"the worst generator's p99 before its highest",
			[]tool.Latency{{"transaction", "p90_worst", 1}, {"transaction", "p99_worst", 2}, {"transaction", "p99.99_worst", 3}},
			tool.Latency{"transaction", "p99_worst", 2},
		},
		{"of a group that merged histograms", []tool.Latency{{"read", "p95_worst", 2}, {"read", "p95", 1}}, tool.Latency{"read", "p95", 1}},
		{"a low percentile before the mean", []tool.Latency{{"transaction", "avg", 2}, {"transaction", "p50", 1}}, tool.Latency{"transaction", "p50", 1}},
		{"the mean", []tool.Latency{{"transaction", "max", 2}, {"transaction", "avg", 1}}, tool.Latency{"transaction", "avg", 1}},
		{"the tool's transaction before TPC-C's", []tool.Latency{{"new_order", "p95", 2}, {"transaction", "avg", 1}}, tool.Latency{"transaction", "avg", 1}},
		{"new_order before slower operations", []tool.Latency{{"delivery", "p99", 9}, {"new_order", "p99", 2}, {"new_order", "p95", 1}}, tool.Latency{"new_order", "p95", 1}},
		{"new_order that printed only its maximum", []tool.Latency{{"new_order", "max", 9}, {"delivery", "p99", 2}}, tool.Latency{"delivery", "p99", 2}},
		{
			"the slowest of YCSB's operations, by one statistic",
			[]tool.Latency{{"read", "p99", 1}, {"update", "p99", 2}, {"update", "p99.9", 8}, {"scan", "p99.9", 9}},
			tool.Latency{"update", "p99", 2},
		},
		{
			"no cleanup, no failures",
			[]tool.Latency{
				{"cleanup", "p99", 9}, {"intended_cleanup", "p99", 9}, {"read_failed", "p99", 9}, {"insert_error", "p99", 9},
				{"read_not_found", "p99", 9}, {"read", "p99", 1}, {"lost_found", "p99", 2},
			},
			tool.Latency{"lost_found", "p99", 2},
		},
		{
			"no statements of a transaction",
			[]tool.Latency{{"statement_1_update", "avg", 9}, {"script_1_statement_2_update", "avg", 9}, {"restatement_1", "avg", 1}},
			tool.Latency{"restatement_1", "avg", 1},
		},
		{"only operations with traffic", []tool.Latency{{"idle", "p99", 9}, {"read", "p99", 0}}, tool.Latency{"read", "p99", 0}},
		{"unknown values do not count", []tool.Latency{{"read", "p95", series.Unknown()}, {"read", "p99", 1}}, tool.Latency{"read", "p99", 1}},
	} {
		traffic := func(op string) bool { return op != "idle" }
		if got := tool.Headline(c.in, traffic); !got.Known || got.Value != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		slices.Reverse(c.in)
		if got := tool.Headline(c.in, traffic); !got.Known || got.Value != c.want {
			t.Errorf("%s, reversed: %v, want %v", c.name, got, c.want)
		}
	}
	for _, none := range [][]tool.Latency{
		nil,
		{{"transaction", "max", 1}, {"transaction", "min", 1}, {"transaction", "p0", 0}, {"transaction", "p", 1}, {"transaction", "", 1}, {"transaction", "95", 1}, {"transaction", "p99.9", 1}},
		{{"idle", "p95", 1}, {"cleanup", "p95", 1}, {"", "max", 1}},
	} {
		if got := tool.Headline(none, func(op string) bool { return op != "idle" }); got.Known {
			t.Errorf("%v: headline %v", none, got)
		}
	}
}

func TestHeadlineOfReport(t *testing.T) {
	r := &tool.Report{Kind: tool.Interval}
	r.AddRate("read", 10)
	r.AddRate("update", 0)
	r.AddCount("scan", 0)
	r.AddLatency("read", "p99", 0.1)
	r.AddLatency("update", "p99", 0.2)
	r.AddLatency("scan", "p99", 0.2)
	if got := r.Headline(); got.Value != (tool.Latency{Operation: "read", Stat: "p99", Seconds: 0.1}) {
		t.Errorf("Headline() = %v", got)
	}
	if n := testing.AllocsPerRun(100, func() { r.Headline() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// The recording rules choose the same headline as Headline. Each test applies the selectors of a
// rule, in their order, to random latencies: the first selector that matches takes the largest
// value.
func TestRulesChooseTheHeadlineLikeGo(t *testing.T) {
	for _, rule := range []struct{ file, byStat, headline string }{
		{"run.yml", "run:benchwatch_run_latency_seconds:by_stat", "run:benchwatch_run_latency_seconds:headline"},
		{"step.yml", "run:benchwatch_run_summary_latency_seconds:by_stat", "run:benchwatch_run_summary_latency_seconds:headline"},
	} {
		t.Run(rule.file, func(t *testing.T) {
			exprs := recordingRules(t, "../../../prometheus/rules/"+rule.file)
			operations := selectors(t, exprs[rule.byStat], "op", " or on (run) ")
			stats := selectors(t, exprs[rule.headline], "stat", " or on (run) ")
			random := rand.New(rand.NewPCG(1, 2))
			for range 5000 {
				latencies := randomLatencies(random)
				got, want := tool.Headline(latencies, nil), firstMatch(latencies, operations, stats)
				if got != want {
					t.Fatalf("of %v Headline takes %v, the rule %v", latencies, got, want)
				}
			}
		})
	}
}

// recordingRules returns the expressions in a rule file by the names of their
// series, each on one line.
func recordingRules(t *testing.T, path string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Record, Expr string }
		}
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	exprs := map[string]string{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			exprs[r.Record] = strings.Join(strings.Fields(r.Expr), " ")
		}
	}
	return exprs
}

// selectors returns a predicate for the first matcher of a label in each operand of an expression.
func selectors(t *testing.T, expr, label, operator string) []func(string) bool {
	t.Helper()
	matcher := regexp.MustCompile(`[{ ]` + label + `(=~|!~|!=|=)"([^"]*)"`)
	var all []func(string) bool
	for operand := range strings.SplitSeq(expr, operator) {
		m := matcher.FindStringSubmatch(operand)
		if m == nil {
			t.Fatalf("%q selects no %s", operand, label)
		}
		pattern := m[2]
		if !strings.HasSuffix(m[1], "~") {
			pattern = regexp.QuoteMeta(pattern)
		}
		full, want := regexp.MustCompile("^(?:"+pattern+")$"), m[1][0] != '!'
		all = append(all, func(s string) bool { return full.MatchString(s) == want })
	}
	if len(all) < 3 {
		t.Fatalf("%q has only %d operands", expr, len(all))
	}
	return all
}

func firstMatch(latencies []tool.Latency, operations, stats []func(string) bool) series.Optional[tool.Latency] {
	for _, operation := range operations {
		for _, stat := range stats {
			var best series.Optional[tool.Latency]
			for _, l := range latencies {
				if operation(l.Operation) && stat(l.Stat) && (!best.Known || l.Seconds > best.Value.Seconds) {
					best = series.Some(l)
				}
			}
			if best.Known {
				return best
			}
		}
	}
	return series.Optional[tool.Latency]{}
}

// randomLatencies returns the latencies of a tool that prints the same statistics for each
// operation. As in real output, a higher percentile is never lower.
func randomLatencies(random *rand.Rand) []tool.Latency {
	var latencies []tool.Latency
	var printed []string
	for _, stat := range []string{"avg", "min", "max", "p5", "p50", "p90_worst", "p98.5", "p95", "p95_worst", "p99", "p99_worst", "p99.9", "p99.99_worst", "p100"} {
		if random.IntN(4) == 0 {
			printed = append(printed, stat)
		}
	}
	for _, operation := range []string{"transaction", "new_order", "read", "update", "cleanup", "intended_cleanup", "read_failed", "insert_error", "read_not_found", "statement_1_update", "script_1_statement_2_end"} {
		if random.IntN(4) > 0 {
			continue
		}
		seconds := random.Float64()
		for _, stat := range printed {
			seconds += random.Float64() / 10
			latencies = append(latencies, tool.Latency{Operation: operation, Stat: stat, Seconds: seconds})
		}
	}
	random.Shuffle(len(latencies), func(i, j int) { latencies[i], latencies[j] = latencies[j], latencies[i] })
	return latencies
}
