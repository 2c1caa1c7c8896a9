package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
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

// historyCommand is one `benchwatch history`.
type historyCommand struct {
	*store
	output
	runFilter
	measure *string
	by      *string
	format  *string
}

func addHistory(app *kingpin.Application) (string, action) {
	cmd := addCommand(app, "history", "Show a measure of runs over time, where its level changed, and what changed with it.",
		"benchwatch history --label cluster=blue --measure p95")
	r := &historyCommand{runFilter: addRunFilter(cmd)}
	r.measure = cmd.Flag("measure", "Measure: tps, qps, tpmc, errors, a statistic of the latency (avg, p95 …), lag, flow_control or drain").Default("tps").PlaceHolder("NAME").String()
	r.by = cmd.Flag("by", "Labels and facts whose values are a series each, besides tool, workload, threads and verb").PlaceHolder("NAME,NAME…").String()
	r.format = cmd.Flag("format", "Format of the result: text, markdown, html, csv or json").Default("text").Enum("text", "markdown", "html", "csv", "json")
	r.output = addOutput(cmd)
	r.store = addReadingStore(cmd)
	return cmd.FullCommand(), r.run
}

func (r *historyCommand) run(s Streams) error {
	now := time.Now()
	if err := r.runFilter.check(now); err != nil {
		return err
	}
	if err := r.openToRead(s); err != nil {
		return err
	}
	if *r.tool != "" && r.tools.ByName(*r.tool) == nil {
		return unknownTool(*r.tool, r.tools)
	}
	if err := r.output.check(); err != nil {
		return err
	}
	c, err := report.ParseName(*r.measure)
	if err != nil {
		return &exitError{Status: exitUsage, Err: err}
	}
	dirs, err := r.selectRuns(s, func(m *rundir.Meta) bool {
		return m.Outcome == rundir.Succeeded && !isPreparation(m) && r.wanted(m)
	})
	if err != nil {
		return err
	}
	var rows []report.Row
	places := map[string]rundir.Directory{}
	for _, dir := range dirs {
		row, err := r.row(dir, c.OfServers())
		switch {
		case errors.Is(err, fs.ErrPermission):
			s.notice("run %s: its output belongs to another user", dir.ID())
		case err != nil:
			s.notice("run %s: %v", dir.ID(), err)
		default:
			rows = append(rows, row)
			places[row.ID] = dir
		}
	}
	if len(rows) == 0 {
		return withHint(errors.New("no run matches"), "benchwatch runs lists them; only those that succeeded count")
	}
	by := slices.Clone(report.KindFacts)
	by = append(by, strings.FieldsFunc(*r.by, func(c rune) bool { return c == ',' || c == ' ' })...)
	trend, err := report.NewTrend(rows, report.TrendOptions{Measure: *r.measure, By: by, Settings: func(id string) map[string]string { return settingsOf(places[id]) }})
	if err != nil {
		return err
	}
	return r.document(s, func(w io.Writer) error {
		switch *r.format {
		case "markdown":
			return trend.Markdown(w)
		case "html":
			p := report.TrendPage{Trend: trend, Made: now, Version: version.Version}
			return p.HTML(w)
		case "csv":
			return trend.CSV(w)
		case "json":
			return table.JSON(w, trend)
		default:
			return trend.WriteText(w)
		}
	})
}

// row reads a run, its servers only if they are needed.
func (r *historyCommand) row(dir rundir.Directory, servers bool) (report.Row, error) {
	if !servers {
		snap, err := r.read(context.Background(), dir)
		return report.NewRow(&snap), err
	}
	h, err := r.history(context.Background(), dir)
	if err != nil {
		return report.Row{}, err
	}
	return report.NewObservedRow(h), nil
}

// settingsOf returns the settings of a run's servers, nil if none were recorded.
func settingsOf(dir rundir.Directory) map[string]string {
	recorded, err := history.ReadSettings(dir)
	if err != nil {
		return nil
	}
	return report.SettingsOf(recorded)
}

// isPreparation reports whether a run fills or empties tables.
func isPreparation(m *rundir.Meta) bool {
	return m.Verb == "prepare" || m.Verb == "cleanup" || m.Verb == "load"
}
