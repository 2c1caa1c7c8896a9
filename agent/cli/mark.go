package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/benchwatch/benchwatch/agent/marker"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/secret"
)

// markCommand is `benchwatch mark`.
type markCommand struct {
	text *string
	runs *[]string
	tags map[string]string
	at   *string
	*store
}

func addMark(app *kingpin.Application) (string, action) {
	cmd := addCommand(app, "mark", "Put a marker on the time axis of the active runs.",
		`benchwatch mark "set gcs.fc_limit=1000"`)
	m := &markCommand{tags: map[string]string{}}
	m.text = cmd.Arg("text", "What happened").Required().String()
	m.runs = cmd.Flag("run", "Id of the run to mark, active or ended; repeatable (default: all active runs, else the time axis itself)").PlaceHolder("ID").Strings()
	cmd.Flag("tag", "Tag of the marker; repeatable").PlaceHolder("K=V").StringMapVar(&m.tags)
	m.at = cmd.Flag("at", "When it happened: 2026-11-21T14:03:00Z, the last 14:03 or 14:03:20 local time, or -90s for 90 seconds ago (default: now)").PlaceHolder("TIME").String()
	m.store = addStore(cmd)
	return cmd.FullCommand(), m.run
}

func (m *markCommand) run(s Streams) error {
	now := time.Now()
	at, err := parseTime(*m.at, now)
	if err != nil {
		return &exitError{Status: exitUsage, Err: err, Hint: "use 2026-11-21T14:03:00Z, 14:03, 14:03:20 or -90s"}
	}
	if strings.TrimSpace(*m.text) == "" {
		return &exitError{Status: exitUsage, Err: errors.New("the text of the marker is empty"), Hint: `benchwatch mark "set gcs.fc_limit=1000"`}
	}
	if err := m.open(); err != nil {
		return err
	}
	dataDir := m.dataDir
	runs, err := m.runsToMark(dataDir)
	if err != nil {
		return err
	}
	point := marker.Marker{Kind: marker.Point, Text: secret.Text(*m.text), Start: at}
	for _, k := range slices.Sorted(maps.Keys(m.tags)) {
		point.Tags = append(point.Tags, k+":"+secret.Text(m.tags[k]))
	}
	if len(runs) == 0 {
		return markGlobal(s, dataDir, point)
	}
	var failed []error
	for _, id := range runs {
		point.Run = id
		if err := marker.Append(rundir.At(dataDir, id), point); err != nil {
			failed = append(failed, err)
			continue
		}
		fmt.Fprintf(s.Out, "marked run %s at %s\n", id, at.Format(time.TimeOnly))
	}
	return errors.Join(failed...)
}

// markGlobal writes a marker without a run.
func markGlobal(s Streams, dataDir string, point marker.Marker) error {
	if err := marker.Append(rundir.Directory(dataDir), point); err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "no active run: marked the time axis at %s\n", point.Start.Format(time.TimeOnly))
	if _, ok := rundir.Agent(dataDir); !ok {
		s.notice("no agent uses %s: the next one delivers the marker", dataDir)
	}
	return nil
}

// runsToMark returns the ids of the runs to mark. All runs of --run must exist.
func (m *markCommand) runsToMark(dataDir string) ([]string, error) {
	if len(*m.runs) == 0 {
		return rundir.Active(dataDir)
	}
	var ids []string
	for _, id := range *m.runs {
		if err := rundir.CheckID(id); err != nil {
			return nil, &exitError{Status: exitUsage, Err: err, Hint: activeHint(dataDir)}
		}
		_, err := rundir.At(dataDir, id).Load()
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("no run %s in %s", id, dataDir)
		}
		if err != nil {
			return nil, withHint(err, activeHint(dataDir))
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
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime} {
		if t, err := time.ParseInLocation(layout, value, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{time.TimeOnly, "15:04"} {
		t, err := time.Parse(layout, value)
		if err != nil {
			continue
		}
		day := now
		for range 2 {
			at := time.Date(day.Year(), day.Month(), day.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location())
			if !at.After(now) {
				return at, nil
			}
			day = now.AddDate(0, 0, -1)
		}
	}
	return now, fmt.Errorf("--at %s is not a time", value)
}
