package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/benchwatch/benchwatch/agent/config"
	"github.com/benchwatch/benchwatch/agent/follow"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/launch"
	"github.com/benchwatch/benchwatch/agent/observer"
	"github.com/benchwatch/benchwatch/agent/report"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool/commandline"
)

// runCommand is one `benchwatch run`, from its flags to its exit status.
type runCommand struct {
	*observing
	title   *string
	labels  *map[string]string
	id      *string
	tool    *string
	inject  *bool
	linger  *time.Duration
	timeout *time.Duration
	command *[]string

	streams Streams
	log     *slog.Logger
	config  *config.Config
	dir     rundir.Directory
	claim   *rundir.Claim
	// unrecorded: the end of the run could not be written (a full disk), so no
	// agent will close it.
	unrecorded bool
}

func addRun(app *kingpin.Application) (string, action) {
	cmd := addCommand(app, "run", "Run a benchmark tool and follow it. If the command is '-', the output of the tool is read from standard input.",
		"benchwatch run -- sysbench oltp_read_write --threads=16 --time=60 run")
	r := &runCommand{observing: addObserving(cmd, "warn"), labels: &map[string]string{}}
	r.title = cmd.Flag("title", "Title of the run (default: workload, threads and target)").PlaceHolder("TEXT").String()
	cmd.Flag("label", "Label of the run; repeatable").PlaceHolder("K=V").StringMapVar(r.labels)
	r.id = cmd.Flag("run-id", "Id of the run (default: start time, workload and threads)").PlaceHolder("ID").String()
	r.tool = cmd.Flag("tool", "Benchmark tool (default: recognised from the command)").PlaceHolder("NAME").String()
	r.inject = cmd.Flag("inject", "Add the tool's option for a report every second if the command has no such option").Default("true").Bool()
	r.linger = cmd.Flag("linger", "Serve metrics this long after the end of the run, if no agent is running").Default("10s").Duration()
	r.timeout = cmd.Flag("drain-timeout", "Wait at most this long for replicas to catch up (default: runs.drain_timeout of the configuration)").PlaceHolder("DURATION").Duration()
	r.command = cmd.Arg("command", "Command line of the benchmark, after --").Strings()
	return cmd.FullCommand(), func(s Streams) error {
		r.streams = s
		return r.run()
	}
}

func ownFailure(err error, hint string) error {
	return &exitError{Status: exitOwnFailure, Err: err, Hint: hint}
}

func (r *runCommand) run() error {
	if len(*r.command) == 0 {
		return &exitError{Status: exitUsage, Err: errors.New("no command given"), Hint: "benchwatch run -- sysbench … run"}
	}
	r.log = r.logger(r.streams)
	var err error
	if r.config, err = r.load(); err != nil {
		return ownFailure(err, "")
	}
	command, meta, err := r.describe()
	if err != nil {
		return err
	}
	if err = r.create(meta); err != nil {
		return err
	}
	defer r.claim.Release()
	for _, note := range command.Description.Notes {
		r.streams.notice("note: %s", note)
	}
	if meta.Tool == "" {
		r.streams.notice("note: no known benchmark tool in this command: its output is kept, but not parsed; name the tool with --tool")
	}
	if len(command.Added) > 0 {
		r.streams.notice("added %s for live reports (--no-inject leaves the command unchanged)", strings.Join(command.Added, " "))
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	signals := make(chan os.Signal, 8)
	notify(signals)
	defer signal.Stop(signals)

	own, err := r.observe(ctx)
	if err != nil {
		r.remove()
		return err
	}
	status, err := r.execute(ctx, command.Start, signals)
	if err != nil {
		own.stop()
		return err
	}
	r.afterwards(own, signals)
	if status != 0 {
		return &exitError{Status: status}
	}
	return nil
}

func (r *runCommand) isPiped() bool { return len(*r.command) == 1 && (*r.command)[0] == "-" }

// describe reads the command line and returns the facts of the run.
func (r *runCommand) describe() (commandline.Command, rundir.Meta, error) {
	var command commandline.Command
	tools := r.config.ToolSet()
	if *r.tool != "" && tools.ByName(*r.tool) == nil {
		return command, rundir.Meta{}, ownFailure(fmt.Errorf("unknown tool %q", *r.tool), "known tools: "+tools.Names())
	}
	if err := rundir.CheckLabels(*r.labels); err != nil {
		return command, rundir.Meta{}, ownFailure(err, "")
	}
	if !r.isPiped() {
		env := commandline.OS()
		env.NoInject = !*r.inject
		command = commandline.Read(*r.command, tools, env)
		if _, err := exec.LookPath((*r.command)[0]); err != nil {
			return command, rundir.Meta{}, cantStart(err)
		}
	} else if *r.tool == "" {
		return command, rundir.Meta{}, &exitError{Status: exitUsage, Err: errors.New("reading a tool's output from standard input needs --tool"), Hint: "known tools: " + tools.Names()}
	}
	d := command.Description
	host, _ := os.Hostname() // an empty name is better than no run
	meta := rundir.Meta{
		ID: *r.id, Title: *r.title, Labels: map[string]string{}, Tool: *r.tool,
		Verb: d.Command, Workload: d.Workload, Threads: d.Threads, Target: d.Target, Database: d.Database,
		DurationSeconds: d.Duration.Seconds(), ReportIntervalSeconds: d.ReportInterval.Seconds(),
		Command: command.Redacted, Generator: host,
		StartedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
	meta.LatencyPercentile = d.LatencyPercentile
	if *r.timeout > 0 {
		meta.DrainTimeoutSeconds = series.Some(r.timeout.Seconds())
	}
	if meta.Tool == "" && command.Tool != nil {
		meta.Tool = command.Tool.Name
	}
	if len(command.Added) > 0 && meta.ReportIntervalSeconds == 0 {
		meta.ReportIntervalSeconds = 1
	}
	if meta.Title == "" {
		meta.Title = command.Title()
	}
	if meta.Title == "" {
		meta.Title = meta.Tool
	}
	for k, v := range d.Labels {
		if rundir.CheckLabel(k) == nil {
			meta.Labels[k] = v
		}
	}
	maps.Copy(meta.Labels, *r.labels)
	return command, meta, nil
}

// create makes the run directory.
func (r *runCommand) create(meta rundir.Meta) (err error) {
	r.dir, r.claim, err = rundir.Create(r.config.DataDir, meta)
	switch {
	case errors.Is(err, rundir.ErrExists):
		return ownFailure(err, "choose another --run-id")
	case errors.Is(err, fs.ErrPermission):
		return ownFailure(err, r.permissionHint())
	case err != nil:
		return ownFailure(err, "choose another place with --data-dir")
	}
	return nil
}

// permissionHint is for a user who may not write into the runs folder.
func (r *runCommand) permissionHint() string {
	root := rundir.Root(r.config.DataDir)
	if _, ok := rundir.Agent(r.config.DataDir); ok {
		return fmt.Sprintf("an agent follows the runs in %s: as root, share that folder with all users by chmod 3777", root)
	}
	return fmt.Sprintf("%s belongs to another user: choose another place with --data-dir", root)
}

// remove deletes the run directory when nothing was started.
func (r *runCommand) remove() {
	if err := r.dir.Remove(); err != nil {
		r.streams.notice("%v", err)
	}
}

// execute runs the tool to its end, or reads its output to the end, and returns
// its exit status. An error means that nothing was run.
func (r *runCommand) execute(ctx context.Context, args []string, signals <-chan os.Signal) (int, error) {
	if r.isPiped() {
		return 0, r.pipe(ctx, signals)
	}
	return r.start(ctx, args, signals)
}

func (r *runCommand) start(ctx context.Context, args []string, signals <-chan os.Signal) (int, error) {
	process, err := launch.Start(r.dir, args)
	if err != nil {
		r.remove()
		return 0, cantStart(err)
	}
	finish := make(chan struct{})
	var mirror sync.WaitGroup
	mirror.Go(func() {
		notifier, err := follow.NewNotifier(r.log)
		if err != nil {
			notifier = nil // polling does as well
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		if notifier != nil {
			mirror.Go(func() { notifier.Run(ctx) })
		}
		if err := launch.Mirror(ctx, r.dir, r.streams.Out, r.streams.Err, notifier, finish); err != nil && ctx.Err() == nil {
			r.streams.notice("%v", err)
		}
	})
	status, err := process.Wait(signals)
	close(finish)
	mirror.Wait()
	if err != nil { // the tool has run: its status counts
		r.streams.notice("%v", err)
		r.unrecorded = !recordAgain(process, signals)
	}
	return status, nil
}

// recordPatience is how long the wrapper tries to write a run's end, for
// instance until a full disk has room again.
const recordPatience = 30 * time.Second

// recordAgain tries to write the run's end until it succeeds, patience ends or
// a signal comes. An agent finds the end out later, but not the exit status.
func recordAgain(process *launch.Process, signals <-chan os.Signal) bool {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	patience := time.After(recordPatience)
	for {
		select {
		case <-tick.C:
			if process.Record() == nil {
				return true
			}
		case <-patience:
			return false
		case <-signals:
			return false
		}
	}
}

func (r *runCommand) pipe(ctx context.Context, signals <-chan os.Signal) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-signals:
			stop()
		case <-ctx.Done():
		}
	}()
	if err := launch.Pipe(ctx, r.dir, r.streams.In, r.streams.Out); err != nil {
		return ownFailure(err, "")
	}
	return nil
}

// notify asks for the signals that are passed on to the tool. One that was
// ignored when we were started (nohup, a background job) stays ignored, for
// the tool as well.
func notify(signals chan<- os.Signal) {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a closed terminal is an error of write, not our end
}

func cantStart(err error) error {
	status := exitOwnFailure
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		status = exitNotFound
	case errors.Is(err, fs.ErrPermission):
		status = exitCantRun
	}
	return &exitError{Status: status, Err: err}
}

// observation is the observer in this process, or none where an agent has the
// data directory.
type observation struct {
	observer *observer.Observer
	parts    sync.WaitGroup
	cancel   context.CancelFunc
}

func (o *observation) stop() {
	if o.cancel != nil {
		o.cancel()
	}
	o.parts.Wait()
}

// observe starts an observer for this run unless an agent does that.
func (r *runCommand) observe(ctx context.Context) (*observation, error) {
	own := &observation{}
	if _, ok := rundir.Agent(r.config.DataDir); ok {
		return own, nil
	}
	ls, err := r.listen(true)
	if err != nil {
		return nil, ownFailure(err, "")
	}
	b, err := observer.New(observer.Options{Config: r.config, Only: []string{r.dir.ID()}, Logger: r.log})
	if err != nil {
		ls[0].Close()
		return nil, ownFailure(err, "")
	}
	r.streams.notice("live page at http://%s/ (metrics at /metrics)", ls[0].Addr())
	ctx, own.cancel = context.WithCancel(ctx)
	own.observer = b
	own.parts.Go(func() {
		if err := b.Run(ctx); err != nil {
			r.streams.notice("%v", err)
		}
	})
	own.parts.Go(func() {
		if err := r.serve(ctx, b, ls, r.log); err != nil {
			r.streams.notice("%v", err)
		}
	})
	return own, nil
}

// afterwards waits for the replicas, prints the table and lingers. A signal
// ends each of the waits.
func (r *runCommand) afterwards(own *observation, signals <-chan os.Signal) {
	defer own.stop()
	ended := time.Now()
	if !r.unrecorded {
		r.awaitClosed(own, signals)
	}
	meta, err := r.dir.Load()
	if err != nil {
		r.streams.notice("%v", err)
		return
	}
	snap, err := ingest.Read(context.Background(), r.dir, r.config.ToolSet().ByName(meta.Tool))
	if err != nil {
		r.streams.notice("%v", err)
	}
	_ = report.WriteOutcome(r.streams.Err, &snap) // no one reads it if stderr is gone
	r.streams.notice("run %s: %s", meta.ID, r.dir)
	if own.observer == nil {
		return
	}
	if wait := *r.linger - time.Since(ended); wait > 0 {
		r.streams.notice("serving metrics for %s more (Ctrl-C ends it)", wait.Round(time.Second))
		select {
		case <-time.After(wait):
		case <-signals:
		}
	}
	if n := own.observer.PendingMarkers(); n > 0 {
		r.streams.notice("%d markers not delivered to Grafana: an agent on this data directory will send them", n)
	}
}

// agentGrace is how long an agent may be away, for a restart, before the
// wrapper stops waiting for what it would write.
const agentGrace = 5 * time.Second

func (r *runCommand) awaitClosed(own *observation, signals <-chan os.Signal) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	began, seen := time.Now(), time.Now()
	told := false
	for {
		meta, err := r.dir.Load()
		if err == nil && meta.Closed() {
			return
		}
		if own.observer == nil {
			if _, ok := rundir.Agent(r.config.DataDir); ok {
				seen = time.Now()
			} else if time.Since(seen) > agentGrace {
				r.streams.notice("the agent ended: not waiting for replicas")
				return
			}
		}
		if !told && time.Since(began) > 2*time.Second {
			told = true
			r.streams.notice("waiting for replicas to catch up (Ctrl-C to stop waiting)")
		}
		select {
		case <-tick.C:
		case <-signals:
			if own.observer == nil {
				return
			}
			own.observer.GiveUpDrain()
		}
	}
}
