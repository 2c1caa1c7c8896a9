//go:build fleet

package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/need"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// simulator serves the output of a real agent as the output of many agents, each with its own runs.
// It adds a counter of its answers, which reveals missing and duplicate answers in an engine.
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
	// Written at once: whatever was counted was sent.
	fmt.Fprintf(w, "%s# TYPE fleet_answers_total counter\nfleet_answers_total %d\n", strings.ReplaceAll(*text, `run="`, fmt.Sprintf(`run="a%d-`, i)), s.answers[i].Add(1))
}

func (s *simulator) total() (n int64) {
	for i := range s.answers {
		n += s.answers[i].Load()
	}
	return n
}

// startAgent starts a real agent that follows so many runs, to which a line is added
// every second, and returns its address.
func startAgent(t *testing.T, binary string, runs int) string {
	t.Helper()
	dir := t.TempDir()
	a := agents.New(t, binary, fmt.Sprintf("logs: [{path: %s/*.log, tool: sysbench}]\n", dir))
	a.Again(t)
	var logs []*os.File
	for i := range runs {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("run%d.log", i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		fmt.Fprintf(f, "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: %d\n\nThreads started!\n\n", 8+i)
		logs = append(logs, f)
	}
	every(t, time.Second, func(n int) {
		for i, f := range logs {
			fmt.Fprintf(f, "[ %ds ] thds: %d tps: %d.00 qps: 20.00 (r/w/o: 1.00/1.00/1.00) lat (ms,95%%): %d.50 err/s: 0.00 reconn/s: 0.00\n", n, 8+i, 1000*(i+1)+n, n%7+1)
		}
	})
	agents.Wait(t, 30*time.Second, "the agent's runs", func() error {
		text, err := agents.Get("http://" + a.Address + "/metrics")
		if err == nil && strings.Count(text, "\nbenchwatch_run_active{") < runs {
			err = fmt.Errorf("not there yet")
		}
		return err
	})
	return a.Address
}

// every calls do at once and then regularly until the test ends.
func every(t *testing.T, period time.Duration, do func(n int)) {
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for n := 1; ; n++ {
			do(n)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
}

// follow lets the simulator serve what an agent exposes now.
func (s *simulator) follow(t *testing.T, address string) {
	t.Helper()
	every(t, time.Second, func(int) {
		if text, err := agents.Get("http://" + address + "/metrics"); err == nil {
			s.text.Store(&text)
		}
	})
	agents.Wait(t, 30*time.Second, "the simulator's text", func() error {
		if s.text.Load() == nil {
			return fmt.Errorf("none")
		}
		return nil
	})
}

const (
	// realLogs and realReplays make 20 real runs: logs that grow, and the example of
	// this program, a Galera cluster with a slow node.
	realLogs    = 16
	realReplays = 4
)

// startReal starts agents with real runs and returns the addresses of their metrics.
func startReal(t *testing.T, binary string) []string {
	t.Helper()
	addresses := []string{startAgent(t, binary, realLogs)}
	for range realReplays {
		address := agents.FreeAddress(t)
		agents.Start(t, binary, "replay", "--linger=1h", "--web.listen-address="+address)
		addresses = append(addresses, address)
	}
	for _, address := range addresses {
		agents.Wait(t, time.Minute, "real runs", func() error {
			text, err := agents.Get("http://" + address + "/metrics")
			if err == nil && !strings.Contains(text, "\nbenchwatch_run_active{") {
				err = fmt.Errorf("none yet")
			}
			return err
		})
	}
	return addresses
}

// TestFleet guards that every answer of every agent is in each engine exactly once,
// although a part of each engine is away meanwhile and Thanos' object store hangs, and
// that Thanos answers as one Prometheus that has the same samples.
func TestFleet(t *testing.T) {
	root, err := servers.Repository()
	if err != nil {
		t.Fatal(err)
	}
	names := chosen(t)
	for name, program := range map[string]string{prometheusName: "prometheus", victoriaName: "victoria-metrics"} {
		if slices.Contains(names, name) {
			need.Program(t, program)
		}
	}
	binary := filepath.Join(t.TempDir(), "benchwatch")
	if err := agents.Build(binary, "."); err != nil {
		t.Fatal(err)
	}
	interval, err := time.ParseDuration(cmp.Or(os.Getenv("FLEET_INTERVAL"), "10s"))
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for size := range strings.SplitSeq(cmp.Or(os.Getenv("FLEET_AGENTS"), "10,1000"), ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, n)
	}
	for i, n := range sizes {
		f := &fleet{root: root, binary: binary, n: n, interval: interval, hang: i == len(sizes)-1}
		t.Run(strconv.Itoa(n), func(t *testing.T) { f.test(t, names) })
	}
}

// fleet is one test with a number of agents.
type fleet struct {
	root, binary string
	n            int
	interval     time.Duration
	hang         bool // the object store, for a minute

	simulator *simulator
	forwarder *part
	engines   []*engine
	thanos    *thanos // one of engines, or nil
	reference *engine // the Prometheus that Thanos is compared with
}

func (f *fleet) test(t *testing.T, names []string) {
	f.start(t, names)
	began := time.Now()
	f.answered(t, 2)
	f.measure(t, 6)
	// A part of each ends and comes back. The write-ahead log of the agent mode has what an engine missed, and two
	// other receivers have what one receiver missed.
	gone := time.Now()
	for _, e := range f.engines {
		e.faulty.Signal(t, e.end)
		<-e.faulty.Exited
	}
	f.answered(t, 2)
	for _, e := range f.engines {
		e.faulty.start(t)
	}
	t.Logf("  a part of each engine was away for %v", time.Since(gone).Round(time.Second))
	f.answered(t, 2)
	if f.thanos != nil && f.hang {
		f.hangStore(t)
	}
	f.simulator.closed.Store(true)
	ended := time.Now()
	// Thanos last: if another engine lacks a sample, it was not scraped.
	for _, e := range slices.Backward(f.engines) {
		f.complete(t, e.name, e.Prometheus, 5*time.Minute) // what agent mode has kept
		t.Logf("  %s: all %d scrapes there once, %v after the last", e.name, f.simulator.total(), time.Since(ended).Round(100*time.Millisecond))
	}
	if f.thanos == nil {
		return
	}
	f.compare(t, began, ended)
	begin := time.Now()
	blocks, _, _ := f.thanos.blocks(t)
	f.complete(t, "the bucket", f.thanos.fromBucket(t), 2*time.Minute)
	all, samples, bytes := f.thanos.blocks(t)
	t.Logf("  bucket: %d blocks, %d after the receivers have ended, %.2f bytes/sample; it has all scrapes once, %v after", blocks, all, float64(bytes)/float64(samples), time.Since(begin).Round(time.Second))
}

func (f *fleet) start(t *testing.T, names []string) {
	f.simulator = &simulator{answers: make([]atomic.Int64, f.n)}
	f.simulator.follow(t, startAgent(t, f.binary, 2))
	web := httptest.NewServer(f.simulator)
	t.Cleanup(web.Close)
	runs := startReal(t, f.binary)
	for _, name := range names {
		switch name {
		case thanosName:
			f.thanos = startThanos(t, f.root)
			f.engines = append(f.engines, f.thanos.engine)
		case prometheusName:
			f.reference = startPrometheus(t, f.root, !slices.Contains(names, thanosName))
			f.engines = append(f.engines, f.reference)
		case victoriaName:
			f.engines = append(f.engines, startVictoria(t))
		}
	}
	f.forwarder = startForwarder(t, web.URL, f.n, f.interval, runs, f.engines)
}

// answered waits for scrapes of all agents.
func (f *fleet) answered(t *testing.T, rounds int64) {
	t.Helper()
	want := f.simulator.total() + rounds*int64(f.n)
	agents.Wait(t, time.Duration(rounds+20)*f.interval, "scrapes", func() error {
		if got := f.simulator.total(); got < want {
			return fmt.Errorf("%d of %d", got, want)
		}
		return nil
	})
}

// measure prints what each process needs, and how long queries take.
func (f *fleet) measure(t *testing.T, rounds int64) {
	t.Helper()
	parts := []*part{f.forwarder}
	for _, e := range f.engines {
		parts = append(parts, e.parts...)
	}
	const sent = "prometheus_remote_storage_samples_total"
	begin, cpu, samples := time.Now(), map[*part]float64{}, f.forwarder.own(t, sent)
	for _, p := range parts {
		cpu[p] = p.own(t, cpuSeconds)
	}
	f.answered(t, rounds)
	took := time.Since(begin).Seconds()
	rate := (f.forwarder.own(t, sent) - samples) / took / float64(len(f.engines))
	t.Logf("%d agents every %v, %d real runs every 1s: %.0f samples/s", f.n, f.interval, realLogs+realReplays, rate)
	for _, p := range parts {
		t.Logf("  %s: %.1f %% of a core, %.0f MiB", p.name, (p.own(t, cpuSeconds)-cpu[p])/took*100, p.own(t, memory)/(1<<20))
	}
	for _, e := range f.engines {
		for title, query := range map[string]string{"runs": "benchwatch_run_info", "live run": `benchwatch_run_operations_per_second{run=~"a0-.*"}`} {
			asked := time.Now()
			v, err := e.Query(query)
			if err != nil || len(v) == 0 {
				t.Errorf("%s: %s: %d series, %v", e.name, query, len(v), err)
			}
			t.Logf("  %s: query of %s in %v, %d series", e.name, title, time.Since(asked).Round(time.Millisecond), len(v))
		}
		if failed := e.parts[0].own(t, "prometheus_rule_evaluation_failures_total"); failed > 0 {
			t.Errorf("%s: %.0f rules failed", e.name, failed)
		}
	}
}

// complete waits until an engine has every answer of every agent once.
func (f *fleet) complete(t *testing.T, name string, p agents.Prometheus, limit time.Duration) {
	t.Helper()
	agents.Wait(t, limit, name+" has every sample", func() error {
		var wrong []error
		for query, want := range map[string]int64{
			// No answer is missing or duplicated.
			"sum(count_over_time(fleet_answers_total[1h]))":                                                                                 f.simulator.total(),
			"sum(max_over_time(fleet_answers_total[1h]))":                                                                                   f.simulator.total(),
			"count(count_over_time(fleet_answers_total[1h]) == last_over_time(fleet_answers_total[1h]))":                                    int64(f.n),
			`count(count_over_time(benchwatch_run_active{run=~"a.*run0.*"}[1h]) == on (instance) count_over_time(fleet_answers_total[1h]))`: int64(f.n),
		} {
			v, err := p.Query(query)
			if err != nil {
				wrong = append(wrong, err)
			} else if len(v) != 1 || int64(v[0]) != want {
				wrong = append(wrong, fmt.Errorf("%s is %v, want %d", query, v, want))
			}
		}
		return errors.Join(wrong...)
	})
}

// hangStore lets the object store hang for a minute while blocks are uploaded. Meanwhile queries of new data are
// answered, and afterwards the bucket gets what it missed.
func (f *fleet) hangStore(t *testing.T) {
	t.Helper()
	agents.Wait(t, 5*time.Minute, "the first block of receivers in the bucket", func() error {
		if n, _, _ := f.thanos.blocks(t); n == 0 {
			return fmt.Errorf("none")
		}
		return nil
	})
	before, _, _ := f.thanos.blocks(t)
	f.thanos.store.Hang(t)
	begin, slowest, asked := time.Now(), time.Duration(0), 0
	agents.Wait(t, 5*time.Minute, "a minute with a store that hangs", func() error {
		at := time.Now()
		if _, err := f.thanos.Query(`benchwatch_run_operations_per_second{run=~"a0-.*"}`); err != nil {
			t.Errorf("while the object store hangs: %v", err)
		}
		asked, slowest = asked+1, max(slowest, time.Since(at))
		if time.Since(begin) < time.Minute {
			return fmt.Errorf("not over")
		}
		return nil
	})
	f.thanos.store.Resume(t)
	agents.Wait(t, 2*time.Minute, "uploads after the object store has hung", func() error {
		if n, _, _ := f.thanos.blocks(t); n <= before {
			return fmt.Errorf("still %d blocks", n)
		}
		return nil
	})
	after, _, _ := f.thanos.blocks(t)
	t.Logf("  object store hung for %v: %d queries of live data without error, the slowest in %v; %d blocks before, %d after", time.Minute, asked, slowest.Round(time.Millisecond), before, after)
}
