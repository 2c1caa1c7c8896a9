package live

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/toollog"
	"github.com/benchwatch/benchwatch/internal/rotation"
)

// followerData and followerGlob make the test binary a process that follows logs
// until it is killed.
const (
	followerData = "BENCHWATCH_TEST_FOLLOWER_DATA"
	followerGlob = "BENCHWATCH_TEST_FOLLOWER_GLOB"
)

func TestMain(m *testing.M) {
	if data := os.Getenv(followerData); data != "" {
		followUntilKilled(data, os.Getenv(followerGlob))
		return
	}
	os.Exit(m.Run())
}

func followUntilKilled(data, glob string) {
	w := NewWatcher(Options{
		DataDir: data, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Poll: 10 * time.Millisecond,
		Tools:  func() tool.Set { return tool.Set{sysbench.Tool} },
		Bounds: func() Bounds { return Bounds{DrainTimeout: time.Hour, MaxLive: 64, MaxKept: 64} },
		Logs:   func() []toollog.Log { return []toollog.Log{{Glob: glob, Tool: "sysbench"}} },
	})
	w.Run(context.Background())
}

// rotating is a tool that writes a line at a time, a log that is rotated while it
// does, and a process that follows the log and is killed now and then.
type rotating struct {
	t     *testing.T
	dir   string
	glob  string
	out   *rotation.Log
	child *exec.Cmd
	rand  *rand.Rand
	log   *os.File // of the follower
}

func (r *rotating) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rotating) start() {
	r.child = exec.CommandContext(r.t.Context(), os.Args[0])
	r.child.Env = append(os.Environ(), followerData+"="+filepath.Join(r.dir, "data"), followerGlob+"="+r.glob)
	r.child.Stderr = r.log
	r.must(r.child.Start())
}

func (r *rotating) kill() {
	if r.child != nil {
		r.must(r.child.Process.Kill())
		_ = r.child.Wait() // killed
		r.child = nil
	}
}

// write writes text in pieces, and perhaps kills the follower between two.
func (r *rotating) write(text string, kill bool) {
	cut := r.rand.IntN(len(text))
	_, err := r.out.WriteString(text[:cut])
	r.must(err)
	if kill {
		<-time.After(time.Duration(r.rand.IntN(20)) * time.Millisecond)
		r.kill()
		r.start()
	}
	_, err = r.out.WriteString(text[cut:])
	r.must(err)
}

// caughtUp waits until the follower has copied all n lines.
func (r *rotating) caughtUp(n int) {
	deadline := time.After(30 * time.Second)
	for len(r.numbers()) < n {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			r.t.Fatalf("%d of %d lines copied", len(r.numbers()), n)
		}
	}
}

var elapsed = regexp.MustCompile(`(?m)\[ (\d+)s \] thds: 4 .*reconn/s: 0.00$`)

// numbers returns the elapsed seconds of all intervals in the runs' own copies.
func (r *rotating) numbers() []int {
	var all []int
	data := filepath.Join(r.dir, "data")
	ids, err := rundir.List(data)
	r.must(err)
	for _, id := range ids {
		text, err := os.ReadFile(rundir.At(data, id).Path(rundir.StdoutFile))
		if err != nil && !os.IsNotExist(err) {
			r.t.Fatal(err)
		}
		for _, m := range elapsed.FindAllSubmatch(text, -1) {
			n, _ := strconv.Atoi(string(m[1]))
			all = append(all, n)
		}
	}
	return all
}

// parsed returns the number of reports that are read from all runs.
func (r *rotating) parsed() (reports int) {
	data := filepath.Join(r.dir, "data")
	ids, err := rundir.List(data)
	r.must(err)
	for _, id := range ids {
		snap, err := ingest.Read(r.t.Context(), rundir.At(data, id), tool.Set{sysbench.Tool})
		r.must(err)
		if snap.Lines.Malformed > 0 {
			r.t.Errorf("run %s: %+v", id, snap.Lines)
		}
		reports += int(snap.Totals["transaction"])
	}
	return reports
}

// newRotating returns a log with a form of rotation. Nothing follows it yet.
func newRotating(t *testing.T, form rotation.Form) *rotating {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := &rotating{t: t, dir: t.TempDir(), rand: rand.New(rand.NewPCG(seed, 0))}
	r.must(os.MkdirAll(filepath.Join(r.dir, "l"), 0o755))
	r.out, r.glob = &rotation.Log{Path: filepath.Join(r.dir, "l", "a.log"), Append: form.Append}, filepath.Join(r.dir, "l", form.Glob)
	var err error
	r.log, err = os.Create(filepath.Join(r.dir, "follower.log"))
	r.must(err)
	t.Cleanup(func() {
		r.log.Close()
		if t.Failed() {
			said, _ := os.ReadFile(r.log.Name())
			t.Logf("the follower:\n%s", said)
		}
	})
	return r
}

// TestRotationsWhileStopped guards that no line is lost, doubled or out of order if several rotations happen between
// two checks because the follower is stopped. ROTATIONS is how many there are of each form.
func TestRotationsWhileStopped(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	rotations, err := strconv.Atoi(cmp.Or(os.Getenv("ROTATIONS"), "9"))
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range rotation.Forms {
		if !form.Away {
			continue // what is truncated meanwhile is lost
		}
		t.Run(form.Name, func(t *testing.T) {
			t.Parallel()
			if form.Reopens && os.Geteuid() != 0 {
				t.Skip("whether another user's process has a file open is unknown")
			}
			r := newRotating(t, form)
			r.start()
			defer r.kill()
			r.must(r.out.Open())
			n := 0
			lines := func() {
				for range 1 + r.rand.IntN(4) {
					n++
					_, err := r.out.WriteString(intervalLine(n, float64(n)))
					r.must(err)
				}
			}
			_, err := r.out.WriteString(banner)
			r.must(err)
			for done := 0; done < rotations; {
				lines()
				r.caughtUp(n)
				r.must(r.child.Process.Signal(unix.SIGSTOP))
				for range 1 + r.rand.IntN(4) {
					lines()
					r.must(form.Rotate(r.out))
					done++
				}
				lines()
				r.must(r.child.Process.Signal(unix.SIGCONT))
			}
			r.caughtUp(n)
			r.must(r.out.Close())
			if got := r.numbers(); !slices.Equal(got, slices.Collect(upTo(n))) {
				t.Errorf("copied lines %v", got)
			}
			if said, err := os.ReadFile(r.log.Name()); err != nil || strings.Contains(string(said), "may be missing") {
				t.Errorf("a gap was recorded: %v", err)
			}
		})
	}
}

// TestRotations guards that no line is lost or doubled in any documented form of
// rotation, however often and at whatever byte the follower is killed, and that a
// run continues across it.
func TestRotations(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	for _, form := range rotation.Forms {
		t.Run(form.Name, func(t *testing.T) {
			t.Parallel()
			if form.Reopens && os.Geteuid() != 0 {
				t.Skip("whether another user's process has a file open is unknown")
			}
			r := newRotating(t, form)
			r.start()
			defer r.kill()
			r.must(r.out.Open())
			r.write(banner, false)
			const lines = 60
			want := 0
			for n := 1; n <= lines; n++ {
				r.write(intervalLine(n, float64(n)), n > 1 && r.rand.IntN(6) == 0)
				want += n
				<-time.After(time.Duration(r.rand.IntN(5)) * time.Millisecond)
				if n%15 != 0 {
					continue
				}
				if !form.Away || n == 15 { // found, at least
					r.caughtUp(n)
				}
				if form.Away && r.rand.IntN(2) == 0 {
					r.kill()
				}
				r.must(form.Rotate(r.out))
				if r.child == nil {
					r.start()
				}
			}
			r.caughtUp(lines)
			r.write("\n"+summaryText(want, lines+0.1), false)
			r.must(r.out.Close())
			r.kill()
			w := watch(t, Options{DataDir: filepath.Join(r.dir, "data"), Logs: func() []toollog.Log {
				return []toollog.Log{{Glob: r.glob, Tool: "sysbench"}}
			}}, hasty)
			s := w.until("", "over", over)
			w.stop()
			got := r.numbers()
			slices.Sort(got)
			if !slices.Equal(got, slices.Collect(upTo(lines))) {
				t.Errorf("copied lines %v", got)
			}
			ids, err := rundir.List(filepath.Join(r.dir, "data"))
			if err != nil || len(ids) != 1 || s.Meta.Outcome != rundir.Succeeded || s.Totals["transaction"] != float64(want) || r.parsed() != want {
				t.Errorf("runs %s, the first %s with %v, want one of %d (%v)", strings.Join(ids, " "), s.Meta.Outcome, s.Totals, want, err)
			}
			r.must(os.RemoveAll(filepath.Join(r.dir, "l")))
			if r.parsed() != want {
				t.Error("the run needs its log")
			}
		})
	}
}

func upTo(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i + 1) {
				return
			}
		}
	}
}

// TestCountersNeverFall guards that a run is not shown after a restart, and no
// scrape sees a counter of it, until all that was shown before is read again.
func TestCountersNeverFall(t *testing.T) {
	const lines = 30_000
	var output strings.Builder
	output.WriteString(banner)
	for n := 1; n <= lines; n++ {
		output.WriteString(intervalLine(n, 1))
	}
	l := newLogging(t)
	l.append(output.String())
	gate, open := fifo(t)
	_, _, p := started(t, l.data, "one", script(t, output.String())+"; cat "+gate)
	for restart := range 4 {
		w := l.watch()
		shown := map[string]bool{}
		w.untilAll("all shown", func(snaps []ingest.Snapshot) bool {
			for _, s := range snaps {
				if s.CatchingUp {
					continue
				}
				shown[s.Meta.ID] = true
				if restart > 0 && (s.Totals["transaction"] != lines || s.Lines.Reported < lines) {
					t.Fatalf("restart %d, run %s: shown with %v, %+v", restart, s.Meta.ID, s.Totals, s.Lines)
				}
			}
			return len(shown) == 2 && !slices.ContainsFunc(snaps, func(s ingest.Snapshot) bool { return s.Totals["transaction"] != lines })
		})
		w.stop()
	}
	open()
	if _, err := p.Wait(nil); err != nil {
		t.Fatal(err)
	}
}

// TestStoppedWhileCatchingUp guards that a run that is only partly read because the agent stops is not shown.
func TestStoppedWhileCatchingUp(t *testing.T) {
	const lines = 30_000
	var output strings.Builder
	output.WriteString(banner)
	for n := 1; n <= lines; n++ {
		output.WriteString(intervalLine(n, 1))
	}
	l := newLogging(t)
	l.append(output.String())
	gate, open := fifo(t)
	defer open()
	past := time.Now().Add(-time.Hour)
	ended, claim, err := rundir.Create(l.data, rundir.Meta{
		ID:        "ended",
		Benchmark: rundir.Benchmark{Tool: "sysbench"},
		Timing:    rundir.Timing{StartedAt: past},
		End:       rundir.End{EndedAt: &past},
		Closing:   rundir.Closing{ClosedAt: &past},
	})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	write(t, ended.Path(rundir.StdoutFile), output.String())
	started(t, l.data, "one", script(t, output.String())+"; cat "+gate)
	whole := func(s ingest.Snapshot) bool { return s.Totals["transaction"] == lines }
	first := l.watch()
	first.untilAll("all read", func(snaps []ingest.Snapshot) bool {
		return len(snaps) == 3 && !slices.ContainsFunc(snaps, func(s ingest.Snapshot) bool { return !whole(s) })
	})
	first.stop()
	for _, n := range []int{1, 100, lines, lines + 100, 2*lines - 100} {
		sink := &countdown{done: make(chan struct{})}
		sink.left.Store(int64(n))
		w := l.watch(func(w *Watcher) { w.opts.Sink = sink })
		stopped := make(chan struct{})
		go func() {
			<-sink.done
			w.stop()
			close(stopped)
		}()
		for over := false; !over; {
			select {
			case <-stopped:
				over = true // and once more
			default:
			}
			for _, s := range w.Snapshots() {
				if !s.CatchingUp && !whole(s) {
					t.Fatalf("stopped after %d lines, run %s: shown with %v, %+v", n, s.Meta.ID, s.Totals, s.Lines)
				}
			}
		}
	}
}

// countdown is a sink that closes done with the last of so many intervals.
type countdown struct {
	Discard
	left atomic.Int64
	done chan struct{}
}

func (c *countdown) Interval(string, float64, *tool.Report, bool) {
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}

// TestRefusedLogs guards that paths that are not regular files are refused once, and stop neither the other logs nor
// the agent.
func TestRefusedLogs(t *testing.T) {
	l := newLogging(t)
	folder := filepath.Dir(l.path)
	for _, err := range []error{
		unix.Mkfifo(filepath.Join(folder, "0.log"), 0o600), os.Mkdir(filepath.Join(folder, "1.log"), 0o700),
		os.Symlink("/dev/zero", filepath.Join(folder, "2.log")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var said strings.Builder
	w := watch(t, Options{DataDir: l.data, Logs: func() []toollog.Log { return []toollog.Log{{Glob: filepath.Join(folder, "*.log")}} }},
		func(w *Watcher) { w.opts.Logger = slog.New(slog.NewTextHandler(&said, nil)) })
	l.append(banner + intervalLine(1, 10))
	w.runs(10)
	l.append(intervalLine(2, 10))
	w.runs(20)
	began := time.Now()
	w.stop()
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("stopped after %s", d)
	}
	if n := strings.Count(said.String(), "log not followed"); n != 3 {
		t.Errorf("said %d times:\n%s", n, said.String())
	}
}

// TestUTF16 guards that a log that can't be read is reported, whether its tool is configured or not.
func TestUTF16(t *testing.T) {
	for _, tool := range []string{"", "sysbench"} {
		l := newLogging(t)
		text := "\xff\xfe"
		for _, c := range banner + intervalLine(1, 10) {
			text += string(c) + "\x00"
		}
		l.append(text)
		var said lockedBuilder
		w := watch(t, Options{DataDir: l.data, Logs: func() []toollog.Log { return []toollog.Log{{Glob: l.path, Tool: tool}} }},
			func(w *Watcher) {
				w.opts.Logger = slog.New(slog.NewTextHandler(&said, nil))
				w.recentLog = time.Nanosecond
			})
		waitFor(t, "reported, with tool "+tool, func() bool { return strings.Contains(said.String(), "UTF-16") })
		w.stop()
	}
}

// lockedBuilder is a strings.Builder for several goroutines.
type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuilder) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuilder) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestLastLineWithoutEnd guards that a summary counts whose last line has no end.
func TestLastLineWithoutEnd(t *testing.T) {
	l := newLogging(t)
	w := l.watch(hasty)
	text := banner + intervalLine(1, 10) + summaryText(11, 1.1)
	l.append(text[:strings.LastIndex(text, "execution time")])
	l.append(strings.TrimRight(text[strings.LastIndex(text, "execution time"):], "\n"))
	w.until("", "over", func(s ingest.Snapshot) bool {
		return over(s) && s.Meta.Outcome == rundir.Succeeded && s.Totals["transaction"] == 11
	})
}
