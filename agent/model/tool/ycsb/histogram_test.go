package ycsb

import (
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

// The rows of measurement.histogram.verbose, as OneMeasurementHdrHistogram.java and
// OneMeasurementHistogram.java print them.
func TestVerboseHistograms(t *testing.T) {
	const head = "[OVERALL], RunTime(ms), 1000\n[OVERALL], Throughput(ops/sec), 10.0\n[READ], Operations, 10\n[READ], AverageLatency(us), 1234.5\n"
	const hdr = head + "[READ], MinLatency(us), 7\n[READ], MaxLatency(us), 4097\n[READ], 95thPercentileLatency(us), 4097\n[READ], Return=OK, 10\n"
	const millis = head + "[READ], LatencyVariance(us), 1.0\n[READ], MinLatency(us), 7\n[READ], 95thPercentileLatency(us), 1000\n[READ], Return=OK, 10\n"
	for name, c := range map[string]struct{ text, want string }{
		"hdrhistogram": {
			hdr + "[READ], 7, 4.0\n[READ], 2047, 5.0\n[READ], 4099, 1.0\n",
			`{"kind":"histogram","run":1,"op":"read","cumulative":true,"buckets":[[0.000007,4],[0.002047,5],[0.004099,1]]}`,
		},
		"histogram": {
			millis + "[READ], 0, 4\n[READ], 1, 5\n[READ], 2, 0\n[READ], >3, 1\n",
			`{"kind":"histogram","run":1,"op":"read","cumulative":true,"buckets":[[0.001,4],[0.002,5],[null,1]]}`,
		},
		"rows are missing": {hdr + "[READ], 7, 4.0\n[READ], 4099, 1.0\n", ""},
		"a torn row":       {hdr + "[READ], 7, 4.\n[READ], 2047, 5x\n[READ], 4099, 1.0\n", ""},
		"timeseries":       {head + "[READ], MinLatency(us), 7\n[READ], Return=OK, 10\n[READ], 0, 4\n[READ], 1000, 6\n", ""},
	} {
		res := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(c.text)))
		got := ""
		for line := range strings.SplitSeq(res.JSON(), "\n") {
			if strings.Contains(line, `"histogram"`) {
				got += line
			}
		}
		if got != c.want {
			t.Errorf("%s: %s", name, res)
		}
	}
}

func TestVerboseBucketsAreHdrHistograms(t *testing.T) {
	d := distribution{}
	if b := d.bucket(row{bound: 4099, n: 1}); b.Low != 0.004096 || b.High != 0.004099 {
		t.Errorf("4099 µs is one of %v to %v s", b.Low, b.High)
	}
}
