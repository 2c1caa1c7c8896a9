//go:build fleet

// Package fleet tests many agents behind a Prometheus in agent mode, which writes all
// of it into two engines. `make fleet-test` runs it and prints its figures; FLEET_AGENTS
// is the list of the numbers of agents, FLEET_INTERVAL the scrape interval.
package fleet

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// simulator serves the output of a real agent as that of many: each has its own runs.
// It adds a counter of its answers, which shows in an engine whether one is missing or
// there twice.
type simulator struct {
	text    atomic.Pointer[string] // the agent's last answer
	answers []atomic.Int64
	closed  atomic.Bool
}

func (s *simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i, err := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
	text := s.text.Load()
	if err != nil || i < 0 || i >= len(s.answers) || text == nil || s.closed.Load() {
		http.Error(w, "none", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	// Written in one piece: what was counted was sent.
	fmt.Fprintf(w, "%s# TYPE fleet_answers_total counter\nfleet_answers_total %d\n", strings.ReplaceAll(*text, `run="`, fmt.Sprintf(`run="a%d-`, i)), s.answers[i].Add(1))
}

func (s *simulator) total() (n int64) {
	for i := range s.answers {
		n += s.answers[i].Load()
	}
	return n
}

// startAgent starts a real agent that follows two runs, and reads what it exposes.
func startAgent(t *testing.T, binary string, s *simulator) {
	t.Helper()
	dir := t.TempDir()
	a := agents.New(t, binary, fmt.Sprintf("logs: [{path: %s/*.log, tool: sysbench}]\n", dir))
	a.Again(t)
	var logs []*os.File
	for _, name := range []string{"one.log", "two.log"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		fmt.Fprint(f, "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 16\n\nThreads started!\n\n")
		logs = append(logs, f)
	}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for n := 1; ; n++ {
			for _, f := range logs {
				fmt.Fprintf(f, "[ %ds ] thds: 16 tps: %d.00 qps: 20.00 (r/w/o: 1.00/1.00/1.00) lat (ms,95%%): 2.50 err/s: 0.00 reconn/s: 0.00\n", n, 1000+n)
			}
			if text, err := agents.Get("http://" + a.Address + "/metrics"); err == nil {
				s.text.Store(&text)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
	agents.Wait(t, 30*time.Second, "the agent's runs", func() error {
		if text := s.text.Load(); text == nil || strings.Count(*text, "benchwatch_run_operations_per_second{") < 2 {
			return fmt.Errorf("not there yet")
		}
		return nil
	})
}

// engine is a receiver of remote write that can be killed.
type engine struct {
	agents.Prometheus
	name  string
	args  []string
	write string // URL
	// end is the signal that it survives: VictoriaMetrics has no write-ahead log, and
	// loses the last seconds that it has confirmed when it is killed.
	end syscall.Signal
	*agents.Process
}

func (e *engine) start(t *testing.T) {
	t.Helper()
	e.Process = agents.Start(t, e.args[0], e.args[1:]...)
	agents.Wait(t, 60*time.Second, e.name, func() error {
		_, err := e.Query("vector(1)")
		return err
	})
}

// own is one of the engine's metrics about itself.
func own(t *testing.T, address, metric string) float64 {
	t.Helper()
	text, err := agents.Get("http://" + address + "/metrics")
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

func engines(t *testing.T, root string) []*engine {
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	rules := filepath.Join(root, "prometheus/rules/*.yml") + ", " + filepath.Join(root, "alerts/*.rules.yml")
	if err := os.WriteFile(config, []byte("global: {evaluation_interval: 5s}\nrule_files: ["+rules+"]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p, v := agents.FreeAddress(t), agents.FreeAddress(t)
	return []*engine{
		{
			name: "Prometheus", end: syscall.SIGKILL, Prometheus: agents.Prometheus{Address: p}, write: "http://" + p + "/api/v1/write",
			args: []string{"prometheus", "--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "prometheus"), "--web.listen-address=" + p, "--web.enable-remote-write-receiver", "--log.level=error"},
		},
		{
			name: "VictoriaMetrics", end: syscall.SIGTERM, Prometheus: agents.Prometheus{Address: v}, write: "http://" + v + "/api/v1/write",
			args: []string{"victoria-metrics", "-httpListenAddr=" + v, "-storageDataPath=" + filepath.Join(dir, "victoria"), "-search.latencyOffset=0s", "-search.disableCache", "-loggerLevel=ERROR"},
		},
	}
}

// startForwarder starts a Prometheus in agent mode.
func startForwarder(t *testing.T, s *httptest.Server, n int, interval time.Duration, to []*engine) string {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	fmt.Fprintf(&b, "global: {scrape_interval: %v, scrape_timeout: %v}\nremote_write:\n", interval, interval)
	for _, e := range to {
		fmt.Fprintf(&b, "  - {url: %q, queue_config: {max_backoff: 1s, batch_send_deadline: 1s}}\n", e.write)
	}
	b.WriteString("scrape_configs:\n  - job_name: benchwatch\n    static_configs:\n")
	for i := range n {
		fmt.Fprintf(&b, "      - {targets: [%q], labels: {__metrics_path__: /%d, instance: agent%d}}\n", strings.TrimPrefix(s.URL, "http://"), i, i)
	}
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	address := agents.FreeAddress(t)
	agents.Start(t, "prometheus", "--enable-feature=agent", "--config.file="+config, "--storage.agent.path="+filepath.Join(dir, "wal"), "--web.listen-address="+address, "--log.level=error")
	return address
}

// TestFleet guards that every answer of every agent is in each engine exactly once,
// also if both engines are away meanwhile.
func TestFleet(t *testing.T) {
	root, err := servers.Repository()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "benchwatch")
	if err := agents.Build(binary, "agent"); err != nil {
		t.Fatal(err)
	}
	interval, err := time.ParseDuration(cmp.Or(os.Getenv("FLEET_INTERVAL"), "5s"))
	if err != nil {
		t.Fatal(err)
	}
	for size := range strings.SplitSeq(cmp.Or(os.Getenv("FLEET_AGENTS"), "10,100,1000"), ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(size, func(t *testing.T) { testFleet(t, root, binary, n, interval) })
	}
}

func testFleet(t *testing.T, root, binary string, n int, interval time.Duration) {
	s := &simulator{answers: make([]atomic.Int64, n)}
	startAgent(t, binary, s)
	web := httptest.NewServer(s)
	defer web.Close()
	all := engines(t, root)
	for _, e := range all {
		e.start(t)
	}
	forwarder := startForwarder(t, web, n, interval, all)

	answered := func(rounds int64) {
		t.Helper()
		want := s.total() + rounds*int64(n)
		agents.Wait(t, time.Duration(rounds+20)*interval, "scrapes", func() error {
			if got := s.total(); got < want {
				return fmt.Errorf("%d of %d", got, want)
			}
			return nil
		})
	}
	answered(2)
	const rounds = 6
	begin := time.Now()
	cpu := map[string]float64{}
	for _, e := range all {
		cpu[e.name] = own(t, e.Address, "process_cpu_seconds_total")
	}
	cpu["agent mode"] = own(t, forwarder, "process_cpu_seconds_total")
	samples := own(t, forwarder, "prometheus_remote_storage_samples_total")
	answered(rounds)
	took := time.Since(begin).Seconds()
	rate := (own(t, forwarder, "prometheus_remote_storage_samples_total") - samples) / took / float64(len(all))
	t.Logf("%d agents, every %v: %.0f samples/s", n, interval, rate)
	figures := func(name, address string) {
		t.Logf("  %s: %.0f %% of a core, %.0f MiB", name, (own(t, address, "process_cpu_seconds_total")-cpu[name])/took*100, own(t, address, "process_resident_memory_bytes")/(1<<20))
	}
	figures("agent mode", forwarder)
	for _, e := range all {
		figures(e.name, e.Address)
		for title, query := range map[string]string{"runs": "benchwatch_run_info", "live run": `benchwatch_run_operations_per_second{run=~"a0-.*"}`} {
			asked := time.Now()
			v, err := e.Query(query)
			if err != nil || len(v) == 0 {
				t.Errorf("%s: %s: %d series, %v", e.name, query, len(v), err)
			}
			t.Logf("  %s: query of %s in %v, %d series", e.name, title, time.Since(asked).Round(time.Millisecond), len(v))
		}
	}
	if failed := own(t, all[0].Address, "prometheus_rule_evaluation_failures_total"); failed > 0 {
		t.Errorf("%.0f rules failed", failed)
	}

	// Both end and come back; the write-ahead log of the agent mode has what they missed.
	for _, e := range all {
		e.Signal(t, e.end)
		<-e.Exited
	}
	answered(2)
	for _, e := range all {
		e.start(t)
	}
	answered(2)
	s.closed.Store(true)
	for _, e := range all {
		begin := time.Now()
		agents.Wait(t, 2*time.Minute, e.name+" has every sample", func() error {
			for query, want := range map[string]int64{
				// No answer is missing and none is there twice.
				"sum(count_over_time(fleet_answers_total[1h]))":                                                                               s.total(),
				"sum(max_over_time(fleet_answers_total[1h]))":                                                                                 s.total(),
				"count(count_over_time(fleet_answers_total[1h]) == last_over_time(fleet_answers_total[1h]))":                                  int64(n),
				`count(count_over_time(benchwatch_run_active{run=~".*one.*"}[1h]) == on (instance) count_over_time(fleet_answers_total[1h]))`: int64(n),
			} {
				v, err := e.Query(query)
				if err != nil || len(v) != 1 || int64(v[0]) != want {
					return fmt.Errorf("%s is %v, want %d, %v", query, v, want, err)
				}
			}
			return nil
		})
		t.Logf("  %s: gone and back, all %d scrapes there once, %v after the last", e.name, s.total(), time.Since(begin).Round(100*time.Millisecond))
	}
}
