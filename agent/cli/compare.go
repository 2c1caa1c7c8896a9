package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/report"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/table"
)

// compareCommand is one `benchwatch compare`.
type compareCommand struct {
	*store
	output
	specs  *[]string
	format *string
	failIf *[]string
	strict *bool
	// Of the figures over a parameter.
	x       *string
	lines   *string
	measure *string
	averaging

	streams Streams
}

func addCompare(app *kingpin.Application) (string, action) {
	cmd := addCommand(app, "compare", "Compare runs or groups of runs.",
		"benchwatch compare version=1.2 version=1.3 --fail-if 'tps<-5%' --fail-if 'p99>+10%'")
	r := &compareCommand{}
	r.specs = cmd.Arg("GROUP", "Id of a run, several ids with commas, or labels k=v[,k=v] of runs; the first group is the baseline").Required().Strings()
	r.format = cmd.Flag("format", "Format of the comparison: text, markdown, csv, json, html, svg or png (one figure over --x), or junit").Default("text").Enum("text", "markdown", "csv", "json", "html", "svg", "png", "junit")
	r.failIf = cmd.Flag("fail-if", "Exit with status 3 if a group is beyond this limit by more than noise: tps<-5%, p99>+10% (relative to the baseline), lag>10s, errors>1%; repeatable").PlaceHolder("LIMIT").Strings()
	r.strict = cmd.Flag("strict", "Exit with status 4 if the runs don't show whether a limit of --fail-if is broken").Bool()
	r.x = cmd.Flag("x", "Fact, label or setting of the servers along the axis of the figures (default: the one that varies, threads before others); with it, one group is enough, and the other formats contain the figures' table").PlaceHolder("NAME").String()
	r.lines = cmd.Flag("lines", "Facts, labels or settings with one line per value, in addition to the groups (default: all that vary); run draws a line for each run").PlaceHolder("NAME,NAME…").String()
	r.measure = cmd.Flag("measure", "Measures of the figures and of their table: tps, qps, tpmc, duration, a statistic of the latency, one of an operation (read_avg, read_count), cpu, lag, n1_queries … (default: all, tps in svg and png)").PlaceHolder("NAME,NAME…").String()
	r.averaging = addAveraging(cmd)
	r.output = addOutput(cmd)
	r.store = addReadingStore(cmd)
	return cmd.FullCommand(), func(s Streams) error {
		r.streams = s
		return r.run()
	}
}

func (r *compareCommand) run() error {
	if len(*r.specs) < 2 && *r.x == "" {
		return &exitError{Status: exitUsage, Err: errors.New("two runs or groups are needed"), Hint: "benchwatch compare via=direct via=atlas"}
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
	groups := make([]report.Group, len(*r.specs))
	histories := make([][]*history.History, len(groups))
	var selected []string
	for i, spec := range *r.specs {
		dirs, names, err := r.group(spec)
		if err != nil {
			return err
		}
		selected = append(selected, names...)
		groups[i].Name = shortName(spec, *r.specs)
		for _, dir := range dirs {
			if err := r.add(&groups[i], &histories[i], dir, len(names) == 0); err != nil {
				return err
			}
		}
		if len(groups[i].Runs) == 0 {
			return withHint(fmt.Errorf("no ended run in group %s", spec), "benchwatch runs lists them")
		}
	}
	c := report.Compare(groups, selected)
	c.Check(limits, groups)
	if err := r.write(&c, groups, histories); err != nil {
		return err
	}
	switch verdict := c.Verdict(); {
	case verdict == report.Broken:
		return &exitError{Status: exitLimit, Err: limitError(&c, verdict)}
	case verdict == report.Unclear && *r.strict:
		return &exitError{Status: exitUnclear, Err: limitError(&c, verdict)}
	}
	return nil
}

// limitError names the limits with this result.
func limitError(c *report.Comparison, result report.Result) error {
	var all []string
	for i := range c.Limits {
		if l := &c.Limits[i]; l.Result == result {
			all = append(all, fmt.Sprintf("%s for %s", l.Limit, l.Group))
		}
	}
	return fmt.Errorf("%s: %s", result, strings.Join(all, "; "))
}

// limits reads --fail-if.
func (r *compareCommand) limits() ([]*report.Condition, error) {
	var limits []*report.Condition
	for _, text := range *r.failIf {
		limit, err := report.ParseLimit(text)
		if err != nil {
			return nil, &exitError{Status: exitUsage, Err: fmt.Errorf("--fail-if %w", err)}
		}
		limits = append(limits, limit)
	}
	if len(limits) == 0 && (*r.strict || *r.format == "junit") {
		return nil, &exitError{Status: exitUsage, Err: errors.New("--strict and --format=junit need a limit"), Hint: "add --fail-if 'tps<-5%'"}
	}
	return limits, nil
}

// figures arranges the runs for figures and their table.
func (r *compareCommand) figures(c *report.Comparison, groups []report.Group, measures ...string) (*report.FigureSet, error) {
	o := report.FigureOptions{X: *r.x, Lines: list(*r.lines), Measures: list(*r.measure), Average: r.average()}
	if len(o.Measures) == 0 {
		o.Measures = measures
	}
	return report.NewFigureSet(c, groups, o)
}

// list returns the names in a list with commas.
func list(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' })
}

// write writes the comparison in the format asked for or, over a parameter, the table of the
// figures.
func (r *compareCommand) write(c *report.Comparison, groups []report.Group, histories [][]*history.History) error {
	return r.document(r.streams, func(w io.Writer) error {
		if *r.x != "" && !slices.Contains([]string{"svg", "png", "junit"}, *r.format) {
			set, err := r.figures(c, groups)
			if err != nil {
				return err
			}
			c.Over(set)
		}
		switch *r.format {
		case "markdown":
			return c.Markdown(w)
		case "csv":
			return c.CSV(w)
		case "json":
			return table.JSON(w, c)
		case "junit":
			return c.JUnit(w, *r.strict)
		case "html":
			set, err := r.figures(c, groups)
			if err != nil {
				return err
			}
			p := report.ComparisonPage{Comparison: *c, Made: time.Now(), Version: version.Version, Plots: set.Plots()}
			if *r.x == "" {
				p.Charts = report.CompareCharts(c, groups, histories)
			}
			return p.HTML(w)
		case "svg", "png":
			set, err := r.figures(c, groups, "tps")
			if err != nil {
				return err
			}
			return writeFigure(w, set.Plots(), *r.format)
		default:
			return c.Text(w)
		}
	})
}

// group returns the runs that an argument names and, if it has labels, the labels'
// names.
func (r *compareCommand) group(spec string) ([]rundir.Directory, []string, error) {
	if !strings.Contains(spec, "=") || strings.Contains(spec, "/") {
		dirs, err := r.findRuns(strings.Split(spec, ","))
		return dirs, nil, err
	}
	labels := map[string]string{}
	var names []string
	for part := range strings.SplitSeq(spec, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok || name == "" {
			return nil, nil, &exitError{Status: exitUsage, Err: fmt.Errorf("group %q is not k=v[,k=v]", spec), Hint: "benchwatch compare via=direct,threads=16 via=atlas,threads=16"}
		}
		labels[name] = value
		names = append(names, name)
	}
	dirs, err := r.selectRuns(r.streams, func(m *rundir.Meta) bool { return hasLabels(m, labels) && (!m.IsGenerator() || labels["group"] != "") })
	if err != nil {
		return nil, nil, err
	}
	if len(dirs) == 0 {
		return nil, nil, withHint(fmt.Errorf("no run has %s", spec), "benchwatch runs --json shows the labels")
	}
	return dirs, names, nil
}

// shortName returns a group's labels without those that all groups have.
func shortName(spec string, all []string) string {
	var own []string
	for part := range strings.SplitSeq(spec, ",") {
		shared := strings.Contains(part, "=")
		for _, other := range all {
			shared = shared && slices.Contains(strings.Split(other, ","), part)
		}
		if !shared {
			own = append(own, part)
		}
	}
	if len(own) == 0 {
		return spec
	}
	return strings.Join(own, ",")
}

// add reads a run into its group. Runs that were not named by id take part only if
// they succeeded and are no preparation.
func (r *compareCommand) add(g *report.Group, histories *[]*history.History, dir rundir.Directory, named bool) error {
	h, err := r.history(context.Background(), dir)
	if err != nil {
		return err
	}
	m := &h.Snapshot.Meta
	row := report.NewObservedRow(h)
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
