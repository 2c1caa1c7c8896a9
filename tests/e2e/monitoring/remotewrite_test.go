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

// TestRemoteWrite guards that an ended run can be sent to a receiver with an
// out-of-order window, whatever the receiver has already, that it has each value once
// and ends after the run, and that one without a window is a clear message.
func TestRemoteWrite(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "old.log")
	const seconds = 1800
	began := time.Now().Add(-3 * time.Hour).Truncate(time.Second)
	tps := func(i int) float64 { return float64(1000+i%97) + 0.25 }
	var text strings.Builder
	text.WriteString("sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 16\n\nThreads started!\n\n")
	sum := 0.0
	for i := 1; i <= seconds; i++ {
		sum += tps(i)
		fmt.Fprintf(&text, "[ %ds ] thds: 16 tps: %.2f qps: %.2f (r/w/o: 1.00/1.00/0.00) lat (ms,95%%): 2.50 err/s: 0.00 reconn/s: 0.00\n", i, tps(i), 2*tps(i))
	}
	if err := os.WriteFile(log, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	receiver := func(name, config string) agents.Prometheus {
		file := filepath.Join(dir, name+".yml")
		p := agents.Prometheus{Address: agents.FreeAddress(t)}
		// It has samples of now, of itself.
		config += fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: self, static_configs: [{targets: [%q]}]}]\n", p.Address)
		if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		agents.Start(t, "prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, name), "--web.listen-address="+p.Address, "--web.enable-remote-write-receiver", "--log.level=error")
		agents.Wait(t, 30*time.Second, "samples of now", func() error {
			v, err := p.Query("up")
			if err == nil && len(v) == 0 {
				err = fmt.Errorf("none")
			}
			return err
		})
		return p
	}
	export := func(p agents.Prometheus) (string, error) {
		out, err := exec.Command(env.Binary, "export", "--data-dir="+dir, "--start="+began.UTC().Format(time.RFC3339), "--remote-write=http://"+p.Address, log).CombinedOutput()
		return string(out), err
	}

	with := receiver("with", "storage: {tsdb: {out_of_order_time_window: 24h}}\n")
	for range 2 { // again changes nothing
		if out, err := export(with); err != nil || !strings.Contains(out, "sent ") {
			t.Fatalf("%v: %s", err, out)
		}
	}
	end := began.Add(seconds * time.Second)
	ask := func(expression string, at time.Time) []float64 {
		t.Helper()
		v, err := with.Query(strings.ReplaceAll(expression, "AT", fmt.Sprintf("@ %d", at.Unix())))
		if err != nil {
			t.Error(err)
		}
		return v
	}
	for expression, want := range map[string]float64{
		`count_over_time(benchwatch_run_operations_per_second{op="transaction"}[1h] AT)`: seconds,
		`sum_over_time(benchwatch_run_operations_per_second{op="transaction"}[1h] AT)`:   sum,
		`benchwatch_run_operations_per_second{op="transaction"} AT`:                      tps(seconds),
		`benchwatch_run_info{tool="sysbench",threads="16"} AT`:                           1,
	} {
		if v := ask(expression, end); len(v) != 1 || v[0] != want {
			t.Errorf("%s: %v, want %g", expression, v, want)
		}
	}
	for after, series := range map[time.Duration]string{2 * time.Second: `benchwatch_run_(active|operations_per_second)`, 10 * time.Second: "benchwatch_.+"} {
		if v := ask(fmt.Sprintf(`{__name__=~%q} AT`, series), end.Add(after)); len(v) != 0 {
			t.Errorf("%s after the end: %d of %s", after, len(v), series)
		}
	}

	out, err := export(receiver("without", ""))
	if err == nil || !strings.Contains(out, "hint: the receiver takes no samples of that age") {
		t.Errorf("without a window: %v: %s", err, out)
	}
}
