package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/many/ab"
	"github.com/benchwatch/benchwatch/agent/many/history"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// historyCommand is one `benchwatch history`.
type historyCommand struct {
	*store
	output
	runFilter
	measure string
	by      string
	mark    bool
}

func newHistory() *cobra.Command {
	cmd := newCommand("history", "Show a measure over time, and what changed with it.",
		"benchwatch history --label cluster=blue --measure p95")
	r := &historyCommand{}
	r.runFilter.declare(cmd)
	r.measure = "tps"
	cmd.text(&r.measure, "measure", "NAME", "tps, p95, errors, lag, drain ...; also qps, tpmc, a statistic of the latency, flow_control; ratio shows the A/B comparisons")
	cmd.text(&r.by, "by", "NAME,NAME...", "Labels and facts with one series per value; in addition to tool, workload, threads, verb, the tool's options and the parameters of sweeps")
	cmd.toggle(&r.mark, "mark", "Mark the first run of each new level")
	r.declareFormat(cmd, "text, markdown, html, csv or json (default: by the name of the file, else text)", "text", "markdown", "html", "csv", "json")
	r.output.declare(cmd)
	r.declareAll(cmd)
	r.store = addReadingStore(cmd)
	return cmd.does(r.run)
}

func (r *historyCommand) run(s Streams) error {
	if err := r.runFilter.check(time.Now()); err != nil {
		return err
	}
	if r.mark && r.archived.is() {
		return &exitError{Status: exitUsage, Err: errors.New("--mark: runs in the archive can't be marked")}
	}
	if err := r.openToRead(s); err != nil {
		return err
	}
	if r.tool != "" && r.tools.ByName(r.tool) == nil {
		return unknownTool(r.tool, r.tools)
	}
	if err := r.output.check(); err != nil {
		return err
	}
	read := r.trend
	if r.measure == history.Ratio {
		read = r.ratios
	}
	found, err := read(s)
	if err != nil {
		return err
	}
	return r.document(s, func(w io.Writer) error {
		switch r.format {
		case "csv":
			return found.CSV(w)
		case "json":
			return table.JSON(w, found)
		}
		return r.page(w, s, report.TrendPage(found))
	})
}

// trend returns the trend of a measure of runs, and marks its changes if requested.
func (r *historyCommand) trend(s Streams) (*history.Trend, error) {
	c, err := review.ParseName(r.measure)
	if err != nil {
		return nil, &exitError{Status: exitUsage, Err: err}
	}
	dirs, err := r.selectRuns(s, func(m *rundir.Meta) bool {
		return history.Counts(m) && r.wanted(m)
	})
	if err != nil {
		return nil, err
	}
	rows, places := r.rows(s, dirs, c.Scope() != measure.Run)
	if len(rows) == 0 {
		return nil, withHint(errors.New("no run matches"), "benchwatch runs lists them; only those that succeeded count")
	}
	by := history.KindOf(list(r.by))
	found, err := history.NewTrend(rows, history.TrendOptions{Measure: r.measure, By: by,
		Settings: func(id string) map[string]string { return history.SettingsIn(places[id]) },
		Others:   func(id string) float64 { return history.OthersIn(context.Background(), places[id], r.tools) }})
	if err != nil {
		return nil, err
	}
	if r.mark {
		if err := markChanges(s, found, places); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// ratios returns the trend of the A/B comparisons.
func (r *historyCommand) ratios(s Streams) (*history.Trend, error) {
	if r.mark || r.archived.is() {
		return nil, &exitError{Status: exitUsage,
			Err: errors.New("--measure ratio: comparisons are not in the archive, and can't be marked")}
	}
	all, err := ab.History(r.dataDir, r.wanted)
	if err != nil {
		s.notice("%v", err)
	}
	if len(all) == 0 {
		return nil, withHint(errors.New("no A/B comparison of yours matches"), "benchwatch ab --help")
	}
	return history.NewRatioTrend(all, append(history.KindOf(list(r.by)), ab.HistoryFacts...)), nil
}

// rows reads runs, and returns their directories by id. It leaves out runs that can't be read.
func (r *historyCommand) rows(s Streams, dirs []rundir.Directory, observed bool) (rows []review.Row, places map[string]rundir.Directory) {
	places = map[string]rundir.Directory{}
	for _, dir := range dirs {
		row, err := r.row(dir, observed)
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
	return rows, places
}

// row reads a run. It reads what was observed of servers and machines only if needed.
func (r *historyCommand) row(dir rundir.Directory, observed bool) (review.Row, error) {
	if !observed {
		snap, err := r.read(context.Background(), dir)
		return review.NewRow(&snap), err
	}
	h, err := r.history(context.Background(), dir)
	if err != nil {
		return review.Row{}, err
	}
	return review.NewObservedRow(h), nil
}

// markChanges puts a marker at each change. An existing marker is replaced if it has changed, so marking again adds
// nothing.
func markChanges(s Streams, t *history.Trend, places map[string]rundir.Directory) error {
	for i := range t.Series {
		one := &t.Series[i]
		for j := range one.Changes {
			c := &one.Changes[j]
			dir := places[c.After]
			meta, err := dir.Load()
			if err != nil {
				return err
			}
			if meta.IsCopy() {
				s.notice("run %s is a copy of one that %s records: set the marker there", c.After, meta.Mirror.Host)
				continue
			}
			sum := sha256.Sum256([]byte(t.Measure + "\n" + c.After))
			err = marker.Append(dir, marker.Marker{
				ID: "level-" + hex.EncodeToString(sum[:8]), Kind: marker.Point, Run: c.After, Start: c.At,
				Text: fmt.Sprintf("%s changed by %+.1f %% (%s): %s", t.Measure, c.ChangePercent, one.Title(), c.Text()), Tags: []string{"history", "measure:" + t.Measure},
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
