package sysbench

import (
	"strconv"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// In every recorded run the percentile that sysbench prints lies in the bucket that its histogram
// gives for it, since both are the same element. The histogram has as many events as the summary.
func TestPercentileLiesInItsBucket(t *testing.T) {
	tables := 0
	for _, path := range captures(t) {
		stdout, stderr := readCapture(t, path)
		var last *tool.Report
		for _, r := range parse(stdout, stderr).Reports {
			if r.Kind == tool.Histogram {
				last = r
			}
			if r.Kind != tool.Summary || last == nil {
				continue
			}
			tables++
			h := last.Distribution()
			if n := r.Count(tool.Transaction); n.Known && n.Value != h.Count() {
				t.Errorf("%s: %d events in the histogram, %d in the summary", path, h.Count(), n.Value)
			}
			for _, l := range r.Latencies {
				p, isPercentile := strings.CutPrefix(l.Stat, "p")
				if !isPercentile {
					continue
				}
				percent, err := strconv.ParseFloat(p, 64)
				if err != nil {
					t.Fatal(err)
				}
				bucket, ok := h.Quantile(percent / 100)
				const rounding = 0.000005 // two decimals of a millisecond
				if !ok || l.Seconds+rounding < bucket.Low || l.Seconds-rounding > bucket.High {
					t.Errorf("%s: %s %v s is not within %v", path, l.Stat, l.Seconds, bucket)
				}
				if bucket.High > bucket.Low*1.02 && bucket.Low > 0.00003 {
					t.Errorf("%s: the bucket %v is wider than sysbench's", path, bucket)
				}
			}
		}
	}
	if tables < 4 {
		t.Errorf("%d histograms were found", tables)
	}
}

// An incomplete table would be a different distribution, so it is not reported.
func TestDamagedHistogram(t *testing.T) {
	const heading = "Latency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n"
	row := func(v string, n string) string {
		return "      " + v + " |***                                      " + n + "\n"
	}
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"whole":                  {row("0.152", "12") + row("0.155", "3") + " \n", 1},
		"ended by the heading":   {row("0.152", "12") + "SQL statistics:\n", 1},
		"a foreign line between": {row("0.152", "12") + "FATAL: `thread_run' function failed\n" + row("0.155", "3") + " \n", 1},
		"cut off":                {row("0.152", "12") + row("0.155", "3"), 0},
		"a torn row":             {row("0.152", "12") + "      0.155 |**\n" + " \n", 0},
		"no element of sysbench": {row("0.153", "12") + " \n", 0},
		"backwards":              {row("0.155", "12") + row("0.152", "3") + " \n", 0},
		"more rows than it has":  {row("0.155", "12") + row("0.155", "3") + " \n", 0},
		"a second table":         {row("0.152", "12") + " \n" + heading + row("0.155", "3") + " \n", 2},
	} {
		got := strings.Count(parse([]byte(lines(banner10)+options10+heading+c.text), nil).JSON(), `"kind":"histogram"`)
		if got != c.want {
			t.Errorf("%s: %d histograms, want %d", name, got, c.want)
		}
	}
}

func TestElements(t *testing.T) {
	for i := range elements {
		printed, err := strconv.ParseFloat(strconv.FormatFloat(middle(float64(i)), 'f', 3, 64), 64)
		if err != nil {
			t.Fatal(err)
		}
		first, last, ok := elementsPrinted(printed)
		if !ok || i < first || i > last {
			t.Errorf("element %d is printed as %v, which is taken for %d to %d", i, printed, first, last)
		}
		if printed > 0.03 && last-first > 1 || printed > 0.06 && last != first {
			t.Errorf("%v is taken for %d to %d", printed, first, last)
		}
	}
}

func BenchmarkHistogramRow(b *testing.B) {
	const heading = "Latency histogram (values are in milliseconds)"
	var rows []tool.Line
	for i := 300; i < 800; i++ {
		rows = append(rows, tool.Line{Text: []byte("      " + strconv.FormatFloat(middle(float64(i)), 'f', 3, 64) + " |***                                      12")})
	}
	b.ReportAllocs()
	for b.Loop() {
		p := NewParser(tool.Description{})
		n := 0
		emit := func(*tool.Report) { n++ }
		p.Parse(tool.Line{Text: []byte(heading)}, emit)
		for _, l := range rows {
			p.Parse(l, emit)
		}
		p.Parse(tool.Line{Text: []byte(" ")}, emit)
		if n != 2 {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(rows)), "ns/row")
}
