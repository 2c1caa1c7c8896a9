package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/many/ab"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/many/history"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// compareCommand is one `benchwatch compare`.
type compareCommand struct {
	*store
	output
	specs  []string
	failIf []string
	strict bool
	// Of the figures over a parameter.
	x       string
	lines   string
	measure string
	averaging

	streams Streams
}

func newCompare() *cobra.Command {
	cmd := newCommand("compare", "Compare runs or groups of runs; fail a pipeline (--fail-if).",
		"benchwatch compare last~1 last")
	r := &compareCommand{}
	cmd.arguments(&r.specs, "GROUP...", "Ids, last, last~1, labels k=v or last=N, the first is the baseline; an id may be its beginning; "+
		"ids with commas are one group; several labels with commas; last=N, also with labels, are the N newest others")
	r.declareFormat(cmd,
		"text, markdown, csv, json, html, svg or junit; svg is one figure over --x (default: by the name of the "+
			"file, else text)", "text", "markdown", "csv", "json", "html", "svg", "junit")
	cmd.texts(&r.failIf, "fail-if", "LIMIT", "Exit with 3 if a group is beyond this, such as 'tps<-5%' or 'p99>+10%'; with a sign by more than noise; also lag>10s, errors>1%; repeatable")
	cmd.toggle(&r.strict, "strict", "Exit with 4, not 0, if the runs don't show whether a limit of --fail-if is broken")
	cmd.text(&r.x, "x", "NAME", "Fact, label or server setting along the axis; with it, one group is enough (default: the fact that varies, preferably threads)")
	cmd.text(&r.lines, "lines", "NAME,NAME...", "Facts, labels or settings with one line per value; in addition to the groups; run draws a line for each run (default: all that vary)")
	cmd.text(&r.measure, "measure", "NAME,NAME...", "Measures of the figures and their table; tps, qps, duration, p95, an operation's (read_avg), cpu, lag … (default: all, tps in svg)")
	r.averaging.declare(cmd)
	r.output.declare(cmd)
	r.declareAll(cmd)
	r.store = addReadingStore(cmd)
	return cmd.does(func(s Streams) error {
		r.streams = s
		return r.run()
	})
}

func (r *compareCommand) run() error {
	if len(r.specs) < 2 && r.x == "" {
		return &exitError{Status: exitUsage, Err: errors.New("two runs or groups are needed"),
			Hint: "benchwatch compare last~1 last"}
	}
	limits, err := r.limits()
	if err != nil {
		return err
	}
	if err := r.loadToRead(r.streams); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	choices, err := r.choose()
	if err != nil {
		return err
	}
	groups := make([]compare.Group, len(choices))
	histories := make([][]*record.History, len(groups))
	var selected []string
	for i := range choices {
		one := &choices[i]
		for _, f := range one.facts {
			selected = append(selected, f.Name)
		}
		groups[i].Name, groups[i].Facts = one.name(choices)
		for _, dir := range one.dirs {
			if err := r.add(&groups[i], &histories[i], dir, one.named()); err != nil {
				return err
			}
		}
		if len(groups[i].Runs) == 0 {
			return withHint(fmt.Errorf("no ended run in group %s", one.spec), "benchwatch runs lists them")
		}
	}
	if !slices.ContainsFunc(choices, func(c choice) bool { return !c.named() }) {
		compare.NameByDifference(groups)
	}
	c := compare.Compare(groups, selected)
	c.Check(limits, groups)
	if err := r.write(&c, groups, histories); err != nil {
		return err
	}
	switch verdict := c.Verdict(); {
	case verdict == compare.Broken:
		return &exitError{Status: exitLimit, Err: limitError(&c, verdict)}
	case verdict == compare.Unclear && r.strict:
		return &exitError{Status: exitUnclear, Err: limitError(&c, verdict)}
	}
	return nil
}

// limitError names the limits with this result.
func limitError(c *compare.Comparison, result compare.Result) error {
	var all []string
	for i := range c.Conditions {
		if l := &c.Conditions[i]; l.Result == result {
			all = append(all, fmt.Sprintf("%s for %s", l.Limit, l.Group))
		}
	}
	return fmt.Errorf("%s: %s", result, strings.Join(all, "; "))
}

// limits reads --fail-if.
func (r *compareCommand) limits() ([]*review.Condition, error) {
	var limits []*review.Condition
	for _, text := range r.failIf {
		limit, err := review.ParseRelative(text)
		if err != nil {
			return nil, &exitError{Status: exitUsage, Err: fmt.Errorf("--fail-if %w", err)}
		}
		limits = append(limits, limit)
	}
	if len(limits) == 0 && (r.strict || r.format == "junit") {
		return nil, &exitError{Status: exitUsage,
			Err: errors.New("--strict and --format=junit need a limit"), Hint: "add --fail-if 'tps<-5%'"}
	}
	return limits, nil
}

// figures arranges the runs for figures and their table.
func (r *compareCommand) figures(c *compare.Comparison, groups []compare.Group, measures ...string) (*compare.FigureSet, error) {
	o := compare.FigureOptions{X: r.x, Lines: list(r.lines), Measures: list(r.measure), Average: r.average()}
	if len(o.Measures) == 0 {
		o.Measures = measures
	}
	return compare.NewFigureSet(c, groups, o)
}

// list returns the names in a list with commas.
func list(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' })
}

// write writes the comparison in the requested format or, over a parameter, the table of the figures.
func (r *compareCommand) write(c *compare.Comparison, groups []compare.Group, histories [][]*record.History) error {
	return r.document(r.streams, func(w io.Writer) error {
		if r.x != "" && !slices.Contains([]string{"svg", "junit"}, r.format) {
			set, err := r.figures(c, groups)
			if err != nil {
				return err
			}
			c.Over(set)
		}
		p := report.ComparisonPage{Comparison: *c}
		switch r.format {
		case "csv":
			return c.CSV(w)
		case "json":
			return p.JSON(w)
		case "junit":
			return c.JUnit(w, r.strict)
		case "html":
			set, err := r.figures(c, groups)
			if err != nil {
				return err
			}
			p.Plots = report.FigurePlots(set)
			if r.x == "" {
				p.Charts = report.CompareCharts(c, groups, histories)
			}
		case "svg":
			set, err := r.figures(c, groups, "tps")
			if err != nil {
				return err
			}
			return writeFigure(w, report.FigurePlots(set))
		}
		return r.page(w, r.streams, p.Page())
	})
}

// choice is a group that an argument selects.
type choice struct {
	spec   string
	labels map[string]string // nil: it names runs by id
	facts  []rundir.Fact     // the parts of the argument
	last   int               // how many of the newest runs; 0: all
	dirs   []rundir.Directory
}

// named reports whether the runs are named by id.
func (c *choice) named() bool { return c.labels == nil }

func newChoice(spec string) (choice, error) {
	c := choice{spec: spec}
	if !strings.Contains(spec, "=") || strings.Contains(spec, "/") {
		return c, nil
	}
	c.labels = map[string]string{}
	for part := range strings.SplitSeq(spec, ",") {
		name, value, ok := strings.Cut(part, "=")
		switch {
		case !ok || name == "":
			return c, &exitError{Status: exitUsage, Err: fmt.Errorf("group %q is not k=v[,k=v]", spec),
				Hint: "benchwatch compare via=direct,threads=16 via=atlas,threads=16"}
		case name == "last":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return c, &exitError{Status: exitUsage, Err: fmt.Errorf("group %q: last needs a number of runs", spec),
					Hint: "benchwatch compare last=5,version=1.2 version=1.3"}
			}
			c.last = n
		default:
			c.labels[name] = value
		}
		c.facts = append(c.facts, rundir.Fact{Name: name, Value: value})
	}
	return c, nil
}

// has reports whether a run has the labels and can be part of a group.
func (c *choice) has(m *rundir.Meta) bool {
	return hasLabels(m, c.labels) && (!m.IsGenerator() || c.labels["group"] != "") && !c.leavesOut(m)
}

// leavesOut reports whether a run only served to measure others: a warm-up, or the control of an A/B comparison. It is
// in a group that asks for it.
func (c *choice) leavesOut(m *rundir.Meta) bool {
	for _, label := range sweep.WarmupLabels {
		if m.Labels[label] != "" && c.labels[label] == "" {
			return true
		}
	}
	return m.Labels[sweep.ArmSet] == ab.Control && m.Labels["ab"] != "" && c.labels[sweep.ArmSet] == "" && c.labels["block"] == ""
}

// choose returns the runs of all groups. Groups of the newest other runs are resolved last.
func (r *compareCommand) choose() ([]choice, error) {
	all := make([]choice, len(r.specs))
	for i, spec := range r.specs {
		one, err := newChoice(spec)
		switch {
		case err != nil:
			return nil, err
		case one.named():
			one.dirs, err = r.findRuns(strings.Split(spec, ","))
		case one.last == 0:
			if one.dirs, err = r.selectRuns(r.streams, one.has); err == nil && len(one.dirs) == 0 {
				err = withHint(fmt.Errorf("no run has %s", spec), "benchwatch runs --format=json shows the labels")
			}
		}
		if err != nil {
			return nil, err
		}
		all[i] = one
	}
	taken, kinds := map[string]bool{}, map[string]bool{}
	for i := range all {
		for _, dir := range all[i].dirs {
			m, err := dir.Load()
			if err != nil {
				return nil, err
			}
			taken[m.ID], kinds[runKind(&m)] = true, true
		}
	}
	for i := range all {
		if err := r.chooseLast(&all[i], taken, kinds); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// runKind returns what runs must have in common to be comparable at all.
func runKind(m *rundir.Meta) string {
	var values []string
	for _, name := range history.KindFacts {
		values = append(values, m.Fact(name))
	}
	return fmt.Sprintf("%q", values)
}

// chooseLast finds the newest runs that succeeded and are not taken, of each of these kinds,
// or of all if there are none.
func (r *compareCommand) chooseLast(c *choice, taken, kinds map[string]bool) error {
	if c.last == 0 {
		return nil
	}
	var found []rundir.Meta
	if _, err := r.selectRuns(r.streams, func(m *rundir.Meta) bool { // chosen below: an archive fetches those that it returns
		if history.Counts(m) && c.has(m) && !taken[m.ID] && (len(kinds) == 0 || kinds[runKind(m)]) {
			found = append(found, *m)
		}
		return false
	}); err != nil {
		return err
	}
	slices.SortStableFunc(found, func(a, b rundir.Meta) int { return b.StartedAt.Compare(a.StartedAt) })
	wanted, count := map[string]bool{}, map[string]int{}
	for i := range found {
		if kind := runKind(&found[i]); count[kind] < c.last {
			count[kind]++
			wanted[found[i].ID], taken[found[i].ID] = true, true
		}
	}
	if len(wanted) == 0 {
		return withHint(fmt.Errorf("%s: no other run that succeeded is of the same tool, workload and threads", c.spec),
			"benchwatch runs lists them")
	}
	var err error
	c.dirs, err = r.selectRuns(r.streams, func(m *rundir.Meta) bool { return wanted[m.ID] })
	return err
}

// longestName is the length of a list of ids above which the group is named by its first run.
const longestName = 48

// name returns the parts of the argument that not all groups have, as the group's name and as facts; the
// whole argument if there are none, or the first of many runs.
func (c *choice) name(all []choice) (string, []rundir.Fact) {
	own := slices.DeleteFunc(slices.Clone(c.facts), func(f rundir.Fact) bool {
		return !slices.ContainsFunc(all, func(other choice) bool { return !slices.Contains(other.facts, f) })
	})
	if first, _, _ := strings.Cut(c.spec, ","); c.named() && len(c.dirs) > 1 && len(c.spec) > longestName {
		return fmt.Sprintf("%s and %d more", first, len(c.dirs)-1), nil
	}
	if len(own) == 0 {
		return c.spec, c.facts
	}
	var parts []string
	for _, f := range own {
		parts = append(parts, f.Name+"="+f.Value)
	}
	return strings.Join(parts, ","), own
}

// add reads a run into its group. Runs that were not named by id take part only if they succeeded and are not a
// preparation.
func (r *compareCommand) add(g *compare.Group, histories *[]*record.History, dir rundir.Directory, named bool) error {
	h, err := r.history(context.Background(), dir)
	if err != nil {
		return err
	}
	m := &h.Snapshot.Meta
	row := review.NewObservedRow(h)
	switch {
	case !named && m.IsPreparation():
		return nil
	case m.Outcome != rundir.Succeeded && !named:
		r.streams.notice("%s: skipped run %s: it %s", g.Name, m.ID, row.Outcome())
		return nil
	case m.Outcome != rundir.Succeeded:
		r.streams.notice("run %s %s: its numbers are incomplete", m.ID, row.Outcome())
	}
	g.Runs = append(g.Runs, row)
	*histories = append(*histories, h)
	return nil
}
