package generator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// lab is a group of generators' runs that a test writes.
type lab struct {
	t       *testing.T
	dataDir string
	start   time.Time
	n       int
}

func newLab(t *testing.T, n int) *lab {
	return &lab{t, t.TempDir(), time.Now().Add(-time.Minute).UTC(), n}
}

func (l *lab) add(number int) rundir.Directory {
	l.t.Helper()
	meta := rundir.Meta{
		ID: rundir.GeneratorID("g", number), Title: TitleOf("test", number, l.n),
		Benchmark: rundir.Benchmark{Tool: "sysbench", Verb: "run", Threads: 4, ReportIntervalSeconds: 1},
		Timing:    rundir.Timing{StartedAt: l.start.Add(time.Duration(number) * time.Millisecond)},
		Process:   rundir.Process{PID: 1},
		Origin:    rundir.Origin{Group: &rundir.Group{Name: "g", Generators: l.n, Generator: number, StartAt: &l.start}},
	}
	dir, claim, err := rundir.Create(l.dataDir, meta)
	if err != nil {
		l.t.Fatal(err)
	}
	claim.Release()
	return dir
}

func (l *lab) print(dir rundir.Directory, text string) {
	l.t.Helper()
	f, err := dir.OpenOutput(rundir.StdoutFile)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) end(dir rundir.Directory, outcome rundir.Outcome, reason string) {
	l.t.Helper()
	if _, err := dir.Update(func(m *rundir.Meta) {
		at, code := l.start.Add(30*time.Second), 0
		if outcome == rundir.Failed {
			code = 7
		}
		m.EndedAt, m.ClosedAt, m.ExitCode, m.Outcome, m.Reason = &at, &at, &code, outcome, reason
	}); err != nil {
		l.t.Fatal(err)
	}
}

func sysbenchOutput(number, seconds int) string {
	var b strings.Builder
	b.WriteString("sysbench 1.0.20 (using bundled LuaJIT 2.1.0-beta2)\n\nRunning the test with following options:\nNumber of threads: 4\nReport intermediate results every 1 second(s)\n\n")
	for s := 1; s <= seconds; s++ {
		fmt.Fprintf(&b, "[ %ds ] thds: 4 tps: %d.00 qps: 0.00 (r/w/o: 0.00/0.00/0.00) lat (ms,95%%): %d.00 err/s: 0.00 reconn/s: 0.00\n", s, number*100+s, s)
	}
	return b.String()
}

// read returns the rates of the group.
func (l *lab) read(dir rundir.Directory) (ingest.Snapshot, []float64) {
	l.t.Helper()
	meta, err := dir.Load()
	if err != nil {
		l.t.Fatal(err)
	}
	f := ingest.NewFeed(sysbench.Tool, &meta)
	f.Series = &ingest.Intervals{}
	if err := f.ReadAll(context.Background(), dir); err != nil {
		l.t.Fatal(err)
	}
	f.Close(time.Now())
	return f.Snapshot(meta, time.Now()), f.Series.Rate(tool.Transaction)
}

// A follower that is killed at any byte is continued by the next one: no line of a generator is
// lost or duplicated.
func TestFollowerIsContinued(t *testing.T) {
	for range 30 {
		l := newLab(t, 3)
		var dirs []rundir.Directory
		for i := range l.n {
			dir := l.add(i + 1)
			l.print(dir, sysbenchOutput(i+1, 20))
			l.end(dir, rundir.Succeeded, "")
			dirs = append(dirs, dir)
		}
		dir, err := Find(l.dataDir, "g")
		if err != nil {
			t.Fatal(err)
		}
		if err := (&Follower{Dir: dir}).Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(dir.Path(rundir.StdoutFile))
		if err != nil {
			t.Fatal(err)
		}
		// What a killed process leaves.
		if err := os.Truncate(dir.Path(rundir.StdoutFile), rand.Int64N(int64(len(whole)))); err != nil {
			t.Fatal(err)
		}
		if _, err := dir.Update(func(m *rundir.Meta) {
			m.EndedAt, m.ExitCode, m.Outcome = nil, nil, ""
			for i := range m.Group.Members {
				m.Group.Members[i] = rundir.Member{}
			}
		}); err != nil {
			t.Fatal(err)
		}
		if err := (&Follower{Dir: dir}).Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		journal, err := os.ReadFile(dir.Path(rundir.StdoutFile))
		if err != nil {
			t.Fatal(err)
		}
		for i, own := range dirs {
			want, err := os.ReadFile(own.Path(rundir.StdoutFile))
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			for line := range strings.Lines(string(journal)) {
				if text, ok := strings.CutPrefix(line, fmt.Sprintf("%d> ", i+1)); ok {
					got.WriteString(text)
				}
			}
			if d := cmp.Diff(string(want), got.String()); d != "" {
				t.Fatal(d)
			}
		}
		meta, err := dir.Load()
		if err != nil || meta.Outcome != rundir.Succeeded || len(meta.Group.Members) != 3 || meta.Group.Members[1].Outcome != rundir.Succeeded {
			t.Fatalf("%v %+v %+v", err, meta.Outcome, meta.Group)
		}
		if skew, ok := meta.Group.Skew(); !ok || skew < 0.0019 || skew > 0.0021 {
			t.Errorf("skew %v", skew)
		}
		if _, rates := l.read(dir); len(rates) != 20 || rates[19] != 660 {
			t.Errorf("rates %v", rates)
		}
	}
}

func TestFollowerNamesWhatFailed(t *testing.T) {
	l := newLab(t, 2)
	l.print(l.add(1), sysbenchOutput(1, 3))
	second := l.add(2)
	l.print(second, sysbenchOutput(2, 1)+"[ 2s ] thds: 4 tp") // killed within a line
	l.end(l.dir(1), rundir.Succeeded, "")
	l.end(second, rundir.Failed, "ended by SIGKILL")
	dir, err := Find(l.dataDir, "g")
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Follower{Dir: dir}).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	meta, err := dir.Load()
	if err != nil {
		t.Fatal(err)
	}
	if meta.Outcome != rundir.Failed || meta.Reason != "generator 2 failed: ended by SIGKILL" || *meta.ExitCode != 7 {
		t.Errorf("%s: %s, exit status %d", meta.Outcome, meta.Reason, *meta.ExitCode)
	}
	snap, rates := l.read(dir)
	if fmt.Sprint(rates) != "[302 102 103]" { // after its end the group consists of the other one
		t.Errorf("rates %v", rates)
	}
	if n := snap.Summary.Report().Count(tool.Transaction).Value; n != 101+102+103+201 {
		t.Errorf("%d transactions", n)
	}
}

func (l *lab) dir(number int) rundir.Directory {
	return rundir.At(l.dataDir, rundir.GeneratorID("g", number))
}

// The threads of a group are the sum over its generators, or unknown.
func TestThreadsOfAGroup(t *testing.T) {
	for _, tt := range []struct {
		threads []int // of generators with a run
		of      int   // number of generators
		want    int
	}{
		{[]int{1, 2, 3, 4}, 4, 10},
		{[]int{4, 4}, 4, 16},
		{[]int{1, 2}, 4, 0},
	} {
		l := newLab(t, tt.of)
		for i, n := range tt.threads {
			if _, err := l.add(i + 1).Update(func(m *rundir.Meta) { m.Threads = n }); err != nil {
				t.Fatal(err)
			}
		}
		dir, err := Find(l.dataDir, "g")
		if err != nil {
			t.Fatal(err)
		}
		if m, err := dir.Load(); err != nil || m.Threads != tt.want {
			t.Errorf("%v of %d: %d threads, %v", tt.threads, tt.of, m.Threads, err)
		}
	}
}

// Only one process combines a group.
func TestOneFollower(t *testing.T) {
	l := newLab(t, 1)
	l.add(1)
	dir, err := Find(l.dataDir, "g")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := dir.Lock(rundir.ToolLock, false)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := (&Follower{Dir: dir}).Run(context.Background()); err != ErrFollowed { //nolint:errorlint // not wrapped
		t.Errorf("%v", err)
	}
	if _, err := Find(l.dataDir, "other"); err == nil {
		t.Error("found a group without runs")
	}
	if _, err := Find(l.dataDir, "g-g1"); err == nil {
		t.Error("took a generator's run for a group")
	}
}

// A generator whose run can't be read delays its group only by the patience, and is named with the
// reason.
func TestFollowerLeavesOutWhatItCantRead(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(l *lab, dir rundir.Directory) error
		why   string
	}{
		"of another group": {func(_ *lab, dir rundir.Directory) error {
			_, err := dir.Update(func(m *rundir.Meta) { m.Group = nil })
			return err
		}, "is not generator 2 of group g"},
		"damaged": {func(_ *lab, dir rundir.Directory) error {
			return os.WriteFile(dir.Path(rundir.MetaFile), []byte("{"), 0o644)
		}, "damaged run.json"},
		"a link": {func(l *lab, dir rundir.Directory) error {
			return errors.Join(os.Remove(dir.Path(rundir.StdoutFile)), os.Symlink(l.dir(1).Path(rundir.StdoutFile), dir.Path(rundir.StdoutFile)))
		}, "symbolic links"},
		"a named pipe": {func(_ *lab, dir rundir.Directory) error {
			return errors.Join(os.Remove(dir.Path(rundir.StdoutFile)), unix.Mkfifo(dir.Path(rundir.StdoutFile), 0o644))
		}, "is not a regular file"},
		"a hole": {func(_ *lab, dir rundir.Directory) error { return os.Truncate(dir.Path(rundir.StdoutFile), 1<<40) }, "has a hole"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, 2)
			for i := range l.n {
				l.print(l.add(i+1), sysbenchOutput(i+1, 3))
				l.end(l.dir(i+1), rundir.Succeeded, "")
			}
			dir, err := Find(l.dataDir, "g")
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.spoil(l, l.dir(2)); err != nil {
				t.Fatal(err)
			}
			if err := (&Follower{Dir: dir, patience: time.Millisecond}).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			meta, err := dir.Load()
			if err != nil || meta.Outcome == rundir.Succeeded || !strings.Contains(meta.Reason, "generator 2 was lost") || !strings.Contains(meta.Reason, tt.why) {
				t.Errorf("%v %s: %s", err, meta.Outcome, meta.Reason)
			}
		})
	}
}
