package metrics

import (
	"bytes"
	"errors"
	"math"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// sampled is a series' values by time in milliseconds.
type sampled struct {
	times  []int64
	values []float64
}

// at returns the value at or before a time, as Prometheus looks it up.
func (s sampled) at(t int64) (float64, int64, bool) {
	i := sort.Search(len(s.times), func(i int) bool { return s.times[i] > t })
	if i == 0 {
		return 0, 0, false
	}
	return s.values[i-1], s.times[i-1], true
}

// backfill writes histories and reads the text back, checking that every series
// appears in one place and rises in time.
func backfill(t *testing.T, hs ...*record.History) map[string]sampled {
	t.Helper()
	b := NewBackfill()
	defer b.Close()
	for _, h := range hs {
		if err := b.Run(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	var text bytes.Buffer
	if n, err := b.WriteTo(&text); err != nil || n != int64(text.Len()) {
		t.Fatalf("%d of %d bytes, %v", n, text.Len(), err)
	}
	if !strings.HasSuffix(text.String(), "\n# EOF\n") {
		t.Error("no # EOF at the end")
	}
	declared := map[string]bool{}
	for _, f := range Families() {
		declared[f.Name] = true
	}
	found := map[string]sampled{}
	before, done := "", map[string]bool{}
	for line := range strings.Lines(text.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		end := strings.LastIndex(line, "} ")
		name, rest := line[:end+1], strings.Fields(line[end+2:])
		if len(rest) != 2 {
			t.Fatalf("line %s", line)
		}
		value, err1 := strconv.ParseFloat(rest[0], 64)
		stamp, err2 := strconv.ParseFloat(rest[1], 64)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatalf("line %s: %v", line, err)
		}
		if metric, _, _ := strings.Cut(name, "{"); !declared[metric] {
			t.Errorf("%s is no metric of ours", metric)
		}
		if name != before {
			if done[name] {
				t.Errorf("%s stands in two places", name)
			}
			done[name], before = true, name
		}
		key := canonical(t, name)
		s := found[key]
		ms := int64(math.Round(stamp * 1000))
		if n := len(s.times); n > 0 && s.times[n-1] >= ms {
			t.Errorf("%s: %d comes behind %d", key, ms, s.times[n-1])
		}
		s.times, s.values = append(s.times, ms), append(s.values, value)
		found[key] = s
	}
	return found
}

// canonical sorts the labels of a series.
func canonical(t *testing.T, name string) string {
	t.Helper()
	metric, rest, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
	var labels []string
	for rest != "" {
		key, quoted, _ := strings.Cut(rest, "=")
		text, err := strconv.QuotedPrefix(quoted)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		labels = append(labels, key+"="+text)
		rest = strings.TrimPrefix(quoted[len(text):], ",")
	}
	slices.Sort(labels)
	return metric + "{" + strings.Join(labels, ",") + "}"
}

// live returns the series that a collector exposes.
func scrapeLive(t *testing.T, sources Sources, now time.Time) map[string]float64 {
	t.Helper()
	g := NewGatherer(sources)
	g.now = func() time.Time { return now }
	found := map[string]float64{}
	for _, f := range parsed(t, scrape(t, g, Text)) {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+`="`+escapeLabel.Replace(l.GetValue())+`"`)
			}
			slices.Sort(labels)
			found[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return found
}

// ofReading are series about the reading, not about the run: the log does not contain them.
func ofReading(series string) bool {
	for _, name := range []string{"run_record_failures_total", "run_last_report_timestamp_seconds", "run_elapsed_seconds", "run_info"} {
		if strings.HasPrefix(series, prefix+name+"{") {
			return true
		}
	}
	return false
}

// equalAt compares what was exposed with what is backfilled for that instant.
func equalAt(t *testing.T, what string, exposed map[string]float64, filled map[string]sampled, at int64) {
	t.Helper()
	for series, v := range exposed {
		if ofReading(series) {
			continue
		}
		got, _, ok := filled[series].at(at)
		if !ok || math.Abs(got-v) > 1e-9*math.Abs(v) {
			t.Errorf("%s: %s was %v, backfilled %v (%v)", what, series, v, got, ok)
		}
	}
	for series, s := range filled {
		if _, when, ok := s.at(at); !ok || when != at || ofReading(series) {
			continue
		}
		if _, ok := exposed[series]; !ok {
			t.Errorf("%s: %s is backfilled and was not exposed", what, series)
		}
	}
}

// runOf makes a run directory with an output.
func runOf(t *testing.T, name, output string, ended bool) rundir.Directory {
	t.Helper()
	meta := rundir.Meta{
		ID: "r", Title: "a \"title\"\n", Labels: map[string]string{"via": `di\rect`},
		Benchmark: rundir.Benchmark{Tool: name, Threads: 4},
		Timing:    rundir.Timing{StartedAt: start, ClockStartedAt: &start},
	}
	if ended {
		end, code, drain := start.Add(time.Hour), 0, 2.5
		closed := end.Add(10 * time.Second)
		meta.EndedAt, meta.ClosedAt, meta.ExitCode, meta.Outcome = &end, &closed, &code, rundir.Succeeded
		meta.Drain = map[string]rundir.Drain{"n2": {Seconds: &drain}, "n3": {TimedOut: true}}
	}
	dir, claim, err := rundir.Create(t.TempDir(), meta)
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	if err := os.WriteFile(dir.Path(rundir.StdoutFile), []byte(output), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
