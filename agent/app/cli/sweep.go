package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// sweepCommand is one `benchwatch sweep`: it plans, keeps sweep.json and prints;
// [sweep.Runner] runs the steps.
type sweepCommand struct {
	*store
	output
	sets      []string
	repeat    int
	warmup    bool
	cooldown  time.Duration
	order     string
	waitReady bool
	stopWhen  string
	abort     *aborting
	before    string
	after     string
	resume    string
	title     string
	labels    map[string]string
	tool      string
	drain     time.Duration
	*selecting
	*connecting
	*sampling
	inject  bool
	verbose bool
	measure string
	averaging
	command []string
	// example is the hint for a wrong command line.
	example string
	// arms are the commands of the arms of an A/B comparison that have their own command.
	arms map[string][]string
	// planned: the sweep has a plan. course returns the course that decides its steps, and print prints its result.
	planned bool
	course  func(*sweep.Sweep) (sweep.Course, error)
	print   func(*sweep.Sweep) error
	// execute runs the steps; nil: the runner does.
	execute func(context.Context, *sweep.Runner) error

	streams Streams
}

func newSweep() *cobra.Command {
	cmd := newCommand("sweep", "Run a benchmark with every combination of parameter values.",
		"benchwatch sweep --set threads=1,2,4,8 -- sysbench oltp_read_write --threads={threads} run")
	r := &sweepCommand{labels: map[string]string{},
		example: "benchwatch sweep --set threads=1,2,4,8 -- sysbench … --threads={threads} run"}
	cmd.texts(&r.sets, "set", "NAME=V,V...",
		"Values for {NAME}, repeatable for all combinations; in the command and in the hooks")
	r.repeat = 1
	cmd.whole(&r.repeat, "repeat", "N", "Number of trials per combination; each round runs all combinations once")
	cmd.toggle(&r.warmup, "warmup-run", "Run the first combination once before the others, without counting it")
	r.order = "given"
	cmd.choice(&r.order, "order", "ORDER", "Order of the combinations in each round: given or random", "given", "random")
	cmd.text(&r.stopWhen, "stop-when", "CONDITION", "Skip more threads once this holds, such as 'p95>100ms'; also errors>1%, or at a plateau: 'gain<5% for 2 steps'")
	r.addRunning(cmd)
	r.addResult(cmd)
	r.print = r.result
	return cmd.does(func(s Streams) error {
		r.streams = s
		return r.run(r.fresh)
	})
}

// addRunning adds the flags of commands that run one step after the other.
func (r *sweepCommand) addRunning(cmd command) {
	cmd.duration(&r.cooldown, "cooldown", "Wait this long between two runs, after the replicas have caught up")
	r.abort = addAborting(cmd)
	cmd.text(&r.before, "before", "COMMAND", "Shell command to run before each run; such as a restart of the proxy; may contain {NAME}")
	cmd.text(&r.after, "after", "COMMAND", "Shell command to run after each run; may contain {NAME}")
	cmd.text(&r.resume, "resume", "ID",
		"Resume an interrupted series, or print its result; last is the newest")
	cmd.text(&r.title, "title", "TEXT", "Title of the runs; may contain {NAME}")
	cmd.labels(&r.labels, "label", "Label of all runs; repeatable")
	cmd.text(&r.tool, "tool", "NAME", "Benchmark tool (default: recognised from the command)")
	r.sampling = addSampling(cmd)
	r.selecting = addSelecting(cmd)
	r.connecting = addConnecting(cmd)
	addDrainTimeout(cmd, &r.drain, "Wait at most this long for replicas to catch up after each run")
	addInject(cmd, &r.inject)
	addWaitReady(cmd, &r.waitReady)
	cmd.toggle(&r.verbose, "verbose,v", "Show the output of the tool")
	r.output.declare(cmd)
	r.declareAll(cmd)
	r.store = addStore(cmd)
	cmd.benchmark(&r.command, "Command line of the benchmark with placeholders; after -- if its options may be for benchwatch")
}

// addResult adds the flags of the result of a sweep.
func (r *sweepCommand) addResult(cmd command) {
	r.declareFormat(cmd, "text, markdown, html, svg, csv or json; svg is one figure (default: by the name of the file, else text)", "text", "markdown", "html", "svg", "csv", "json")
	r.measure = "tps"
	cmd.text(&r.measure, "measure", "NAME", "Measure of the figure of --format=svg; tps, qps, tpmc, a statistic of the latency, lag …")
	r.averaging.declare(cmd)
}

// run runs a new sweep, or the rest of an interrupted one.
func (r *sweepCommand) run(fresh func() (*sweep.Sweep, error)) error {
	if err := r.load(); err != nil {
		return err
	}
	if err := r.output.check(); err != nil {
		return err
	}
	var s *sweep.Sweep
	var err error
	if r.resume != "" {
		s, err = r.old()
	} else {
		s, err = fresh()
	}
	if err != nil {
		return err
	}
	release, err := s.Claim()
	switch {
	case errors.Is(err, sweep.ErrBusy):
		return withHint(err, "wait for it, or end it with Ctrl-C")
	case err != nil:
		return err
	}
	defer release()
	if err := s.Reload(r.dataDir); err != nil {
		return err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	ctx, stop := untilSignal(context.Background(), signals)
	defer stop()
	runner := &sweep.Runner{Sweep: s, DataDir: r.dataDir, Tools: r.tools,
		Commands: r.commands(), Notice: r.streams.notice, Signals: signals}
	if len(r.command)+len(r.arms) == 0 { // resumed, nothing secret in it
		runner.Commands = s.Commands
	}
	if r.course != nil {
		if runner.Course, err = r.course(s); err != nil {
			return err
		}
	}
	if r.verbose {
		runner.Out, runner.Err = r.streams.Out, r.streams.Err
	}
	execute := r.execute
	if execute == nil {
		execute = func(ctx context.Context, runner *sweep.Runner) error { return runner.Run(ctx) }
	}
	if err := execute(ctx, runner); err != nil {
		return r.interrupted(s, err)
	}
	return r.print(s)
}

// interrupted adds a hint how to resume.
func (r *sweepCommand) interrupted(s *sweep.Sweep, err error) error {
	command := nameOf(s)
	again := "benchwatch " + command + " --resume " + s.ID
	if r.dataDirFlag != "" {
		again += " --data-dir " + r.dataDirFlag
	}
	if s.Redacted {
		again += " -- and the command again, whose secret was not stored"
	}
	if errors.Is(err, context.Canceled) {
		return &exitError{Status: exitInterrupted, Err: errors.New(command + " interrupted"), Hint: "resume it with " + again}
	}
	return withHint(err, "resume it with "+again)
}

// nameOf returns the command that began a sweep.
func nameOf(s *sweep.Sweep) string {
	switch {
	case s.Seek != nil:
		return "seek"
	case s.Plan != nil:
		return "ab"
	}
	return "sweep"
}

// result prints the result.
func (r *sweepCommand) result(s *sweep.Sweep) error {
	rows := r.rows(s)
	result := s.Results(rows, r.average())
	page := report.SweepPage{Result: &result}
	if agent, ok := rundir.Agent(r.dataDir); ok {
		page.Address = agent.URL
	}
	err := r.document(r.streams, func(w io.Writer) error {
		switch r.format {
		case "csv":
			return result.CSV(w)
		case "json":
			return table.JSON(w, result)
		case "svg":
			measures, err := review.MeasuresNamed(result.Runs, r.measure)
			if err != nil {
				return err
			}
			return writeFigure(w, page.Figures(measures))
		}
		return r.page(w, r.streams, page.Page())
	})
	if err != nil {
		return err
	}
	r.streams.notice("to list its runs:")
	r.streams.line("  benchwatch runs --label sweep=" + s.ID)
	if f := result.Found; f != nil { // what failed was beyond the conditions
		if f.Value == 0 {
			return errors.New("nothing was found: " + strings.Join(f.Lines, "; "))
		}
		return nil
	}
	if n := len(result.Failed); n > 0 {
		return fmt.Errorf("%d of %s failed", n, table.Plural(len(s.Steps), "step"))
	}
	return nil
}

// rows returns the runs of the steps that are done, by id.
func (r *sweepCommand) rows(s *sweep.Sweep) map[string]review.Row {
	rows := map[string]review.Row{}
	for _, step := range s.Steps {
		if step.State != sweep.Done || step.Warmup {
			continue
		}
		h, err := r.history(context.Background(), rundir.At(r.dataDir, step.RunID))
		if err != nil {
			r.streams.notice("step %d: %v", step.Number, err)
			continue
		}
		rows[step.RunID] = review.NewObservedRow(h)
	}
	return rows
}

// fresh plans a new sweep and writes it.
func (r *sweepCommand) fresh() (*sweep.Sweep, error) {
	var sets []sweep.Set
	for _, text := range r.sets {
		set, err := sweep.ParseSet(text)
		if err != nil {
			return nil, r.wrong(err)
		}
		sets = append(sets, set)
	}
	if err := r.checkSecrets("--set", sets); err != nil {
		return nil, err
	}
	if r.stopWhen != "" {
		if err := sweep.CheckStop(r.stopWhen); err != nil {
			return nil, &exitError{Status: exitUsage, Err: fmt.Errorf("--stop-when %w", err),
				Hint: "for example: --stop-when 'p95>100ms', or --stop-when 'gain<5% for 2 steps'"}
		}
	}
	if err := r.checkCommands(sets); err != nil {
		return nil, err
	}
	steps, err := sweep.Plan(sets, r.repeat, sweep.Order(r.order), r.warmup)
	if err != nil {
		return nil, r.wrong(err)
	}
	return r.create(&sweep.Sweep{Sets: sets, Repeat: r.repeat, Order: sweep.Order(r.order), StopWhen: r.stopWhen, Steps: steps}, "sweep")
}

// checkSecrets returns an error if one of the values that are stored is a secret.
func (r *sweepCommand) checkSecrets(flag string, sets []sweep.Set) error {
	for _, set := range sets {
		for _, v := range set.Values {
			if secret.Value(set.Name, v) != v {
				return r.wrong(fmt.Errorf("%s %s contains a password, and values are stored and shown; put it into a file or the environment", flag, set.Name))
			}
		}
	}
	return nil
}

// checkCommands returns an error for a command, hooks and conditions that can't be used with
// these sets.
func (r *sweepCommand) checkCommands(sets []sweep.Set) error {
	switch {
	case len(r.command) == 0:
		return r.wrong(errors.New("no command given"))
	case r.repeat < 1:
		return r.wrong(fmt.Errorf("--repeat %d: at least 1", r.repeat))
	case r.cooldown < 0:
		return r.wrong(fmt.Errorf("--cooldown %s is negative", r.cooldown))
	}
	command := slices.Clone(r.command)
	if len(r.on) > 0 { // {i} and {n} are the generators'
		if slices.ContainsFunc(sets, func(s sweep.Set) bool { return s.Name == "i" || s.Name == "n" }) {
			return r.wrong(errors.New("{i} and {n} are the generator's number and how many there are: choose another name for --set"))
		}
		command = rundir.FillPlaceholders(command, 1, 1)
	}
	if err := sweep.Check(sets, append(command, r.before, r.after)); err != nil {
		return r.wrong(err)
	}
	return r.checkHooks(sets)
}

// checkHooks returns an error for hooks and conditions that can't be used with these sets, and for options that would
// make every step fail.
func (r *sweepCommand) checkHooks(sets []sweep.Set) error {
	for _, hook := range []string{r.before, r.after} {
		if err := sweep.CheckHook(hook, sets); err != nil {
			return &exitError{Status: exitUsage, Err: err}
		}
	}
	if err := r.abort.check(); err != nil {
		return err
	}
	if err := r.abort.connect(context.Background(), r.prometheus); err != nil {
		return err
	}
	return r.checkRun(sets)
}

// wrong is an error of the command line, with an example.
func (r *sweepCommand) wrong(err error) error {
	return &exitError{Status: exitUsage, Err: err, Hint: r.example}
}

// create completes a new sweep with what all kinds of sweeps have, and writes it.
func (r *sweepCommand) create(s *sweep.Sweep, name string) (*sweep.Sweep, error) {
	s.Labels = map[string]string{}
	for label, value := range r.labels {
		s.Labels[label] = secret.Value(label, value)
	}
	s.CreatedAt = time.Now().UTC().Truncate(time.Millisecond)
	s.CooldownSeconds, s.Title, s.Tool, s.RunOptions = r.cooldown.Seconds(), secret.Text(r.title), r.tool, r.options()
	given := r.commands()
	s.Commands = given.Stored(r.tools)
	s.Redacted = !s.Commands.Equal(given)
	if w := given.Describe(s.Steps[0].Values, r.tools).Workload; w != "" {
		name += "-" + w
	}
	return s, sweep.Create(r.dataDir, name, s)
}

// checkRun returns an error for options that would make every step fail.
func (r *sweepCommand) checkRun(sets []sweep.Set) error {
	if err := rundir.CheckLabels(r.labels); err != nil {
		return &exitError{Status: exitUsage, Err: err}
	}
	if r.tool != "" && r.tools.ByName(r.tool) == nil {
		return unknownTool(r.tool, r.tools)
	}
	if r.sample && len(r.on) > 0 {
		return remoteUsage(errors.New(sampleHere))
	}
	first := map[string]string{}
	for _, s := range sets {
		first[s.Name] = s.Values[0]
	}
	programs := []string{}
	for _, command := range append(slices.Collect(maps.Values(r.arms)), r.command) {
		if len(command) > 0 {
			programs = append(programs, command[0])
		}
	}
	for _, program := range programs {
		if _, err := exec.LookPath(sweep.Fill(program, first)); err != nil && len(r.on) == 0 {
			return cantStart(err)
		}
	}
	return nil
}

// options are passed on to each `benchwatch run`.
func (r *sweepCommand) options() []string {
	all := r.sampling.options()
	if r.configFile != "" {
		all = append(all, "--config.file="+r.configFile)
	}
	for _, name := range r.clusters {
		all = append(all, "--cluster="+name)
	}
	if r.targets != "" {
		all = append(all, "--targets="+r.targets)
	}
	if r.drain > 0 {
		all = append(all, "--drain-timeout="+r.drain.String())
	}
	if !r.inject {
		all = append(all, "--no-inject")
	}
	if r.waitReady {
		all = append(all, "--wait-ready")
	}
	if len(r.on) > 0 {
		for _, host := range r.on {
			all = append(all, "--on="+host)
		}
		all = append(all, "--on-failure="+r.onFailure, "--ssh="+r.ssh, "--remote-benchwatch="+r.benchwatch)
	}
	for _, condition := range r.abort.texts {
		all = append(all, "--abort-when="+condition)
	}
	return all
}

// commands are those that were given.
func (r *sweepCommand) commands() sweep.Commands {
	return sweep.Commands{Command: r.command, Before: r.before, After: r.after, Arms: r.arms}
}

// old finds the sweep to resume. Its command has to be given again only if a
// secret in it was not stored.
func (r *sweepCommand) old() (*sweep.Sweep, error) {
	if err := r.exists(); err != nil {
		return nil, err
	}
	s, err := r.find(r.resume)
	if err != nil {
		return nil, err
	}
	if (s.Plan != nil) != r.planned {
		return nil, &exitError{Status: exitUsage, Err: fmt.Errorf("%s was begun by another command", s.ID),
			Hint: "resume an A/B comparison with benchwatch ab, a sweep with benchwatch sweep"}
	}
	if len(r.sets) > 0 {
		return nil, &exitError{Status: exitUsage, Err: errors.New("--set and --resume don't go together: the sweep has its sets already"), Hint: "leave --set out"}
	}
	if len(r.command)+len(r.arms) == 0 && s.Redacted && s.Next() != nil {
		return nil, &exitError{Status: exitUsage, Err: errors.New("the command holds a secret, which was not stored"),
			Hint: "give it again: benchwatch " + nameOf(s) + " --resume " + s.ID + " [--before … --after …] -- COMMAND"}
	}
	if len(r.command)+len(r.arms) > 0 {
		if given := r.commands(); !s.Commands.Equal(given.Stored(r.tools)) {
			return nil, &exitError{Status: exitUsage, Err: errors.New("the command or a hook is not the one that the sweep began with"), Hint: "it was " + strings.Join(s.Command, " ")}
		}
	}
	return s, nil
}

// find reads the sweep with an id, or the newest one that can be read.
func (r *sweepCommand) find(id string) (*sweep.Sweep, error) {
	s, skipped, lastErr := sweep.Last(r.dataDir, r.planned)
	if id != lastRun {
		named, err := sweep.Load(r.dataDir, id)
		if errors.Is(err, rundir.ErrForeign) {
			return nil, withHint(err, "a sweep names commands: only the user who began it can continue it")
		}
		if err != nil && s != nil {
			return nil, withHint(err, "the newest is "+s.ID)
		}
		s, skipped, lastErr = named, nil, err
	}
	for _, err := range skipped {
		r.streams.notice("skipped: %v", err)
	}
	if lastErr != nil {
		return nil, withHint(lastErr, "name another data directory with --data-dir")
	}
	return s, nil
}
