package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/launch"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// toolEnd is how a tool ended.
type toolEnd struct {
	status int
	// aborted: a condition of --abort-when held. terminated: SIGTERM came, whose sender waits for this process.
	aborted, terminated bool
	// unrecorded: the end of the run could not be written (a full disk), so no agent will close it.
	unrecorded bool
}

// execute runs the tool to its end, or reads its output to the end. An error means that nothing was run.
func (r *runner) execute(ctx context.Context, p *plan, rec recording, signals <-chan os.Signal) (toolEnd, error) {
	if p.output != nil {
		return r.pipe(ctx, p.output, rec.dir, signals)
	}
	return r.start(ctx, p, rec, signals)
}

func (r *runner) start(ctx context.Context, p *plan, rec recording, signals <-chan os.Signal) (end toolEnd, err error) {
	began := time.Now()
	process, err := launch.Start(rec.dir, p.command.Start)
	if err != nil {
		rec.remove(r.streams)
		return end, cantStart(err)
	}
	if logs := p.command.Description.LatencyLogs; len(logs) > 0 && p.command.Place == tool.PlaceHere {
		files := ingest.Latencies{Tool: p.command.Tool, Patterns: logs, PID: process.Cmd.Process.Pid, Since: began}
		process.OnEnd = func(ctx context.Context) {
			if err := files.Keep(ctx, rec.dir); err != nil {
				r.streams.notice("note: the run has no histogram of its latencies: %v", err)
			}
		}
	}
	finish := make(chan struct{})
	var mirror sync.WaitGroup
	mirror.Go(func() {
		if err := launch.Show(ctx, rec.dir, r.shown(), r.streams.Err, r.log, finish); err != nil && ctx.Err() == nil {
			r.streams.notice("%v", err)
		}
	})
	mirror.Go(func() { r.showTime(rec.dir, finish) })
	passed, isAborted := r.watchToAbort(ctx, rec.dir, signals, finish, &mirror)
	end.status, err = process.Wait(passed)
	close(finish)
	mirror.Wait()
	end.aborted = isAborted()
	end.terminated = process.Terminated && !end.aborted
	if err != nil { // the tool has run: its status counts
		r.streams.notice("%v", err)
		end.unrecorded = !process.RecordAgain(signals)
	}
	return end, nil
}

// shown returns the writer that shows the tool's output, unless the result is for a program.
func (r *runner) shown() io.Writer {
	if r.format == jsonFormat {
		return io.Discard
	}
	return r.streams.Out
}

// showTime shows how much of the requested time is left, until finish is closed.
func (r *runner) showTime(dir rundir.Directory, finish <-chan struct{}) {
	meta, err := dir.Load()
	if r.progress == nil || err != nil || meta.DurationSeconds <= 0 {
		return
	}
	defer r.progress.Clear()
	whole, began := time.Duration(meta.DurationSeconds*float64(time.Second)), time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-finish:
			return
		case <-tick.C:
			r.progress.Time("benchwatch:", time.Since(began), whole)
		}
	}
}

func (r *runner) pipe(ctx context.Context, output io.Reader, dir rundir.Directory, signals <-chan os.Signal) (toolEnd, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var caught os.Signal
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case caught = <-signals:
			stop()
		case <-ctx.Done():
		}
	}()
	err := launch.Pipe(ctx, dir, output, r.shown())
	stop()
	<-watching
	if err != nil {
		return toolEnd{}, ownFailure(err, "")
	}
	return toolEnd{terminated: caught == syscall.SIGTERM}, nil
}

// catchSignals receives the signals that are passed on to the tool, until signal.Stop. One
// that was ignored when the process started (nohup, a background job) stays ignored, for
// the tool as well.
func catchSignals() chan os.Signal {
	signals := make(chan os.Signal, 8)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a closed terminal is an error of write, not our end
	return signals
}

func cantStart(err error) error {
	status := exitOwnFailure
	lookup, isLookup := errors.AsType[*exec.Error](err)
	switch {
	case isLookup && errors.Is(err, exec.ErrNotFound):
		if strings.Contains(lookup.Name, " ") {
			return &exitError{Status: exitNotFound, Hint: "leave out the quotes",
				Err: fmt.Errorf("%q was not found in $PATH", lookup.Name)}
		}
		return &exitError{Status: exitNotFound, Hint: "install it, or give its full path",
			Err: fmt.Errorf("%s was not found in $PATH", lookup.Name)}
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		status = exitNotFound
	case errors.Is(err, fs.ErrPermission):
		status = exitCantRun
	}
	return &exitError{Status: status, Err: err}
}
