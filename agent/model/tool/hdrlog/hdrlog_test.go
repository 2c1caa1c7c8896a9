package hdrlog

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

func logs(tb testing.TB) []string {
	tb.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) < 4 {
		tb.Fatalf("%d logs: %v", len(paths), err)
	}
	return paths
}

func TestGolden(t *testing.T) {
	for _, path := range logs(t) {
		res := tooltest.Parse(Tool, tooltest.Read(t, tool.Stdout, path))
		if res.Malformed > 0 {
			t.Errorf("%s: %d malformed lines", path, res.Malformed)
		}
		tooltest.Golden(t, strings.TrimSuffix(path, ".txt")+".golden", res.JSON())
	}
}

// The run began with the first interval, whose start is relative to the log's base or start, or
// absolute.
func TestBegan(t *testing.T) {
	const start, base = "#[StartTime: 1441812279.474 (seconds since epoch), Wed Sep 09 08:24:39 PDT 2015]\n", "#[BaseTime: 1441812000.250 (seconds since epoch)]\n"
	line, err := os.ReadFile("testdata/jHiccup-2.0.7S.logV2.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, encoded, _ := bytes.Cut(line, []byte("\n0.127,"))
	encoded, _, _ = bytes.Cut(encoded, []byte("\n"))
	for _, c := range []struct{ header, at, want string }{
		{start, "0.127", "2015-09-09T15:24:39.601Z"},
		{start + base, "0.127", "2015-09-09T15:20:00.377Z"},
		{start, "1441812280.5", "2015-09-09T15:24:40.5Z"},
		{"", "1441812280.5", "2015-09-09T15:24:40.5Z"},
		{"", "0.127", "0001-01-01T00:00:00Z"},
		{"#[StartTime: never]\n", "0.127", "0001-01-01T00:00:00Z"},
		{"#[BaseTime: 9e300]\n", "0.127", "0001-01-01T00:00:00Z"},
	} {
		text := "#[Histogram log format version 1.3]\n" + c.header + c.at + "," + string(encoded) + "\n"
		res := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(text)))
		if len(res.Reports) == 0 || res.Reports[0].Kind != tool.Start {
			t.Errorf("%s%s: no start", c.header, c.at)
		} else if got := res.Reports[0].Began.UTC().Format(time.RFC3339Nano); got != c.want {
			t.Errorf("%s%s: began %s, want %s", c.header, c.at, got, c.want)
		}
	}
}

// The third column is the interval's maximum in millions of the unit, so it shows whether a line
// was decoded correctly.
func TestIntervalMaximum(t *testing.T) {
	for _, path := range logs(t) {
		for _, l := range tooltest.Read(t, tool.Stdout, path) {
			columns := bytes.Split(l.Text, []byte(","))
			if l.Text[0] == '#' || l.Text[0] == '"' || bytes.HasPrefix(l.Text, []byte("Tag=")) {
				continue
			}
			bars, err := decode(columns[3])
			if err != nil {
				t.Fatal(path, err)
			}
			highest := int64(0)
			if len(bars) > 0 {
				highest = bars[len(bars)-1].high
			}
			var want float64
			for _, c := range columns[2] {
				if c != '.' {
					want = want*10 + float64(c-'0')
				}
			}
			if got := float64(highest) / 1e3; got < want-1 || got > want*1.001+1 { // in thousandths
				t.Errorf("%s: the maximum is %v, the log's %v", path, got, want)
			}
		}
	}
}

// Merging k histograms gives the same buckets and percentiles as HdrHistogram itself.
func TestMergeEqualsHdrHistogram(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 16))
	for _, digits := range []int{1, 2, 3, 4, 5} {
		own := hdrhistogram.New(1, 3_600_000_000, digits)
		var merged *histogram.Histogram
		for range 7 {
			one := hdrhistogram.New(1, 3_600_000_000, digits)
			for range 5000 {
				if err := one.RecordValue(int64(100 * (1 + random.ExpFloat64()*random.ExpFloat64()*300))); err != nil {
					t.Fatal(err)
				}
			}
			own.Merge(one)
			encoded, err := one.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
			if err != nil {
				t.Fatal(err)
			}
			bars, err := decode(encoded)
			if err != nil {
				t.Fatal(err)
			}
			var buckets []histogram.Bucket
			for _, b := range bars {
				buckets = append(buckets, histogram.Bucket{Low: histogram.Seconds(b.low, 1e-6), High: histogram.Seconds(b.high, 1e-6), N: b.n})
			}
			merged = histogram.Merge(merged, histogram.New(buckets...))
		}
		var want []histogram.Bucket
		for _, b := range own.Distribution() {
			if b.Count > 0 {
				want = append(want, histogram.Bucket{Low: histogram.Seconds(b.From, 1e-6), High: histogram.Seconds(b.To, 1e-6), N: uint64(b.Count)})
			}
		}
		if !merged.Equal(histogram.New(want...)) {
			t.Errorf("%d digits: the merged buckets differ", digits)
		}
		for _, p := range []float64{0, 1, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100} {
			got, _ := merged.Quantile(p / 100)
			if v := histogram.Seconds(own.ValueAtPercentile(p), 1e-6); v < got.Low || v > got.High {
				t.Errorf("%d digits: p%v is %v, of HdrHistogram %v", digits, p, got, v)
			}
		}
	}
}

// The recorder has the same buckets as HdrHistogram with three digits.
func TestRecorderHasHdrHistogramsBuckets(t *testing.T) {
	own, r := hdrhistogram.New(1, 3_600_000_000, 3), histogram.Recorder{Unit: 1e-6}
	random := rand.New(rand.NewPCG(2, 16))
	for range 20000 {
		v := int64(random.ExpFloat64() * random.ExpFloat64() * 1e5)
		r.Record(v, 1)
		if err := own.RecordValue(v); err != nil {
			t.Fatal(err)
		}
	}
	var want []histogram.Bucket
	for _, b := range own.Distribution() {
		want = append(want, histogram.Bucket{Low: histogram.Seconds(b.From, 1e-6), High: histogram.Seconds(b.To, 1e-6), N: uint64(b.Count)})
	}
	if !r.Histogram().Equal(histogram.New(want...)) {
		t.Error("the buckets differ")
	}
}

func FuzzParser(f *testing.F) {
	for _, path := range logs(f) {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text[:min(len(text), 4000)])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, r := range tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, text)).Reports {
			tooltest.Check(t, r)
		}
	})
}
