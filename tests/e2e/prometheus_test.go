//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// startPrometheus starts a Prometheus that scrapes the agent every second.
func startPrometheus(t *testing.T, a *agent) prometheus {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 900ms}
scrape_configs:
  - job_name: benchwatch
    static_configs: [{targets: ["%s"]}]
`, a.address)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p := prometheus{address: freeAddress(t)}
	start(t, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+p.address, "--log.level=warn")
	wait(t, 30*time.Second, "Prometheus scrapes the agent", func() error {
		up, err := p.query("up")
		if err == nil && (len(up) != 1 || up[0] != 1) {
			err = fmt.Errorf("up is %v", up)
		}
		return err
	})
	return p
}

// Prometheus has a run of three seconds, live and as a summary. The live series end with the
// run, marked as stale, and not five minutes later.
func TestShortRunInPrometheus(t *testing.T) {
	const id = "three-seconds"
	a := startAgent(t, clusterTargets())
	p := startPrometheus(t, a)
	wrapper := a.run(t, id, load(3)...)
	if status := wrapper.status(t, 30*time.Second); status != 0 {
		t.Fatalf("benchwatch run exited with %d", status)
	}
	a.closed(t, id, 30*time.Second)
	a.gone(t, id)
	log := readLog(t, a.dataDir, id)
	wait(t, 10*time.Second, "summary in Prometheus", func() error {
		v, err := p.query(fmt.Sprintf(`benchwatch_run_summary_operations_total{run=%q,op="transaction"}`, id))
		if err == nil && (len(v) != 1 || v[0] != log.total) {
			err = fmt.Errorf("have %v, want %g", v, log.total)
		}
		return err
	})
	samples, err := p.query(fmt.Sprintf(`count_over_time(benchwatch_run_operations_per_second{run=%q,op="transaction"}[1m])`, id))
	if err != nil {
		t.Fatal(err)
	}
	if len(samples) != 1 || samples[0] < 1 {
		t.Errorf("live samples of throughput: %v", samples)
	}
	wait(t, 10*time.Second, "live series ended in Prometheus", func() error {
		v, err := p.query(fmt.Sprintf(`benchwatch_run_active{run=%q}`, id))
		if err == nil && len(v) != 0 {
			err = fmt.Errorf("still there: %v", v)
		}
		return err
	})
}
