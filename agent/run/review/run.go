package review

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Run has all results of one run.
type Run struct {
	Row
	Details
}

// MarshalJSON returns the fields of the row and of the details.
func (r Run) MarshalJSON() ([]byte, error) { return table.MarshalJoined(r.Row, r.Details) }

// Details are the results of a run besides its row.
type Details struct {
	// Requirements are the user's, once the run has ended.
	Requirements []Requirement `json:"requirements,omitempty"`
	// Failure is how the run ended if it did not succeed.
	Failure    []rundir.Fact `json:"failure,omitempty"`
	Command    []string      `json:"command,omitempty"`
	Parameters []rundir.Fact `json:"parameters,omitempty"`

	Operations []Operation `json:"operations,omitempty"`
	// Distributions are the tool's own histograms.
	Distributions []Distribution                 `json:"latency_distributions,omitempty"`
	OverTime      map[string]*histogram.OverTime `json:"-"`
	// Statements are absent if they were not recorded.
	Statements *Statements `json:"statements,omitempty"`
	Observed   []string    `json:"observed,omitempty"`
	Trust      []Finding   `json:"trust,omitempty"`
	// Messages are the first error messages of the tool, of MessageCount.
	Messages     []string `json:"messages,omitempty"`
	MessageCount uint64   `json:"message_count,omitempty"`
	// Settings are the servers' settings when the run began, SettingChanges the changes during the run. SettingsUnknown
	// names the servers whose settings are unknown, with the reason.
	Settings        []ClusterSettings `json:"server_settings,omitempty"`
	SettingChanges  []SettingChange   `json:"setting_changes,omitempty"`
	SettingsUnknown []string          `json:"settings_unknown,omitempty"`
	Markers         []Marker          `json:"markers,omitempty"`
	// Generators are the generators of a group.
	Generators []Generator `json:"generators,omitempty"`
}

// Operation is what the tool's summary has about one operation. Latency is in
// seconds by statistic.
type Operation struct {
	Name    string                   `json:"name"`
	Count   series.Optional[float64] `json:"count,omitzero"`
	Rate    series.Optional[float64] `json:"per_second,omitzero"`
	Latency map[string]float64       `json:"latency_seconds,omitempty"`
}

// Marker is a point on the time axis, numbered as in the charts.
type Marker struct {
	Number         int       `json:"number"`
	At             time.Time `json:"at"`
	ElapsedSeconds float64   `json:"elapsed_seconds"`
	Text           string    `json:"text"`
}

// MarkersOf returns the markers of a run in the order of their numbers.
func MarkersOf(h *record.History) []Marker {
	var markers []Marker
	for i, p := range h.Markers {
		markers = append(markers, Marker{i + 1, p.Start, h.Elapsed(p.Start), p.Text})
	}
	return markers
}

// NewRun returns the results of one run.
func NewRun(h *record.History, others ...rundir.Meta) Run {
	m := &h.Snapshot.Meta
	r := Run{
		Row: NewObservedRow(h),
		Details: Details{
			Failure: failure(&h.Snapshot), Command: m.Command, Operations: operations(&h.Snapshot),
			Generators: generators(m), Distributions: distributions(h.Snapshot.Summary), Messages: h.Snapshot.Messages, MessageCount: h.Snapshot.MessageCount,
			Settings: SettingsByCluster(h.Settings), SettingChanges: SettingChanges(h.Settings, h.Zero), SettingsUnknown: unknownSettings(h),
		},
	}
	if r.Result != "" {
		r.Requirements = Requirements(m.Required, &r.Row)
	}
	r.OverTime = h.Intervals.Distributions
	r.Limits = limitsOf(h, &r.Row, others)
	r.Statements = r.Executed
	r.Parameters = parameters(&r.Row, m)
	for _, c := range r.SettingChanges {
		r.Observed = append(r.Observed, c.Text())
	}
	r.Observed = append(r.Observed, observed(h, &r.Row, others)...)
	r.Trust = Trust(h, &r.Row)
	r.Markers = MarkersOf(h)
	return r
}

// failure returns what is known of a failure: the reason, the exit status if the
// reason does not have it, and the tool's last error message.
func failure(s *ingest.Snapshot) []rundir.Fact {
	m := &s.Meta
	if m.Outcome == "" || m.Outcome == rundir.Succeeded {
		return nil
	}
	var facts []rundir.Fact
	add := func(name, value string) {
		if value = table.Plain(value); value != "" && (len(facts) == 0 || !strings.Contains(table.Plain(m.Reason), value)) {
			facts = append(facts, rundir.Fact{Name: name, Value: table.Clip(value, longestMessage)})
		}
	}
	add("reason", m.Reason)
	if m.ExitCode != nil {
		add("exit status", fmt.Sprintf("exit status %d", *m.ExitCode))
	}
	add("last error message", s.LastMessage)
	return facts
}

// parameters are the run's known facts, and what it was asked to do.
func parameters(r *Row, m *rundir.Meta) []rundir.Fact {
	var facts []rundir.Fact
	for _, f := range r.Facts() {
		if f.Value != "" {
			facts = append(facts, f)
		}
	}
	if m.DurationSeconds > 0 {
		facts = append(facts, rundir.Fact{Name: "requested duration", Value: table.Duration(m.DurationSeconds)})
	}
	return facts
}

// operations puts the summary's values of one operation together, transactions
// first.
func operations(snapshot *ingest.Snapshot) []Operation {
	s := snapshot.Summary
	if s == nil {
		return nil
	}
	var all []Operation
	of := func(name string) *Operation {
		i := slices.IndexFunc(all, func(o Operation) bool { return o.Name == name })
		if i < 0 {
			i = len(all)
			all = append(all, Operation{Name: name, Latency: map[string]float64{}})
		}
		return &all[i]
	}
	of(tool.Transaction)
	for _, v := range s.Rates {
		of(v.Operation).Rate = series.Some(v.PerSecond)
	}
	for _, v := range s.Counts {
		if v.Operation == tool.ErrorCount && v.N == 0 && missesErrors(snapshot) {
			continue
		}
		of(v.Operation).Count = series.Some(float64(v.N))
	}
	for _, v := range s.Latencies {
		of(v.Operation).Latency[v.Stat] = v.Seconds
	}
	if t := &all[0]; !t.Rate.Known && !t.Count.Known && len(t.Latency) == 0 {
		all = all[1:]
	}
	return all
}

// missesErrors reports whether a count of 0 errors misses the error that ended the run, because it is in no interval
// and there is no summary.
func missesErrors(s *ingest.Snapshot) bool {
	return s.Summary.FromIntervals && s.MessageCount > 0
}

// OperationTable returns a line for each operation.
func OperationTable(all []Operation) *table.Table {
	found := map[string]float64{}
	for _, o := range all {
		for stat := range o.Latency {
			found[stat] = 0
		}
	}
	stats := Stats(found)
	t := table.New(table.Named("operation", "count", "per second")...)
	for _, stat := range stats {
		t.Columns = append(t.Columns, table.Column{Name: tool.StatName(stat) + " ms"})
	}
	for _, o := range all {
		row := []table.Cell{table.Text(o.Name), table.Optional(o.Count, table.Count), table.Optional(o.Rate, table.PerSecond)}
		for _, stat := range stats {
			cell := table.Cell{}
			if v, ok := o.Latency[stat]; ok {
				cell = table.Number(v, table.Milliseconds)
			}
			row = append(row, cell)
		}
		t.Add(row...)
	}
	return t
}
