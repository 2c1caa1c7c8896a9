package agents

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// Watch scrapes an agent continuously and records violations of the invariants.
type Watch struct {
	agent  *Agent
	paced  []string
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	epoch   int // number of disturbances so far, even if none is in progress
	since   time.Time
	waits   []waited
	sampled map[string]time.Time // targets
	last    map[string]float64   // of runs
	process map[string]float64   // other counters, of this process of the agent
	faults  map[string][]string
	stats   WatchStats
}

// WatchStats are the results of a Watch.
type WatchStats struct {
	Scrapes, Timed int
	Slowest        time.Duration // of the timed scrapes
	OldestSample   time.Duration // of the paced targets
}

// waited is how long, up to a time, threads of the agent and of this process had waited for a CPU
// that others used.
type waited struct {
	at  time.Time
	sum time.Duration
}

// MaxScrape is how long a scrape takes at most, apart from a few on a busy machine.
const MaxScrape = 100 * time.Millisecond

// The kinds of faults that a Watch records.
const (
	FallenCounter = "fallen counter"
	SlowScrape    = "slow scrape"
	FailedScrape  = "failed scrape"
	OldSample     = "old sample"
)

// NewWatch scrapes the agent at this interval until the test ends or Stop. The targets in paced
// answer, so they must have a new sample each second.
func NewWatch(t testing.TB, a *Agent, every time.Duration, paced ...string) *Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{agent: a, paced: paced, cancel: cancel, since: time.Now(), sampled: map[string]time.Time{},
		last: map[string]float64{}, process: map[string]float64{}, faults: map[string][]string{}}
	w.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.scrape()
			}
		}
	})
	t.Cleanup(w.Stop)
	return w
}

// Stop ends the scrapes.
func (w *Watch) Stop() {
	w.cancel()
	w.done.Wait()
}

// Disturb calls f, which keeps the agent from answering. With restarted, another process answers
// afterwards, whose own counters start again.
func (w *Watch) Disturb(restarted bool, f func()) {
	step := func(f func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		f()
	}
	step(func() { w.epoch++ })
	f()
	step(func() {
		w.epoch++
		w.since = time.Now()
		if restarted {
			w.waits = nil
			clear(w.process)
		}
	})
}

// Faults returns the faults of a kind; their list may be shortened.
func (w *Watch) Faults(kind string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.faults[kind])
}

// Stats returns what was seen so far.
func (w *Watch) Stats() WatchStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

func (w *Watch) fault(kind, format string, args ...any) {
	w.faults[kind] = append(w.faults[kind], time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// waiting returns how long the agent and this process have waited for a CPU. On a machine without
// time for them answers are late, whatever the agent does.
func (w *Watch) waiting() waited {
	now := waited{at: time.Now()}
	for _, pid := range []int{os.Getpid(), w.agent.Cmd.Process.Pid} {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is valid
		for _, thread := range threads {
			text, err := os.ReadFile(thread)
			var ran, waited time.Duration
			if err == nil { // it may have ended
				_, _ = fmt.Sscan(string(text), &ran, &waited) // 0 if the kernel does not count
			}
			now.sum += waited
		}
	}
	return now
}

// stalled returns how long CPUs were awaited since then. The caller holds mu.
func (w *Watch) stalled(since time.Time) time.Duration {
	if len(w.waits) == 0 {
		return 0
	}
	last := w.waits[len(w.waits)-1]
	for _, before := range slices.Backward(w.waits) {
		if !before.at.After(since) {
			return max(0, last.sum-before.sum)
		}
	}
	return last.sum - w.waits[0].sum
}

// Starved returns how long the agent and this process waited for a CPU, or the agent for the disk,
// while f ran. f may end the agent.
func (w *Watch) Starved(f func()) time.Duration {
	first, disk, looked := w.waiting().sum, time.Duration(0), time.Now()
	most := first
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return most - first + disk
		case <-tick.C:
			most = max(most, w.waiting().sum)
			if now := time.Now(); w.onDisk() {
				disk, looked = disk+now.Sub(looked), now
			} else {
				looked = now
			}
		}
	}
}

// onDisk reports whether a thread of the agent waits for a disk now.
func (w *Watch) onDisk() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", w.agent.Cmd.Process.Pid)) // the pattern is valid
	return slices.ContainsFunc(threads, func(thread string) bool {
		text, err := os.ReadFile(thread)
		_, state, _ := strings.Cut(string(text), ") ") // after the program's name
		return err == nil && strings.HasPrefix(state, "D")
	})
}

func (w *Watch) scrape() {
	w.mu.Lock()
	epoch := w.epoch
	w.mu.Unlock()
	before := w.waiting()
	began := time.Now()
	text, err := Get("http://" + w.agent.Address + "/metrics")
	took := time.Since(began)
	after := w.waiting()
	var families Exposition
	if err == nil {
		families, err = Parse(text)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	calm := epoch == w.epoch && epoch%2 == 0
	if w.waits = append(w.waits, before, after); len(w.waits) > 1000 {
		w.waits = slices.Clone(w.waits[500:])
	}
	if err != nil {
		if calm && 2*w.stalled(began) < took {
			w.fault(FailedScrape, "%v, after %v, of which %v without a CPU", err,
				took.Round(time.Millisecond), w.stalled(began).Round(time.Millisecond))
		}
		return
	}
	w.stats.Scrapes++
	if calm {
		w.stats.Timed++
		w.stats.Slowest = max(w.stats.Slowest, took-w.stalled(began))
		if took-w.stalled(began) > MaxScrape {
			w.fault(SlowScrape, "%v, of which %v without a CPU", took.Round(time.Millisecond), w.stalled(began).Round(time.Millisecond))
		}
		w.age(families, began)
	}
	w.count(families, calm)
}

// count compares the counters with the previous ones. The caller holds mu.
func (w *Watch) count(families Exposition, calm bool) {
	for name, family := range families {
		if family.GetType() != dto.MetricType_COUNTER {
			continue
		}
		for _, m := range family.Metric {
			key, labels := seriesName(name, m)
			seen := w.process
			switch {
			case labels["run"] != "" && name != "benchwatch_run_record_failures_total":
				seen = w.last
			case labels["target"] != "": // a server's own counters, which restart with the server
				continue
			case !calm: // from an unknown process
				continue
			}
			v := m.GetCounter().GetValue()
			if before, ok := seen[key]; ok && v < before {
				w.fault(FallenCounter, "%s: %g after %g", key, v, before)
			}
			seen[key] = v
		}
	}
}

func seriesName(name string, m *dto.Metric) (key string, labels map[string]string) {
	var b strings.Builder
	b.WriteString(name)
	labels = map[string]string{}
	for _, l := range m.GetLabel() {
		fmt.Fprintf(&b, " %s=%s", l.GetName(), l.GetValue())
		labels[l.GetName()] = l.GetValue()
	}
	return b.String(), labels
}

const (
	// settleTime is how long an agent may take from its start to its first samples, not counting
	// time without a CPU.
	settleTime = 5 * time.Second
	// maxAge is the maximum age of a sample that is taken each second, from a server that may once
	// be too busy to answer.
	maxAge = 3 * time.Second
)

// age checks that the answering targets have been sampled. The caller holds mu.
func (w *Watch) age(families Exposition, now time.Time) {
	if len(w.paced) == 0 || now.Sub(w.since)-w.stalled(w.since) < settleTime {
		return
	}
	for _, target := range w.paced {
		// A server that does not answer has no timestamp, for instance if it lacks a CPU.
		if at, err := families.Value("benchwatch_db_sample_timestamp_seconds", "target", target); err == nil {
			w.sampled[target] = time.UnixMicro(int64(at * 1e6))
		}
		last := w.sampled[target]
		if last.Before(w.since) {
			last = w.since
		}
		age := now.Sub(last)
		w.stats.OldestSample = max(w.stats.OldestSample, age)
		if age > maxAge+w.stalled(now.Add(-age)) {
			w.fault(OldSample, "%s: %v old", target, age.Round(time.Millisecond))
		}
	}
}

// Counter returns the last value of a run's counter, by the name of its series: the metric,
// followed by " label=value" in the order of label names.
func (w *Watch) Counter(series string) (float64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v, ok := w.last[series]
	return v, ok
}

// Footprint is what a process needs.
type Footprint struct {
	Goroutines, Descriptors, MiB, CPUSeconds float64
}

// Footprint returns the agent's own metrics about its resources.
func (e Exposition) Footprint(t testing.TB) Footprint {
	t.Helper()
	return Footprint{
		Goroutines: e.Must(t, "go_goroutines"), Descriptors: e.Must(t, "process_open_fds"),
		MiB: e.Must(t, "process_resident_memory_bytes") / (1 << 20), CPUSeconds: e.Must(t, "process_cpu_seconds_total"),
	}
}

// String implements fmt.Stringer.
func (f Footprint) String() string {
	return fmt.Sprintf("%.0f goroutines, %.0f descriptors, %.1f MiB", f.Goroutines, f.Descriptors, f.MiB)
}
