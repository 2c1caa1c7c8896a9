package web

import (
	"path/filepath"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/document"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// The views are what the API sends: src/types.ts has the same types, and a test
// compares them. Times are milliseconds since 1970; a value that is unknown is
// left out.

// runView is a run as lists show it.
type runView struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Facts are the known facts, in the order in which they are shown; Labels are the user's.
	Facts  []factView        `json:"facts"`
	Labels map[string]string `json:"labels,omitempty"`
	// DurationSeconds is the requested duration.
	DurationSeconds float64 `json:"duration_seconds,omitempty"`
	// Notice is set if the run's servers are unknown, with a remedy.
	Notice string `json:"notice,omitempty"`

	StartedAt int64  `json:"started_at"`
	EndedAt   *int64 `json:"ended_at,omitempty"`
	ClosedAt  *int64 `json:"closed_at,omitempty"`
	// ClockAt is when the tool's clock started, if that was seen.
	ClockAt *int64 `json:"clock_at,omitempty"`

	Phase    ingest.Phase   `json:"phase"`
	Result   rundir.Outcome `json:"result,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	ExitCode *int           `json:"exit_code,omitempty"`
	Signal   string         `json:"signal,omitempty"`

	// Throughput is transactions per second: of the last interval or, for an ended run, of the whole run. The same
	// holds for the latency.
	Throughput series.Optional[float64] `json:"throughput,omitzero"`
	Latency    *latencyView             `json:"latency,omitempty"`
	// Errors is missing if the tool counts none.
	Errors series.Optional[float64] `json:"errors,omitzero"`
	// FailedShare is the share of the transactions that failed.
	FailedShare series.Optional[float64] `json:"failed_share,omitzero"`
	Drain       map[string]rundir.Drain  `json:"drain,omitempty"`
	// Generators are the generators of a group.
	Generators []generatorView `json:"generators,omitempty"`
}

// generatorView is a generator of a group.
type generatorView struct {
	// Run is the id of its own run, or Log the name of the file that it was imported
	// from. Host is its machine as the user named it.
	Run  string `json:"run,omitempty"`
	Log  string `json:"log,omitempty"`
	Host string `json:"host,omitempty"`
	// StartSeconds is when its tool started after the group.
	StartSeconds *float64 `json:"start_seconds,omitempty"`
	// ClockOffsetSeconds is by how much its clock is ahead.
	ClockOffsetSeconds *float64       `json:"clock_offset_seconds,omitempty"`
	Result             rundir.Outcome `json:"result,omitempty"`
	Reason             string         `json:"reason,omitempty"`
	// Absent: it never started.
	Absent bool `json:"absent,omitempty"`
	// State and Throughput are its own while the group is active.
	State      ingest.GeneratorState    `json:"state,omitempty"`
	Throughput series.Optional[float64] `json:"throughput,omitzero"`
}

type factView struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// latencyView is a run's headline latency.
type latencyView struct {
	Operation string  `json:"operation"`
	Stat      string  `json:"stat"`
	Seconds   float64 `json:"seconds"`
}

// runDetail is everything that the page shows of a run besides its charts.
type runDetail struct {
	runView
	// Requires: the user has requirements of the run.
	Requires     bool     `json:"requires,omitempty"`
	Reconnects   float64  `json:"reconnects"`
	Messages     []string `json:"messages,omitempty"`
	MessageCount uint64   `json:"message_count"`
	LastMessage  string   `json:"last_message,omitempty"`
	Malformed    uint64   `json:"malformed_lines"`
	Faults       uint64   `json:"faults"`
}

// helloView is who serves the page.
type helloView struct {
	Version string `json:"version"`
	Agent   int64  `json:"agent"` // when it started
	Now     int64  `json:"now"`
	// Only is the run that the page was started for, empty for an agent's page.
	Only string `json:"only,omitempty"`
}

type markerView struct {
	ID    string      `json:"id"`
	Kind  marker.Kind `json:"kind"`
	Text  string      `json:"text"`
	Tags  []string    `json:"tags,omitempty"`
	Start int64       `json:"start"`
	End   *int64      `json:"end,omitempty"`
}

type measuresView struct {
	Charts []chartView `json:"charts"`
	// Live is how the charts of an active run are arranged.
	Live     []document.Block `json:"live"`
	Headline headlineView     `json:"headline"`
}

// headlineView decides which lines of a chart of the tool's values are visible at first.
type headlineView struct {
	// Stats are statistics of a latency. The first one that exists is shown.
	Stats []string `json:"stats"`
	// NotWork are operations, by name or by the end of the name after an underscore.
	NotWork []string `json:"not_work"`
}

type runsView struct {
	Runs []runView `json:"runs"`
	// Total is how many runs the data directory has; the agent keeps the newest.
	Total int `json:"total"`
}

// historyView is a run's history without its tables, which are appended.
type historyView struct {
	Run  runDetail `json:"run"`
	Zero int64     `json:"zero"`
	// Whole is false if the servers were left out, to be requested next.
	Whole   bool         `json:"whole"`
	Warmup  [][2]float64 `json:"warmup"`
	Damage  []string     `json:"damage"`
	Markers []markerView `json:"markers"`
	// Settings are how the servers are configured.
	Settings []document.Section `json:"settings"`
}

func newRunView(s *ingest.Snapshot) runView {
	m := &s.Meta
	v := runView{
		ID: m.ID, Title: m.Title, Facts: []factView{}, Labels: m.Labels, DurationSeconds: m.DurationSeconds, Notice: m.Servers.Notice(),
		StartedAt: m.StartedAt.UnixMilli(), EndedAt: milliseconds(m.EndedAt), ClosedAt: milliseconds(m.ClosedAt), ClockAt: milliseconds(m.ClockStartedAt),
		Phase: s.Phase, Result: m.Outcome, Reason: m.Reason, ExitCode: m.ExitCode, Signal: m.Signal,
		Errors: s.ErrorTotal(), FailedShare: s.FailedShare, Drain: m.Drain,
	}
	if m.IsGroup() {
		for i, o := range m.Group.Members {
			g := generatorView{
				Host: o.Host, StartSeconds: o.StartSeconds, ClockOffsetSeconds: o.ClockOffsetSeconds,
				Result: o.Outcome, Reason: o.Reason, Absent: o.Absent,
			}
			if o.Log != "" {
				g.Log = filepath.Base(o.Log)
			} else {
				g.Run = rundir.GeneratorID(m.Group.Name, i+1)
			}
			if s.Active() && i < len(s.Generators) {
				g.State, g.Throughput = s.Generators[i].State, s.Generators[i].Throughput
			}
			v.Generators = append(v.Generators, g)
		}
	}
	for _, f := range m.OwnFacts() {
		if f.Value != "" {
			v.Facts = append(v.Facts, factView(f))
		}
	}
	if now := s.Current(); now != nil {
		v.Throughput = now.Value(tool.Throughput)
		if l := now.Headline(); l.Known {
			v.Latency = &latencyView{l.Value.Operation, l.Value.Stat, l.Value.Seconds}
		}
	}
	return v
}

func newRunDetail(s *ingest.Snapshot) runDetail {
	d := runDetail{
		runView: newRunView(s), Requires: len(s.Meta.Required) > 0, Reconnects: s.Reconnects, Messages: s.Messages,
		MessageCount: s.MessageCount, LastMessage: s.LastMessage, Malformed: s.Lines.Malformed, Faults: s.Faults,
	}
	return d
}

// settingSections returns the sections with the configuration of a run's servers, on an axis that begins at zero.
func settingSections(recorded record.SettingsHistory, zero time.Time) []document.Section {
	return append([]document.Section{}, report.LiveSettings(recorded, zero)...)
}

func markerViews(markers []marker.Marker) []markerView {
	views := []markerView{}
	for _, m := range markers {
		v := markerView{ID: m.ID, Kind: m.Kind, Text: m.Text, Tags: m.Tags, Start: m.Start.UnixMilli()}
		if !m.End.IsZero() {
			v.End = milliseconds(&m.End)
		}
		views = append(views, v)
	}
	return views
}

// milliseconds returns an instant as JavaScript has it, nil if there is none.
func milliseconds(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}
