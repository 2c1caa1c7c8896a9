package web

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/marker"
	"github.com/benchwatch/benchwatch/agent/rundir"

	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// runView is a run as lists show it. Times are milliseconds since 1970.
type runView struct {
	ID              string            `json:"id"`
	Title           string            `json:"title"`
	Labels          map[string]string `json:"labels,omitempty"`
	Tool            string            `json:"tool,omitempty"`
	ToolVersion     string            `json:"tool_version,omitempty"`
	Verb            string            `json:"verb,omitempty"`
	Workload        string            `json:"workload,omitempty"`
	Threads         *int              `json:"threads,omitempty"`
	Target          string            `json:"target,omitempty"`
	Database        string            `json:"database,omitempty"`
	DurationSeconds float64           `json:"duration_seconds,omitempty"`
	Generator       string            `json:"generator,omitempty"`
	// Log: it stands in a file that a tool wrote by itself, perhaps on another
	// machine.
	Log bool `json:"log,omitempty"`

	StartedAt int64  `json:"started_at"`
	EndedAt   *int64 `json:"ended_at,omitempty"`
	ClosedAt  *int64 `json:"closed_at,omitempty"`
	// ClockAt is when the tool's clock began, where that was seen.
	ClockAt *int64 `json:"clock_at,omitempty"`

	Phase    ingest.Phase   `json:"phase"`
	Result   rundir.Outcome `json:"result,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	ExitCode *int           `json:"exit_code,omitempty"`
	Signal   string         `json:"signal,omitempty"`

	// Throughput is transactions per second now or, of an ended run, of all of
	// it; absent if that is not known. So is the latency.
	Throughput     *float64 `json:"throughput,omitempty"`
	LatencySeconds *float64 `json:"latency_seconds,omitempty"`
	LatencyStat    string   `json:"latency_stat,omitempty"`
	Errors         float64  `json:"errors"`
	Drain          drains   `json:"drain,omitempty"`
}

type drains map[string]rundir.Drain

// runDetail is all the page shows of a run beside its charts.
type runDetail struct {
	runView
	Command      []string     `json:"command,omitempty"`
	Reconnects   float64      `json:"reconnects"`
	Summary      *summaryView `json:"summary,omitempty"`
	Messages     []string     `json:"messages,omitempty"`
	MessageCount uint64       `json:"message_count"`
	LastMessage  string       `json:"last_message,omitempty"`
	Malformed    uint64       `json:"malformed_lines"`
	Faults       uint64       `json:"faults"`
}

// summaryView is the tool's own totals.
type summaryView struct {
	ElapsedSeconds *float64        `json:"elapsed_seconds,omitempty"`
	FromIntervals  bool            `json:"from_intervals,omitempty"`
	TpmC           *float64        `json:"tpmc,omitempty"`
	Operations     []operationView `json:"operations"`
}

type operationView struct {
	Operation string             `json:"operation"`
	PerSecond *float64           `json:"per_second,omitempty"`
	Count     *uint64            `json:"count,omitempty"`
	Latency   map[string]float64 `json:"latency_seconds,omitempty"`
}

// helloView is who serves the page.
type helloView struct {
	Version string `json:"version"`
	Agent   int64  `json:"agent"` // when it started
	Now     int64  `json:"now"`
	Only    string `json:"only,omitempty"` // the one run that it serves
}

type markerView struct {
	ID    string      `json:"id"`
	Kind  marker.Kind `json:"kind"`
	Text  string      `json:"text"`
	Tags  []string    `json:"tags,omitempty"`
	Start int64       `json:"start"`
	End   *int64      `json:"end,omitempty"`
}

func newRunView(s *ingest.Snapshot) runView {
	m := &s.Meta
	v := runView{
		ID: m.ID, Title: m.Title, Labels: m.Labels, Tool: m.Tool, ToolVersion: m.ToolVersion, Verb: m.Verb,
		Workload: m.Workload, Target: m.Target, Database: m.Database, DurationSeconds: m.DurationSeconds, Generator: m.Generator, Log: m.Log != nil,
		StartedAt: m.StartedAt.UnixMilli(), EndedAt: milliseconds(m.EndedAt), ClosedAt: milliseconds(m.ClosedAt), ClockAt: milliseconds(m.ClockStartedAt),
		Phase: s.Phase, Result: m.Outcome, Reason: m.Reason, ExitCode: m.ExitCode, Signal: m.Signal,
		Errors: math.Round(finiteOr0(s.Errors)), Drain: m.Drain,
	}
	if s.Threads.Known {
		v.Threads = &s.Threads.Value
	}
	switch {
	case s.Interval != nil:
		v.Throughput = known(s.Interval.Rate(tool.Transaction))
		v.LatencyStat, v.LatencySeconds = headline(s.Interval.Latencies)
	case s.Summary != nil:
		if r, ok := s.Summary.Rate(tool.Transaction); ok {
			v.Throughput = finite(r)
		}
		v.LatencyStat, v.LatencySeconds = headline(s.Summary.Latencies)
	}
	return v
}

// headline is the one latency that a list has room for: p95 if there is one,
// else the lowest percentile above it, else the highest, else the mean.
func headline(latencies []tool.Latency) (string, *float64) {
	rank := func(stat string) int {
		return slices.Index([]string{"p50", "avg", "p90", "p99.99", "p99.9", "p99", "p95"}, stat)
	}
	best := -1
	for i, l := range latencies {
		if l.Operation == tool.Transaction && rank(l.Stat) >= 0 && (best < 0 || rank(l.Stat) > rank(latencies[best].Stat)) {
			best = i
		}
	}
	if best < 0 {
		return "", nil
	}
	return latencies[best].Stat, finite(latencies[best].Seconds)
}

func newRunDetail(s *ingest.Snapshot) runDetail {
	d := runDetail{
		runView: newRunView(s), Command: s.Meta.Command, Reconnects: finiteOr0(s.Reconnects), Messages: s.Messages,
		MessageCount: s.MessageCount, LastMessage: s.LastMessage, Malformed: s.Lines.Malformed, Faults: s.Faults,
	}
	if s.Summary != nil {
		d.Summary = newSummaryView(s.Summary)
	}
	return d
}

func newSummaryView(s *ingest.Summary) *summaryView {
	v := &summaryView{ElapsedSeconds: known(s.ElapsedSeconds), FromIntervals: s.FromIntervals, TpmC: known(s.TpmC)}
	byName := map[string]*operationView{}
	operation := func(name string) *operationView {
		if byName[name] == nil {
			byName[name] = &operationView{Operation: name, Latency: map[string]float64{}}
		}
		return byName[name]
	}
	for _, r := range s.Rates {
		operation(r.Operation).PerSecond = finite(r.PerSecond)
	}
	for _, c := range s.Counts {
		operation(c.Operation).Count = &c.N
	}
	for _, l := range s.Latencies {
		if finite(l.Seconds) != nil {
			operation(l.Operation).Latency[l.Stat] = l.Seconds
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(byName), inReadingOrder) {
		v.Operations = append(v.Operations, *byName[name])
	}
	return v
}

// inReadingOrder puts what was done before what went wrong.
func inReadingOrder(a, b string) int {
	rank := func(name string) int {
		switch name {
		case tool.Transaction:
			return 0
		case tool.Query:
			return 1
		case "error", "reconnect":
			return 3
		}
		return 2
	}
	if x, y := rank(a), rank(b); x != y {
		return x - y
	}
	return strings.Compare(a, b)
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

func milliseconds(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

func known(v series.Optional[float64]) *float64 {
	if !v.Known {
		return nil
	}
	return finite(v.Value)
}

// finite is v, or nil for what JSON has no number for.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func finiteOr0(v float64) float64 {
	if finite(v) == nil {
		return 0
	}
	return v
}

// encode makes JSON of the views above, which can't fail.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return data
}
