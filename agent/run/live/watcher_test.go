package live

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/launch"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

const banner = `sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 4
Report intermediate results every 1 second(s)

Threads started!

`

var historyStart = time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readHistory(t testing.TB, dir rundir.Directory) *record.History {
	t.Helper()
	h, err := record.Read(context.Background(), dir, tool.Set{sysbench.Tool})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func intervalLine(second int, tps float64) string {
	return fmt.Sprintf("[ %ds ] thds: 4 tps: %.2f qps: %.2f (r/w/o: 0.00/%.2f/0.00) lat (ms,95%%): 1.04 err/s: 0.00 reconn/s: 0.00\n", second, tps, tps, tps)
}

func summaryText(n int, seconds float64) string {
	return fmt.Sprintf(`SQL statistics:
    queries performed:
        read:                            0
        write:                           %d
        other:                           0
        total:                           %d
    transactions:                        %-6d (%.2f per sec.)
    queries:                             %-6d (%.2f per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          %.4fs
    total number of events:              %d

Latency (ms):
         min:                                    0.50
         avg:                                    1.00
         max:                                    9.00
         95th percentile:                        1.04
         sum:                                 1000.00

Threads fairness:
    events (avg/stddev):           1.0000/0.00
    execution time (avg/stddev):   1.0000/0.00

`, n, n, n, float64(n)/seconds, n, float64(n)/seconds, seconds, n)
}

// watching is a Watcher at work, as an agent has it.
type watching struct {
	*Watcher
	t    *testing.T
	stop func()
}

func watch(t *testing.T, opts Options, adapt ...func(*Watcher)) *watching {
	t.Helper()
	if opts.Tools == nil {
		opts.Tools = func() tool.Set { return tool.Set{sysbench.Tool} }
	}
	if opts.Bounds == nil {
		opts.Bounds = func() Bounds { return Bounds{DrainTimeout: time.Hour, MaxLive: 64, MaxKept: 64} }
	}
	opts.Poll = 10 * time.Millisecond
	opts.Logger = slog.New(slog.DiscardHandler)
	w := NewWatcher(opts)
	for _, change := range adapt {
		change(w)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { w.Run(ctx) })
	stop := sync.OnceFunc(func() { cancel(); done.Wait() })
	t.Cleanup(stop)
	return &watching{w, t, stop}
}

// until waits for the run's snapshot to be as wanted.
func (w *watching) until(id string, what string, ok func(ingest.Snapshot) bool) ingest.Snapshot {
	w.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, s := range w.Snapshots() {
			if (s.Meta.ID == id || id == "" && s.Meta.Log != nil) && ok(s) {
				return s
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("run %s never got %s: %+v", id, what, w.Snapshots())
		}
	}
}

// untilAll waits for all snapshots to be as wanted.
func (w *watching) untilAll(what string, ok func([]ingest.Snapshot) bool) {
	w.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok(w.Snapshots()) {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("never %s: %+v", what, w.Snapshots())
		}
	}
}

func over(s ingest.Snapshot) bool { return s.Phase == ingest.Over }

func transactions(n float64) func(ingest.Snapshot) bool {
	return func(s ingest.Snapshot) bool { return s.Totals["transaction"] == n }
}

// started is a real process that writes into a run directory.
func started(t *testing.T, data, id, script string) (rundir.Directory, *rundir.Claim, *launch.Process) {
	t.Helper()
	dir, claim, err := rundir.Create(data, rundir.Meta{
		ID:        id,
		Benchmark: rundir.Benchmark{Tool: "sysbench"},
		Timing:    rundir.Timing{StartedAt: time.Now().UTC()},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := launch.Start(dir, []string{"sh", "-c", script})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claim.Release)
	return dir, claim, p
}

// fifo makes a script wait for the test.
func fifo(t *testing.T) (path string, open func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "go")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, sync.OnceFunc(func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
	})
}

func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "output")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "cat " + path
}

func TestRunToItsEnd(t *testing.T) {
	data := t.TempDir()
	w := watch(t, Options{DataDir: data})
	gate, open := fifo(t)
	dir, _, p := started(t, data, "one",
		script(t, banner+intervalLine(1, 10))+"; cat "+gate+"; "+script(t, intervalLine(2, 12)+summaryText(23, 2.1))+"; exit 3")
	s := w.until("one", "its first interval", transactions(10))
	if s.Phase != ingest.Measuring || s.Interval == nil || s.Summary != nil {
		t.Errorf("while it runs: %+v", s)
	}
	open()
	code, err := p.Wait(nil)
	if code != 3 || err != nil {
		t.Errorf("exit status %d, %v", code, err)
	}
	s = w.until("one", "over", over)
	if n := s.Summary.Report().Count("transaction").Value; n != 23 || s.Totals["transaction"] != 23 {
		t.Errorf("summary %d, total %v, want 23", n, s.Totals["transaction"])
	}
	if s.Interval != nil || s.Meta.Outcome != rundir.Failed || *s.Meta.ExitCode != 3 || s.Meta.ToolVersion != "1.0.20" {
		t.Errorf("at the end: %+v", s.Meta)
	}
	again, err := ingest.Read(context.Background(), dir, tool.Set{sysbench.Tool})
	if err != nil || again.Totals["transaction"] != 23 || again.Lines != s.Lines {
		t.Errorf("read again: %+v, %v", again, err)
	}
}

// The successor of a killed agent has the same numbers, whenever it starts.
func TestRestartOfTheAgent(t *testing.T) {
	data := t.TempDir()
	gate, open := fifo(t)
	_, _, p := started(t, data, "one", script(t, strings.Replace(banner, "Number of", "Target transaction rate: 5/sec\nNumber of", 1)+intervalLine(1, 10)+intervalLine(2, 20))+"; cat "+gate+"; "+script(t, intervalLine(3, 30)+summaryText(61, 3.1)))
	w := watch(t, Options{DataDir: data})
	w.until("one", "two intervals", transactions(30))
	w.stop()
	w = watch(t, Options{DataDir: data})
	w.until("one", "two intervals after a restart", transactions(30))
	w.stop()
	open()
	if _, err := p.Wait(nil); err != nil {
		t.Fatal(err)
	}
	w = watch(t, Options{DataDir: data})
	s := w.until("one", "over", over)
	if s.Totals["transaction"] != 61 || s.Meta.Outcome != rundir.Succeeded || s.Meta.RatePerSecond != 5 {
		t.Errorf("got %v, %s", s.Totals, s.Meta.Outcome)
	}
	w.stop()
	w = watch(t, Options{DataDir: data})
	if again := w.until("one", "over after a restart", over); again.Meta.RatePerSecond != 5 || again.Meta.ToolVersion != s.Meta.ToolVersion {
		t.Errorf("read again: %+v, before %+v", again.Meta, s.Meta)
	}
}

// A killed wrapper records no exit status. The tool continues, and the run ends
// when the tool does.
func TestKilledWrapper(t *testing.T) {
	for name, tt := range map[string]struct {
		rest string
		want rundir.Outcome
	}{
		"with summary": {intervalLine(2, 12) + summaryText(23, 2.1), rundir.Succeeded},
		"without":      {intervalLine(2, 13), rundir.Lost},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			w := watch(t, Options{DataDir: data})
			gate, open := fifo(t)
			dir, claim, p := started(t, data, "one", script(t, banner+intervalLine(1, 10))+"; cat "+gate+"; "+script(t, tt.rest))
			w.until("one", "its first interval", transactions(10))
			claim.Release() // what the kernel does when the wrapper dies
			if meta, err := dir.Load(); err != nil || meta.Ended() {
				t.Errorf("ended while the tool lives: %+v, %v", meta, err)
			}
			open()
			if err := p.Cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			s := w.until("one", "over", over)
			if s.Meta.Outcome != tt.want || s.Totals["transaction"] != 23 || s.Meta.ExitCode != nil {
				t.Errorf("got %+v, %v", s.Meta, s.Totals)
			}
		})
	}
}

func TestRemovedRunIsForgotten(t *testing.T) {
	data := t.TempDir()
	w := watch(t, Options{DataDir: data})
	dir, claim, err := rundir.Create(data, rundir.Meta{ID: "gone", Timing: rundir.Timing{StartedAt: time.Now()}})
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	w.until("gone", "seen", func(ingest.Snapshot) bool { return true })
	if err := dir.Remove(); err != nil {
		t.Fatal(err)
	}
	for len(w.Snapshots()) > 0 {
		<-time.After(time.Millisecond)
	}
}

// TestKeptRunsAreBounded guards that the newest ended runs are kept, as many as
// the limit allows now.
func TestKeptRunsAreBounded(t *testing.T) {
	data := t.TempDir()
	start := time.Unix(1000, 0).UTC()
	for i := range 5 {
		end := start.Add(time.Duration(i) * time.Hour)
		_, claim, err := rundir.Create(data, rundir.Meta{
			ID:      fmt.Sprintf("r%d", i),
			Timing:  rundir.Timing{StartedAt: end},
			End:     rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
			Closing: rundir.Closing{ClosedAt: &end},
		})
		if err != nil {
			t.Fatal(err)
		}
		claim.Release()
	}
	var limit atomic.Int64
	limit.Store(2)
	w := watch(t, Options{DataDir: data, Bounds: func() Bounds { return Bounds{MaxLive: 1, MaxKept: int(limit.Load())} }})
	kept := func(want string) {
		t.Helper()
		w.untilAll("kept "+want, func(snaps []ingest.Snapshot) bool {
			var ids []string
			for _, s := range snaps {
				ids = append(ids, s.Meta.ID)
			}
			return strings.Join(ids, " ") == want
		})
	}
	kept("r3 r4")
	limit.Store(4)
	kept("r1 r2 r3 r4")
	limit.Store(1)
	kept("r4")
}

// TestOneUserLeavesRoom guards that the runs of one user can't crowd out the runs of all others.
func TestOneUserLeavesRoom(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can create run directories for other users")
	}
	data := t.TempDir()
	begin := time.Now().Add(-time.Minute)
	create := func(id string, owner int) {
		t.Helper()
		dir, claim, err := rundir.Create(data, rundir.Meta{ID: id, Timing: rundir.Timing{StartedAt: begin}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(claim.Release)
		if err := os.Chown(string(dir), owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	create("a", 4321)
	for i := range 5 {
		create(fmt.Sprintf("held%d", i), 1234)
	}
	w := watch(t, Options{DataDir: data, Bounds: func() Bounds { return Bounds{DrainTimeout: time.Hour, MaxLive: 4, MaxKept: 1} }})
	w.untilAll("a run of each user", func(snaps []ingest.Snapshot) bool {
		return len(snaps) == 4 && snaps[0].Meta.ID == "a" && w.Waiting() == 2
	})
}

// position is a seqno.
type position uint64

func (p position) Behind(o engine.Position) (uint64, bool) {
	other, ok := o.(position)
	return uint64(max(0, int64(other)-int64(p))), ok
}
func (p position) Scalar() float64 { return float64(p) }
func (p position) String() string  { return fmt.Sprint(uint64(p)) }

func TestDrain(t *testing.T) {
	data := t.TempDir()
	targets := []engine.Target{
		{Name: "writer", Address: "127.0.0.1:3306", Cluster: "c"},
		{Name: "near", Address: "127.0.0.1:3307", Cluster: "c"},
		{Name: "far", Address: "127.0.0.1:3308", Cluster: "c"},
		{Name: "dead", Address: "127.0.0.1:3309", Cluster: "c"},
		{Name: "elsewhere", Address: "127.0.0.1:3310", Cluster: "other"},
	}
	end := time.Now().Add(-10 * time.Second).UTC().Truncate(time.Second)
	dir, claim, err := rundir.Create(data, rundir.Meta{
		ID:        "one",
		Benchmark: rundir.Benchmark{Target: "localhost:3306"},
		Timing:    rundir.Timing{StartedAt: end.Add(-time.Minute)},
		End:       rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
	})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	w := watch(t, Options{DataDir: data, Topology: serversOf(targets...)})
	w.until("one", "draining", func(s ingest.Snapshot) bool { return s.Phase == ingest.Draining && w.draining("one") })
	frame := func(after time.Duration, positions ...uint64) {
		f := engine.Frame{Tick: end.Add(after)}
		for i, p := range positions {
			f.Samples = append(f.Samples, engine.Sample{
				Target: &targets[i], Tick: f.Tick, Asked: f.Tick, Answered: f.Tick.Add(100 * time.Millisecond),
				Status: &engine.Status{Position: position(p), Replicating: true},
			})
		}
		f.Samples = append(f.Samples, engine.Sample{Target: &targets[3], Tick: f.Tick, Err: context.DeadlineExceeded})
		f.Samples = append(f.Samples, engine.Sample{Target: &targets[4], Tick: f.Tick, Answered: f.Tick, Status: &engine.Status{}})
		w.Frame(f)
	}
	frame(-time.Second, 50, 50, 50) // before the end: says nothing
	frame(0, 100, 99, 20)           // sets the goal: 100
	frame(time.Second, 105, 100, 50)
	w.until("one", "near", func(s ingest.Snapshot) bool { return s.Meta.Drain["near"].Seconds != nil })
	frame(7*time.Second, 110, 110, 100)
	w.GiveUpDrain() // the dead one would take the whole timeout
	s := w.until("one", "over", over)
	got := map[string]float64{}
	for name, d := range s.Meta.Drain {
		if d.Seconds != nil {
			got[name] = *d.Seconds
		} else if !d.TimedOut {
			t.Errorf("%s neither drained nor timed out", name)
		}
	}
	if len(s.Meta.Drain) != 3 || got["near"] != 1.1 || got["far"] != 7.1 || s.Meta.Drain["far"].ResolutionSeconds != 6.1 || !s.Meta.Drain["dead"].TimedOut {
		t.Errorf("drain %v of %+v", got, s.Meta.Drain)
	}
	status, err := os.ReadFile(dir.Path(rundir.StatusFile))
	if err != nil || strings.Count(string(status), "\n") != 16+4 || strings.Contains(string(status), "elsewhere") { // a header each
		t.Errorf("status.jsonl has %d lines, %v", strings.Count(string(status), "\n"), err)
	}
}

// drained feeds positions to the drain of a run that ended at end and has no target: p is the primary, r and s its
// replicas. A negative position is no answer.
func drained(end time.Time, frames ...drainFrame) *drain {
	targets := []engine.Target{{Name: "p", Cluster: "c"}, {Name: "r", Cluster: "c"}, {Name: "s", Cluster: "c"}}
	d := newDrain(end, targets, nil)
	for _, at := range frames {
		f := engine.Frame{Tick: end.Add(at.after)}
		for i, p := range at.positions {
			s := engine.Sample{Target: &targets[i], Tick: f.Tick, Asked: f.Tick, Answered: f.Tick.Add(10 * time.Millisecond), Source: i == 0}
			if s.Status = (&engine.Status{Position: position(p), Replicating: true}); p < 0 {
				s.Status, s.Err = nil, context.DeadlineExceeded
			}
			f.Samples = append(f.Samples, s)
		}
		d.frame(&f)
	}
	return d
}

// TestServerOfTheToolDoesNotDrain guards that the server that the tool wrote to has
// nothing to catch up with, by whichever of its names the tool connected to it.
func TestServerOfTheToolDoesNotDrain(t *testing.T) {
	targets := []engine.Target{{Name: "p", Cluster: "c"}, {Name: "r", Cluster: "c"}, {Name: "alone", Cluster: "d"}}
	servers := rundir.Servers{Targets: []rundir.Server{{Target: "p", Cluster: "c", Connected: true}, {Target: "r", Cluster: "c"}, {Target: "alone", Cluster: "d"}}}
	if got := slices.Collect(maps.Keys(newDrain(time.Now(), targets, &servers).results())); !slices.Equal(got, []string{"r"}) {
		t.Errorf("drain of %q", got)
	}
}

// TestDrainByHistory guards that a member without data is not waited for; that each shard of a
// cluster has its own goal; and that a replica drains although the tool connected to it, as a tool
// does that gets a list of all members.
func TestDrainByHistory(t *testing.T) {
	targets := []engine.Target{{Name: "p1", Cluster: "c"}, {Name: "s1", Cluster: "c"}, {Name: "arbiter", Cluster: "c"}, {Name: "p2", Cluster: "c"}, {Name: "s2", Cluster: "c"}}
	var servers rundir.Servers
	for _, o := range targets {
		servers.Targets = append(servers.Targets, rundir.Server{Target: o.Name, Cluster: "c", Connected: o.Name != "s2"})
	}
	end := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	d := newDrain(end, targets, &servers)
	frame := func(after time.Duration, positions ...shardPosition) {
		f := engine.Frame{Tick: end.Add(after)}
		for i, p := range positions {
			s := engine.Sample{Target: &targets[i], Tick: f.Tick, Asked: f.Tick, Answered: f.Tick, Source: i == 0 || i == 3}
			s.Status = &engine.Status{Position: p, Replicating: true}
			if i == 2 {
				s.Status = &engine.Status{NoData: true}
			}
			f.Samples = append(f.Samples, s)
		}
		d.frame(&f)
	}
	one, two := func(n int64) shardPosition { return shardPosition{1, n} }, func(n int64) shardPosition { return shardPosition{2, n} }
	frame(-time.Second, one(90), one(80), one(0), two(7), two(5))
	frame(0, one(100), one(90), one(0), two(8), two(6))
	frame(time.Second, one(100), one(100), one(0), two(8), two(7))
	if d.finished() {
		t.Errorf("finished: %+v", d.results())
	}
	frame(2*time.Second, one(100), one(100), one(0), two(8), two(8))
	results := d.results()
	if !d.finished() || len(results) != 2 || *results["s1"].Seconds != 1 || *results["s2"].Seconds != 2 {
		t.Errorf("%+v", results)
	}
}

// shardPosition is a position in the history of one shard.
type shardPosition struct{ shard, n int64 }

func (p shardPosition) Behind(engine.Position) (uint64, bool) { return 0, false }

func (p shardPosition) Reaches(goal engine.Position) bool {
	g, ok := goal.(shardPosition)
	return ok && g.shard == p.shard && p.n >= g.n
}

func (p shardPosition) Scalar() float64 { return float64(p.n) }
func (p shardPosition) String() string  { return fmt.Sprint(p.n) }

type drainFrame struct {
	after     time.Duration
	positions []int64
}

// TestDrainIsTheReplicasTime guards that waiting for the next sample does not count as time that a replica needed.
func TestDrainIsTheReplicasTime(t *testing.T) {
	end := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	const ms = time.Millisecond
	for _, c := range []struct {
		name                string
		frames              []drainFrame
		r, s                float64 // drain in seconds; negative: none
		rResolution, sResol float64
	}{
		{"nothing was written", []drainFrame{{-600 * ms, []int64{100, 100, 100}}, {400 * ms, []int64{100, 100, 100}}}, 0, 0, 0, 0},
		{"a sample at the end", []drainFrame{{-600 * ms, []int64{90, 90, 80}}, {5 * ms, []int64{100, 100, 99}}, {400 * ms, []int64{100, 100, 100}}}, 0, 0.41, 0.015, 0.405},
		{"others continue to write", []drainFrame{{-600 * ms, []int64{90, 90, 90}}, {5 * ms, []int64{100, 100, 99}}, {400 * ms, []int64{200, 150, 100}}}, 0, 0.41, 0.015, 0.405},
		{"slow replica", []drainFrame{
			{-600 * ms, []int64{90, 10, 10}}, {5 * ms, []int64{100, 10, 20}}, {400 * ms, []int64{100, 100, 30}},
			{1400 * ms, []int64{100, 100, -1}}, {2400 * ms, []int64{100, 100, 100}},
		}, 0.41, 2.41, 0.405, 2.01},
		{"the primary answers later", []drainFrame{
			{-600 * ms, []int64{90, 90, 90}}, {5 * ms, []int64{-1, 95, 91}}, {400 * ms, []int64{100, 100, 99}}, {1400 * ms, []int64{100, 100, 100}},
		}, 0.41, 1.41, 0.405, 1.01},
		{"the primary died", []drainFrame{{-600 * ms, []int64{90, 90, 90}}, {400 * ms, []int64{-1, 95, 91}}, {1400 * ms, []int64{-1, 95, 92}}, {2400 * ms, []int64{-1, 95, 92}}}, 0, -1, 1.41, 0},
		{"the end was seen late", []drainFrame{{60 * time.Second, []int64{100, 100, 100}}}, 0, 0, 60.01, 60.01},
	} {
		d := drained(end, c.frames...)
		results := d.results()
		if _, ok := results["p"]; ok {
			t.Errorf("%s: the primary has a drain: %+v", c.name, results["p"])
		}
		for name, want := range map[string][2]float64{"r": {c.r, c.rResolution}, "s": {c.s, c.sResol}} {
			got := results[name]
			switch {
			case want[0] < 0:
				if !got.TimedOut {
					t.Errorf("%s: %s is %+v, want none", c.name, name, got)
				}
			case got.Seconds == nil:
				t.Errorf("%s: %s is %+v, want %v", c.name, name, got, want)
			case math.Abs(*got.Seconds-want[0]) > 1e-9 || math.Abs(got.ResolutionSeconds-want[1]) > 1e-9:
				t.Errorf("%s: %s drained in %v s (resolution %v), want %v", c.name, name, *got.Seconds, got.ResolutionSeconds, want)
			}
		}
	}
}

// TestDrainTimeoutOfTheRun guards that an agent obeys the timeout with which the run was started, not its own.
func TestDrainTimeoutOfTheRun(t *testing.T) {
	data := t.TempDir()
	end := time.Now().UTC()
	_, claim, err := rundir.Create(data, rundir.Meta{
		ID:        "one",
		Benchmark: rundir.Benchmark{Target: "127.0.0.1:3306"},
		Timing:    rundir.Timing{StartedAt: end.Add(-time.Minute)},
		End:       rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
		Closing:   rundir.Closing{DrainTimeoutSeconds: series.Some(0.2)},
	})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	w := watch(t, Options{
		DataDir: data, Bounds: func() Bounds { return Bounds{DrainTimeout: time.Hour, MaxLive: 1, MaxKept: 1} },
		Topology: serversOf(engine.Target{Name: "writer", Address: "127.0.0.1:3306", Cluster: "c"}, engine.Target{Name: "dead", Address: "127.0.0.1:3307", Cluster: "c"}),
	})
	if s := w.until("one", "over", over); !s.Meta.Drain["dead"].TimedOut {
		t.Errorf("drain %+v", s.Meta.Drain)
	}
}

// serversOf is a configuration of targets.
func serversOf(targets ...engine.Target) func() *topology.Topology {
	t := &topology.Topology{Targets: targets, Engine: func(string) *engine.Engine { return nil }}
	return func() *topology.Topology { return t }
}

func (w *watching) draining(id string) bool {
	for _, t := range w.trackers() {
		t.mu.Lock()
		ok := t.meta.ID == id && t.drain != nil
		t.mu.Unlock()
		if ok {
			return true
		}
	}
	return false
}

// TestClockStartIsRecorded guards that the start of the tool's clock is seen
// while it runs: here the tool took nearly an hour to begin.
func TestClockStartIsRecorded(t *testing.T) {
	data := t.TempDir()
	began := time.Now()
	dir, claim, err := rundir.Create(data, rundir.Meta{
		ID:        "one",
		Benchmark: rundir.Benchmark{Tool: "sysbench"},
		Timing:    rundir.Timing{StartedAt: began.Add(-time.Hour)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claim.Release)
	gate, open := fifo(t)
	p, err := launch.Start(dir, []string{"sh", "-c", script(t, banner) + "; cat " + gate + "; " + script(t, intervalLine(1, 10))})
	if err != nil {
		t.Fatal(err)
	}
	w := watch(t, Options{DataDir: data})
	w.until("one", "the banner", func(s ingest.Snapshot) bool { return s.Lines.Reported+s.Lines.Ignored > 3 })
	open()
	if _, err := p.Wait(nil); err != nil {
		t.Fatal(err)
	}
	s := w.until("one", "over", over)
	clock := s.Meta.ClockStartedAt
	if clock == nil || clock.Before(began.Add(-2*time.Second)) || clock.After(time.Now()) {
		t.Fatalf("the clock began at %v, the test at %v", clock, began)
	}
	if h := readHistory(t, dir); !h.Zero.Equal(*clock) {
		t.Errorf("zero %v, want %v", h.Zero, clock)
	}
}

// slowDisk is a sink that is not done with the begin of a run before release is closed.
type slowDisk struct {
	Discard
	began, release chan struct{}
}

func (d *slowDisk) Began(rundir.Directory, rundir.Meta) {
	d.began <- struct{}{}
	<-d.release
}

// TestSlowDisk guards that a scrape waits for no marker that is being written.
func TestSlowDisk(t *testing.T) {
	data := t.TempDir()
	gate, open := fifo(t)
	defer open()
	started(t, data, "one", "cat "+gate)
	disk := &slowDisk{began: make(chan struct{}), release: make(chan struct{})}
	w := watch(t, Options{DataDir: data, Sink: disk})
	defer close(disk.release)
	<-disk.began
	if n := len(w.Snapshots()); n != 1 {
		t.Errorf("%d runs", n)
	}
}
