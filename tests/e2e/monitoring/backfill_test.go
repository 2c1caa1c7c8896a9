//go:build e2e

package monitoring

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
)

// One command writes an old log into a Prometheus data directory, and Prometheus then returns the
// values of the log.
func TestBackfill(t *testing.T) {
	dir := t.TempDir()
	log, data := filepath.Join(dir, "old.log"), filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	const seconds = 3 * 60 * 60 // more than one of Prometheus' smallest blocks
	began := time.Now().Add(-5 * time.Hour).Truncate(time.Second)
	tps := func(i int) float64 { return float64(1000+i%97) + 0.25 }
	var text strings.Builder
	text.WriteString("sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 16\n\nThreads started!\n\n")
	sum := 0.0
	for i := 1; i <= seconds; i++ {
		sum += tps(i)
		fmt.Fprintf(&text, "[ %ds ] thds: 16 tps: %.2f qps: %.2f (r/w/o: %.2f/%.2f/0.00) lat (ms,95%%): %d.50 err/s: 0.00 reconn/s: 0.00\n",
			i, tps(i), 2*tps(i), tps(i), tps(i), i%13+1)
	}
	if err := os.WriteFile(log, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(env.Root, "scripts", "backfill.sh"), data, log, "--", "--start="+began.UTC().Format(time.RFC3339), "--label=via=atlas")
	cmd.Env = append(os.Environ(), "BENCHWATCH="+env.Binary)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "blocks added") {
		t.Fatalf("backfill.sh: %v\n%s", err, out)
	}
	if left, err := filepath.Glob(filepath.Join(data, ".backfill*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}

	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p := agents.Prometheus{Address: agents.FreeAddress(t)}
	agents.Start(t, "prometheus", "--config.file="+config, "--storage.tsdb.path="+data, "--web.listen-address="+p.Address, "--log.level=warn")
	// ask replaces AT by the time.
	ask := func(expression string, at time.Time) []float64 {
		t.Helper()
		expression = strings.ReplaceAll(expression, "AT", fmt.Sprintf("@ %d", at.Unix()))
		var v []float64
		agents.Wait(t, 30*time.Second, expression, func() (err error) {
			v, err = p.Query(expression)
			return err
		})
		return v
	}
	for _, i := range []int{1, 2, 59, 7199, 7200, 7201, seconds} {
		at := began.Add(time.Duration(i) * time.Second)
		if v := ask(`benchwatch_run_operations_per_second{op="transaction"} AT`, at); len(v) != 1 || v[0] != tps(i) {
			t.Errorf("second %d: %v, want %g", i, v, tps(i))
		}
		if v := ask(`benchwatch_run_latency_seconds{op="transaction",stat="p95"} AT`, at); len(v) != 1 || fmt.Sprintf("%.4f", v[0]) != fmt.Sprintf("%.4f", (float64(i%13)+1.5)/1000) {
			t.Errorf("second %d: p95 %v", i, v)
		}
	}
	end := began.Add(seconds * time.Second)
	for expression, want := range map[string]float64{
		`count_over_time(benchwatch_run_operations_per_second{op="transaction"}[4h] AT)`: seconds,
		`sum_over_time(benchwatch_run_operations_per_second{op="transaction"}[4h] AT)`:   sum,
		`max_over_time(benchwatch_run_operations_per_second{op="transaction"}[4h] AT)`:   1096.25,
		`benchwatch_run_info{via="atlas",tool="sysbench",threads="16"} AT`:               1,
	} {
		if v := ask(expression, end); len(v) != 1 || v[0] != want {
			t.Errorf("%s: %v, want %g", expression, v, want)
		}
	}
	if v := ask("benchwatch_run_summary_duration_seconds AT", end.Add(2*time.Second)); len(v) != 1 || v[0] != seconds {
		t.Errorf("summary after the end: %v", v)
	}
	for after, series := range map[time.Duration]string{time.Second: `benchwatch_run_(active|operations_per_second)`, 10 * time.Second: "benchwatch_.+"} {
		if v := ask(fmt.Sprintf(`{__name__=~%q} AT`, series), end.Add(after)); len(v) != 0 {
			t.Errorf("%s after the end: %d of %s", after, len(v), series)
		}
	}
}
