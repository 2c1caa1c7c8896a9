package live

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

// twoClusters are two servers each, and one that is alone.
var twoClusters = []engine.Target{
	{Name: "b1", Engine: "mysql", Address: "127.0.0.1:3306", Cluster: "blue"},
	{Name: "b2", Engine: "mysql", Address: "127.0.0.1:3307", Cluster: "blue", Nodename: "configured"},
	{Name: "g1", Engine: "mysql", Address: "127.0.0.1:3308", Cluster: "green"},
	{Name: "g2", Engine: "mysql", Address: "127.0.0.1:3309", Cluster: "green"},
	{Name: "alone", Engine: "mysql", Address: "127.0.0.1:3310"},
}

// answers returns the answers of all targets at a tick, with the names of their machines.
func answers(tick time.Time) engine.Frame {
	f := engine.Frame{Tick: tick}
	for i := range twoClusters {
		o := &twoClusters[i]
		s := engine.Sample{Target: o, Tick: tick, Asked: tick, Answered: tick, Status: &engine.Status{Nodename: "host-" + o.Name}}
		s.Status.Set(engine.QueriesTotal, 1)
		s.Settings = &engine.SettingsReading{At: tick, Settings: engine.Settings{"a": "b"}}
		f.Samples = append(f.Samples, s)
	}
	return f
}

// sampledSink keeps the servers and machines that it got for each run.
type sampledSink struct {
	Discard
	mu         sync.Mutex
	runs       map[string]string
	identified map[string]*rundir.Servers
}

func (s *sampledSink) Identified(_ rundir.Directory, m rundir.Meta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.identified[m.ID] = m.Servers
}

func (s *sampledSink) Sampled(id string, f engine.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for i := range f.Samples {
		names = append(names, f.Samples[i].Target.Name)
	}
	s.runs[id] = strings.Join(names, " ")
}

func (s *sampledSink) of(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[id]
}

func startRun(t *testing.T, data string, meta rundir.Meta) rundir.Directory {
	t.Helper()
	meta.Tool, meta.StartedAt = "sysbench", time.Now().Add(-time.Second).UTC()
	dir, claim, err := rundir.Create(data, meta)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claim.Release)
	return dir
}

// TestServersOfRuns guards that each of several live runs has only its own servers: in run.json, in its record and at
// the sink.
func TestServersOfRuns(t *testing.T) {
	data := t.TempDir()
	want := map[string]string{"blue": "b1 b2", "green": "g1 g2", "selected": "g1 alone", "alone": "alone", "unknown": ""}
	dirs := map[string]rundir.Directory{
		"blue":  startRun(t, data, rundir.Meta{ID: "blue", Benchmark: rundir.Benchmark{Target: "localhost:3306"}}),
		"green": startRun(t, data, rundir.Meta{ID: "green", Benchmark: rundir.Benchmark{Target: "127.0.0.1:3309"}}),
		"alone": startRun(t, data, rundir.Meta{ID: "alone", Benchmark: rundir.Benchmark{Target: "127.0.0.1:3310"}}),
		"selected": startRun(t, data, rundir.Meta{
			ID:        "selected",
			Benchmark: rundir.Benchmark{Target: "127.0.0.1:3306"},
			Placement: rundir.Placement{Selection: rundir.NewSelection(nil, []string{"g1", "alone"})},
		}),
		"unknown": startRun(t, data, rundir.Meta{ID: "unknown", Benchmark: rundir.Benchmark{Target: "127.0.0.1:3399"}}),
	}
	sink := &sampledSink{runs: map[string]string{}, identified: map[string]*rundir.Servers{}}
	w := watch(t, Options{DataDir: data, Topology: serversOf(twoClusters...), Sink: sink})
	for id := range dirs {
		w.until(id, "its servers", func(s ingest.Snapshot) bool { return s.Meta.Servers != nil })
	}
	for range 2 {
		w.Frame(answers(time.Now()))
	}
	for id, names := range want {
		s := w.until(id, "the names of the machines", func(s ingest.Snapshot) bool {
			return !slices.ContainsFunc(s.Meta.Servers.Targets, func(o rundir.Server) bool { return o.Nodename == "" })
		})
		var in, nodes []string
		for _, o := range s.Meta.Servers.Targets {
			in, nodes = append(in, o.Target), append(nodes, o.Nodename)
		}
		if got := strings.Join(in, " "); got != names {
			t.Errorf("%s: run.json has %q, want %q", id, got, names)
		}
		if id == "blue" {
			if d := cmp.Diff([]string{"host-b1", "configured"}, nodes); d != "" {
				t.Error(d)
			}
		}
		sink.mu.Lock()
		if d := cmp.Diff(s.Meta.Servers, sink.identified[id]); d != "" {
			t.Errorf("%s: the sink was told -want +got\n%s", id, d)
		}
		sink.mu.Unlock()
		if got := sink.of(id); got != names {
			t.Errorf("%s: the sink was given %q, want %q", id, got, names)
		}
		h := readHistory(t, dirs[id])
		var recorded, configured []string
		for _, o := range h.Servers {
			recorded = append(recorded, o.Target)
		}
		for _, o := range h.Settings {
			configured = append(configured, o.Target)
		}
		if got := strings.Join(recorded, " "); got != names {
			t.Errorf("%s: %s has %q, want %q", id, rundir.StatusFile, got, names)
		}
		if got := strings.Join(configured, " "); got != names {
			t.Errorf("%s: %s has %q, want %q", id, record.SettingsFile, got, names)
		}
		if unknown := names == ""; unknown != (s.Meta.Servers.Notice() != "") {
			t.Errorf("%s: notice %q", id, s.Meta.Servers.Notice())
		}
	}
}

// logBuffer is a log that several goroutines write.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.text.String(), text)
}

// TestServersAfterReload guards that a changed configuration makes unknown servers
// known and adds others, but never makes known ones unknown, and that a run logs
// once that they are.
func TestServersAfterReload(t *testing.T) {
	data := t.TempDir()
	dir := startRun(t, data, rundir.Meta{ID: "one", Benchmark: rundir.Benchmark{Target: "127.0.0.1:3308"}})
	var now atomic.Pointer[topology.Topology]
	reload := func(targets ...engine.Target) { now.Store(serversOf(targets...)()) }
	reload(twoClusters[0])
	log := &logBuffer{}
	w := &watching{t: t}
	opts := Options{
		DataDir: data, Topology: now.Load, Poll: 10 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Bounds: func() Bounds { return Bounds{DrainTimeout: time.Hour, MaxLive: 64, MaxKept: 64} },
	}
	w.Watcher = NewWatcher(opts)
	var running sync.WaitGroup
	running.Go(func() { w.Run(t.Context()) })
	t.Cleanup(running.Wait)

	has := func(names string) func(ingest.Snapshot) bool {
		return func(s ingest.Snapshot) bool {
			if s.Meta.Servers == nil {
				return false
			}
			var in []string
			for _, o := range s.Meta.Servers.Targets {
				in = append(in, o.Target)
			}
			return strings.Join(in, " ") == names
		}
	}
	w.until("one", "unknown", has(""))
	reload(twoClusters[1])
	reload(twoClusters[2])
	w.until("one", "one server", has("g1"))
	reload(twoClusters[2:]...)
	w.until("one", "two servers", has("g1 g2"))
	reload(twoClusters[0])
	reload(twoClusters...)
	w.until("one", "still two", has("g1 g2"))
	if n := log.count("its servers are not known"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	text, err := os.ReadFile(dir.Path(rundir.MetaFile))
	if err != nil || !strings.Contains(string(text), fmt.Sprintf("%q: %q", "source", "matched")) {
		t.Errorf("%s, %v", text, err)
	}
}
