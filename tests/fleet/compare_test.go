//go:build fleet

package fleet

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/tests/rules"
)

// maxRuleGap is the longest accepted time between two evaluations of a rule: until the querier excludes a killed
// receiver.
const maxRuleGap = 30 * time.Second

// recorded are the samples of the ruler's series by the milliseconds of their time.
type recorded map[string]map[int64]map[string]float64 // of a rule: at a time: of a series

// compare compares Thanos with a Prometheus that has the same samples: the ruler's
// rules with their expressions at the same instants, and the queries of the dashboards.
func (f *fleet) compare(t *testing.T, began, ended time.Time) {
	t.Helper()
	// The newest samples may still be on their way, and the ruler looks back.
	end := ended.Add(-ruleOffset).Truncate(time.Second)
	agents.Wait(t, time.Minute, "the ruler's last look back", func() error {
		if time.Since(ended) < ruleOffset {
			return errors.New("not yet")
		}
		return nil
	})
	// Its samples can be read when it has ended.
	ruler := f.thanos.ruler
	ruler.Signal(t, syscall.SIGTERM)
	ruler.Status(t, time.Minute)
	copied := filepath.Join(t.TempDir(), "rules")
	if err := os.CopyFS(copied, os.DirFS(f.thanos.rules)); err != nil {
		t.Fatal(err)
	}
	ruler.start(t)
	agents.Wait(t, time.Minute, "the querier has its stores", func() error { return f.thanos.has(f.thanos.querier, len(f.thanos.answers)) })

	from := began
	if f.n > 100 { // all of it is too much
		from = end.Add(-30 * time.Second)
		f.ruleGaps(t, ruleSamples(t, copied, `{run!~"a[0-9]+-.*"}`, began, end, nil), began, end)
	}
	seen := f.copyRules(t, copied, from.Add(-time.Minute), end)
	if f.n <= 100 {
		f.ruleGaps(t, seen, began, end)
	}
	f.compareRules(t, seen)
	f.compareDashboards(t, from, end)
}

// ruleSamples reads the ruler's samples from its files. each receives the samples of a series; NaN
// is a stale marker.
func ruleSamples(t *testing.T, dir, match string, from, to time.Time, each func(labels.Labels, []prompb.Sample)) recorded {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "promtool", "tsdb", "dump", fmt.Sprintf("--min-time=%d", from.UnixMilli()), fmt.Sprintf("--max-time=%d", to.UnixMilli()), "--match="+match, dir)
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seen := recorded{}
	var (
		text, name, key string
		set             labels.Labels
		samples         []prompb.Sample
	)
	flush := func() {
		if each != nil && len(samples) > 0 {
			each(set, samples)
		}
		samples = samples[:0]
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		end := strings.LastIndexByte(line, '}') + 1
		fields := strings.Fields(line[end:])
		if end == 0 || len(fields) != 2 {
			t.Fatalf("promtool printed %q", line)
		}
		if line[:end] != text {
			flush()
			text = line[:end]
			all, err := promql.ParseMetric(text)
			if err != nil {
				t.Fatal(err)
			}
			set = labels.NewBuilder(all).Del(replicaLabel).Labels()
			name, key = set.Get("__name__"), labels.NewBuilder(set).Del("__name__").Labels().String()
		}
		v, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		at, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(samples); n > 0 && samples[n-1].Timestamp == at {
			t.Errorf("the ruler has two values of %s at %d: %g, %g", text, at, samples[n-1].Value, v)
			continue
		}
		if math.IsNaN(v) {
			samples = append(samples, prompb.Sample{Timestamp: at, Value: math.Float64frombits(value.StaleNaN)})
			continue
		}
		samples = append(samples, prompb.Sample{Timestamp: at, Value: v})
		if seen[name] == nil {
			seen[name] = map[int64]map[string]float64{}
		}
		if seen[name][at] == nil {
			seen[name][at] = map[string]float64{}
		}
		seen[name][at][key] = v
	}
	flush()
	if err := errors.Join(lines.Err(), cmd.Wait()); err != nil {
		t.Fatalf("promtool tsdb dump: %v\n%s", err, failed.String())
	}
	return seen
}

var promql = parser.NewParser(parser.Options{})

// copyRules writes the ruler's samples to the Prometheus that Thanos is compared with.
func (f *fleet) copyRules(t *testing.T, dir string, from, to time.Time) recorded {
	t.Helper()
	client, err := remote.NewAPI(f.reference.write, remote.WithAPIPath(""), remote.WithAPIHTTPClient(&http.Client{Timeout: time.Minute}))
	if err != nil {
		t.Fatal(err)
	}
	request, n, total := &prompb.WriteRequest{}, 0, 0
	send := func() {
		t.Helper()
		if n == 0 {
			return
		}
		if _, err := client.Write(t.Context(), remote.WriteV1MessageType, request); err != nil {
			t.Fatal(err)
		}
		request, n = &prompb.WriteRequest{}, 0
	}
	seen := ruleSamples(t, dir, `{__name__=~".+"}`, from, to, func(set labels.Labels, samples []prompb.Sample) {
		request.Timeseries = append(request.Timeseries, prompb.TimeSeries{Labels: prompb.FromLabels(set, nil), Samples: slices.Clone(samples)})
		total += len(samples)
		if n += len(samples); n > 5000 {
			send()
		}
	})
	send()
	t.Logf("  ruler: %d samples of %d rules from %v on", total, len(seen), from.Format(time.TimeOnly))
	return seen
}

// ruleGaps prints how regularly each group of rules was evaluated.
func (f *fleet) ruleGaps(t *testing.T, seen recorded, began, end time.Time) {
	t.Helper()
	for group, times := range f.evaluations(t, seen) {
		gap, when := int64(0), int64(0)
		for i, at := range times[1:] {
			if at-times[i] > gap {
				gap, when = at-times[i], times[i]
			}
		}
		t.Logf("  rules %s: %d evaluations in %v, the longest gap %.1fs, %.0fs after the start", group.Name, len(times),
			end.Sub(began).Round(time.Second), float64(gap)/1000, float64(when-began.UnixMilli())/1000)
		if gap > maxRuleGap.Milliseconds() {
			t.Errorf("rules %s have a gap of %.1fs", group.Name, float64(gap)/1000)
		}
	}
}

// evaluations are the times at which groups of rules have recorded something.
func (f *fleet) evaluations(t *testing.T, seen recorded) map[*rules.Group][]int64 {
	t.Helper()
	files, err := rules.Load(f.root)
	if err != nil {
		t.Fatal(err)
	}
	found := map[*rules.Group][]int64{}
	for _, file := range files {
		for i := range file.Groups {
			var times []int64
			for _, rule := range file.Groups[i].Rules {
				times = slices.AppendSeq(times, maps.Keys(seen[rule.Record]))
			}
			slices.Sort(times)
			if times = slices.Compact(times); len(times) > 1 {
				found[&file.Groups[i]] = times
			}
		}
	}
	return found
}

// compareRules guards that the ruler has recorded what a Prometheus with the same
// samples has for the expression at the same instant.
func (f *fleet) compareRules(t *testing.T, seen recorded) {
	t.Helper()
	compared, values, different := 0, 0, 0
	for group, times := range f.evaluations(t, seen) {
		for i := range 4 { // of all evaluations
			at := times[(len(times)-1)*(i+1)/4]
			for _, rule := range group.Rules {
				if rule.Record == "" {
					continue
				}
				want, err := instant(f.reference.Address, rule.Expr, at)
				if err != nil {
					t.Errorf("%s: %v", rule.Record, err)
					continue
				}
				compared, values = compared+1, values+len(want)
				if got := seen[rule.Record][at]; !maps.EqualFunc(got, want, equal) {
					different++
					t.Errorf("%s at %.3f: %s", rule.Record, float64(at)/1000, difference(got, want))
				}
			}
		}
	}
	t.Logf("  ruler: %d evaluations with %d values compared with one Prometheus, %d differ", compared, values, different)
	if values < 100 {
		t.Errorf("%d values of rules compared: that shows little", values)
	}
}

// equal allows for sums in another order.
func equal(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b))
}

func difference(got, want map[string]float64) string {
	n, example := 0, ""
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if v, ok := got[key]; !ok || !equal(v, want[key]) {
			if n++; n == 1 {
				example = fmt.Sprintf("%s is %g (there: %v), Prometheus has %g", key, v, ok, want[key])
			}
		}
	}
	return fmt.Sprintf("%d series, Prometheus has %d; %d differ: %s", len(got), len(want), n, example)
}

// instant returns the result of a query at a time in milliseconds.
func instant(address, expr string, at int64) (map[string]float64, error) {
	form := url.Values{"query": {expr}, "time": {strconv.FormatFloat(float64(at)/1000, 'f', 3, 64)}}
	text, err := agents.Get("http://" + address + "/api/v1/query?" + form.Encode())
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return nil, err
	}
	found := map[string]float64{}
	for _, r := range answer.Data.Result {
		delete(r.Metric, "__name__")
		v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			return nil, err
		}
		found[labels.FromMap(r.Metric).String()] = v
	}
	return found, nil
}

// compareDashboards runs the test of the dashboards that compares two servers.
func (f *fleet) compareDashboards(t *testing.T, began, end time.Time) {
	t.Helper()
	type window struct {
		Name      string            `json:"name"`
		From      time.Time         `json:"from"`
		To        time.Time         `json:"to"`
		Variables map[string]string `json:"variables,omitempty"`
	}
	of := func(name, run string) window {
		return window{name, began.Truncate(time.Second), end, map[string]string{"run": run, "direct": run, "proxied": run, "baseline": run}}
	}
	windows := []window{of("a simulated run", "a0-.*")}
	if f.n <= 100 { // with more, each takes minutes
		windows = append(windows, of("a run in a log", "2[0-9TZ]*-run1-.*"), of("a replayed run", "2[0-9TZ]*-oltp_read_write.*"))
	}
	if f.n <= 10 {
		windows = append(windows, window{"all runs", end.Add(-time.Minute), end, nil})
	}
	text, err := json.Marshal(windows)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-run=^TestTwoServersAreEqual$", "-timeout=10m", ".")
	cmd.Dir = filepath.Join(f.root, "tests", "dashboards")
	cmd.Env = append(os.Environ(), "PROMETHEUS_URL=http://"+f.thanos.Address, "PROMETHEUS_EQUAL_URL=http://"+f.reference.Address, "PROMETHEUS_WINDOWS="+string(text))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("dashboards: %v\n%s", err, out)
		return
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "series") {
			t.Logf("  dashboards: %s, %v", strings.TrimSpace(line), time.Since(begin).Round(time.Second))
		}
	}
}
