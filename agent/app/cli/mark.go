package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// markCommand is `benchwatch mark`.
type markCommand struct {
	text string
	runs []string
	tags map[string]string
	at   string
	*store
	format string
}

// marked is what `mark --format=json` prints.
type marked struct {
	// Runs are the ids of the runs that were marked; empty if the time axis itself was.
	Runs []string `json:"runs"`
	// At is the time of the marker, by the wall clock.
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

func newMark() *cobra.Command {
	cmd := newCommand("mark", "Put a marker on the time axis of the active runs.",
		`benchwatch mark "set gcs.fc_limit=1000"`)
	m := &markCommand{tags: map[string]string{}}
	cmd.argument(&m.text, "TEXT", "What happened")
	cmd.texts(&m.runs, "run", "ID", "Run to mark, active or ended; repeatable (default: all active runs or, without any, the time axis itself)")
	cmd.labels(&m.tags, "tag", "Tag of the marker; repeatable")
	cmd.text(&m.at, "at", "TIME", "When it happened, such as 14:03 or -90s; 2026-11-21T14:03:00Z, the last 14:03 or 14:03:20 local time, or 90 seconds ago (default: now)")
	addFormat(cmd, &m.format, text, jsonFormat)
	m.store = addStore(cmd)
	return cmd.does(m.run)
}

func (m *markCommand) run(s Streams) error {
	now := time.Now()
	at, err := parseTime(m.at, now)
	if err != nil {
		return &exitError{Status: exitUsage, Err: err, Hint: "use 2026-11-21T14:03:00Z, 14:03, 14:03:20 or -90s"}
	}
	if strings.TrimSpace(m.text) == "" {
		return &exitError{Status: exitUsage, Err: errors.New("the text of the marker is empty"),
			Hint: `benchwatch mark "set gcs.fc_limit=1000"`}
	}
	if err := m.open(); err != nil {
		return err
	}
	dataDir := m.dataDir
	runs, err := m.runsToMark(dataDir)
	if err != nil {
		return err
	}
	point := marker.Marker{Kind: marker.Point, Text: m.text, Start: at}
	for _, k := range slices.Sorted(maps.Keys(m.tags)) {
		point.Tags = append(point.Tags, k+":"+m.tags[k])
	}
	var failed []error
	done, foreign := marked{Runs: []string{}, At: at, Text: m.text}, 0
	for _, id := range runs {
		point.Run, point.Start = id, rundir.At(dataDir, id).OnAxis(at)
		err := marker.Append(rundir.At(dataDir, id), point)
		switch {
		case errors.Is(err, fs.ErrPermission) && len(m.runs) == 0:
			foreign++
		case err != nil:
			failed = append(failed, err)
		default:
			done.Runs = append(done.Runs, id)
			if m.format == text {
				fmt.Fprintf(s.Out, "marked run %s at %s\n", id, at.Format(time.TimeOnly))
			}
		}
	}
	if foreign > 0 {
		s.notice("%s of other users: not marked", table.Plural(foreign, "active run"))
	}
	if len(done.Runs) == 0 && len(failed) == 0 {
		point.Run, point.Start = "", at
		if err := markGlobal(dataDir, point); err != nil {
			return err
		}
		if m.format == text {
			fmt.Fprintf(s.Out, "no active run: marked the time axis at %s\n", at.Format(time.TimeOnly))
		}
		if _, ok := rundir.Agent(dataDir); !ok {
			s.notice("no agent uses %s: the marker is kept for the next one, which sends it to Grafana", dataDir)
		}
	}
	if m.format == jsonFormat {
		failed = append(failed, table.JSON(s.Out, done))
	}
	return errors.Join(failed...)
}

// markGlobal writes a marker without a run.
func markGlobal(dataDir string, point marker.Marker) error {
	err := marker.Append(rundir.Directory(dataDir), point)
	if errors.Is(err, fs.ErrPermission) {
		return withHint(err, "name one of your runs with --run, or let an agent share the folder, as docs/run-directory.md describes under Users")
	}
	return err
}

// runsToMark returns the ids of the runs to mark. All runs of --run must exist.
func (m *markCommand) runsToMark(dataDir string) ([]string, error) {
	if len(m.runs) == 0 {
		return rundir.Active(dataDir)
	}
	var ids []string
	for _, id := range m.runs {
		if err := rundir.CheckID(id); err != nil {
			return nil, &exitError{Status: exitUsage, Err: err, Hint: activeHint(dataDir)}
		}
		meta, err := rundir.At(dataDir, id).Load()
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("no run %s in %s", id, dataDir)
		}
		if err != nil {
			return nil, withHint(err, activeHint(dataDir))
		}
		if meta.IsCopy() {
			return nil, withHint(fmt.Errorf("run %s is a copy of one that %s records", id, meta.Mirror.Host), "set the marker there")
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func activeHint(dataDir string) string {
	active, err := rundir.Active(dataDir)
	if err != nil || len(active) == 0 {
		return "no run is active in this data directory; choose another one with --data-dir"
	}
	return "active runs: " + strings.Join(active, ", ")
}

// parseTime parses --at: an absolute time, a time of day in the last 24 hours in
// the location of now, or a negative duration.
func parseTime(value string, now time.Time) (time.Time, error) {
	if value == "" || value == "now" {
		return now, nil
	}
	if strings.HasPrefix(value, "-") {
		ago, err := time.ParseDuration(value)
		if err != nil {
			return now, fmt.Errorf("--at %s is not a time", value)
		}
		return now.Add(ago), nil
	}
	at, timeOfDay, ok := parseMoment(value, now)
	switch {
	case !ok:
		return now, fmt.Errorf("--at %s is not a time", value)
	case timeOfDay && at.After(now):
		return at.AddDate(0, 0, -1), nil
	}
	return at, nil
}

// parseMoment parses an absolute time, or a time of day on the day of now. Both are
// in the location of now, unless they name another.
func parseMoment(value string, now time.Time) (at time.Time, timeOfDay, ok bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime} {
		if t, err := time.ParseInLocation(layout, value, now.Location()); err == nil {
			return t, false, true
		}
	}
	for _, layout := range []string{time.TimeOnly, "15:04"} {
		if t, err := time.Parse(layout, value); err == nil {
			return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location()), true, true
		}
	}
	return now, false, false
}
