package cli

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/abort"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// aborting are the conditions of --abort-when.
type aborting struct {
	texts      []string
	conditions []*abort.Condition
	prometheus *abort.Prometheus // nil: there is no query
}

func addAborting(cmd command) *aborting {
	a := &aborting{}
	cmd.texts(&a.texts, "abort-when", "CONDITION", "End the run (status 5) if this holds: 'lag>10s'; also flow_control>40%, errors>1%, 'p99>1s for 5s' or 'promql:EXPRESSION'; repeatable")
	return a
}

// check reads the conditions.
func (a *aborting) check() error {
	a.conditions = nil
	for _, text := range a.texts {
		c, err := abort.Parse(text)
		if err != nil {
			return &exitError{Status: exitUsage, Err: fmt.Errorf("--abort-when %w", err)}
		}
		a.conditions = append(a.conditions, c)
	}
	return nil
}

// connect evaluates the queries once, so that a run does not start with an invalid query. address is the address of
// Prometheus, empty if the configuration has none.
func (a *aborting) connect(ctx context.Context, address string) error {
	for _, c := range a.conditions {
		if !c.IsQuery() {
			continue
		}
		if address == "" {
			return &exitError{Status: exitUsage, Err: fmt.Errorf("--abort-when %q: the configuration names no Prometheus", c), Hint: "add url under prometheus in benchwatch.yml"}
		}
		if a.prometheus == nil {
			a.prometheus = abort.NewPrometheus(address)
		}
		if err := a.prometheus.Check(ctx, c); err != nil {
			return ownFailure(fmt.Errorf("--abort-when %q: %w", c, err), "")
		}
	}
	return nil
}

// insist is how long a tool may take to end after SIGINT before it gets SIGTERM.
const insist = 10 * time.Second

// watchToAbort passes signals on to the tool. When a condition of --abort-when holds, it writes that to run.json and
// sends SIGINT. It ends with finish; once its parts have ended, isAborted reports whether it ended the run.
func (r *runner) watchToAbort(ctx context.Context, dir rundir.Directory, signals <-chan os.Signal,
	finish <-chan struct{}, parts *sync.WaitGroup) (passed <-chan os.Signal, isAborted func() bool) {
	aborted := false
	isAborted = func() bool { return aborted }
	meta, err := dir.Load()
	if len(r.abort.conditions) == 0 || err != nil {
		return signals, isAborted
	}
	ctx, stop := context.WithCancel(ctx)
	watch := &abort.Watch{Dir: dir, Meta: meta, Tool: r.config.ToolSet().ByName(meta.Tool),
		Conditions: r.abort.conditions, Prometheus: r.abort.prometheus,
		Warn: func(condition, why string) { r.streams.notice("note: --abort-when %s never holds: %s", condition, why) }}
	reason := make(chan string, 1)
	parts.Go(func() { reason <- watch.Wait(ctx) })
	toTool := make(chan os.Signal, cap(signals)+2)
	parts.Go(func() {
		defer stop()
		var again <-chan time.Time
		for {
			select {
			case <-finish:
				stop()
				if again == nil {
					<-reason
				}
				for _, c := range watch.Unknown() {
					r.streams.notice("note: --abort-when %s: no value was known during the run", c)
				}
				return
			case sig := <-signals:
				toTool <- sig
			case words := <-reason:
				if words == "" {
					reason <- ""
					<-finish
					return
				}
				if aborted = r.recordAbort(dir, words); !aborted {
					<-finish
					return
				}
				r.streams.notice("ending the run: %s", words)
				toTool <- syscall.SIGINT
				again = time.After(insist)
			case <-again:
				toTool <- syscall.SIGTERM
				again = time.After(insist)
			}
		}
	})
	return toTool, isAborted
}

// recordAbort records why a run is ended. It returns false if the run has just ended by itself.
func (r *runner) recordAbort(dir rundir.Directory, why string) (isRunning bool) {
	_, err := dir.Update(func(m *rundir.Meta) {
		if !m.Ended() {
			m.Aborted, isRunning = why, true
		}
	})
	if err != nil { // the run must end all the same
		r.streams.notice("%v", err)
		return true
	}
	return isRunning
}
