package gotpc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

func TestGolden(t *testing.T) {
	for _, dir := range tooltest.Cases(t, "testdata/*/*") {
		t.Run(strings.TrimPrefix(dir, "testdata/"), func(t *testing.T) {
			got := tooltest.Parse(Tool, tooltest.Recorded(t, dir)).String()
			tooltest.Golden(t, filepath.Join(dir, "golden.txt"), got)
		})
	}
}

func parse(text string) tooltest.Result {
	return tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(text)))
}

func ofKind(res tooltest.Result, kind tool.Kind) []*tool.Report {
	var all []*tool.Report
	for _, r := range res.Reports {
		if r.Kind == kind {
			all = append(all, r)
		}
	}
	return all
}

const (
	delivery = "[Current] DELIVERY - Takes(s): 0.9, Count: 14, TPM: 922.9, Sum(ms): 487.0, Avg(ms): 34.6, 50th(ms): 30.4, 90th(ms): 60.8, 95th(ms): 60.8, 99th(ms): 65.0, 99.9th(ms): 65.0, Max(ms): 65.0\n"
	newOrder = "[Current] NEW_ORDER - Takes(s): 1.0, Count: 97, TPM: 6065.7, Sum(ms): 2149.1, Avg(ms): 22.2, 50th(ms): 22.0, 90th(ms): 37.7, 95th(ms): 50.3, 99th(ms): 60.8, 99.9th(ms): 75.5, Max(ms): 75.5\n"
	failed   = "[Current] NEW_ORDER_ERR - Takes(s): 1.0, Count: 2, TPM: 120.0, Sum(ms): 20.0, Avg(ms): 10.0, 50th(ms): 9.4, 90th(ms): 10.5, 95th(ms): 10.5, 99th(ms): 10.5, 99.9th(ms): 10.5, Max(ms): 10.5\n"
)

// A failed transaction counts as an error, not as a transaction.
func TestFailedTransactions(t *testing.T) {
	res := parse(delivery + newOrder + failed)
	want := `{"kind":"interval","run":1,"interval_seconds":1,"phase":"measure","rates":{"transaction":111,"delivery":14,"new_order":97,"new_order_error":2},"counts":{"transaction":111,"delivery":14,"new_order":97,"new_order_error":2,"error":2},"latency_seconds":{"delivery":{"avg":0.0346,"p50":0.0304,"p90":0.0608,"p95":0.0608,"p99":0.065,"p99.9":0.065,"max":0.065},"new_order":{"avg":0.0222,"p50":0.022,"p90":0.0377,"p95":0.0503,"p99":0.0608,"p99.9":0.0755,"max":0.0755},"new_order_error":{"avg":0.01,"p50":0.0094,"p90":0.0105,"p95":0.0105,"p99":0.0105,"p99.9":0.0105,"max":0.0105}},"errors_per_second":2}`
	intervals := ofKind(res, tool.Interval)
	if len(intervals) != 1 {
		t.Fatalf("%s", res)
	}
	if diff := cmp.Diff(want, tooltest.Render(intervals[0])); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Rows from 2020 have fewer columns and whole numbers.
func TestOldRows(t *testing.T) {
	res := parse("[Current] NEW_ORDER - Takes(s): 9.9, Count: 970, TPM: 5878.8, Sum(ms): 21491, Avg(ms): 22, 90th(ms): 32, 99th(ms): 64, 99.9th(ms): 80\n" +
		"[Summary] NEW_ORDER - Takes(s): 9.9, Count: 970, TPM: 5878.8, Sum(ms): 21491, Avg(ms): 22, 90th(ms): 32, 99th(ms): 64, 99.9th(ms): 80\ntpmC: 5878.8\n")
	want := `{"kind":"start","run":1,"tool":"go-tpc","workload":"tpcc"}
{"kind":"interval","run":1,"interval_seconds":10,"phase":"measure","rates":{"transaction":97,"new_order":97},"counts":{"transaction":970,"new_order":970,"error":0},"latency_seconds":{"new_order":{"avg":0.022,"p90":0.032,"p99":0.064,"p99.9":0.08}},"errors_per_second":0}
{"kind":"summary","run":1,"elapsed_seconds":9.9,"checkpoint":false,"rates":{"transaction":97.98,"new_order":97.98},"counts":{"transaction":970,"new_order":970,"error":0},"latency_seconds":{"new_order":{"avg":0.022,"p90":0.032,"p99":0.064,"p99.9":0.08}},"errors_per_second":0,"tpmc":5878.8}
lines: 3 reported, 0 ignored, 0 malformed
`
	if diff := cmp.Diff(want, res.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// With --wait there are rows for keying and thinking times, which are no operations, also between a
// summary and its tpmC.
func TestWaitRows(t *testing.T) {
	wait := "[Current] KEYINGTIME-PAYMENT - 3.0s\n[Current] THINKINGTIME-PAYMENT - 4.4s\n"
	summary := strings.ReplaceAll(delivery+newOrder+wait, "[Current]", "[Summary]") + "tpmC: 6065.7, tpmTotal: 7000.0, efficiency: 100.0%\n"
	res := parse(delivery + wait + newOrder + wait + "Finished\n" + summary)
	if n := len(ofKind(res, tool.Interval)); n != 2 {
		t.Errorf("%d intervals", n)
	}
	s := ofKind(res, tool.Summary)
	if len(s) != 1 || !s[0].Value(tool.TpmC).Known {
		t.Errorf("%s", res)
	}
}

// A few transactions do not determine the length of an interval; many do.
func TestIntervalLength(t *testing.T) {
	few := "[Current] NEW_ORDER - Takes(s): 0.6, Count: 3, TPM: 300.0, Sum(ms): 21.0, Avg(ms): 7.0, 50th(ms): 7.0, 90th(ms): 7.0, 95th(ms): 7.0, 99th(ms): 7.0, 99.9th(ms): 7.0, Max(ms): 7.0\n"
	stalled := strings.NewReplacer("Takes(s): 1.0", "Takes(s): 4.1", "TPM: 6065.7", "TPM: 1411.0").Replace(newOrder)
	var got []series.Optional[float64]
	for _, r := range ofKind(parse(few+delivery+newOrder+delivery+newOrder+few+stalled), tool.Interval) {
		got = append(got, r.IntervalSeconds)
	}
	want := []series.Optional[float64]{{}, series.Some(1.0), series.Some(1.0), series.Some(1.0), series.Some(4.125)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The command line gives the interval's length where few transactions don't. A longer interval
// means that the ticker was late.
func TestIntervalOfTheCommandLine(t *testing.T) {
	few := "[Current] NEW_ORDER - Takes(s): 0.6, Count: 3, TPM: 300.0, Sum(ms): 21.0, Avg(ms): 7.0, 50th(ms): 7.0, 90th(ms): 7.0, 95th(ms): 7.0, 99th(ms): 7.0, 99.9th(ms): 7.0, Max(ms): 7.0\n"
	stalled := strings.NewReplacer("Takes(s): 1.0", "Takes(s): 4.1", "TPM: 6065.7", "TPM: 1411.0").Replace(newOrder)
	d := tool.Description{ReportInterval: 1500 * time.Millisecond}
	var length, rate []series.Optional[float64]
	for _, r := range ofKind(tooltest.ParseOf(Tool, d, tooltest.Lines(tool.Stdout, []byte(few+delivery+newOrder+few+stalled))), tool.Interval) {
		length, rate = append(length, r.IntervalSeconds), append(rate, r.Rate("new_order"))
	}
	if diff := cmp.Diff([]series.Optional[float64]{series.Some(1.5), series.Some(1.5), series.Some(1.5), series.Some(4.125)}, length); diff != "" {
		t.Errorf("lengths: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]series.Optional[float64]{series.Some(2.0), series.Some(64.667), series.Some(2.0), series.Some(23.515)}, rate); diff != "" {
		t.Errorf("rates: -want +got:\n%s", diff)
	}
}

// The command line does not change what is read from recorded output, and gives every interval a
// length.
func TestGoldenWithCommandLine(t *testing.T) {
	intervals := 0
	for _, dir := range tooltest.Cases(t, "testdata/*/*") {
		command, err := os.ReadFile(filepath.Join(dir, "cmd.txt"))
		if err != nil {
			t.Fatal(err)
		}
		d := Describe(tool.Invocation{Args: strings.Fields(string(command))[1:]})
		with, without := tooltest.ParseOf(Tool, d, tooltest.Recorded(t, dir)), tooltest.Parse(Tool, tooltest.Recorded(t, dir))
		if len(with.Reports) != len(without.Reports) {
			t.Fatalf("%s: %d reports, without the command line %d", dir, len(with.Reports), len(without.Reports))
		}
		for i, r := range with.Reports {
			if r.Kind == tool.Interval {
				intervals++
				if !r.IntervalSeconds.Known {
					t.Errorf("%s: no length: %s", dir, tooltest.Render(r))
				}
			}
			if !without.Reports[i].IntervalSeconds.Known {
				continue
			}
			if diff := cmp.Diff(tooltest.Render(without.Reports[i]), tooltest.Render(r)); diff != "" {
				t.Errorf("%s: -without +with:\n%s", dir, diff)
			}
		}
	}
	if intervals == 0 {
		t.Error("no intervals recorded")
	}
}

// Flush reports an interval at once and changes nothing else.
func TestFlush(t *testing.T) {
	for _, dir := range tooltest.Cases(t, "testdata/*/*") {
		all := tooltest.Recorded(t, dir)
		want := tooltest.Parse(Tool, all)
		var got tooltest.Result
		emit := func(r *tool.Report) { got.Reports = append(got.Reports, r.Clone()) }
		p := NewParser(tool.Description{})
		for i, l := range all {
			p.Parse(l, emit)
			// The rows of one instant are written at once; tables need no Flush.
			if i+1 == len(all) || !strings.HasPrefix(string(all[i+1].Text), "[Current]") || strings.HasPrefix(string(all[i+1].Text), "[Current] DELIVERY") {
				p.Flush(emit)
				p.Flush(emit)
			}
		}
		p.Close(emit)
		if diff := cmp.Diff(want.Reports, got.Reports); diff != "" {
			t.Errorf("%s: -want +got:\n%s", dir, diff)
		}
	}
	p := NewParser(tool.Description{})
	n := 0
	p.Parse(tool.Line{Text: []byte(strings.TrimSpace(newOrder))}, func(*tool.Report) {})
	p.Flush(func(*tool.Report) { n++ })
	if n != 1 {
		t.Errorf("Flush let %d reports out", n)
	}
}

// A damaged row invalidates the sums but no other row.
func TestDamagedRows(t *testing.T) {
	row := strings.TrimSuffix(newOrder, "\n")
	for i := 1; i < len(row); i++ {
		text := delivery + row[:i] + "\n" + delivery + newOrder
		res := parse(text)
		intervals := ofKind(res, tool.Interval)
		if len(intervals) != 2 || res.Malformed+res.Ignored != 1 {
			t.Fatalf("%q: %s", row[:i], res)
		}
		if n := intervals[1].Count(tool.Transaction); n.Value != 111 {
			t.Errorf("%q: the next interval has %v transactions", row[:i], n)
		}
		if c := intervals[0].Count("new_order"); c.Known {
			t.Errorf("%q: %v new orders", row[:i], c)
		}
		if c := intervals[0].Count(tool.Transaction); c.Known && i > len("[Current] NEW_ORDER - T") {
			t.Errorf("%q: a sum without all its parts", row[:i])
		}
	}
	for _, text := range []string{
		strings.Replace(newOrder, "97", "1e999", 1), strings.Replace(newOrder, "97", "-7", 1), strings.Replace(newOrder, "97", "99999999999999999999", 1),
		strings.Replace(newOrder, "75.5\n", "75.5 x\n", 1), strings.Replace(newOrder, "22.2", "NaN", 1), strings.Replace(newOrder, "NEW_ORDER", "new\xff", 1),
		strings.Replace(newOrder, ", TPM", ",TPM", 1), "[{\"Prefix\":\"[Current] \"}]\n", "[{\"a\":\"b\"\n", "| [Current] | X | 1 |\n", "tpmC: 1.0\n", "[Current] Q1: s\n",
	} {
		if res := parse(text); res.Malformed != 1 || len(res.Reports) > 0 {
			t.Errorf("%q: %s", text, res)
		}
	}
	if v := NewParser(tool.Description{}).Parse(tool.Line{Text: []byte(newOrder), Cut: true}, nil); v != tool.Malformed {
		t.Errorf("a line over the limit: %v", v)
	}
}

// The parser reads each run in a log of many as it reads the run alone.
func TestRunsInOneFile(t *testing.T) {
	var all []tool.Line
	want := 0
	for _, dir := range tooltest.Cases(t, "testdata/*/*") {
		all = append(all, tooltest.Read(t, tool.Stderr, filepath.Join(dir, "stderr.txt"))...)
		all = append(all, tooltest.Read(t, tool.Stdout, filepath.Join(dir, "stdout.txt"))...)
		want++
	}
	res := tooltest.Parse(Tool, tooltest.On(tool.Stdout, all))
	if n := res.Reports[len(res.Reports)-1].Run; n != want {
		t.Errorf("%d runs of %d\n%s", n, want, res)
	}
}

func TestOtherWorkloads(t *testing.T) {
	res := parse("[Current] Q1: 1.23s\n[Current] Q2: 0.50s\n[Current] Q1: 1.00s\nFinished\n[Summary] Q1: 1.11s\n[Summary] Q2: 0.50s\n")
	want := `{"kind":"start","run":1,"tool":"go-tpc","workload":"tpch"}
{"kind":"interval","run":1,"phase":"measure","latency_seconds":{"q1":{"avg":1.23},"q2":{"avg":0.5}}}
{"kind":"interval","run":1,"phase":"measure","latency_seconds":{"q1":{"avg":1}}}
{"kind":"summary","run":1,"checkpoint":false,"latency_seconds":{"q1":{"avg":1.11},"q2":{"avg":0.5}}}
lines: 6 reported, 0 ignored, 0 malformed
`
	if diff := cmp.Diff(want, res.String()); diff != "" {
		t.Errorf("TPC-H: -want +got:\n%s", diff)
	}
	res = parse(delivery + newOrder + "[Current] Q1     - Count: 5, Sum(ms): 210.0, Avg(ms): 42.0\n" + delivery + newOrder + "Finished: 4 OLTP workers, 1 OLAP workers\n" +
		strings.ReplaceAll(delivery+newOrder, "[Current]", "[Summary]") + "tpmC: 6065.7, tpmTotal: 7000.0, efficiency: 1.0%\n[Summary] Q1     - Count: 5, Sum(ms): 210.0, Avg(ms): 42.0\nQphH: 85714.3\n")
	intervals, summaries := ofKind(res, tool.Interval), ofKind(res, tool.Summary)
	if len(intervals) != 2 || len(summaries) != 1 {
		t.Fatalf("CH-benCHmark: %s", res)
	}
	if first, last := intervals[0].Count(tool.Query), intervals[1].Count(tool.Query); first.Value != 5 || last.Known {
		t.Errorf("CH-benCHmark: %v and %v queries", first, last)
	}
	if s := summaries[0]; s.Threads.Value != 4 || s.Count("q1").Value != 5 || s.Count(tool.Transaction).Value != 111 {
		t.Errorf("CH-benCHmark: %s", res)
	}
}

func TestFailures(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{
			"a thread gives up", delivery + "[2026-11-21 02:00:18] execute run failed, err Error 1146: no table\nexecute run failed, err Error 1146: no table\nFinished\n" +
				strings.ReplaceAll(delivery, "[Current]", "[Summary]"), "1 of the threads gave up: [2026-11-21 02:00:18] execute run failed, err Error 1146: no table",
		},
		{
			"none succeeded", strings.ReplaceAll(failed, "[Current]", "[Summary]"), "no transaction succeeded",
		},
		{"timeouts are normal", delivery + "[2026-11-21 01:53:19] run worker 2 stopped due to timeout: x\nFinished\n" + strings.ReplaceAll(delivery, "[Current]", "[Summary]"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := parse(tt.text)
			s := ofKind(res, tool.Summary)
			if len(s) != 1 || s[0].Message != tt.want || s[0].Failed != (tt.want != "") {
				t.Errorf("%s", res)
			}
		})
	}
}

func TestSniff(t *testing.T) {
	tooltest.Sniffs(t, Tool, 60, tooltest.Cases(t, "testdata/*/*/stdout.txt"),
		"Finished\n", "panic: x\n", "DROP TABLE IF EXISTS tests CASCADE;\n", "DROP TABLE IF EXISTS `item`;\n", "READ   - Takes(s): 1.0, Count: 97, OPS: 97.5, Avg(us): 22\n",
		"+-----------+----------+\n| OPERATION | TAKES(S) |\n+-----------+----------+\n| READ | 1.0 |\n", `[{"Operation":"READ","Count":"5","Takes(s)":"1.0"}]`,
	)
}

func FuzzParser(f *testing.F) {
	tooltest.Fuzz(f, Tool)
}

// One operation is a line; in the style json a line contains five rows.
func BenchmarkInterval(b *testing.B) {
	for _, form := range []string{"run-th4-20s-i1-plain", "run-th2-8s-i2-table", "run-th4-12s-i2-json"} {
		b.Run(form[strings.LastIndex(form, "-")+1:], func(b *testing.B) {
			var all []tool.Line
			for _, l := range tooltest.Read(b, tool.Stdout, "testdata/1.0.12/"+form+"/stdout.txt") {
				if strings.Contains(string(l.Text), "[Current]") || l.Text[0] == '+' || l.Text[0] == '|' && strings.Contains(string(l.Text), "TAKES") {
					all = append(all, l)
				}
				if string(l.Text) == "Finished" {
					break
				}
			}
			p := NewParser(tool.Description{})
			emit := func(*tool.Report) {}
			for _, l := range all {
				p.Parse(l, emit)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				p.Parse(all[i], emit)
				if i++; i == len(all) {
					i = 0
				}
			}
		})
	}
}
