//go:build fleet

package fleet

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
)

// The names of engines, for FLEET_ENGINES.
const (
	thanosName     = "thanos"
	prometheusName = "prometheus"
	victoriaName   = "victoriametrics"
)

// engine takes remote write and answers queries.
type engine struct {
	agents.Prometheus
	name  string
	write string // URL
	parts []*part
	// faulty is the part that is away for a while. end is the signal that it survives.
	faulty *part
	end    syscall.Signal
}

// part is a process of an engine.
type part struct {
	name    string
	address string // of its own metrics
	args    []string
	*agents.Process
}

// start starts the process and waits until it is ready. A process that ends instead is restarted, as by a supervisor:
// Thanos Receive 0.42.4 crashes with a nil pointer if it starts in a minute in which it prunes (MultiTSDB.Prune), which
// is every fourth minute with such short blocks.
func (p *part) start(t *testing.T) {
	t.Helper()
	p.Process = agents.Start(t, p.args[0], p.args[1:]...)
	restarts, why := 0, ""
	agents.Wait(t, 2*time.Minute, p.name, func() error {
		select {
		case <-p.Exited:
			restarts, why = restarts+1, p.Output(t)
			p.Process = agents.Start(t, p.args[0], p.args[1:]...)
		default:
		}
		if _, err := agents.Get("http://" + p.address + "/-/ready"); err != nil {
			return fmt.Errorf("%w, started %d times again after\n%.1000s", err, restarts, why)
		}
		return nil
	})
	if restarts > 0 {
		t.Logf("  %s was started %d times again after\n%.300s", p.name, restarts, why)
	}
}

// own is the sum of a metric of a process about itself.
func (p *part) own(t *testing.T, metric string) float64 {
	t.Helper()
	text, err := agents.Get("http://" + p.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, metric); ok && (rest[0] == ' ' || rest[0] == '{') {
			fields := strings.Fields(rest)
			v, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err == nil {
				sum += v
			}
		}
	}
	return sum
}

const (
	cpuSeconds = "process_cpu_seconds_total"
	memory     = "process_resident_memory_bytes"
)

// chosen are the engines of FLEET_ENGINES.
func chosen(t *testing.T) []string {
	t.Helper()
	all := strings.Split(cmp.Or(os.Getenv("FLEET_ENGINES"), strings.Join([]string{thanosName, prometheusName, victoriaName}, ",")), ",")
	for _, name := range all {
		if !slices.Contains([]string{thanosName, prometheusName, victoriaName}, name) {
			t.Fatalf("FLEET_ENGINES: no engine %q", name)
		}
	}
	if slices.Contains(all, thanosName) && !slices.Contains(all, prometheusName) {
		all = append(all, prometheusName) // Thanos is compared with it
	}
	return all
}

// startPrometheus evaluates the rules unless it is what Thanos is compared with: then it
// gets the ruler's samples.
func startPrometheus(t *testing.T, root string, withRules bool) *engine {
	t.Helper()
	dir, address := t.TempDir(), agents.FreeAddress(t)
	config := filepath.Join(dir, "prometheus.yml")
	text := "global: {evaluation_interval: 5s}\nstorage: {tsdb: {out_of_order_time_window: 1h}}\n"
	if withRules {
		text += "rule_files: [" + filepath.Join(root, "prometheus/rules/*.yml") + ", " + filepath.Join(root, "alerts/*.rules.yml") + "]\n"
	}
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &part{name: "Prometheus", address: address, args: []string{
		"prometheus", "--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address,
		"--web.enable-remote-write-receiver", "--log.level=error",
	}}
	p.start(t)
	return &engine{
		name: p.name, Prometheus: agents.Prometheus{Address: address}, write: "http://" + address + "/api/v1/write",
		parts: []*part{p}, faulty: p, end: syscall.SIGKILL,
	}
}

// startVictoria has an end that VictoriaMetrics survives: it has no write-ahead log, and
// loses the last seconds that it has confirmed when it is killed.
func startVictoria(t *testing.T) *engine {
	t.Helper()
	address := agents.FreeAddress(t)
	p := &part{name: "VictoriaMetrics", address: address, args: []string{
		"victoria-metrics", "-httpListenAddr=" + address, "-storageDataPath=" + t.TempDir(), "-search.latencyOffset=0s", "-search.disableCache", "-loggerLevel=ERROR",
	}}
	p.start(t)
	return &engine{
		name: p.name, Prometheus: agents.Prometheus{Address: address}, write: "http://" + address + "/api/v1/write",
		parts: []*part{p}, faulty: p, end: syscall.SIGTERM,
	}
}

// startForwarder starts a Prometheus in agent mode, which scrapes n simulated agents at
// a URL, and those with real runs every second.
func startForwarder(t *testing.T, url string, n int, interval time.Duration, runs []string, to []*engine) *part {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	fmt.Fprintf(&b, "global: {scrape_interval: %v, scrape_timeout: %v}\nremote_write:\n", interval, interval)
	for _, e := range to {
		fmt.Fprintf(&b, "  - {url: %q, queue_config: {max_backoff: 1s, batch_send_deadline: 1s}}\n", e.write)
	}
	b.WriteString("scrape_configs:\n  - job_name: benchwatch\n    static_configs:\n")
	for i := range n {
		fmt.Fprintf(&b, "      - {targets: [%q], labels: {__metrics_path__: /%d, instance: agent%d}}\n", strings.TrimPrefix(url, "http://"), i, i)
	}
	for i, address := range runs {
		fmt.Fprintf(&b, "      - {targets: [%q], labels: {__scrape_interval__: 1s, __scrape_timeout__: 900ms, instance: real%d}}\n", address, i)
	}
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	address := agents.FreeAddress(t)
	p := &part{name: "agent mode", address: address, args: []string{
		"prometheus", "--enable-feature=agent", "--config.file=" + config, "--storage.agent.path=" + filepath.Join(dir, "wal"), "--web.listen-address=" + address, "--log.level=error",
	}}
	p.start(t)
	return p
}
