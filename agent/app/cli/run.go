package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/app/observer"
	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/base/terminal"
	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/commandline"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/launch"
	"github.com/benchwatch/benchwatch/agent/run/live"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// runCommand is one `benchwatch run`, from its flags to its exit status.
type runCommand struct {
	*observing
	*selecting
	*grouping
	*connecting
	title  string
	labels map[string]string
	id     string
	tool   string
	input  io.Reader // the tool's output, if it is piped
	inject bool
	*sampling
	quiet  bool
	linger time.Duration
	// lingerSet: --linger was given.
	lingerSet bool
	timeout   time.Duration
	command   []string
	format    string
	waitReady bool
	abort     *aborting
	require   *requiring
	captures  *capturing
	// aborted: a condition of --abort-when held. terminated: SIGTERM came, whose sender waits for
	// this process.
	aborted, terminated bool

	streams  Streams
	terminal terminal.Terminal // of the messages
	progress *terminal.Progress
	log      *slog.Logger
	config   *config.Config
	dir      rundir.Directory
	claim    *rundir.Claim
	// login of the tool, lent to the agent or this process's observer until stopLending; nil: not lent.
	login       *rundir.Login
	stopLending func()
	// unsampled is what the summary prints if no server was sampled.
	unsampled string
	// unrecorded: the end of the run could not be written (a full disk), so no
	// agent will close it.
	unrecorded bool
}

func newRun() *cobra.Command {
	cmd := newCommand("run", "Run a benchmark and record it. The command '-' reads output from a pipe.",
		"benchwatch run --sample -- sysbench oltp_read_write --threads=16 --time=60 run")
	r := &runCommand{}
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
	cmd.duration(&r.timeout, "drain-timeout",
		"Wait at most this long for replicas to catch up (default: runs.drain_timeout of the configuration)")
	addWaitReady(cmd, &r.waitReady)
	cmd.duration(&r.linger, "linger", "Serve metrics this long after the run; not if an agent is running (default: 10s on a terminal, else 0s)")
	r.grouping = addGrouping(cmd)
	r.connecting = addConnecting(cmd)
	r.observing = addObserving(cmd, "warn")
	cmd.benchmark(&r.command, "Command line of the benchmark; after -- if its options may be for benchwatch")
	return cmd.does(func(s Streams) error {
		r.lingerSet = cmd.Flags().Changed("linger")
		r.streams, r.terminal = s, terminal.Of(s.Err)
		if !r.quiet {
			r.progress = terminal.NewProgress(s.Err)
		}
		r.streams.Out, r.streams.Err = r.progress.Above(s.Out), r.progress.Above(s.Err)
		defer r.progress.Clear()
		return r.run()
	})
}

func ownFailure(err error, hint string) error {
	return &exitError{Status: exitOwnFailure, Err: err, Hint: hint}
}

// prepare describes the run, and waits for its servers. place is where the tool runs, empty if that is
// seen from its command.
func (r *runCommand) prepare(place tool.Place) (commandline.Command, rundir.Meta, error) {
	command, meta, err := r.describe()
	if err != nil {
		return command, meta, err
	}
	meta.Place = cmp.Or(place, meta.Place)
	if err := r.chooseServers(&command, &meta); err != nil {
		return command, meta, err
	}
	return command, meta, r.awaitReady(context.Background(), &meta)
}

func (r *runCommand) run() error {
	err := r.check()
	if err != nil {
		return err
	}
	r.log = r.logger(r.streams)
	if len(r.on) > 0 {
		return r.runOn()
	}
	if r.config, err = r.load(); err != nil {
		return ownFailure(err, "")
	}
	if err := r.abort.connect(context.Background(), r.config.Prometheus.URL); err != nil {
		return err
	}
	command, meta, err := r.prepare("")
	if err != nil {
		return err
	}
	if err = r.create(meta); err != nil {
		return err
	}
	defer r.claim.Release()
	if r.stopLending != nil {
		defer r.endLending()
	}
	r.printNotes(&command, &meta)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	signals := catchSignals()
	defer signal.Stop(signals)

	own, err := r.observe(ctx)
	if err != nil {
		r.remove()
		return err
	}
	if err := r.awaitStart(r.dir, r.streams, signals); err != nil {
		own.stop()
		r.endBeforeStart(ctx)
		return ownFailure(err, "")
	}
	status, err := r.execute(ctx, &command, signals)
	if err != nil {
		own.stop()
		return err
	}
	if r.terminated {
		skipWaits(signals)
	}
	r.afterwards(own, signals)
	switch {
	case r.aborted:
		return &exitError{Status: exitAborted}
	case status != 0:
		return &exitError{Status: status}
	}
	return r.require.verdict()
}

// check checks the options that need no configuration.
func (r *runCommand) check() error {
	if len(r.command) == 0 {
		return &exitError{Status: exitUsage, Err: errors.New("no command given"), Hint: "benchwatch run sysbench … run"}
	}
	if err := errors.Join(r.abort.check(), r.require.check(), r.captures.check()); err != nil {
		return err
	}
	switch {
	case len(r.abort.conditions) > 0 && r.isPiped():
		return &exitError{Status: exitUsage, Err: errors.New("--abort-when can't end a tool whose output is piped"),
			Hint: "benchwatch run --abort-when 'lag>10s' -- sysbench … run"}
	case len(r.on) > 0:
		return r.checkRemote()
	}
	if err := r.grouping.check(time.Now()); err != nil {
		return err
	}
	if r.grouping.name != "" && r.id != "" {
		return &exitError{Status: exitUsage,
			Err: errors.New("--run-id and --group: the group numbers its runs"), Hint: "leave out --run-id"}
	}
	return nil
}

// note prints a notice that is not a warning.
func (r *runCommand) note(format string, args ...any) {
	if !r.quiet {
		r.streams.notice(format, args...)
	}
}

// printNotes prints what the user should know before the tool starts.
func (r *runCommand) printNotes(command *commandline.Command, meta *rundir.Meta) {
	if space, err := rundir.SpaceOf(r.config.DataDir); err == nil {
		if note := space.Short(command.Description.Duration); note != "" {
			r.streams.notice("note: %s", note)
		}
	}
	for _, note := range command.Description.Notes {
		r.note("note: %s", note)
	}
	if meta.Tool == "" {
		r.note("note: no known benchmark tool in this command: its output is kept, but not parsed; name the tool with --tool")
	}
	if len(command.Added) > 0 {
		r.note("added %s for live reports (--no-inject leaves the command unchanged)", strings.Join(command.Added, " "))
	}
}

func (r *runCommand) isPiped() bool { return len(r.command) == 1 && r.command[0] == "-" }

// readCommand reads the command line or, from a pipe, finds the tool that writes it.
func (r *runCommand) readCommand() (command commandline.Command, err error) {
	tools := r.config.ToolSet()
	if r.tool != "" && tools.ByName(r.tool) == nil {
		return command, unknownTool(r.tool, tools)
	}
	if r.isPiped() {
		r.input = r.streams.In
		if r.tool == "" {
			if command.Tool, r.input = sniff(r.streams.In, tools); command.Tool == nil {
				return command, ownFailure(errors.New("no benchmark tool's output recognised in standard input"),
					"name the tool that wrote it with --tool; known tools: "+tools.Names())
			}
		}
		return command, nil
	}
	env := commandline.OS()
	env.NoInject = !r.inject
	args := r.fill(r.command)
	command = commandline.Read(args, tools, env)
	if _, err := exec.LookPath(args[0]); err != nil && len(r.on) == 0 {
		return command, cantStart(err)
	}
	return command, nil
}

// describe reads the command line and returns the facts of the run.
func (r *runCommand) describe() (commandline.Command, rundir.Meta, error) {
	if err := rundir.CheckLabels(r.labels); err != nil {
		return commandline.Command{}, rundir.Meta{}, ownFailure(err, "")
	}
	if r.id != "" {
		if err := rundir.CheckID(r.id); err != nil {
			return commandline.Command{}, rundir.Meta{}, ownFailure(err, "choose another --run-id")
		}
	}
	began := time.Now().UTC().Truncate(time.Millisecond)
	command, err := r.readCommand()
	if err != nil {
		return command, rundir.Meta{}, err
	}
	d := command.Description
	host := ""
	if command.Place != tool.PlaceElsewhere {
		host, _ = os.Hostname() // an empty name is better than no run
	}
	meta := rundir.Meta{
		ID: r.id, Title: r.title, Labels: map[string]string{}, Tool: r.tool,
		Verb: d.Command, Workload: d.Workload, Threads: d.Threads, Target: d.Target, Database: d.Database,
		Place: command.Place, Selection: r.selection(),
		DurationSeconds: d.Duration.Seconds(), RatePerSecond: d.Rate, ReportIntervalSeconds: d.ReportInterval.Seconds(),
		Required: r.require.texts, CaptureWhen: r.captures.texts, Command: command.Redacted, Generator: host,
		Clock: rundir.NewClock(clock.System), StartedAt: began, LatencyPercentile: d.LatencyPercentile,
	}
	if r.timeout > 0 {
		meta.DrainTimeoutSeconds = series.Some(r.timeout.Seconds())
	}
	if meta.Tool == "" && command.Tool != nil {
		meta.Tool = command.Tool.Name
	}
	if len(command.Added) > 0 && meta.ReportIntervalSeconds == 0 {
		meta.ReportIntervalSeconds = 1
	}
	meta.Title = cmp.Or(meta.Title, command.Title(), meta.Tool)
	for _, k := range slices.Sorted(maps.Keys(d.Labels)) {
		if rundir.CheckLabel(k) == nil {
			meta.Labels[k] = d.Labels[k]
			meta.Parameters = append(meta.Parameters, k)
		}
	}
	maps.Copy(meta.Labels, r.labels)
	// Users repeat parts of the command there.
	known := secret.NewWords(command.Secrets...)
	meta.Title = known.Text(meta.Title)
	for k, v := range meta.Labels {
		meta.Labels[k] = known.Text(v)
	}
	r.join(&meta)
	return command, meta, nil
}

// chooseServers adds the servers of --sample and checks the names of servers, if this process samples them. An agent
// has its own configuration, and borrows the login.
func (r *runCommand) chooseServers(command *commandline.Command, meta *rundir.Meta) error {
	agent, beside := rundir.Agent(r.config.DataDir)
	d := &command.Description
	switch {
	case r.sample:
		login := rundir.NewLogin(d, &command.Login, command.Place)
		login.Discover = r.discover
		names, err := r.lendable(&login)
		if err == nil && beside {
			err = config.CheckLent(login, agent.Foreign)
		}
		if err == nil && !beside {
			err = r.config.CheckProxy(login)
		}
		if errors.Is(err, config.ErrKind) || errors.Is(err, config.ErrProxy) {
			r.note("note: --sample: %v", err)
			break
		}
		if err != nil {
			return ownFailure(err, r.hintServers(beside))
		}
		by := ""
		if beside {
			by = ", by the agent"
		}
		r.login, r.unsampled = &login, "none sampled: no answer from "+d.Target+" during the run"
		r.note("sampling %s as user %q%s", table.Join(names), login.User, by)
	case !beside && len(r.config.Targets) == 0 && d.Engine != "" && d.Target != "" && meta.Selection == nil:
		r.note("note: %s is not sampled: --sample samples it with the tool's own login, --config.file names servers", d.Target)
	}
	if r.login == nil {
		r.unsampled = unsampled(d)
	}
	if beside || meta.Selection == nil {
		return nil
	}
	return checkSelection(r.config, meta.Selection)
}

// lendable returns the names of the targets that are sampled with a login.
func (r *runCommand) lendable(login *rundir.Login) ([]string, error) {
	c := *r.config
	c.Targets = slices.Clone(c.Targets)
	return c.AddLogin(*login)
}

// unsampled is what the summary prints for a run without servers; empty for a tool without any.
func unsampled(d *tool.Description) string {
	switch {
	case d.Target == "":
		return ""
	case engines.ByName(d.Engine) == nil:
		return "none sampled: benchwatch does not sample this kind of database"
	}
	return "none sampled; to sample " + d.Target + " with the tool's login: benchwatch run --sample --"
}

// hintServers is the hint for servers that can't be sampled with the tool's login.
func (r *runCommand) hintServers(beside bool) string {
	if beside {
		return "name the servers in the configuration of the agent: benchwatch init"
	}
	return "name the servers in a file for --config.file"
}

// create makes the run directory.
func (r *runCommand) create(meta rundir.Meta) (err error) {
	r.dir, r.claim, err = rundir.CreateWith(r.config.DataDir, meta, func(dir rundir.Directory) (err error) {
		if r.login != nil {
			r.stopLending, err = dir.Lend(*r.login)
		}
		return err
	})
	if err != nil && r.stopLending != nil {
		r.stopLending()
	}
	switch {
	case errors.Is(err, rundir.ErrExists) && meta.Group != nil:
		return ownFailure(fmt.Errorf("generator %d of group %s has a run already",
			meta.Group.Generator, meta.Group.Name), "choose another --group")
	case errors.Is(err, rundir.ErrExists):
		return ownFailure(err, "choose another --run-id")
	case errors.Is(err, fs.ErrPermission):
		return ownFailure(err, r.permissionHint())
	case err != nil:
		return ownFailure(err, "choose another place with --data-dir")
	}
	return nil
}

// endLending keeps the login from an agent that starts from now on.
func (r *runCommand) endLending() {
	r.stopLending()
	if err := r.dir.EndLogin(); err != nil {
		r.streams.notice("%v", err)
	}
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

// endBeforeStart ends a run that was interrupted before its tool started. A generator whose
// start is set is already followed and copied by others: it ends as interrupted. Any other
// run is deleted.
func (r *runCommand) endBeforeStart(ctx context.Context) {
	meta, err := r.dir.Update(func(m *rundir.Meta) {
		if m.IsGenerator() && m.Group.StartAt != nil {
			now := m.Axis(clock.System).Now().UTC()
			m.EndedAt, m.Outcome, m.Reason = &now, rundir.Interrupted, "the tool was not started"
		}
	})
	if err == nil && !meta.Ended() {
		r.remove()
		return
	}
	r.claim.Release()
	if err == nil {
		_, err = live.CloseOrphan(ctx, r.dir, r.config.ToolSet())
	}
	if err != nil {
		r.streams.notice("%v", err)
	}
}

// execute runs the tool to its end, or reads its output to the end, and returns
// its exit status. An error means that nothing was run.
func (r *runCommand) execute(ctx context.Context, command *commandline.Command, signals <-chan os.Signal) (int, error) {
	if r.isPiped() {
		return 0, r.pipe(ctx, signals)
	}
	return r.start(ctx, command, signals)
}

func (r *runCommand) start(ctx context.Context, command *commandline.Command, signals <-chan os.Signal) (int, error) {
	began := time.Now()
	process, err := launch.Start(r.dir, command.Start)
	if err != nil {
		r.remove()
		return 0, cantStart(err)
	}
	if logs := command.Description.LatencyLogs; len(logs) > 0 && command.Place == tool.PlaceHere {
		files := ingest.Latencies{Tool: command.Tool, Patterns: logs, PID: process.Cmd.Process.Pid, Since: began}
		process.OnEnd = func(ctx context.Context) {
			if err := files.Keep(ctx, r.dir); err != nil {
				r.streams.notice("note: the run has no histogram of its latencies: %v", err)
			}
		}
	}
	finish := make(chan struct{})
	var mirror sync.WaitGroup
	mirror.Go(func() {
		if err := launch.Show(ctx, r.dir, r.shown(), r.streams.Err, r.log, finish); err != nil && ctx.Err() == nil {
			r.streams.notice("%v", err)
		}
	})
	mirror.Go(func() { r.showTime(finish) })
	status, err := process.Wait(r.watchToAbort(ctx, signals, finish, &mirror))
	close(finish)
	mirror.Wait()
	r.terminated = process.Terminated && !r.aborted
	if err != nil { // the tool has run: its status counts
		r.streams.notice("%v", err)
		r.unrecorded = !process.RecordAgain(signals)
	}
	return status, nil
}

// shown returns the writer that shows the tool's output, unless the result is for a program.
func (r *runCommand) shown() io.Writer {
	if r.format == jsonFormat {
		return io.Discard
	}
	return r.streams.Out
}

// showTime shows how much of the requested time is left, until finish is closed.
func (r *runCommand) showTime(finish <-chan struct{}) {
	meta, err := r.dir.Load()
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

func (r *runCommand) pipe(ctx context.Context, signals <-chan os.Signal) error {
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
	err := launch.Pipe(ctx, r.dir, r.input, r.shown())
	stop()
	<-watching
	r.terminated = caught == syscall.SIGTERM
	if err != nil {
		return ownFailure(err, "")
	}
	return nil
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
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		status = exitNotFound
	case errors.Is(err, fs.ErrPermission):
		status = exitCantRun
	}
	return &exitError{Status: status, Err: err}
}

// observe starts an observer for this run unless an agent does that.
func (r *runCommand) observe(ctx context.Context) (*observation, error) {
	own := &observation{}
	if agent, ok := rundir.Agent(r.config.DataDir); ok {
		if agent.URL != "" {
			r.note("live page at %s#/runs/%s, served by the agent", agent.URL, url.PathEscape(r.dir.ID()))
		}
		return own, nil
	}
	if err := r.begin(ctx, own, observer.Options{Config: r.config, Only: r.ids(), Logger: r.log}, r.streams); err != nil {
		return nil, ownFailure(err, "")
	}
	r.note("live page at %s (metrics at /metrics)", own.page)
	return own, nil
}

// ids are the ids of the run and, for a group, of its generators.
func (r *runCommand) ids() []string {
	ids := []string{r.dir.ID()}
	if meta, err := r.dir.Load(); err == nil && meta.IsGroup() {
		for i := range meta.Group.Generators {
			ids = append(ids, rundir.GeneratorID(meta.Group.Name, i+1))
		}
	}
	return ids
}

// skipWaits makes afterwards wait neither for replicas nor for readers of metrics.
func skipWaits(signals chan<- os.Signal) {
	for range 2 {
		select {
		case signals <- syscall.SIGTERM:
		default: // there are enough
		}
	}
}

// afterwards waits for the replicas, prints the table and lingers. A signal
// ends each of the waits.
func (r *runCommand) afterwards(own *observation, signals <-chan os.Signal) {
	defer own.stop()
	ended := time.Now()
	if !r.unrecorded && !r.awaitClosed(own, signals) {
		r.streams.notice("the rest of the piped output is not read yet: an agent or benchwatch report %s%s reads it",
			r.dir.ID(), r.same())
		return
	}
	h, err := record.Read(context.Background(), r.dir, r.config.ToolSet())
	if err != nil {
		r.streams.notice("%v", err)
		return
	}
	r.require.apply(h)
	if !r.quiet {
		_ = report.WriteOutcome(r.streams.Err, h, r.unsampled, r.terminal) // no one reads it if stderr is gone
	}
	if r.format == jsonFormat {
		if err := writeJSON(r.streams.Out, h); err != nil {
			r.streams.notice("%v", err)
		}
	}
	r.note("run %s: %s", r.dir.ID(), r.dir)
	r.note("next: benchwatch report %s%s", lastRun, r.same())
	if own.observer == nil {
		return
	}
	linger := r.linger
	if !r.lingerSet && r.terminal.Is {
		linger = defaultLinger
	}
	if wait := linger - time.Since(ended); wait > 0 {
		r.note("serving metrics for %s more (Ctrl-C to stop)", wait.Round(time.Second))
		select {
		case <-time.After(wait):
		case <-signals:
		}
	}
	if n := own.observer.PendingMarkers(); n > 0 {
		r.streams.notice("%d markers not delivered to Grafana: an agent on this data directory will send them", n)
	}
}

// defaultLinger is how long people have to look at the page after the end.
const defaultLinger = 10 * time.Second

// agentGrace is how long an agent may be away, for a restart, before the wrapper stops waiting for its record of the
// end.
const agentGrace = 5 * time.Second

// unreadGrace is how long output that was piped in before SIGTERM may still be read. The sender of that signal waits;
// the recorded rest is read by whoever opens the run next.
const unreadGrace = 1500 * time.Millisecond

// awaitClosed waits until the run is closed, and returns false if it gave up before output was read to its end.
func (r *runCommand) awaitClosed(own *observation, signals <-chan os.Signal) bool {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	began, seen := time.Now(), time.Now()
	var terminated time.Time
	told := false
	for {
		meta, err := r.dir.Load()
		if err == nil && meta.Closed() {
			return true
		}
		if !terminated.IsZero() && time.Since(terminated) > unreadGrace {
			return false
		}
		if own.observer == nil {
			if _, ok := rundir.Agent(r.config.DataDir); ok {
				seen = time.Now()
			} else if time.Since(seen) > agentGrace {
				r.streams.notice("the agent ended: not waiting for replicas")
				return true
			}
		}
		if !told && time.Since(began) > 2*time.Second {
			told = true
			r.streams.notice("waiting for replicas to catch up (Ctrl-C to stop waiting)")
		}
		select {
		case <-tick.C:
		case sig := <-signals:
			if own.observer == nil {
				return true
			}
			own.observer.GiveUpDrain()
			if sig == syscall.SIGTERM && r.isPiped() && terminated.IsZero() {
				terminated = time.Now()
			}
		}
	}
}
