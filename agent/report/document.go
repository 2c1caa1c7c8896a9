package report

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// Document is a report about one run or several.
type Document struct {
	// Made is when the report was made.
	Made time.Time `json:"made_at"`
	// Version is benchwatch's.
	Version string   `json:"benchwatch_version"`
	Runs    []Report `json:"runs"`
}

// Report is all that is told about one run.
type Report struct {
	Row
	Generator  string   `json:"generator,omitempty"`
	Command    []string `json:"command,omitempty"`
	Parameters []Fact   `json:"parameters,omitempty"`

	Operations []Operation `json:"operations,omitempty"`
	Observed   []string    `json:"observed,omitempty"`
	Trust      []Finding   `json:"trust,omitempty"`
	Messages   []string    `json:"messages,omitempty"`
	// Settings are how the servers were configured when the run began, Changes what
	// was found changed while it was going on. Unknown says of which servers that
	// is not known.
	Settings        []ClusterSettings `json:"server_settings,omitempty"`
	SettingChanges  []SettingChange   `json:"setting_changes,omitempty"`
	SettingsUnknown []string          `json:"settings_unknown,omitempty"`
	Markers         []Marker          `json:"markers,omitempty"`

	Charts []Chart `json:"-"`
}

// Fact is a name and what it is.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Operation is one line of the tool's summary.
type Operation struct {
	Name    string             `json:"name"`
	Count   *float64           `json:"count,omitempty"`
	Rate    *float64           `json:"per_second,omitempty"`
	Latency map[string]float64 `json:"latency_seconds,omitempty"`
}

// Marker is a point on the time axis.
type Marker struct {
	Number         int       `json:"number"`
	At             time.Time `json:"at"`
	ElapsedSeconds float64   `json:"elapsed_seconds"`
	Text           string    `json:"text"`
}

// New makes the report of one run.
func New(h *history.History) Report {
	m := &h.Snapshot.Meta
	r := Report{
		Row: ObservedRow(h), Generator: m.Generator, Command: m.Command,
		Operations: operations(h.Snapshot.Summary), Messages: h.Snapshot.Messages, Charts: Charts(h),
	}
	r.Parameters = parameters(m)
	r.Settings, r.SettingChanges, r.SettingsUnknown = SettingsByCluster(h.Settings), settingChanges(h), unknownSettings(h)
	for _, c := range r.SettingChanges {
		r.Observed = append(r.Observed, c.Text())
	}
	r.Observed = append(r.Observed, observations(r.Servers)...)
	r.Trust = trust(h, &r.Row, r.Servers)
	for i, p := range h.Markers {
		r.Markers = append(r.Markers, Marker{i + 1, p.Start, h.Elapsed(p.Start), p.Text})
	}
	return r
}

func parameters(m *rundir.Meta) []Fact {
	var facts []Fact
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, Fact{name, value})
		}
	}
	add("tool", strings.TrimSpace(m.Tool+" "+m.ToolVersion))
	add("command", m.Verb)
	add("workload", m.Workload)
	if m.Threads > 0 {
		add("threads", strconv.Itoa(m.Threads))
	}
	add("target", m.Target)
	add("database", m.Database)
	if m.DurationSeconds > 0 {
		add("time asked for", duration(m.DurationSeconds))
	}
	add("generator", m.Generator)
	for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
		add(name, m.Labels[name])
	}
	return facts
}

// operations puts the summary's values of one operation side by side, the
// transactions first.
func operations(s *ingest.Summary) []Operation {
	if s == nil {
		return nil
	}
	var all []Operation
	at := map[string]int{}
	of := func(name string) *Operation {
		i, ok := at[name]
		if !ok {
			i = len(all)
			at[name] = i
			all = append(all, Operation{Name: name, Latency: map[string]float64{}})
		}
		return &all[i]
	}
	of(tool.Transaction)
	for _, v := range s.Rates {
		of(v.Operation).Rate = &v.PerSecond
	}
	for _, v := range s.Counts {
		n := float64(v.N)
		of(v.Operation).Count = &n
	}
	for _, v := range s.Latencies {
		of(v.Operation).Latency[v.Stat] = v.Seconds
	}
	if t := &all[0]; t.Rate == nil && t.Count == nil && len(t.Latency) == 0 {
		all = all[1:]
	}
	return all
}

// stats are the statistics of latency that any operation has, in the order in
// which people read them.
func stats(all []Operation) []string {
	found := map[string]bool{}
	for _, o := range all {
		for s := range o.Latency {
			found[s] = true
		}
	}
	names := slices.Collect(maps.Keys(found))
	slices.SortFunc(names, func(a, b string) int {
		if x, y := statOrder(a), statOrder(b); x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return names
}

// statOrder puts min and avg in front of the percentiles, max behind them.
func statOrder(stat string) float64 {
	switch stat {
	case "min":
		return -2
	case "avg":
		return -1
	case "max":
		return 1000
	}
	if p := percent(stat); p >= 0 {
		return p
	}
	return 2000
}
