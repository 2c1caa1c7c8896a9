package abort

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	_ "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const head = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 4\nThreads started!\n\n"

func interval(second, tps, errors string) string {
	return "[ " + second + "s ] thds: 4 tps: " + tps + " qps: 210.00 (r/w/o: 147.00/42.00/21.00) lat (ms,95%): 1.04 err/s: " + errors + " reconn/s: 0.00\n"
}

// watched is a run in progress.
type watched struct {
	t     *testing.T
	dir   rundir.Directory
	meta  rundir.Meta
	out   *os.File
	ended chan string
}

// watch begins to watch a run. The test ends only after the watch has ended.
func watch(t *testing.T, output string, conditions ...string) (*watched, *Watch) {
	t.Helper()
	w := &watched{t: t, meta: rundir.Meta{
		ID:        "r",
		Benchmark: rundir.Benchmark{Tool: sysbench.Name},
		Timing:    rundir.Timing{StartedAt: time.Now()},
	}, ended: make(chan string, 1)}
	dir, claim, err := rundir.Create(t.TempDir(), w.meta)
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	w.dir = dir
	if w.out, err = os.Create(dir.Path(rundir.StdoutFile)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.out.Close() })
	w.print(head + output)
	watch := &Watch{Dir: dir, Meta: w.meta, Tool: sysbench.Tool}
	for _, text := range conditions {
		c, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		watch.Conditions = append(watch.Conditions, c)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.ended <- watch.Wait(ctx)
	}()
	t.Cleanup(func() { stop(); <-done })
	return w, watch
}

func (w *watched) print(text string) {
	w.t.Helper()
	if _, err := w.out.WriteString(text); err != nil {
		w.t.Fatal(err)
	}
}

// TestMissingPercentile guards that a condition on a percentile that the tool does not print is named at the first
// interval, with the option that prints it.
func TestMissingPercentile(t *testing.T) {
	const line = "[ 1s ] thds: 4 tps: 10.00 qps: 210.00 (r/w/o: 147.00/42.00/21.00) lat (ms,95%): 1.04 err/s: 0.00 reconn/s: 0.00\n"
	for condition, want := range map[string]string{
		"p99>50ms": "p99>50ms: sysbench prints p95; add --percentile=99", "p99.9>50ms": "p99.9>50ms: sysbench prints p95",
		"p95>50ms": "", "lag>1s": "",
	} {
		c, err := Parse(condition)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		w := Watch{Tool: sysbench.Tool, Conditions: []*Condition{c}, Warn: func(condition, why string) { got = append(got, condition+": "+why) }}
		p := sysbench.NewParser(tool.Description{})
		tool.ParseAll(p, tool.Stdout, []byte(head+line+strings.Replace(line, "1s", "2s", 1)), func(r *tool.Report) {
			if r.Kind == tool.Interval {
				w.warn(r)
			}
		})
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %q, want %q", condition, got, want)
		}
	}
}

func TestTool(t *testing.T) {
	for _, c := range []struct{ condition, want string }{
		{"tps<5", "tps<5: 4.00"},
		{"errors>1%", "errors>1%: 20 %"},
		{"errors>0", "errors>0: 1"},
		{"p95>1ms for 100ms", "p95>1ms for 100ms: 1.04 ms"},
	} {
		w, _ := watch(t, interval("1", "10.00", "0.00"), "lag>1s", c.condition)
		w.print(interval("2", "4.00", "1.00"))
		if got := <-w.ended; got != c.want {
			t.Errorf("%s: %q", c.condition, got)
		}
	}
}

func TestServers(t *testing.T) {
	w, _ := watch(t, "", "lag>10s")
	recorder := record.NewRecorder(w.dir, w.meta.StartedAt)
	defer recorder.Close()
	tick := w.meta.StartedAt.Truncate(time.Second)
	for i, lag := range []float64{0, 3, 12.5} {
		status := engine.Status{Version: "10.11", Flavour: "mariadb"}
		status.Set(engine.ReplicationLagSeconds, lag)
		at := tick.Add(time.Duration(i) * time.Second)
		frame := engine.Frame{Tick: at, Interval: time.Second, Samples: []engine.Sample{{Target: &engine.Target{Name: "n2", Engine: "mysql"}, Tick: at, Asked: at, Answered: at, Status: &status}}}
		if err := recorder.Record(frame); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-w.ended; !strings.HasPrefix(got, "lag>10s: 12.5") {
		t.Errorf("%q", got)
	}
}

// Any measure of a machine can have a limit that must be exceeded for some time.
func TestMachines(t *testing.T) {
	w, _ := watch(t, "", "cpu_busiest_core>90% for 1ms", "threads_running>5")
	recorder := record.NewRecorder(w.dir, w.meta.StartedAt)
	defer recorder.Close()
	tick := w.meta.StartedAt.Truncate(time.Second)
	for i, busy := range []float64{0.1, 0.5, 0.98, 0.98} {
		status := engine.Status{}
		status.Set(host.BusiestCore.Sources()[0].Metric, busy)
		at := tick.Add(time.Duration(i) * time.Second)
		frame := engine.Frame{Tick: at, Interval: time.Second, Samples: []engine.Sample{{Target: &engine.Target{Name: "db1", Engine: "host"}, Tick: at, Asked: at, Answered: at, Status: &status}}}
		if err := recorder.RecordHosts(frame); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-w.ended; !strings.HasPrefix(got, "cpu_busiest_core>90% for 1ms: 98 %") {
		t.Errorf("%q", got)
	}
}

// A condition that never had a value is named, so a misspelled condition is not mistaken for one that never held.
func TestUnknown(t *testing.T) {
	w, watching := watch(t, "", "lag>10s", "tps<100")
	w.print(interval("1", "10.00", "0.00"))
	if got := <-w.ended; got != "tps<100: 10.00" {
		t.Errorf("%q", got)
	}
	if u := watching.Unknown(); len(u) != 1 || u[0] != "lag>10s" {
		t.Errorf("unknown: %v", u)
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"drain>1s", "tpmc<5", "lag>10s for ever", "lag>10s for -1s", "tps<-5%", "lag", "promql:", "promql: for 5s", "deadlocks>5", "cpu_busy>0.5", "checkpoint_age>5"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestParseQuery(t *testing.T) {
	for text, want := range map[string]struct {
		query   string
		lasting time.Duration
	}{
		"promql:up == 0":                   {"up == 0", 0},
		" promql: up == 0 for 5s ":         {"up == 0", 5 * time.Second},
		`promql:x{a="time for 5s"} > 0`:    {`x{a="time for 5s"} > 0`, 0},
		`promql:x{a="wait for it"} for 1m`: {`x{a="wait for it"}`, time.Minute},
	} {
		c, err := Parse(text)
		if err != nil || !c.IsQuery() || c.query != want.query || c.lasting != want.lasting {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
	for _, text := range []string{"cpu_busy > 95 % for 10s", "checkpoint_age>512MiB", "sessions_row_lock>3", "disk_wait>20ms"} {
		if _, err := Parse(text); err != nil {
			t.Error(err)
		}
	}
}
