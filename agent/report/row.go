package report

import (
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// Row is one run as tables show it. What the run did not say is nil. Its JSON
// form is what `runs --json` and `sweep --json` print.
type Row struct {
	ID       string            `json:"id"`
	Title    string            `json:"title"`
	Labels   map[string]string `json:"labels,omitempty"`
	Tool     string            `json:"tool,omitempty"`
	Version  string            `json:"tool_version,omitempty"`
	Verb     string            `json:"verb,omitempty"`
	Workload string            `json:"workload,omitempty"`
	Threads  int               `json:"threads,omitempty"`
	Target   string            `json:"target,omitempty"`
	Database string            `json:"database,omitempty"`

	StartedAt      time.Time  `json:"started_at"`
	StartEstimated bool       `json:"start_estimated,omitempty"`
	EndedAt        *time.Time `json:"ended_at,omitempty"`
	// Phase is over for an ended run.
	Phase  ingest.Phase   `json:"phase"`
	Result rundir.Outcome `json:"result,omitempty"`
	Reason string         `json:"reason,omitempty"`

	DurationSeconds float64 `json:"duration_seconds"`
	// TPS and QPS are of the summary; of a run that goes on, of its last interval.
	TPS  *float64 `json:"transactions_per_second,omitempty"`
	QPS  *float64 `json:"queries_per_second,omitempty"`
	TpmC *float64 `json:"tpmc,omitempty"`
	// Latency is the transaction's, in seconds by statistic.
	Latency map[string]float64 `json:"latency_seconds,omitempty"`
	Errors  *float64           `json:"errors,omitempty"`
	// FromIntervals: the tool printed no summary.
	FromIntervals bool `json:"from_intervals,omitempty"`
	// Servers is what was seen of them; only ObservedRow fills it.
	Servers []Server `json:"servers,omitempty"`

	// settings are the servers', for comparisons; only ObservedRow fills them.
	settings map[string]string
}

// RowOf makes a row of what is known of a run.
func RowOf(s *ingest.Snapshot) Row {
	m := &s.Meta
	row := Row{
		ID: m.ID, Title: m.Title, Labels: m.Labels, Tool: m.Tool, Version: m.ToolVersion, Verb: m.Verb, Workload: m.Workload,
		Target: m.Target, Database: m.Database, StartedAt: m.StartedAt, StartEstimated: m.StartEstimated, EndedAt: m.EndedAt,
		Phase: s.Phase, Result: m.Outcome, Reason: m.Reason,
		DurationSeconds: s.ElapsedSeconds(time.Now()), Latency: map[string]float64{},
	}
	if s.Threads.Known {
		row.Threads = s.Threads.Value
	}
	switch sum := s.Summary; {
	case sum != nil:
		row.summary(sum)
	case s.Interval != nil:
		row.TPS = optional(s.Interval.Rate(tool.Transaction))
		row.QPS = optional(s.Interval.Rate(tool.Query))
		row.latency(s.Interval.Latencies)
		row.Errors = &s.Errors
	}
	return row
}

func (r *Row) summary(sum *ingest.Summary) {
	if sum.ElapsedSeconds.Known {
		r.DurationSeconds = sum.ElapsedSeconds.Value
	}
	if v, ok := sum.Rate(tool.Transaction); ok {
		r.TPS = &v
	}
	if v, ok := sum.Rate(tool.Query); ok {
		r.QPS = &v
	}
	if n, ok := sum.Count("error"); ok {
		errors := float64(n)
		r.Errors = &errors
	}
	r.TpmC = optional(sum.TpmC)
	r.latency(sum.Latencies)
	r.FromIntervals = sum.FromIntervals
}

func (r *Row) latency(all []tool.Latency) {
	for _, l := range all {
		if l.Operation == tool.Transaction {
			r.Latency[l.Stat] = l.Seconds
		}
	}
}

// Percentile returns the p95 or, of a tool that printed another one, the
// highest that it did.
func (r *Row) Percentile() (stat string, seconds float64, ok bool) {
	if v, ok := r.Latency["p95"]; ok {
		return "p95", v, true
	}
	for s, v := range r.Latency {
		if strings.HasPrefix(s, "p") && (stat == "" || percent(s) > percent(stat)) {
			stat, seconds, ok = s, v, true
		}
	}
	return stat, seconds, ok
}

// State is the result or, of a run that goes on, its phase.
func (r *Row) State() string {
	if r.Result != "" {
		return string(r.Result)
	}
	return string(r.Phase)
}

// Became says what became of the run, as in "the run failed".
func (r *Row) Became() string {
	switch r.Result {
	case "":
		return "goes on"
	case rundir.Interrupted, rundir.Lost:
		return "was " + string(r.Result)
	}
	return string(r.Result)
}

func optional(v series.Optional[float64]) *float64 {
	if !v.Known {
		return nil
	}
	return &v.Value
}
