package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Metrics of no engine: they are not declared, so no list has them.
var (
	plain    = &measure.Metric{Name: "plain_total", Kind: measure.Counter}
	labelled = &measure.Metric{Name: "labelled", Labels: []string{"op", "of"}}
)

type position string

func (p position) Behind(engine.Position) (uint64, bool) { return 0, false }
func (p position) Scalar() float64                       { return float64(len(p)) }
func (p position) String() string                        { return string(p) }

// sample is the answer of a target some seconds after the start.
func sample(target string, second float64, set func(*engine.Sample)) engine.Sample {
	tick := historyStart.Add(time.Duration(second * float64(time.Second)))
	s := engine.Sample{
		Target: &engine.Target{Name: target, Engine: "mysql", Cluster: "c"}, Tick: tick,
		Asked: tick.Add(123 * time.Microsecond), Answered: tick.Add(2500 * time.Microsecond),
		Status: &engine.Status{Version: "8.4.3", Flavour: "mysql", Role: "primary"},
	}
	if set != nil {
		set(&s)
	}
	return s
}

func frameOf(samples ...engine.Sample) engine.Frame {
	return engine.Frame{Tick: samples[0].Tick, Samples: samples}
}

func down(s *engine.Sample) { s.Status, s.Err = nil, errors.New(`no "answer"`) }

// twoServers are ticks with nearly everything that a record can contain.
func twoServers() []engine.Frame {
	evil := "n\"2\\\n\x01ü<"
	return []engine.Frame{
		frameOf(
			sample("n1", 1, func(s *engine.Sample) {
				s.Status.Set(plain, 10)
				s.Status.Set(labelled, 0.1, "a", "b")
				s.LagSeconds = series.Some(0.25)
				s.Status.Position = position("uuid:1-5")
			}),
			sample(evil, 1, down)),
		frameOf(
			sample("n1", 2, func(s *engine.Sample) { // fewer values, another order, a new one
				s.Status.Set(labelled, -1e-9, "se\"l\\ect\n", "ü\xff")
				s.Status.Set(plain, math.NaN())
			}),
			sample(evil, 2, func(s *engine.Sample) { s.Status.Set(plain, 1e21) })),
		frameOf(
			sample("n1", 3, func(s *engine.Sample) {
				s.Restarts = 1
				s.Status.Version, s.Status.Role = "8.4.4", "replica"
				s.Status.Set(plain, 5)
				s.LagTransactions = series.Some(12.0)
			}),
			sample(evil, 3, func(s *engine.Sample) { s.Asked = time.Time{} })),
		frameOf(sample("n1", 4, func(s *engine.Sample) { down(s); s.Restarts = 1 })),
		frameOf(sample("n1", 5.000001, func(s *engine.Sample) { s.Restarts = 1; s.Status.Set(plain, 7) })),
	}
}

// expectTwoServers checks the record of twoServers after reading it back.
func expectTwoServers(t *testing.T, h *readBack) {
	t.Helper()
	nan := math.NaN()
	if len(h.Servers) != 2 {
		t.Fatalf("%d servers", len(h.Servers))
	}
	n1, n2 := h.Servers[0], h.Servers[1]
	for _, c := range []struct {
		what      string
		got, want []float64
	}{
		{"ticks", n1.Elapsed, []float64{1, 2, 3, 4, 5.000001}},
		{"asked", n1.Asked, []float64{1.000123, 2.000123, 3.000123, nan, 5.000124}},
		{"answered", n1.Answered, []float64{1.0025, 2.0025, 3.0025, nan, 5.002501}},
		{"up", n1.Values("db_up"), []float64{1, 1, 1, 0, 1}},
		{"restarts", n1.Restarts(), []float64{0, 0, 1, 1, 1}},
		{"plain", n1.Values("plain_total"), []float64{10, nan, 5, nan, 7}},
		{"labelled", n1.Values(`labelled{op="a",of="b"}`), []float64{0.1, nan, nan, nan, nan}},
		{"new", n1.Values(`labelled{op="se\"l\\ect\n",of="ü\xff"}`), []float64{nan, -1e-9, nan, nan, nan}},
		{"position", n1.Values("replication_position"), []float64{8, nan, nan, nan, nan}},
		{"lag", engine.LagSeconds.Values(n1), []float64{0.25, nan, nan, nan, nan}},
		{"transactions behind", engine.LagTransactions.Values(n1), []float64{nan, nan, 12, nan, nan}},
		{"no lag", engine.LagSeconds.Values(n2), nil},
		{"other server", n2.Values("plain_total"), []float64{nan, 1e21, nan}},
		{"never asked", n2.Asked, []float64{nan, 2.000123, nan}},
	} {
		if d := cmp.Diff(c.want, c.got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-9)); d != "" {
			t.Errorf("%s: %s", c.what, d)
		}
	}
	if n1.RoleAt.At(1) != "primary" || n1.RoleAt.At(3) != "replica" || n1.Role != "primary" || n1.VersionAt.At(2) != "8.4.4" || n1.Flavour != "mysql" {
		t.Errorf("%+v", n1)
	}
	if d := cmp.Diff([]string{`no "answer"`}, n1.Errors); d != "" {
		t.Error(d)
	}
}

// written makes the lines of status.jsonl.
func written(frames ...engine.Frame) []byte {
	var w statusWriter
	var b []byte
	for _, f := range frames {
		b = w.append(b, f)
	}
	return b
}

// readLines reads lines of status.jsonl.
func readLines(lines []byte, keep func(string) bool) *readBack {
	d := statusReader{zero: historyStart, within: Whole, rows: math.MaxInt, keep: keep, targets: map[string]*readTarget{}}
	for line := range bytes.Lines(lines) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !d.add(line) {
			d.damage.UnreadableStatus++
		}
	}
	return &readBack{History: &History{Damage: d.damage}, Servers: d.servers}
}

func TestStatusRoundTrip(t *testing.T) {
	lines := written(twoServers()...)
	for line := range bytes.Lines(lines) {
		if !json.Valid(line) {
			t.Errorf("not JSON: %s", line)
		}
	}
	h := readLines(lines, nil)
	if h.Damage.UnreadableStatus != 0 || h.Damage.MisplacedStatus != 0 {
		t.Errorf("damage %+v in\n%s", h.Damage, lines)
	}
	expectTwoServers(t, h)
}

// Headers are written once, and again for what they hold.
func TestStatusHeaders(t *testing.T) {
	var frames []engine.Frame
	for i := range 5 {
		frames = append(frames, frameOf(sample("n1", float64(i), func(s *engine.Sample) { s.Status.Set(plain, float64(i)) }), sample("n2", float64(i), down)))
	}
	if n := bytes.Count(written(frames...), []byte(`"columns"`)); n != 2 {
		t.Errorf("%d headers for two targets", n)
	}
	if n := bytes.Count(written(twoServers()...), []byte(`"target":"n1"`)); n != 4 {
		// first, a new column, version and role, up again with the first ones
		t.Errorf("%d headers", n)
	}
}

// After a crash at any byte, all whole lines stay readable, and so do the lines recorded after a restart.
func TestStatusAfterCrash(t *testing.T) {
	frames := twoServers()
	before, after := written(frames[:3]...), frames[3:]
	for cut := range len(before) + 1 {
		path := filepath.Join(t.TempDir(), "status.jsonl")
		write(t, path, string(before[:cut]))
		f := &lineFile{path: path}
		if err := f.append(written(after...)); err != nil {
			t.Fatal(err)
		}
		f.close()
		all, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		h := readLines(all, nil)
		whole := readLines(before[:bytes.LastIndexByte(before[:cut], '\n')+1], nil)
		torn := 0
		if cut > 0 && before[cut-1] != '\n' && !(cut < len(before) && before[cut] == '\n') {
			torn = 1 // a line cut before its line feed is whole
		}
		if h.Damage.UnreadableStatus != torn || h.Damage.MisplacedStatus != 0 {
			t.Fatalf("cut at %d: %+v", cut, h.Damage)
		}
		for _, s := range whole.Servers {
			got := h.Server(s.Target)
			if d := cmp.Diff(s.Elapsed, got.Elapsed[:len(s.Elapsed)], cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("cut at %d: %s", cut, d)
			}
			for _, name := range s.Names() {
				if d := cmp.Diff(s.Values(name), got.Values(name)[:len(s.Elapsed)], cmpopts.EquateNaNs()); d != "" {
					t.Fatalf("cut at %d, %s: %s", cut, name, d)
				}
			}
		}
		n1 := h.Server("n1")
		if last := n1.Values("plain_total"); last[len(last)-1] != 7 {
			t.Fatalf("cut at %d: after the restart %v", cut, last)
		}
	}
}

// A failed write, such as on a full disk, may have left a header out of the file.
func TestStatusAfterFailedWrite(t *testing.T) {
	dir := recorded(t, "", nil)
	r := NewRecorder(dir, historyStart)
	defer r.Close()
	broken, err := os.Open(os.DevNull) // can't be written
	if err != nil {
		t.Fatal(err)
	}
	r.status.file = broken
	if err := r.Record(frameOf(sample("n1", 1, func(s *engine.Sample) { s.Status.Set(plain, 1) }))); err == nil {
		t.Fatal("the write did not fail")
	}
	broken.Close()
	r.status.file = nil
	if err := r.Record(frameOf(sample("n1", 2, func(s *engine.Sample) { s.Status.Set(plain, 2) }))); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir).Server("n1").Values("plain_total"); len(got) != 1 || got[0] != 2 {
		t.Errorf("%v", got)
	}
}

func TestKeepMetrics(t *testing.T) {
	h := readLines(written(twoServers()...), func(metric string) bool { return metric == "labelled" })
	s := h.Server("n1")
	if d := cmp.Diff([]string{`labelled{op="a",of="b"}`, `labelled{op="se\"l\\ect\n",of="ü\xff"}`}, s.Names()); d != "" {
		t.Error(d)
	}
	if engine.LagSeconds.Values(s) == nil || len(s.Restarts()) != 5 {
		t.Error("what the sampler adds was left out")
	}
}

func TestStatusColumnsAreBounded(t *testing.T) {
	var w statusWriter
	var lines []byte
	for i := range 3 {
		lines = w.append(lines, frameOf(sample("n1", float64(i), func(s *engine.Sample) {
			for j := range 600 {
				s.Status.Set(labelled, 1, fmt.Sprint(i), fmt.Sprint(j))
			}
			s.Status.Set(plain, float64(i))
		})))
	}
	h := readLines(lines, nil)
	s := h.Server("n1")
	if n := len(s.Keys()); n > maxColumns || len(s.Elapsed) != 3 || s.Values("plain_total")[2] != 2 || len(s.Restarts()) != 3 || h.Damage.UnreadableStatus != 0 {
		t.Errorf("%d columns, %d rows, %+v", n, len(s.Elapsed), h.Damage)
	}
}

// FuzzStatus checks that no line breaks the reader, and that a line which it
// takes leaves columns of equal length.
func FuzzStatus(f *testing.F) {
	for line := range bytes.Lines(written(twoServers()...)) {
		f.Add(string(line))
	}
	f.Add(statusLine(f, 1, "n1", map[string]float64{"a": 1, `b{c="\"\\\n"}`: -2.5e-9}))
	f.Add(`["n1",1,0,null,2,"",1,2,3]`)
	f.Add(`["n1",-1.5,0,null,null,"",null]`)
	f.Add(`["n1",99999999999.999999,0,""]`)
	f.Add(`{"target":"n1","columns":["plain_total","db_up","db_up"]}`)
	f.Fuzz(func(t *testing.T, line string) {
		header := `{"target":"n1","engine":"mysql","columns":["plain_total"]}` + "\n" + `["n1",0,0,0,0,"",1]` + "\n"
		h := readLines([]byte(header+line+"\n"+`["n1",1e9,0,0,0,"",1]`+"\n"+line), nil)
		for _, s := range h.Servers {
			n := len(s.Elapsed)
			if len(s.Asked) != n || len(s.Answered) != n || len(s.Restarts()) != n {
				t.Fatalf("rows %d, %d, %d, %d", n, len(s.Asked), len(s.Answered), len(s.Restarts()))
			}
			for _, name := range s.Keys() {
				if len(s.Values(name)) != n {
					t.Fatalf("%q has %d of %d values", name, len(s.Values(name)), n)
				}
			}
			for row := range n {
				if up := s.Values("db_up")[row]; up != 0 && up != 1 {
					t.Fatalf("up %v", up)
				}
			}
		}
	})
}

// A run of ten hours with three servers of 80 values each, as the page and as a
// report read it.
func BenchmarkRead(b *testing.B) {
	var out strings.Builder
	out.WriteString(banner)
	var metrics []*measure.Metric
	for i := range 80 {
		metrics = append(metrics, &measure.Metric{Name: fmt.Sprintf("galera_some_status_counter_%d_total", i)})
	}
	const seconds = 36000
	var w statusWriter
	var status []byte
	for i := range seconds {
		out.WriteString(intervalLine(i+1, float64(i)))
		var samples []engine.Sample
		for _, target := range []string{"n1", "n2", "n3"} {
			samples = append(samples, sample(target, float64(i), func(s *engine.Sample) {
				for j, m := range metrics {
					s.Status.Set(m, float64(j)*1234567.25)
				}
			}))
		}
		status = w.append(status, frameOf(samples...))
	}
	dir := recorded(b, out.String(), []string{string(status)})
	few := func(metric string) bool { return strings.HasSuffix(metric, "7_total") }
	for _, what := range []struct {
		name string
		keep func(string) bool
	}{{"all", nil}, {"few", few}} {
		b.Run(what.name, func(b *testing.B) {
			b.SetBytes(int64(out.Len() + len(status)))
			b.ReportAllocs()
			for b.Loop() {
				h, err := ReadOutput(context.Background(), dir, tool.Set{sysbench.Tool}, Whole)
				if err != nil {
					b.Fatal(err)
				}
				if err := h.ReadServers(context.Background(), what.keep); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(status)), "file-bytes")
		})
	}
}

// Recording a tick of three servers of 80 values each.
func BenchmarkRecord(b *testing.B) {
	var samples []engine.Sample
	for _, target := range []string{"n1", "n2", "n3"} {
		samples = append(samples, sample(target, 0, func(s *engine.Sample) {
			for j := range 80 {
				s.Status.Set(&measure.Metric{Name: fmt.Sprintf("galera_some_status_counter_%d_total", j)}, float64(j)*1234567.25)
			}
		}))
	}
	var w statusWriter
	var line []byte
	b.ReportAllocs()
	for b.Loop() {
		line = w.append(line[:0], frameOf(samples...))
	}
}

func ExampleRead() {
	dir := rundir.At("../../app/cli/testdata/0.1", "20261122T042127Z-oltp_read_write-t2")
	h, err := Read(context.Background(), dir, tool.Set{sysbench.Tool})
	if err != nil {
		fmt.Println(err) // no run.json, or a damaged one
		return
	}
	fmt.Println(h.Snapshot.Meta.Tool, h.Intervals.N, "intervals")
	for _, s := range h.Servers {
		commits := h.Samples.Tally(ServerMeasure{s.Target, engine.CommitRate})
		fmt.Printf("%s: %d samples, %.0f commits/s\n", s.Target, s.Ticks, commits.Mean())
	}
	for _, m := range h.Markers {
		fmt.Printf("%.0f s: %s\n", h.Elapsed(m.Start), m.Text)
	}
	// Output:
	// sysbench 8 intervals
	// n1: 8 samples, 103 commits/s
	// 4 s: buffer pool doubled
}

// TestMissedTicksAreGaps guards that seconds in which nothing was sampled are
// rows without values: nothing is interpolated, drawn or counted there, and they
// are not taken for a server that did not answer.
func TestMissedTicksAreGaps(t *testing.T) {
	var frames []engine.Frame
	for _, second := range []float64{1, 2, 2.3, 3, 7, 8} { // 2.3 is an extra tick
		f := frameOf(sample("n1", second, func(s *engine.Sample) { s.Status.Set(plain, 100*second) }), sample("n2", second, nil))
		if second == 8 {
			down(&f.Samples[1])
		}
		f.Interval = time.Second
		frames = append(frames, f)
	}
	h := readLines(written(frames...), nil)
	s := h.Server("n1")
	nan := math.NaN()
	for name, c := range map[string]struct{ got, want []float64 }{
		"axis":   {s.Elapsed, []float64{1, 2, 2.3, 3, 4, 5, 6, 7, 8}},
		"values": {s.Values("plain_total"), []float64{100, 200, 230, 300, nan, nan, nan, 700, 800}},
		"rates":  {s.Rate("plain_total"), []float64{nan, 100, 100, 100, nan, nan, nan, nan, 100}},
	} {
		if d := cmp.Diff(c.want, c.got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-6)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	down := h.Server("n2")
	if s.Sampled(4) || !s.Sampled(7) || !down.Sampled(8) || down.Up(8) || down.Up(4) {
		t.Errorf("sampled %v %v %v, up %v %v", s.Sampled(4), s.Sampled(7), down.Sampled(8), down.Up(8), down.Up(4))
	}
}
