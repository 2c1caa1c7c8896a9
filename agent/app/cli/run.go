package cli

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/app/observer"
	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// runFlags are the flags and arguments of `benchwatch run`.
type runFlags struct {
	*observing
	*selecting
	*grouping
	*connecting
	describing
	*sampling
	waitReady bool
	timeout   time.Duration
	quiet     bool
	format    string
	linger    time.Duration
	abort     *aborting
	require   *requiring
	captures  *capturing
}

// describing are the command of the benchmark and the flags that describe its run. Generators on other machines get
// them, too.
type describing struct {
	command []string
	title   string
	labels  map[string]string
	id      string
	tool    string
	inject  bool
}

// runner is what all steps of a run use. They don't change it.
type runner struct {
	*runFlags
	console
	log    *slog.Logger
	config *config.Config
}

// console is where a run shows messages and the tool's output.
type console struct {
	streams  Streams
	terminal terminal.Terminal  // of the messages
	progress *terminal.Progress // nil: none is shown
}

func newRun() *cobra.Command {
	cmd := newCommand("run", "Run a benchmark and record it. The command '-' reads output from a pipe.",
		"benchwatch run --sample -- sysbench oltp_read_write --threads=16 --time=60 run")
	r := &runFlags{}
	r.sampling = addSampling(cmd)
	cmd.text(&r.title, "title", "TEXT", "Title of the run (default: workload, threads and target)")
	cmd.labels(&r.labels, "label", "Label of the run; repeatable")
	cmd.toggle(&r.quiet, "quiet,q", "Print only the tool's output, warnings and errors")
	addFormat(cmd, &r.format, text, jsonFormat)
	r.abort = addAborting(cmd)
	r.require = addRequiring(cmd)
	r.captures = addCapturing(cmd)
	r.selecting = addSelecting(cmd)
	cmd.text(&r.tool, "tool", "NAME", "Benchmark tool (default: recognised from the command)")
	cmd.text(&r.id, "run-id", "ID", "Id of the run (default: start time, workload and threads)")
	addInject(cmd, &r.inject)
	addDrainTimeout(cmd, &r.timeout, "Wait at most this long for replicas to catch up")
	addWaitReady(cmd, &r.waitReady)
	cmd.duration(&r.linger, "linger", "Serve metrics this long after the run; not if an agent is running (default: 10s on a terminal, else 0s)")
	r.grouping = addGrouping(cmd)
	r.connecting = addConnecting(cmd)
	r.observing = addObserving(cmd, "warn")
	cmd.benchmark(&r.command, "Command line of the benchmark; after -- if its options may be for benchwatch")
	return cmd.does(func(s Streams) error {
		out := console{streams: s, terminal: terminal.Of(s.Err)}
		if !r.quiet {
			out.progress = terminal.NewProgress(s.Err)
		}
		out.streams.Out, out.streams.Err = out.progress.Above(s.Out), out.progress.Above(s.Err)
		defer out.progress.Clear()
		if !cmd.Flags().Changed("linger") && out.terminal.Is {
			r.linger = defaultLinger
		}
		return r.run(out)
	})
}

// defaultLinger is how long people have to look at the page after the end.
const defaultLinger = 10 * time.Second

func ownFailure(err error, hint string) error {
	return &exitError{Status: exitOwnFailure, Err: err, Hint: hint}
}

// run is `benchwatch run`.
func (f *runFlags) run(out console) error {
	if err := f.check(); err != nil {
		return err
	}
	c, err := f.load()
	if err != nil {
		return ownFailure(err, "")
	}
	r := runner{runFlags: f, console: out, log: f.logger(out.streams), config: c}
	if len(f.on) > 0 {
		return r.runOn()
	}
	if err := f.abort.connect(context.Background(), c.Prometheus.URL); err != nil {
		return err
	}
	p, err := r.newPlan("")
	if err != nil {
		return err
	}
	rec, err := r.create(p.meta, p.login)
	if err != nil {
		return err
	}
	defer rec.release(out.streams)
	r.printNotes(&p)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	signals := catchSignals()
	defer signal.Stop(signals)
	own, err := r.observe(ctx, rec.dir)
	if err != nil {
		rec.remove(out.streams)
		return err
	}
	if err := r.awaitStart(rec.dir, out.streams, signals); err != nil {
		own.stop()
		r.endBeforeStart(ctx, rec)
		return ownFailure(err, "")
	}
	end, err := r.execute(ctx, &p, rec, signals)
	if err != nil {
		own.stop()
		return err
	}
	if end.terminated {
		skipWaits(signals)
	}
	h := r.finish(own, rec.dir, finishing{unsampled: p.unsampled, unrecorded: end.unrecorded}, signals)
	switch {
	case end.aborted:
		return &exitError{Status: exitAborted}
	case end.status != 0:
		return &exitError{Status: end.status}
	}
	if err := r.require.verdict(h); err != nil {
		return err
	}
	if r.isPiped() && h != nil && didFail(h) { // the outcome was printed, and no exit status of the tool is known
		return &exitError{Status: exitFailure}
	}
	return nil
}

// check checks the options that need no configuration.
func (f *runFlags) check() error {
	if len(f.command) == 0 {
		return &exitError{Status: exitUsage, Err: errors.New("no command given"), Hint: "benchwatch run sysbench … run"}
	}
	if err := errors.Join(f.abort.check(), f.require.check(), f.captures.check()); err != nil {
		return err
	}
	switch {
	case len(f.abort.conditions) > 0 && f.isPiped():
		return &exitError{Status: exitUsage, Err: errors.New("--abort-when can't end a tool whose output is piped"),
			Hint: "benchwatch run --abort-when 'lag>10s' -- sysbench … run"}
	case len(f.on) > 0:
		return f.checkRemote()
	}
	if err := f.grouping.check(time.Now()); err != nil {
		return err
	}
	if f.grouping.name != "" && f.id != "" {
		return &exitError{Status: exitUsage,
			Err: errors.New("--run-id and --group: the group numbers its runs"), Hint: "leave out --run-id"}
	}
	return nil
}

// note prints a notice that is not a warning.
func (r *runner) note(format string, args ...any) {
	if !r.quiet {
		r.streams.notice(format, args...)
	}
}

// printNotes prints what the user should know before the tool starts.
func (r *runner) printNotes(p *plan) {
	if space, err := rundir.SpaceOf(r.config.DataDir); err == nil {
		if note := space.Short(p.command.Description.Duration); note != "" {
			r.streams.notice("note: %s", note)
		}
	}
	for _, note := range p.command.Description.Notes {
		r.note("note: %s", note)
	}
	if p.meta.Tool == "" {
		r.note("note: no known benchmark tool in this command: its output is kept, but not parsed; name the tool with --tool")
	}
	if len(p.command.Added) > 0 {
		r.note("added %s for live reports (--no-inject leaves the command unchanged)", strings.Join(p.command.Added, " "))
	}
}

func (f *runFlags) isPiped() bool { return len(f.command) == 1 && f.command[0] == "-" }

// observe starts an observer for this run unless an agent does that.
func (r *runner) observe(ctx context.Context, dir rundir.Directory) (*observation, error) {
	own := &observation{}
	if agent, ok := rundir.Agent(r.config.DataDir); ok {
		if agent.URL != "" {
			r.note("live page at %s#/runs/%s, served by the agent", agent.URL, url.PathEscape(dir.ID()))
		}
		return own, nil
	}
	if err := r.begin(ctx, own, observer.Options{Config: r.config, Only: observedRuns(dir), Logger: r.log}, r.streams); err != nil {
		return nil, ownFailure(err, "")
	}
	r.note("live page at %s (metrics at /metrics)", own.page)
	return own, nil
}

// observedRuns are the ids of the run and, for a group, of its generators.
func observedRuns(dir rundir.Directory) []string {
	ids := []string{dir.ID()}
	if meta, err := dir.Load(); err == nil && meta.IsGroup() {
		for i := range meta.Group.Generators {
			ids = append(ids, rundir.GeneratorID(meta.Group.Name, i+1))
		}
	}
	return ids
}
