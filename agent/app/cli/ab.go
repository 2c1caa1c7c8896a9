package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/shell"

	"github.com/benchwatch/benchwatch/agent/many/ab"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// armNames are the arms that a comparison can have.
var armNames = []string{"a", "b", "c", "d"}

// abCommand is one `benchwatch ab`: a sweep whose steps are the blocks of a comparison.
type abCommand struct {
	*sweepCommand
	values   map[string]*[]string
	commands map[string]*string
	limit    string
	failIf   []string
	strict   bool
	control  bool
	maxTime  time.Duration
	// maxTimeSet: --max-time was given.
	maxTimeSet bool
	cut        time.Duration
	cutSet     bool
	seed       int
	toggling
}

func newAB() *cobra.Command {
	cmd := newCommand("ab", "Find out which of two setups is faster. Short runs alternate until it is clear.",
		"benchwatch ab --a host=db1 --b host=proxy1 --fail-if 'tps<-5%' -- sysbench oltp_read_write --mysql-host={host} --time=20 run")
	r := &abCommand{
		sweepCommand: &sweepCommand{labels: map[string]string{}, planned: true, repeat: 1, example: "benchwatch ab --a host=db1 --b host=db2 -- sysbench … --mysql-host={host} --time=20 run"},
		values:       map[string]*[]string{}, commands: map[string]*string{},
	}
	for i, name := range armNames {
		r.values[name], r.commands[name] = new([]string), new(string)
		baseline := ""
		if i == 0 {
			baseline = ", the baseline"
		}
		help := "Parameters of arm " + name + baseline + "; {K} in the command and the hooks is V; repeatable"
		if i > 1 {
			help = "Parameters of another arm, " + name + ", which is compared with a"
		}
		cmd.texts(r.values[name], name, "K=V", help)
	}
	for _, name := range armNames[:2] {
		cmd.text(r.commands[name], name+"-command", "COMMAND",
			"Command line of arm "+name+"; in shell syntax, instead of the command after --")
	}
	r.measure = "tps"
	cmd.text(&r.measure, "measure", "NAME", "Measure to compare; tps, qps, p95, or the id of a measure of servers or machines")
	cmd.text(&r.limit, "limit", "PERCENT", "Smallest difference that matters; arms that differ less are equivalent (default: the smallest of --fail-if, else 5%)")
	cmd.texts(&r.failIf, "fail-if", "LIMIT", "Exit with 3 if this is broken: 'tps<-5%', 'p99>+10%'; run until it is decided; a sign is relative to a; also errors>1%; repeatable")
	cmd.toggle(&r.strict, "strict", "Exit with 4 if a limit or the comparison is undecided; the comparison without --fail-if")
	r.control = true
	cmd.toggle(&r.control, "control",
		"Also compare a with itself to find the noise floor of the machine, unless --control=false; takes a fifth to a third of the time")
	r.maxTime = 30 * time.Minute
	cmd.duration(&r.maxTime, "max-time", "End after this long, decided or not")
	cmd.duration(&r.cut, "cut", "Leave out this much at the beginning of each block (default: a tenth of the block, 1s to 10s)")
	cmd.whole(&r.seed, "seed", "N", "Seed of the order of the blocks (default: random)")
	r.toggling.declare(cmd)
	r.addRunning(cmd)
	r.declareFormat(cmd, "text, markdown, html, json or junit (default: by the name of the file, else text)", "text", "markdown", "html", "json", "junit")
	r.course, r.print, r.execute = r.plan, r.result, r.runBlocks
	return cmd.does(func(s Streams) error {
		r.streams = s
		r.maxTimeSet, r.cutSet = cmd.Flags().Changed("max-time"), cmd.Flags().Changed("cut")
		if err := r.readCommands(); err != nil {
			return err
		}
		return r.run(r.fresh)
	})
}

// readCommands reads the arms' own commands.
func (r *abCommand) readCommands() error {
	for name, command := range r.commands {
		if *command == "" {
			continue
		}
		words, err := shell.Fields(*command, os.Getenv)
		if err != nil || len(words) == 0 {
			return r.wrong(fmt.Errorf("--%s-command %q can't be read as a command line", name, *command))
		}
		if r.arms == nil {
			r.arms = map[string][]string{}
		}
		r.arms[name] = words
	}
	return nil
}

// plan returns the plan of a sweep. A resumed one may get more time.
func (r *abCommand) plan(s *sweep.Sweep) (sweep.Course, error) {
	p, err := ab.PlanOf(s)
	if err != nil {
		return nil, err
	}
	if r.resume != "" && r.maxTimeSet {
		p.MaxSeconds = r.maxTime.Seconds()
		if err := p.Store(s); err != nil {
			return nil, err
		}
	}
	return p, p.Check()
}

// fresh plans a new comparison and writes it.
func (r *abCommand) fresh() (*sweep.Sweep, error) {
	p, err := r.newPlan()
	if err != nil {
		return nil, err
	}
	s := &sweep.Sweep{}
	if err := p.Store(s); err != nil {
		return nil, err
	}
	check := r.checkArms
	if p.Toggle != nil {
		check = r.checkToggle
	}
	if err := check(p, s.Sets); err != nil {
		return nil, err
	}
	p.Extend(s)
	if !r.cutSet {
		const least, most = 1, 10 // seconds
		block := r.sweepCommand.commands().Describe(s.Steps[0].Values, r.tools).Duration.Seconds()
		p.CutSeconds = min(max(block/10, least), most)
	}
	if err := p.Store(s); err != nil {
		return nil, err
	}
	return r.create(s, "ab")
}

func (r *abCommand) newPlan() (*ab.Plan, error) {
	p := &ab.Plan{Seed: uint64(r.seed), Measure: r.measure, Limit: 0.05, FailIf: r.failIf,
		NoControl: !r.control, CutSeconds: r.cut.Seconds(), MaxSeconds: r.maxTime.Seconds()}
	if r.seed == 0 {
		p.Seed = rand.Uint64N(1 << 31)
	}
	if r.toggling.text != "" {
		if err := r.addToggle(p); err != nil {
			return nil, r.wrong(err)
		}
	}
	for i, name := range armNames {
		if p.Toggle != nil {
			if len(*r.values[name]) > 0 || r.arms[name] != nil {
				return nil, r.wrong(fmt.Errorf("--toggle and --%s: the arms of a toggle are its --values", name))
			}
			continue
		}
		arm := ab.Arm{Name: name, Values: map[string]string{}}
		for _, text := range *r.values[name] {
			if err := addValues(arm.Values, text); err != nil {
				return nil, r.wrong(fmt.Errorf("--%s %w", name, err))
			}
		}
		if i < 2 || len(arm.Values) > 0 {
			p.Arms = append(p.Arms, arm)
		}
	}
	if r.limit != "" {
		v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(r.limit, "%")), 64)
		if err != nil {
			return nil, r.wrong(fmt.Errorf("--limit %s is not like 5%%", r.limit))
		}
		p.Limit = v / 100
	}
	least := 1.0
	for _, text := range r.failIf {
		limit, err := review.ParseRelative(text)
		if err != nil {
			return nil, r.wrong(fmt.Errorf("--fail-if %w", err))
		}
		if d := limit.Bound - 1; limit.Relative && d != 0 {
			least = min(least, max(d, -d))
		}
	}
	if r.limit == "" && least < 1 {
		p.Limit = least
	}
	if err := p.Check(); err != nil {
		return nil, r.wrong(err)
	}
	return p, nil
}

// nextValue is the beginning of the next parameter in a list with commas.
var nextValue = regexp.MustCompile(`,[a-zA-Z_][a-zA-Z0-9_]*=`)

// addValues reads K=V, or several with commas.
func addValues(to map[string]string, text string) error {
	for text != "" {
		one, rest := text, ""
		if at := nextValue.FindStringIndex(text); at != nil {
			one, rest = text[:at[0]], text[at[0]+1:]
		}
		name, value, ok := strings.Cut(one, "=")
		if _, err := sweep.ParseSet(name + "=x"); !ok || err != nil && name != sweep.ThreadsSet {
			return fmt.Errorf("%s is not name=value", one)
		}
		if name == sweep.ArmSet {
			return fmt.Errorf("%s: {arm} is the arm's own name", one)
		}
		if _, twice := to[name]; twice {
			return fmt.Errorf("%s: %s is given twice", one, name)
		}
		to[name], text = value, rest
	}
	return nil
}

// checkArms returns an error for arms that are the same or don't fit the command.
func (r *abCommand) checkArms(p *ab.Plan, sets []sweep.Set) error {
	var texts []string
	for _, arm := range p.Arms {
		command := r.arms[arm.Name]
		if command == nil {
			command = r.command
		}
		if len(command) == 0 {
			return r.wrong(fmt.Errorf("arm %s has no command", arm.Name))
		}
		texts = append(texts, command...)
		for name := range p.Arms[0].Values {
			if _, ok := arm.Values[name]; !ok {
				return r.wrong(fmt.Errorf("--a has %s, --%s has not: each arm needs a value", name, arm.Name))
			}
		}
		for name := range arm.Values {
			if _, ok := p.Arms[0].Values[name]; !ok {
				return r.wrong(fmt.Errorf("--%s has %s, --a has not: each arm needs a value", arm.Name, name))
			}
		}
	}
	texts = append(texts, r.before, r.after)
	all := strings.Join(texts, "\n")
	usesArm := strings.Contains(all, "{"+sweep.ArmSet+"}")
	if own := sets[1:]; len(own) > 0 || usesArm {
		if usesArm {
			own = sets
		}
		if err := sweep.Check(own, texts); err != nil {
			return r.wrong(errors.New(strings.ReplaceAll(err.Error(), "--set", "parameter")))
		}
	}
	usesArm = usesArm || strings.Contains(r.before+r.after, "BENCHWATCH_ARM")
	for i := range p.Arms {
		for j := range p.Arms[:i] {
			if same(r, &p.Arms[i], &p.Arms[j]) && !usesArm {
				return r.wrong(fmt.Errorf("%s and %s are the same: give them different parameters, commands, or a hook with {arm}", p.Arms[j].Title(), p.Arms[i].Title()))
			}
		}
	}
	if err := r.checkSecrets("parameter", sets); err != nil {
		return err
	}
	return r.checkHooks(sets)
}

func same(r *abCommand, x, y *ab.Arm) bool {
	for name, v := range x.Values {
		if y.Values[name] != v {
			return false
		}
	}
	return strings.Join(r.arms[x.Name], "\x00") == strings.Join(r.arms[y.Name], "\x00")
}

// result prints the result.
func (r *abCommand) result(s *sweep.Sweep) error {
	p, err := ab.PlanOf(s)
	if err != nil {
		return err
	}
	blocks := ab.Blocks(s)
	ctx := context.Background()
	rows, err := p.Rows(ctx, blocks, func(run string) (*record.History, error) { return r.history(ctx, rundir.At(r.dataDir, run)) })
	if err != nil {
		r.streams.notice("%v", err)
	}
	result := p.Result(s.ID, blocks, rows)
	result.Check(blocks)
	return r.write(result)
}

// write writes a result in the requested format, and returns the error for its exit status.
func (r *abCommand) write(result *ab.Result) error {
	page := report.ABPage{Result: *result}
	err := r.document(r.streams, func(w io.Writer) error {
		switch r.format {
		case "json":
			return page.JSON(w)
		case "junit":
			return result.Comparison.JUnit(w, r.strict)
		}
		return r.page(w, r.streams, page.Page())
	})
	if err != nil {
		return err
	}
	c := result.Comparison
	switch verdict := c.Verdict(); {
	case verdict == compare.Broken:
		return &exitError{Status: exitLimit, Err: limitError(c, verdict)}
	case result.Stopped != "":
		return errors.New(result.Stopped)
	case r.strict && verdict == compare.Unclear:
		return &exitError{Status: exitUnclear, Err: limitError(c, verdict)}
	case r.strict && len(c.Conditions) == 0 && result.Verdict == ab.Undecided:
		return &exitError{Status: exitUnclear, Err: errors.New(result.Summary[0])}
	}
	return nil
}
