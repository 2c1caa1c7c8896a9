package mirror

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// machine is another machine's data directory with one run.
type machine struct {
	dir rundir.Directory
}

func (m machine) List(context.Context, time.Duration) (List, error) {
	return List{Runs: Entries{{ID: m.dir.ID()}}}, nil
}

func (m machine) News(_ context.Context, _ string, have *Have) (News, error) {
	meta, err := m.dir.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return News{Gone: true}, nil
	}
	if err != nil {
		return News{}, err
	}
	return Read(m.dir, &meta, Outputs, have)
}

func begin(t *testing.T, dataDir string) rundir.Directory {
	t.Helper()
	dir, claim, err := rundir.Create(dataDir, rundir.Meta{
		ID:      "r",
		Timing:  rundir.Timing{StartedAt: time.Now()},
		Process: rundir.Process{PID: 7},
	})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	return dir
}

func write(t *testing.T, dir rundir.Directory, text string) {
	t.Helper()
	if err := os.WriteFile(dir.Path(rundir.StdoutFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func end(t *testing.T, dir rundir.Directory) {
	t.Helper()
	if _, err := dir.Update(func(m *rundir.Meta) {
		at, code := time.Now().UTC(), 0
		m.EndedAt, m.ClosedAt, m.ExitCode = &at, &at, &code
		m.Conclude(rundir.Output{})
	}); err != nil {
		t.Fatal(err)
	}
}

// TestRead guards that a file is requested from the end of the copy, and that a different file is
// noticed if that end is not in it, whatever its size.
func TestRead(t *testing.T) {
	dir := begin(t, t.TempDir())
	meta, err := dir.Load()
	if err != nil {
		t.Fatal(err)
	}
	const copied = "the first line\n"
	write(t, dir, copied)
	h, err := heldIn(dir.Path(rundir.StdoutFile))
	if err != nil {
		t.Fatal(err)
	}
	have := &Have{Files: map[string]Held{rundir.StdoutFile: h}}
	for name, c := range map[string]struct{ now, news string }{
		"nothing new":      {copied, ""},
		"a line":           {copied + "one\n", "one\n"},
		"cut":              {"the first", "replaced"},
		"empty":            {"", "replaced"},
		"another one":      {"The first line\n", "replaced"},
		"another, longer":  {"another line that is longer\n", "replaced"},
		"zeros in its end": {strings.Repeat("\x00", len(copied)), "replaced"},
	} {
		write(t, dir, c.now)
		n, err := Read(dir, &meta, Outputs, have)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if n.Replaced != "" {
			got = "replaced"
		}
		for _, p := range n.Files {
			got += string(p.Data)
		}
		if got != c.news {
			t.Errorf("%s: %q, want %q", name, got, c.news)
		}
	}
	have.Files["../r/run.json"] = Held{}
	if _, err := Read(dir, &meta, Outputs, have); err == nil {
		t.Error("a file was read that is not served")
	}
}

// TestCopierEnds guards that a Copier with Once returns when no more data will come, and that the
// local run then has an end.
func TestCopierEnds(t *testing.T) {
	for name, c := range map[string]struct {
		here func(t *testing.T, dataDir string) // before the copy begins
		// then happens there, or here, after the copy has begun.
		then    func(t *testing.T, there, here rundir.Directory)
		outcome rundir.Outcome
		problem string
	}{
		"with its end":  {nil, func(t *testing.T, there, _ rundir.Directory) { t.Helper(); end(t, there) }, rundir.Succeeded, ""},
		"removed there": {nil, func(t *testing.T, there, _ rundir.Directory) { t.Helper(); remove(t, there) }, rundir.Lost, "was removed there"},
		"replaced": {
			nil, func(t *testing.T, there, _ rundir.Directory) { t.Helper(); write(t, there, "another\n") }, rundir.Lost, "was replaced there",
		},
		"recorded here": {
			func(t *testing.T, dataDir string) { t.Helper(); begin(t, dataDir) },
			func(t *testing.T, _, here rundir.Directory) { t.Helper(); end(t, here) },
			rundir.Succeeded, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			there, data := begin(t, t.TempDir()), t.TempDir()
			write(t, there, "a line\n")
			here := rundir.At(data, "r")
			if c.here != nil {
				c.here(t, data)
			}
			var problems []string
			copier := Copier{
				DataDir: data, Source: machine{there}, From: rundir.Mirror{Host: "gen1"}, Files: Outputs, Once: true, Interval: time.Millisecond, LongestPause: time.Millisecond,
				Log: slog.New(slog.DiscardHandler), Notify: func(_ string, err error) { problems = append(problems, err.Error()) },
			}
			var running sync.WaitGroup
			defer running.Wait()
			ended := make(chan error, 1)
			running.Go(func() { ended <- copier.Run(t.Context()) })
			for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
				text, _ := os.ReadFile(here.Path(rundir.StdoutFile))
				if string(text) == "a line\n" || c.here != nil && copier.Stats().Up {
					tick.Stop()
					break
				}
			}
			c.then(t, there, here)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if meta, err := here.Load(); err != nil || !meta.Closed() || meta.Outcome != c.outcome || !strings.Contains(meta.Reason, c.problem) {
				t.Errorf("%v, %s: %s", err, meta.Outcome, meta.Reason)
			}
			if c.problem == "" && len(problems) > 0 || c.problem != "" && (len(problems) != 1 || !strings.Contains(problems[0], c.problem)) {
				t.Errorf("%q", problems)
			}
		})
	}
}

func remove(t *testing.T, dir rundir.Directory) {
	t.Helper()
	if err := dir.Remove(); err != nil {
		t.Fatal(err)
	}
}
