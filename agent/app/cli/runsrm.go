package cli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/many/retention"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// runsRemoveCommand is one `benchwatch runs rm`: it removes the runs that are named, or those beyond limits.
type runsRemoveCommand struct {
	*store
	runFilter
	names     []string
	olderThan string
	maxCount  int
	maxSize   string
	dryRun    bool
	yes       bool
	format    string
	rule      retention.Rule // set by check
}

// removed is what `runs rm --format=json` prints.
type removed struct {
	// Removed are the ids of the runs that were removed or, with --dry-run, would be.
	Removed []string `json:"removed"`
	// Kept are runs beyond the limits that stay.
	Kept []keptRun `json:"kept"`
	// Bytes is the space on the disk of the removed runs.
	Bytes int64 `json:"bytes"`
	// DryRun: nothing was removed.
	DryRun bool `json:"dry_run"`
}

// keptRun is a run beyond the limits.
type keptRun struct {
	ID string `json:"id"`
	// Reason is why it stays.
	Reason string `json:"reason"`
}

func newRunsRemove() *cobra.Command {
	cmd := newCommand("rm", "Remove runs with all recorded data, by name, age, number or size.",
		"benchwatch runs rm --older-than=90d --label team=storage --dry-run")
	r := &runsRemoveCommand{}
	cmd.arguments(&r.names, "[RUN...]", "Id of a run, its beginning, last or last~1; or the flags below choose runs")
	cmd.text(&r.olderThan, "older-than", "AGE", "Runs that were closed longer ago, such as 90d or 12h")
	cmd.whole(&r.maxCount, "max-count", "N", "Runs beyond the newest N")
	cmd.text(&r.maxSize, "max-size", "SIZE", "Runs beyond this total, such as 50GiB; counted from the newest run")
	r.runFilter.declare(cmd)
	cmd.toggle(&r.dryRun, "dry-run", "List what would be removed; remove nothing")
	cmd.toggle(&r.yes, "yes,y", "Do not ask for confirmation")
	addFormat(cmd, &r.format, text, jsonFormat)
	r.store = addStore(cmd)
	return cmd.does(func(s Streams) error { return r.run(cmd, s) })
}

// check reads the flags.
func (r *runsRemoveCommand) check(cmd command) (err error) {
	usage := func(format string, args ...any) error {
		return &exitError{Status: exitUsage, Err: fmt.Errorf(format, args...), Hint: "for example: " + cmd.Example}
	}
	if err := r.runFilter.check(time.Now()); err != nil {
		return err
	}
	if r.olderThan != "" {
		if r.rule.MaxAge, err = config.ParseAge(r.olderThan); err != nil {
			return usage("--older-than: %w", err)
		}
	}
	if r.rule.MaxSize, err = config.ParseSize(r.maxSize); err != nil {
		return usage("--max-size: %w", err)
	}
	if r.rule.MaxCount = r.maxCount; r.maxCount < 0 {
		return usage("--max-count %d: at least 1", r.maxCount)
	}
	chosen := r.rule != (retention.Rule{}) || r.filters()
	switch {
	case !chosen && len(r.names) == 0:
		return cmd.missing(cmd.Annotations[argumentHelp])
	case chosen && len(r.names) > 0:
		return usage("name runs, or choose them with flags")
	}
	return nil
}

// filters reports whether a flag chooses runs by their facts.
func (f *runFilter) filters() bool {
	return len(f.labels) > 0 || f.tool+f.workload+f.version+f.since+f.until != ""
}

func (r *runsRemoveCommand) run(cmd command, s Streams) error {
	if err := r.check(cmd); err != nil {
		return err
	}
	if err := r.open(); err != nil {
		return err
	}
	if _, err := rundir.FinishRemovals(r.dataDir); err != nil {
		s.notice("%v", err)
	}
	if len(r.names) == 0 {
		return r.byRule(s)
	}
	dirs, err := r.findRuns(r.names)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := r.removable(dir); err != nil {
			return err
		}
	}
	if !r.dryRun && !r.yes && !confirm(s, dirs) {
		return errors.New("nothing was removed")
	}
	result := removed{Removed: []string{}, Kept: []keptRun{}, DryRun: r.dryRun}
	for _, dir := range dirs {
		size := dir.Size()
		if !r.dryRun {
			if err := dir.Remove(); err != nil {
				return err
			}
		}
		r.removed(s, &result, dir.ID(), size)
	}
	return r.print(s, &result)
}

// removable returns an error for what was named but is not removed.
func (r *runsRemoveCommand) removable(dir rundir.Directory) error {
	if !dir.Within(r.dataDir) {
		return withHint(fmt.Errorf("%s is no run directory in %s: nothing was removed", dir, r.dataDir),
			"choose its data directory with --data-dir")
	}
	meta, err := dir.Load()
	if err != nil {
		return withHint(fmt.Errorf("%w: nothing was removed", err), "damaged runs are not removed; delete "+string(dir)+" manually")
	}
	if dir.Busy(&meta) {
		return withHint(fmt.Errorf("run %s is still active: nothing was removed", dir.ID()), "end it first")
	}
	return nil
}

// byRule removes the runs beyond the limits that nothing needs.
func (r *runsRemoveCommand) byRule(s Streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	options, err := r.options()
	if err != nil {
		return err
	}
	plan, err := retention.New(ctx, options)
	if err != nil {
		return archiveError(err)
	}
	var dirs []rundir.Directory
	result := removed{Removed: []string{}, Kept: []keptRun{}, DryRun: r.dryRun}
	for i := range plan.Runs {
		if one := &plan.Runs[i]; one.Kept == "" {
			dirs = append(dirs, one.Dir)
		} else {
			result.Kept = append(result.Kept, keptRun{one.Dir.ID(), one.Kept})
		}
	}
	if r.format == text {
		explainKept(s, result.Kept)
	}
	done := func(one retention.Run) { r.removed(s, &result, one.Dir.ID(), one.Bytes) }
	switch {
	case r.dryRun:
		for i := range plan.Runs {
			if plan.Runs[i].Kept == "" {
				done(plan.Runs[i])
			}
		}
	case len(dirs) > 0 && !r.yes && !confirm(s, dirs):
		return errors.New("nothing was removed")
	default:
		err = plan.Remove(ctx, done)
	}
	return errors.Join(err, r.print(s, &result))
}

// explainKept prints why runs beyond the limits stay, in a line for each reason.
func explainKept(s Streams, kept []keptRun) {
	number := map[string]int{}
	for _, k := range kept {
		number[k.Reason]++
	}
	for _, k := range kept {
		switch n := number[k.Reason]; {
		case n == 1:
			s.notice("run %s stays: %s", k.ID, k.Reason)
		case n > 1:
			s.notice("%d runs stay, such as %s: %s", n, k.ID, k.Reason)
		}
		delete(number, k.Reason)
	}
}

// options returns the rule, with what the configuration or that of the data directory's agent requires.
func (r *runsRemoveCommand) options() (retention.Options, error) {
	c := r.config
	if agent, ok := rundir.Agent(r.dataDir); ok && agent.Config != "" && r.configFile == "" {
		var err error
		if c, err = config.Load(agent.Config); err != nil {
			return retention.Options{}, withHint(fmt.Errorf("whether the agent's archive has a run is unknown: %w", err),
				"remove runs as a user who may read the agent's configuration, or name one with --config.file")
		}
	}
	o, err := c.Retention()
	if err != nil {
		return o, archiveError(err)
	}
	o.DataDir, o.Rule, o.Now = r.dataDir, r.rule, time.Now()
	if r.filters() {
		o.Wanted = r.wanted
		o.All = o.Rule == (retention.Rule{})
	}
	if o.MaxAge > 0 {
		if err := retention.CheckClock(r.dataDir, clock.System, true); err != nil {
			return o, withHint(err, "check the date of this machine; runs that are named are removed")
		}
	}
	return o, nil
}

// removed notes and prints a run that was removed.
func (r *runsRemoveCommand) removed(s Streams, result *removed, id string, size int64) {
	result.Removed = append(result.Removed, id)
	result.Bytes += size
	if r.format == text {
		did := "removed"
		if r.dryRun {
			did = "would remove"
		}
		fmt.Fprintf(s.Out, "%s %s\n", did, id)
	}
}

func (r *runsRemoveCommand) print(s Streams, result *removed) error {
	if r.format == jsonFormat {
		return table.JSON(s.Out, result)
	}
	if len(r.names) > 0 {
		return nil
	}
	did := "removed"
	if r.dryRun {
		did = "would remove"
	}
	text := did + " " + table.Plural(len(result.Removed), "run")
	if mebi := result.Bytes >> 20; mebi > 0 {
		text += fmt.Sprintf(", %d MiB", mebi)
	}
	if n := len(result.Kept); n > 0 {
		text += fmt.Sprintf("; %s beyond the limits stay", table.Plural(n, "run"))
	}
	s.notice("%s", text)
	return nil
}

// confirm asks the user; no answer is no.
func confirm(s Streams, dirs []rundir.Directory) bool {
	for _, dir := range dirs {
		title := ""
		if meta, err := dir.Load(); err == nil {
			title = "  " + table.Clip(meta.Title, 60)
		}
		fmt.Fprintf(s.Err, "%s%s\n", dir.ID(), title)
	}
	what := "this run"
	if len(dirs) > 1 {
		what = fmt.Sprintf("these %d runs", len(dirs))
	}
	fmt.Fprintf(s.Err, "Remove %s for good? [y/N] ", what)
	var answer string
	if _, err := fmt.Fscanln(s.In, &answer); err != nil {
		fmt.Fprintln(s.Err)
		return false
	}
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes"
}
