package compare

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/simulation"
)

// TestLimits guards that a limit is broken only if the runs prove it, and unclear if they can't.
func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		limit string
		a, b  []float64 // tps; p95 is 1/tps
		want  Result
	}{
		"far lower":             {"tps<-5%", []float64{1000, 1001, 1002, 1003}, []float64{800, 801, 802, 803}, Broken},
		"a little lower":        {"tps<-5%", []float64{1000, 1001, 1002, 1003}, []float64{980, 981, 982, 983}, Held},
		"the same":              {"tps < -5%", []float64{1000, 1001, 1002, 1003}, []float64{1002, 1000, 1003, 1001}, Held},
		"at the limit":          {"tps<-5%", []float64{1000, 1010, 990, 1005}, []float64{950, 960, 940, 955}, Unclear},
		"lost in noise":         {"tps<-5%", []float64{1000, 1500, 700, 1200}, []float64{900, 1400, 600, 1100}, Unclear},
		"too few runs":          {"tps<-5%", []float64{1000, 1001, 1002}, []float64{800, 801, 802}, Unclear},
		"one run each":          {"tps<-5%", []float64{1000}, []float64{500}, Unclear},
		"higher":                {"tps>+5%", []float64{1000, 1001, 1002, 1003}, []float64{1100, 1101, 1102, 1103}, Broken},
		"latency rose":          {"p95>+10%", []float64{1000, 1001, 1002, 1003}, []float64{800, 801, 802, 803}, Broken},
		"latency fell":          {"p95>+10%", []float64{800, 801, 802, 803}, []float64{1000, 1001, 1002, 1003}, Held},
		"no such statistic":     {"p99>+10%", []float64{1000, 1001, 1002, 1003}, []float64{800, 801, 802, 803}, Unclear},
		"no servers":            {"lag>1s", []float64{1000}, []float64{1000}, Unclear},
		"absolute, all":         {"tps<900", []float64{1000, 1001}, []float64{800, 801}, Broken},
		"absolute, none":        {"tps<900", []float64{800, 801}, []float64{1000, 1001}, Held},
		"absolute, some":        {"tps<900", []float64{1000, 1001}, []float64{800, 1000}, Unclear},
		"a change from nothing": {"errors>+10%", []float64{1000, 1001}, []float64{1000, 1001}, Unclear},
	} {
		groups := []Group{repeats("direct", 16, c.a...), repeats("atlas", 16, c.b...)}
		limit, err := review.ParseRelative(c.limit)
		if err != nil {
			t.Fatal(err)
		}
		got := Compare(groups, []string{"via"})
		got.Check([]*review.Condition{limit}, groups)
		if len(got.Conditions) != 1 || got.Conditions[0].Result != c.want || got.Conditions[0].Reason == "" || got.Verdict() != c.want {
			t.Errorf("%s: %+v, want %s", name, got.Conditions, c.want)
		}
	}
	for _, text := range []string{"tps<-5", "tps>-5%", "p99<+10%", "tps<-100%", "tps", "nothing<-5%", "tps<-5ms"} {
		if _, err := review.ParseRelative(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// single returns a group of one run with these intervals, of one second each.
func single(name string, rates []float64) Group {
	g := repeats(name, 16, NewSpread(rates).Mean)
	g.Runs[0].IntervalValues = map[string]review.IntervalValues{tool.Throughput.Field(): {Values: rates, Seconds: 1}}
	return g
}

// singleLatency returns a group of one run whose intervals have these values as p95; the run's p95
// is their median.
func singleLatency(name string, milliseconds []float64) Group {
	g := repeats(name, 16, 1000)
	field := review.LatencyField("", "p95")
	g.Runs[0].Latency = map[string]float64{"p95": series.Median(milliseconds) / 1000}
	g.Runs[0].IntervalValues = map[string]review.IntervalValues{field: {Values: series.Scaled(milliseconds, 0.001), Seconds: 1, IsQuantile: true}}
	return g
}

func noisy1800(random *rand.Rand, level, noise float64) []float64 {
	values := simulation.Process{Dependence: 0.8}.Values(random, 1800)
	for i, v := range values {
		values[i] = level * (1 + noise*v)
	}
	return values
}

// TestSingleRuns guards that two single runs are said to differ only if the noise
// within them does not explain it: of 100 pairs of runs of the same process at most
// 5 differ, although neighbouring seconds depend on each other; half the throughput
// is always seen, and breaks a limit.
func TestSingleRuns(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	differ := 0
	limit, err := review.ParseRelative("tps<-5%")
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		c := Compare([]Group{single("direct", noisy1800(random, 1000, 0.1)), single("atlas", noisy1800(random, 1000, 0.1))}, []string{"via"})
		if c.Lines[0].Samples[1].Verdict == RunsDiffer {
			differ++
		}
		groups := []Group{single("direct", noisy1800(random, 1000, 0.1)), single("atlas", noisy1800(random, 500, 0.1))}
		c = Compare(groups, []string{"via"})
		c.Check([]*review.Condition{limit}, groups)
		if s := c.Lines[0].Samples[1]; s.Verdict != RunsDiffer || c.Verdict() != Broken || !strings.Contains(c.Conditions[0].Reason, "within these two runs") {
			t.Fatalf("half the throughput: %s, %+v", s.difference(), c.Conditions)
		}
	}
	if differ > 5 {
		t.Errorf("%d of 100 pairs of the same process differ", differ)
	}
}

// Runs whose level moves slowly are too short for a test: they differ only if they do not overlap.
func TestRunsWithSlowWaves(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 11))
	wave := func(level float64) []float64 {
		values := noisy1800(random, level, 0.01)
		for i := range values {
			values[i] *= 1 + 0.1*math.Sin(4*math.Pi*float64(i)/float64(len(values)))
		}
		return values
	}
	for _, c := range []struct {
		after  float64
		want   Verdict
		result Result
	}{
		{500, RunsApart, Broken}, {900, TooShort, Unclear}, {2000, RunsApart, Held},
		{800, RunsApart, Unclear}, // apart, and not by 5 % more
	} {
		s, limit := checked(t, single("direct", wave(1000)), single("atlas", wave(c.after)), "tps<-5%")
		if s.Verdict != c.want || s.P.Known || limit.Result != c.result {
			t.Errorf("%v: %s, %+v, want %s, %s", c.after, s.difference(), limit, c.want, c.result)
		}
	}
}

// Noise may hide slow waves in a minute. A difference that they could make is too short to tell, also
// for a limit; in ten minutes it is proven.
func TestWavesHiddenByNoise(t *testing.T) {
	for n, want := range map[int]Verdict{60: TooShort, 600: RunsDiffer} {
		s := &runSimulator{Rand: rand.New(rand.NewPCG(1, 2)), n: n, cv: 0.04}
		sample, limit := checked(t, single("direct", s.run()), single("atlas", times(s.run(), 0.955)), "tps<-1%")
		if sample.Verdict != want || sample.P.Known != (want == RunsDiffer) || (limit.Result == Broken) != (want == RunsDiffer) {
			t.Errorf("%d s: %s, %+v", n, sample.difference(), limit)
		}
		if want == TooShort && !strings.Contains(limit.Reason, "slow waves, hidden by noise") {
			t.Error(limit.Reason)
		}
	}
}

// Few intervals of half a minute are compared by their ranks, few seconds are not.
func TestFewLongIntervals(t *testing.T) {
	run := func(name string, seconds float64, values ...float64) Group {
		g := single(name, values)
		g.Runs[0].IntervalValues = map[string]review.IntervalValues{tool.Throughput.Field(): {Values: values, Seconds: seconds}}
		return g
	}
	high, low := []float64{4740, 4700, 4655, 4630, 4611}, []float64{2091, 2060, 2000, 1990, 1951}
	for seconds, want := range map[float64]Verdict{30: RunsDiffer, 1: TooShort} {
		if s, _ := checked(t, run("a", seconds, high...), run("b", seconds, low...), "tps<-5%"); s.Verdict != want {
			t.Errorf("%v s: %s", seconds, s.difference())
		}
	}
	if s, _ := checked(t, run("a", 30, high[:4]...), run("b", 30, low[:4]...), "tps<-5%"); s.Verdict != TooShort {
		t.Errorf("four intervals: %s", s.difference())
	}
}

func TestJUnit(t *testing.T) {
	groups := []Group{repeats("direct", 16, 1000, 1001, 1002, 1003), repeats("<b> & \"c\"", 16, 800, 801, 802, 803)}
	c := Compare(groups, []string{"via"})
	for _, text := range []string{"tps<-5%", "tps<-50%", "lag>1s"} {
		limit, err := review.ParseRelative(text)
		if err != nil {
			t.Fatal(err)
		}
		c.Check([]*review.Condition{limit}, groups)
	}
	for strict, want := range map[bool][2]string{false: {"1", "1"}, true: {"2", "0"}} {
		var b bytes.Buffer
		if err := c.JUnit(&b, strict); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Tests    string `xml:"tests,attr"`
			Failures string `xml:"failures,attr"`
			Skipped  string `xml:"skipped,attr"`
			Cases    []struct {
				Name  string `xml:"name,attr"`
				Class string `xml:"classname,attr"`
			} `xml:"testcase"`
		}
		if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.Tests != "3" || got.Failures != want[0] || got.Skipped != want[1] || got.Cases[0].Class != `benchwatch.via=<b> & "c"` {
			t.Errorf("strict %v: %s", strict, b.String())
		}
	}
}

// repeats makes runs of one combination with these rates.
func repeats(name string, threads int, rates ...float64) Group {
	g := Group{Name: "via=" + name}
	for i, tps := range rates {
		g.Runs = append(g.Runs, review.Row{
			ID: fmt.Sprintf("%s-%d-%d", name, threads, i), Threads: threads, Result: rundir.Succeeded, Labels: map[string]string{"via": name, "repeat": fmt.Sprint(i)},
			Values: tool.Values{{Measure: tool.Throughput, Value: tps}, {Measure: tool.Errors, Value: 0.0}}, Latency: map[string]float64{"p95": 0.001 * 1000 / tps},
		})
	}
	return g
}
