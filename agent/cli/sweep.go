package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/benchwatch/benchwatch/agent/report"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/secret"
	"github.com/benchwatch/benchwatch/agent/sweep"
	"github.com/benchwatch/benchwatch/agent/table"
	"github.com/benchwatch/benchwatch/agent/tool/commandline"
)

// sweepCommand is one `benchwatch sweep`: it plans, keeps sweep.json and prints;
// sweepRunner does the steps.
type sweepCommand struct {
	*store
	output
	sets     *[]string
	repeat   *int
	warmup   *bool
	cooldown *time.Duration
	order    *string
	stopWhen *string
	before   *string
	after    *string
	resume   *string
	title    *string
	labels   map[string]string
	tool     *string
	drain    *time.Duration
	inject   *bool
	verbose  *bool
	format   *string
	command  *[]string

	streams Streams
}

func addSweep(app *kingpin.Application) (string, action) {
	cmd := addCommand(app, "sweep", "Run a benchmark with every combination of some parameters, one run after the other.",
		"benchwatch sweep --set threads=1,2,4,8 -- sysbench oltp_read_write --threads={threads} run")
	r := &sweepCommand{labels: map[string]string{}}
	r.sets = cmd.Flag("set", "Values for the placeholder {NAME} in the command and the hooks; several flags give all combinations").PlaceHolder("NAME=V,V…").Strings()
	r.repeat = cmd.Flag("repeat", "Number of trials per combination; each round runs all combinations once").Default("1").Int()
	r.warmup = cmd.Flag("warmup-run", "First run the first combination once without counting it").Bool()
	r.cooldown = cmd.Flag("cooldown", "Wait this long between two runs, after the replicas have caught up").Default("0s").Duration()
	r.order = cmd.Flag("order", "Order of the combinations in each round: given or random").Default("given").Enum("given", "random")
	r.stopWhen = cmd.Flag("stop-when", "Skip combinations with more threads once a run meets this condition, such as p95>100ms, tps<1000 or errors>0").PlaceHolder("CONDITION").String()
	r.before = cmd.Flag("before", "Shell command to run before each run, such as a restart of the proxy; may contain {NAME}").PlaceHolder("COMMAND").String()
	r.after = cmd.Flag("after", "Shell command to run after each run; may contain {NAME}").PlaceHolder("COMMAND").String()
	r.resume = cmd.Flag("resume", "Resume an interrupted sweep, or print the result of a finished one; last is the newest").PlaceHolder("ID").String()
	r.title = cmd.Flag("title", "Title of the runs; may contain {NAME}").PlaceHolder("TEXT").String()
	cmd.Flag("label", "Label of all runs; repeatable").PlaceHolder("K=V").StringMapVar(&r.labels)
	r.tool = cmd.Flag("tool", "Benchmark tool (default: recognised from the command)").PlaceHolder("NAME").String()
	r.drain = cmd.Flag("drain-timeout", "Wait at most this long for replicas to catch up after each run (default: runs.drain_timeout of the configuration)").PlaceHolder("DURATION").Duration()
	r.inject = cmd.Flag("inject", "Add the tool's option for a report every second if the command has no such option").Default("true").Bool()
	r.verbose = cmd.Flag("verbose", "Show the output of the tool").Short('v').Bool()
	r.format = cmd.Flag("format", "Format of the result: text, markdown, csv or json").Default("text").Enum("text", "markdown", "csv", "json")
	r.output = addOutput(cmd)
	r.store = addStore(cmd)
	r.command = cmd.Arg("command", "Command line of the benchmark with placeholders, after --").Strings()
	return cmd.FullCommand(), func(s Streams) error {
		r.streams = s
		return r.run()
	}
}

func (r *sweepCommand) run() error {
	if err := r.load(); err != nil {
		return err
	}
	if err := r.output.check(); err != nil {
		return err
	}
	var s *sweep.Sweep
	var err error
	if *r.resume != "" {
		s, err = r.old()
	} else {
		s, err = r.fresh()
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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	runner := &sweepRunner{
		sweep: s, dataDir: r.dataDir, tools: r.tools, streams: r.streams, verbose: *r.verbose,
		command: *r.command, before: *r.before, after: *r.after, requested: r.requested(s),
	}
	if len(runner.command) == 0 { // resumed, nothing secret in it
		runner.command, runner.before, runner.after = s.Command, s.Before, s.After
	}
	if err := runner.run(ctx); err != nil {
		return r.interrupted(s, err)
	}
	return r.result(s)
}

// interrupted adds a hint how to resume.
func (r *sweepCommand) interrupted(s *sweep.Sweep, err error) error {
	again := "benchwatch sweep --resume " + s.ID
	if *r.dataDirFlag != "" {
		again += " --data-dir " + *r.dataDirFlag
	}
	if s.Redacted {
		again += " -- and the command again, whose secret was not stored"
	}
	if errors.Is(err, context.Canceled) {
		return &exitError{Status: exitInterrupted, Err: errors.New("sweep interrupted"), Hint: "resume it with " + again}
	}
	return withHint(err, "resume it with "+again)
}

// result prints the result.
func (r *sweepCommand) result(s *sweep.Sweep) error {
	rows := map[string]report.Row{}
	for _, step := range s.Steps {
		if step.State != sweep.Done || step.Warmup {
			continue
		}
		h, err := r.history(context.Background(), rundir.At(r.dataDir, step.RunID))
		if err != nil {
			r.streams.notice("step %d: %v", step.Number, err)
			continue
		}
		rows[step.RunID] = report.NewObservedRow(h)
	}
	result := s.Results(rows)
	err := r.document(r.streams, func(w io.Writer) error {
		switch *r.format {
		case "markdown":
			return result.Markdown(w)
		case "csv":
			return result.CSV(w)
		case "json":
			return table.JSON(w, result)
		default:
			return result.Text(w)
		}
	})
	if err != nil {
		return err
	}
	r.streams.notice("sweep %s: benchwatch runs --label sweep=%s lists its runs", s.ID, s.ID)
	if n := len(result.Failed); n > 0 {
		return fmt.Errorf("%d of %s failed", n, table.Plural(len(s.Steps), "step"))
	}
	return nil
}

// fresh plans a new sweep and writes it.
func (r *sweepCommand) fresh() (*sweep.Sweep, error) {
	usage := func(err error) error {
		return &exitError{Status: exitUsage, Err: err, Hint: "benchwatch sweep --set threads=1,2,4,8 -- sysbench … --threads={threads} run"}
	}
	var sets []sweep.Set
	for _, text := range *r.sets {
		set, err := sweep.ParseSet(text)
		if err != nil {
			return nil, usage(err)
		}
		sets = append(sets, set)
	}
	switch {
	case len(*r.command) == 0:
		return nil, usage(errors.New("no command given"))
	case *r.repeat < 1:
		return nil, usage(fmt.Errorf("--repeat %d: at least 1", *r.repeat))
	case *r.cooldown < 0:
		return nil, usage(fmt.Errorf("--cooldown %s is negative", *r.cooldown))
	}
	if err := sweep.Check(sets, append(slices.Clone(*r.command), *r.before, *r.after)); err != nil {
		return nil, usage(err)
	}
	if *r.stopWhen != "" {
		if _, err := sweep.ParseCondition(*r.stopWhen); err != nil {
			return nil, usage(err)
		}
	}
	if err := r.checkRun(sets); err != nil {
		return nil, err
	}
	steps, err := sweep.Plan(sets, *r.repeat, sweep.Order(*r.order), *r.warmup)
	if err != nil {
		return nil, usage(err)
	}
	s := &sweep.Sweep{
		CreatedAt: time.Now().UTC().Truncate(time.Millisecond), Sets: sets, Repeat: *r.repeat, Order: sweep.Order(*r.order),
		CooldownSeconds: r.cooldown.Seconds(), StopWhen: *r.stopWhen, Title: *r.title, Labels: r.labels, Tool: *r.tool,
		RunOptions: r.options(), Steps: steps,
	}
	s.Command, s.Before, s.After, s.Redacted = r.stored()
	return s, r.create(s)
}

// create writes the sweep under an id that is free.
func (r *sweepCommand) create(s *sweep.Sweep) error {
	name := "sweep"
	if w := r.describe(s.Steps[0].Values).Description.Workload; w != "" {
		name += "-" + w
	}
	return rundir.CreateNew(s.CreatedAt, name, 0, func(id string) error {
		s.ID = id
		return sweep.Create(r.dataDir, s)
	})
}

// checkRun returns an error for what would make every step fail.
func (r *sweepCommand) checkRun(sets []sweep.Set) error {
	if err := rundir.CheckLabels(r.labels); err != nil {
		return &exitError{Status: exitUsage, Err: err}
	}
	if *r.tool != "" && r.tools.ByName(*r.tool) == nil {
		return unknownTool(*r.tool, r.tools)
	}
	first := map[string]string{}
	for _, s := range sets {
		first[s.Name] = s.Values[0]
	}
	if _, err := exec.LookPath(sweep.Fill((*r.command)[0], first)); err != nil {
		return cantStart(err)
	}
	return nil
}

// options are passed on to each `benchwatch run`.
func (r *sweepCommand) options() []string {
	var all []string
	if *r.configFile != "" {
		all = append(all, "--config.file="+*r.configFile)
	}
	if *r.drain > 0 {
		all = append(all, "--drain-timeout="+r.drain.String())
	}
	if !*r.inject {
		all = append(all, "--no-inject")
	}
	return all
}

// stored is the command and the hooks as they may be written to disk.
func (r *sweepCommand) stored() (command []string, before, after string, redacted bool) {
	env := commandline.OS()
	env.NoInject = true
	command = commandline.Read(*r.command, r.tools, env).Redacted
	before, after = secret.Text(*r.before), secret.Text(*r.after)
	return command, before, after, !slices.Equal(command, *r.command) || before != *r.before || after != *r.after
}

// describe reads the command line of one step.
func (r *sweepCommand) describe(values map[string]string) commandline.Command {
	env := commandline.OS()
	env.NoInject = true
	args := make([]string, len(*r.command))
	for i, a := range *r.command {
		args[i] = sweep.Fill(a, values)
	}
	return commandline.Read(args, r.tools, env)
}

// requested is the duration of a run by its command line; 0 if that has none.
func (r *sweepCommand) requested(s *sweep.Sweep) time.Duration {
	if len(*r.command) == 0 {
		return 0
	}
	return r.describe(s.Steps[0].Values).Description.Duration
}

// old finds the sweep to resume. Its command has to be given again only if a
// secret in it was not stored.
func (r *sweepCommand) old() (*sweep.Sweep, error) {
	if err := r.exists(); err != nil {
		return nil, err
	}
	s, err := r.find(*r.resume)
	if err != nil {
		return nil, err
	}
	if len(*r.sets) > 0 {
		return nil, &exitError{Status: exitUsage, Err: errors.New("--set and --resume don't go together: the sweep has its sets already"), Hint: "leave --set out"}
	}
	if len(*r.command) == 0 && s.Redacted && s.Next() != nil {
		return nil, &exitError{Status: exitUsage, Err: errors.New("the command holds a secret, which was not stored"),
			Hint: "give it again: benchwatch sweep --resume " + s.ID + " [--before … --after …] -- COMMAND"}
	}
	if len(*r.command) > 0 {
		command, before, after, _ := r.stored()
		if !slices.Equal(command, s.Command) || before != s.Before || after != s.After {
			return nil, &exitError{Status: exitUsage, Err: errors.New("the command or a hook is not the one that the sweep began with"), Hint: "it was " + strings.Join(s.Command, " ")}
		}
	}
	return s, nil
}

// find reads the sweep with an id, or the newest one that can be read.
func (r *sweepCommand) find(id string) (*sweep.Sweep, error) {
	s, skipped, lastErr := sweep.Last(r.dataDir)
	if id != lastRun {
		named, err := sweep.Load(r.dataDir, id)
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

// labelsOf are the labels of a step's run. Sets whose names are benchwatch's own
// (threads) are facts of the run anyway.
func labelsOf(s *sweep.Sweep, step *sweep.Step) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, s.Labels)
	if step.Warmup {
		labels["sweep_warmup"] = s.ID
		return labels
	}
	for name, v := range step.Values {
		if rundir.CheckLabel(name) == nil {
			labels[name] = v
		}
	}
	labels["sweep"] = s.ID
	if s.Repeat > 1 {
		labels["repeat"] = fmt.Sprint(step.Repeat)
	}
	return labels
}
