package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// runsCommand is one `benchwatch runs`.
type runsCommand struct {
	*store
	runFilter
	last int
	// lastSet: --last was given.
	lastSet bool
	format  string
}

// newRuns returns `runs`, which lists runs without a command below it.
func newRuns() *cobra.Command {
	parent := newRunsList("runs")
	parent.Short = "List, import, label or remove runs. `runs` alone lists them, the newest last."
	parent.AddCommand(newRunsList("list"), newRunsRemove(), newRunsLabel(), newRunsImport())
	return parent
}

func newRunsList(name string) *cobra.Command {
	cmd := newCommand(name, "List runs, the newest last. This is the default command of `runs`.",
		"benchwatch runs --tool=sysbench --since=7d")
	r := &runsCommand{}
	cmd.whole(&r.last, "last", "N", "Only the newest N runs (default: all)")
	r.runFilter.declare(cmd)
	addFormat(cmd, &r.format, text, jsonFormat)
	r.store = addReadingStore(cmd)
	return cmd.does(func(s Streams) error {
		r.lastSet = cmd.Flags().Changed("last")
		return r.run(s)
	})
}

// runFilter chooses runs by their facts.
type runFilter struct {
	labels   map[string]string
	tool     string
	workload string
	version  string
	since    string
	until    string

	from, to time.Time // set by check; zero: unlimited
}

func (f *runFilter) declare(cmd command) {
	cmd.labels(&f.labels, "label", "Runs with this label or fact, such as result=failed; repeatable")
	cmd.text(&f.tool, "tool", "NAME", "Only runs of this tool")
	cmd.text(&f.workload, "workload", "NAME", "Only runs of this workload")
	cmd.text(&f.version, "tool-version", "VERSION", "Only runs of this version of the tool")
	cmd.text(&f.since, "since", "TIME",
		"Only runs that started at this time or later; 2026-11-21, 2026-11-21T14:03:00Z, 14:03, or 2h or 7d ago")
	cmd.text(&f.until, "until", "TIME", "Only runs that started before this time")
}

// check reads the flags, before anything else is read.
func (f *runFilter) check(now time.Time) (err error) {
	if f.from, err = parseBound("--since", f.since, now); err != nil {
		return err
	}
	f.to, err = parseBound("--until", f.until, now)
	return err
}

func (f *runFilter) wanted(m *rundir.Meta) bool {
	switch {
	case f.tool != "" && m.Tool != f.tool,
		f.workload != "" && m.Workload != f.workload,
		f.version != "" && m.ToolVersion != f.version,
		!f.from.IsZero() && m.StartedAt.Before(f.from),
		!f.to.IsZero() && !m.StartedAt.Before(f.to):
		return false
	}
	return hasLabels(m, f.labels)
}

func (r *runsCommand) run(s Streams) error {
	if r.lastSet && r.last < 1 {
		return &exitError{Status: exitUsage, Err: fmt.Errorf("--last %d: at least 1", r.last), Hint: "benchwatch runs --last 20"}
	}
	if err := r.check(time.Now()); err != nil {
		return err
	}
	if err := r.openToRead(s); err != nil {
		return err
	}
	if r.tool != "" && r.tools.ByName(r.tool) == nil {
		return unknownTool(r.tool, r.tools)
	}
	list := r.local
	if r.archived.is() {
		list = r.remote
	}
	rows, all, err := list(s)
	if err != nil {
		return err
	}
	slices.SortStableFunc(rows, func(a, b review.Row) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), strings.Compare(a.ID, b.ID))
	})
	if r.last > 0 {
		rows = rows[max(0, len(rows)-r.last):]
	}
	return r.print(s, rows, all)
}

// local returns the wanted runs of the data directory, and how many it has.
func (r *runsCommand) local(s Streams) (rows []review.Row, all int, err error) {
	ids, err := rundir.List(r.dataDir)
	if err != nil {
		return nil, 0, err
	}
	foreign := 0           // runs whose output only their owner may read
	timed, second := 0, "" // rows of runs whose ids have their start, and the last one's second
	for _, id := range rundir.NewestFirst(ids) {
		hasTime := rundir.HasTime(id)
		if r.last > 0 && timed >= r.last && hasTime && !strings.HasPrefix(id, second) {
			break // the rest began earlier
		}
		dir := rundir.At(r.dataDir, id)
		meta, err := dir.Load()
		if err != nil {
			s.notice("skipped: %v", err)
			continue
		}
		if !r.wanted(&meta) {
			continue
		}
		snap, err := r.read(context.Background(), dir)
		switch {
		case errors.Is(err, fs.ErrPermission):
			foreign++
		case err != nil:
			s.notice("run %s: %v", id, err)
		}
		rows = append(rows, review.NewRow(&snap))
		if hasTime {
			timed++
			second, _, _ = strings.Cut(id, "-")
		}
	}
	if foreign > 0 {
		s.notice("the output of %s belongs to other users and can't be read: what it has is missing here", table.Plural(foreign, "run"))
	}
	return rows, len(ids), nil
}

// remote returns the wanted runs of the archive, and how many it has.
func (r *runsCommand) remote(Streams) (rows []review.Row, all int, err error) {
	indexes, err := r.archived.list()
	for _, x := range archivedRuns(indexes, &r.runFilter) {
		rows = append(rows, x.Row)
	}
	return rows, len(r.archived.entries), err
}

func (r *runsCommand) print(s Streams, rows []review.Row, all int) error {
	switch {
	case r.format == jsonFormat:
		if rows == nil {
			rows = []review.Row{}
		}
		return table.JSON(s.Out, rows)
	case len(rows) == 0 && all == 0:
		s.notice("%s: %s", noRunsYet(r.where()), hintFirstRun)
		return nil
	case len(rows) == 0:
		s.notice("none of %s in %s matches", table.Plural(all, "run"), r.where())
		return nil
	}
	return report.List(s.Out, rows, terminal.Of(s.Out))
}

// hasLabels reports whether a run has these labels, facts, title and result.
func hasLabels(m *rundir.Meta, labels map[string]string) bool {
	for name, want := range labels {
		have := m.Fact(name)
		switch name {
		case "title":
			have = m.Title
		case "result":
			have = string(m.Outcome)
		}
		if v, ok := m.Labels[name]; ok { // also one that is reserved now
			have = v
		}
		if have != want {
			return false
		}
	}
	return true
}

// parseBound reads --since and --until: a time as parseTime reads it, a day or an
// age.
func parseBound(flag, value string, now time.Time) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, value, now.Location()); err == nil {
		return t, nil
	}
	age := strings.TrimPrefix(value, "-")
	if days, ok := strings.CutSuffix(age, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100_000 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(age); err == nil {
		return now.Add(-d), nil
	}
	if t, err := parseTime(value, now); err == nil {
		return t, nil
	}
	return time.Time{}, &exitError{Status: exitUsage, Err: fmt.Errorf("%s %s is not a time", flag, value),
		Hint: "use 2026-11-21, 2026-11-21T14:03:00Z, 14:03, 2h or 7d"}
}
