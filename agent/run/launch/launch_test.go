package launch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// create returns a new run's directory.
func create(t *testing.T) rundir.Directory {
	t.Helper()
	dir, claim, err := rundir.Create(t.TempDir(), rundir.Meta{Timing: rundir.Timing{StartedAt: time.Now()}})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	return dir
}

func start(t *testing.T, dir rundir.Directory, script string) *Process {
	t.Helper()
	p, err := Start(dir, []string{"sh", "-c", script})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func load(t *testing.T, dir rundir.Directory) rundir.Meta {
	t.Helper()
	meta, err := dir.Load()
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

func read(t *testing.T, dir rundir.Directory, name string) string {
	t.Helper()
	data, err := os.ReadFile(dir.Path(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// awaitEnd waits until everything that the tool started has ended.
func awaitEnd(t *testing.T, dir rundir.Directory) {
	t.Helper()
	lock, err := dir.Lock(rundir.ToolLock, true) // its processes hold it
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
}

func TestEndOfATool(t *testing.T) {
	for _, c := range []struct {
		name, script string
		status       int
		outcome      rundir.Outcome
		signal       string
	}{
		{"success", "true", 0, rundir.Succeeded, ""},
		{"failure", "exit 3", 3, rundir.Failed, ""},
		{"killed by itself", "kill -9 $$", 137, rundir.Failed, "SIGKILL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := create(t)
			p := start(t, dir, "echo out; echo err >&2; "+c.script)
			if meta := load(t, dir); meta.PID != p.Cmd.Process.Pid || meta.EndedAt != nil {
				t.Errorf("run.json of the started tool has process %d, end %v", meta.PID, meta.EndedAt)
			}
			ended := false
			p.OnEnd = func(context.Context) { ended = load(t, dir).EndedAt == nil }
			status, err := p.Wait(nil)
			meta := load(t, dir)
			if err != nil || status != c.status || meta.Outcome != c.outcome || meta.Signal != c.signal || meta.EndedAt == nil {
				t.Errorf("status %d, %v; %s, signal %q, end %v", status, err, meta.Outcome, meta.Signal, meta.EndedAt)
			}
			if (c.signal == "") != (meta.ExitCode != nil) || meta.ExitCode != nil && *meta.ExitCode != c.status {
				t.Errorf("exit code %v", meta.ExitCode)
			}
			if !ended {
				t.Error("OnEnd was not called before the end was written")
			}
			if out, errs := read(t, dir, rundir.StdoutFile), read(t, dir, rundir.StderrFile); out != "out\n" || errs != "err\n" {
				t.Errorf("output %q, %q", out, errs)
			}
		})
	}
}

// TestSignals guards that signals reach the tool's children, that a tool that ends in its own way
// after a signal counts as interrupted, and that Terminated is set for SIGTERM.
func TestSignals(t *testing.T) {
	for _, c := range []struct {
		name, script string
		send         syscall.Signal
		status       int
		outcome      rundir.Outcome
		terminated   bool
	}{
		{"its end by the signal", "sleep 600 & echo ready; wait", syscall.SIGTERM, 143, rundir.Interrupted, true},
		{"its own status", "trap 'exit 7' INT; echo ready; while :; do sleep 0.01; done", syscall.SIGINT, 7, rundir.Interrupted, false},
		{"a signal that asks for something else", "trap 'exit 7' USR1; echo ready; while :; do sleep 0.01; done", syscall.SIGUSR1, 7, rundir.Failed, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := create(t)
			p := start(t, dir, c.script)
			shown, show := io.Pipe()
			showing, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- Show(showing, dir, show, io.Discard, slog.New(slog.DiscardHandler), nil)
			}()
			if _, err := io.ReadFull(shown, make([]byte, len("ready\n"))); err != nil {
				t.Fatal(err)
			}
			signals := make(chan os.Signal, 1)
			signals <- c.send
			status, err := p.Wait(signals)
			stop()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("show: %v", err)
			}
			if meta := load(t, dir); err != nil || status != c.status || meta.Outcome != c.outcome || p.Terminated != c.terminated {
				t.Errorf("status %d, %v; %s, terminated %t", status, err, meta.Outcome, p.Terminated)
			}
			awaitEnd(t, dir)
			if err := p.Signal(syscall.SIGTERM); err != nil {
				t.Errorf("a signal to a tool that has ended: %v", err)
			}
		})
	}
}

// TestActiveRun guards that a run is active as long as any process of its tool is alive.
func TestActiveRun(t *testing.T) {
	dir := create(t)
	fifo := dir.Path("fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, dir, "read line < '"+fifo+"' & exit 0")
	if _, err := p.Wait(nil); err != nil {
		t.Fatal(err)
	}
	if meta := load(t, dir); !dir.Running(&meta) {
		t.Error("a run of which the tool's child is still there is over")
	}
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	awaitEnd(t, dir)
	if meta := load(t, dir); dir.Running(&meta) {
		t.Error("a run whose tool has ended is active")
	}
}

func TestProgramThatIsMissing(t *testing.T) {
	dir := create(t)
	if _, err := Start(dir, []string{"/no/such/tool"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if meta := load(t, dir); meta.PID != 0 || dir.Running(&meta) {
		t.Errorf("process %d", meta.PID)
	}
}

// TestSlowOnEnd guards that a signal interrupts OnEnd.
func TestSlowOnEnd(t *testing.T) {
	dir := create(t)
	p := start(t, dir, "true")
	signals := make(chan os.Signal)
	p.OnEnd = func(ctx context.Context) {
		signals <- syscall.SIGTERM
		<-ctx.Done()
	}
	if status, err := p.Wait(signals); err != nil || status != 0 || load(t, dir).Outcome != rundir.Succeeded {
		t.Errorf("status %d, %v", status, err)
	}
}

// TestEndThatCanNotBeWritten guards that the exit status is kept until run.json can be written.
func TestEndThatCanNotBeWritten(t *testing.T) {
	dir := create(t)
	p := start(t, dir, "exit 4")
	aside := string(dir) + ".aside"
	p.OnEnd = func(context.Context) {
		if err := os.Rename(string(dir), aside); err != nil {
			t.Error(err)
		}
	}
	if status, err := p.Wait(nil); err == nil || status != 4 {
		t.Errorf("status %d, %v", status, err)
	}
	if err := os.Rename(aside, string(dir)); err != nil {
		t.Fatal(err)
	}
	if !p.RecordAgain(nil) {
		t.Error("not recorded")
	}
	if meta := load(t, dir); meta.ExitCode == nil || *meta.ExitCode != 4 {
		t.Errorf("exit code %v", meta.ExitCode)
	}
}

func TestPipe(t *testing.T) {
	t.Run("a closed terminal", func(t *testing.T) {
		dir := create(t)
		if err := Pipe(t.Context(), dir, strings.NewReader("one\ntwo\n"), closed{}); err != nil {
			t.Fatal(err)
		}
		if got := read(t, dir, rundir.StdoutFile); got != "one\ntwo\n" || load(t, dir).Outcome != rundir.Lost {
			t.Errorf("%q, %s", got, load(t, dir).Outcome)
		}
	})
	t.Run("an interruption", func(t *testing.T) {
		dir := create(t)
		ctx, cancel := context.WithCancel(t.Context())
		from, to := io.Pipe()
		defer to.Close()
		go func() {
			_, _ = io.WriteString(to, "begun\n") // fails if Pipe ended before
			cancel()
		}()
		var shown bytes.Buffer
		if err := Pipe(ctx, dir, from, &shown); err != nil {
			t.Fatal(err)
		}
		if meta := load(t, dir); meta.Outcome != rundir.Interrupted || meta.EndedAt == nil {
			t.Errorf("%s, end %v", meta.Outcome, meta.EndedAt)
		}
	})
}

// closed is a closed terminal.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, syscall.EIO }

func TestShow(t *testing.T) {
	dir := create(t)
	finish := make(chan struct{})
	p := start(t, dir, "echo one; echo two >&2; echo three")
	if _, err := p.Wait(nil); err != nil {
		t.Fatal(err)
	}
	close(finish)
	var out, errs strings.Builder
	if err := Show(t.Context(), dir, &out, &errs, slog.New(slog.DiscardHandler), finish); err != nil {
		t.Fatal(err)
	}
	if out.String() != "one\nthree\n" || errs.String() != "two\n" {
		t.Errorf("%q, %q", out.String(), errs.String())
	}
	out.Reset()
	if err := Show(t.Context(), dir, &out, closed{}, slog.New(slog.DiscardHandler), finish); err != nil || out.String() != "one\nthree\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}
