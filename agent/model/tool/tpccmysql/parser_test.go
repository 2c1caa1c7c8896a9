package tpccmysql

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
			// Every output contains the password.
			if strings.Contains(got, `"bench"`) || strings.Contains(got, "'bench'") {
				t.Error("a report holds the password")
			}
		})
	}
}

// All runs in a log with many runs are reported in order, each like the run alone.
func TestRunsInOneFile(t *testing.T) {
	var all []tool.Line
	want := 0
	for _, dir := range tooltest.Cases(t, "testdata/*/*") {
		all = append(all, tooltest.Read(t, tool.Stdout, filepath.Join(dir, "stdout.txt"))...)
		want++
	}
	runs, last := 0, 0
	for _, r := range tooltest.Parse(Tool, all).Reports {
		if r.Kind == tool.Start {
			runs++
		}
		if r.Run != runs || r.Run < last {
			t.Fatalf("run %d after %d starts", r.Run, runs)
		}
		last = r.Run
	}
	if runs != want {
		t.Errorf("%d runs of %d", runs, want)
	}
}

func TestIntervalForms(t *testing.T) {
	tests := []struct{ name, line, want string }{
		{
			"2008, whole tenths of seconds", "  10, 6(1):0.4, 7(0):0.2, 1(0):0.2, 1(0):1.0, 0(0):0.0",
			`{"kind":"interval","run":1,"elapsed_seconds":10,"phase":"measure","counts":{"transaction":15,"new_order":6,"payment":7,"order_status":1,"delivery":1,"stock_level":0,"new_order_late":1,"payment_late":0,"order_status_late":0,"delivery_late":0,"stock_level_late":0},"latency_seconds":{"new_order":{"p90":0.4},"payment":{"p90":0.2},"order_status":{"p90":0.2},"delivery":{"p90":1}}}`,
		},
		{
			"2011, hundredths of seconds", "  10, 60(1):0.04, 70(0):0.02, 1(0):0.20, 1(0):1.00, 0(0):0.00",
			`{"kind":"interval","run":1,"elapsed_seconds":10,"phase":"measure","counts":{"transaction":132,"new_order":60,"payment":70,"order_status":1,"delivery":1,"stock_level":0,"new_order_late":1,"payment_late":0,"order_status_late":0,"delivery_late":0,"stock_level_late":0},"latency_seconds":{"new_order":{"p90":0.04},"payment":{"p90":0.02},"order_status":{"p90":0.2},"delivery":{"p90":1}}}`,
		},
		{
			"February 2016, without late ones", "   1, 5:1.820|2.478, 3:0.511|0.599, 0:0.000|0.000, 1:1.692|1.692, 1:3.487|6.580",
			`{"kind":"interval","run":1,"elapsed_seconds":1,"phase":"measure","counts":{"transaction":10,"new_order":5,"payment":3,"order_status":0,"delivery":1,"stock_level":1},"latency_seconds":{"new_order":{"p99":0.00182,"max":0.002478},"payment":{"p99":0.000511,"max":0.000599},"delivery":{"p99":0.001692,"max":0.001692},"stock_level":{"p99":0.003487,"max":0.00658}}}`,
		},
		{
			"the day after", "  10, trx: 12920 max_rt: 452.821, 1|1373.604, 2|36.982, 3|403.322, 4|395.412",
			`{"kind":"interval","run":1,"elapsed_seconds":10,"phase":"measure","counts":{"transaction":12930,"new_order":12920,"payment":1,"order_status":2,"delivery":3,"stock_level":4},"latency_seconds":{"new_order":{"max":0.452821},"payment":{"max":1.373604},"order_status":{"max":0.036982},"delivery":{"max":0.403322},"stock_level":{"max":0.395412}}}`,
		},
		{
			"a clock of five digits", "12345, trx: 1, 95%: 1.000, 99%: 2.000, max_rt: 3.000, 0|0.000, 0|0.000, 0|0.000, 0|0.000\r",
			`{"kind":"interval","run":1,"elapsed_seconds":12345,"phase":"measure","counts":{"transaction":1,"new_order":1,"payment":0,"order_status":0,"delivery":0,"stock_level":0},"latency_seconds":{"new_order":{"p95":0.001,"p99":0.002,"max":0.003}}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(tt.line)))
			if len(res.Reports) != 2 {
				t.Fatalf("reports: %s", res)
			}
			if diff := cmp.Diff(tt.want, tooltest.Render(res.Reports[1])); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

const good = "   2, trx: 6, 95%: 351.727, 99%: 351.727, max_rt: 351.687, 7|358.922, 1|0.873, 1|323.687, 2|632.900"

// Every truncated interval line is malformed, whichever end is missing.
func TestCutLines(t *testing.T) {
	for _, line := range []string{good, "   1, 55(0):1.820|2.478, 53(0):0.511|0.599, 6(0):0.128|0.143, 5(0):1.692|1.692, 6(0):3.487|6.580"} {
		blanks := len(line) - len(strings.TrimLeft(line, " "))
		for i := blanks + 1; i < len(line); i++ {
			if res := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(line[:i]))); len(res.Reports) > 0 || res.Malformed != 1 {
				t.Errorf("%q: %s", line[:i], res)
			}
			rest := line[i:]
			if res := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(rest))); len(res.Reports) > 0 {
				t.Errorf("%q: %s", rest, res)
			}
		}
	}
}

func TestMalformed(t *testing.T) {
	header := "*** ###easy### TPC-C Load Generator ***\noption i with value '2'\nMEASURING START.\n" + good + "\n"
	for _, line := range []string{
		good, // the clock does not advance
		strings.Replace(good, "   2", "   1", 1),
		strings.Replace(good, "   2", "   3", 1), // not a whole interval
		strings.Replace(good, "   2", "1e999", 1),
		strings.Replace(good, "   2", "   4", 1) + " 5",
		strings.Replace(good, "   2, trx: 6", "   4, trx: 99999999999999999999", 1),
		strings.Replace(good, "   2, trx: 6", "   4, trx: -6", 1),
		strings.Replace(good, "   2", "   4\xff", 1),
		strings.Replace(strings.Replace(good, "   2", "   4", 1), "351.727", "351.727e3", 1),
	} {
		res := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(header+line+"\n"+strings.Replace(good, "   2", "   6", 1))))
		if len(res.Reports) != 3 || res.Malformed > 1 {
			t.Errorf("%q: %s", line, res)
		}
	}
	if v := NewParser().Parse(tool.Line{Text: []byte(good), Cut: true}, nil); v != tool.Malformed {
		t.Errorf("a line over the limit: %v", v)
	}
}

// A log with nothing but interval lines: values not in the lines are absent, and a clock that goes
// back begins another run.
func TestWithoutBanner(t *testing.T) {
	line := func(clock string) string { return strings.Replace(good, "   2", clock, 1) }
	res := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(strings.Join([]string{line("  20"), line("  30"), line("  10")}, "\n"))))
	var runs []int
	var seconds []series.Optional[float64]
	for _, r := range res.Reports {
		if r.Kind == tool.Interval {
			runs, seconds = append(runs, r.Run), append(seconds, r.IntervalSeconds)
		}
	}
	if diff := cmp.Diff([]int{1, 1, 2}, runs); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]series.Optional[float64]{{}, series.Some(10.0), series.Some(10.0)}, seconds); diff != "" {
		t.Errorf("interval (-want +got):\n%s", diff)
	}
}

func TestSniff(t *testing.T) {
	for _, dir := range tooltest.Cases(t, "testdata/*/*") {
		head, err := os.ReadFile(filepath.Join(dir, "stdout.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if s := Sniff(head); s != 100 {
			t.Errorf("%s: %d", dir, s)
		}
		if _, intervals, ok := bytes.Cut(head, []byte("MEASURING START.")); ok && Sniff(intervals) < 90 {
			t.Errorf("%s without its beginning: %d", dir, Sniff(intervals))
		}
	}
	for _, s := range []string{"", "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n", "2002, HY000, Can't connect\n"} {
		if got := Sniff([]byte(s)); got != 0 {
			t.Errorf("%q: %d", s, got)
		}
	}
}

func FuzzParser(f *testing.F) {
	f.Add([]byte("  10, 60(1):0.04, 70(0):0.02, 1(0):0.20, 1(0):1.00, 0(0):0.00\n"), []byte{})
	tooltest.Fuzz(f, Tool)
}

func BenchmarkInterval(b *testing.B) {
	for name, line := range map[string]string{
		"2017": "  10, trx: 352, 95%: 108.825, 99%: 218.526, max_rt: 452.821, 355|1373.604, 35|36.982, 36|403.322, 35|395.412",
		"2012": "  10, 55(0):1.820|2.478, 53(0):0.511|0.599, 6(0):0.128|0.143, 5(0):1.692|1.692, 6(0):3.487|6.580",
	} {
		b.Run(name, func(b *testing.B) {
			p := NewParser()
			emit := func(*tool.Report) {}
			p.Parse(tool.Line{Text: []byte(startBanner)}, emit)
			l := tool.Line{Text: []byte(line)}
			b.ReportAllocs()
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				p.run.clock = 0
				if p.Parse(l, emit) != tool.Reported {
					b.Fatal("not reported")
				}
			}
		})
	}
}
