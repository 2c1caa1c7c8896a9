// Package review computes the results of one run that was read back.
//
// A [Row] is a run with the values of the measures in the catalogue: those that its tool reported
// and, from [NewObservedRow], those that were observed of its servers. [Measures] lists what tables
// of several runs show. A [Run] has everything: what limited the run, what stood out, how far to
// trust its numbers. The package reads no files.
package review

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Row is one run as tables show it. Its JSON form is what `runs --json` prints,
// and part of what `report --format=json` prints.
type Row struct {
	ID        string            `json:"id"`
	Title     string            `json:"title"`
	Labels    map[string]string `json:"labels,omitempty"`
	Tool      string            `json:"tool,omitempty"`
	Version   string            `json:"tool_version,omitempty"`
	Verb      string            `json:"verb,omitempty"`
	Workload  string            `json:"workload,omitempty"`
	Threads   int               `json:"threads,omitempty"`
	Target    string            `json:"target,omitempty"`
	Database  string            `json:"database,omitempty"`
	Generator string            `json:"generator,omitempty"`
	// Group is the name of the group that the run is, or whose generator it is.
	Group string `json:"group,omitempty"`

	StartedAt      time.Time  `json:"started_at"`
	StartEstimated bool       `json:"start_estimated,omitempty"`
	EndedAt        *time.Time `json:"ended_at,omitempty"`
	// Phase of a run that has ended is over.
	Phase  ingest.Phase   `json:"phase"`
	Result rundir.Outcome `json:"result,omitempty"`
	Reason string         `json:"reason,omitempty"`

	DurationSeconds float64 `json:"duration_seconds"`
	// Values are what the summary has of RowMeasures; of an active run, its last interval. In JSON each
	// has a field of its own.
	Values tool.Values `json:"-"`
	// Latency is in seconds by statistic: of LatencyOperation or, if empty, of
	// transactions.
	Latency          map[string]float64 `json:"latency_seconds,omitempty"`
	LatencyOperation string             `json:"latency_operation,omitempty"`
	// FailedShare is the share of the transactions that failed, each attempt
	// counted.
	FailedShare series.Optional[float64] `json:"failed_share,omitzero"`
	// FromIntervals: the tool printed no summary.
	FromIntervals bool `json:"from_intervals,omitempty"`
	// CoveredSeconds is how much of a run without a summary its log covers, if a part is missing. Rates and means are of
	// this time.
	CoveredSeconds float64 `json:"covered_seconds,omitempty"`
	// Servers has what was observed of the servers.
	Servers []Server `json:"servers,omitempty"`
	// Machines has what was observed of the run's machines, Costs what a transaction cost.
	Machines []Machine `json:"machines,omitempty"`
	Costs    []Cost    `json:"costs,omitempty"`
	// Balances show which parts took the load.
	Balances []Balance `json:"balances,omitempty"`
	// Limits is what limited the run; absent while it is in progress.
	Limits *limits.Verdict `json:"limits,omitempty"`

	// Stalls are the dips of the throughput.
	Stalls []Stall `json:"stalls,omitempty"`
	// Captures were made by --capture-when without a stall.
	Captures []Captured `json:"captures,omitempty"`
	// StallEffect is what the stalls cost together.
	StallEffect *StallEffect `json:"stall_effect,omitempty"`

	Options []string `json:"-"` // names of the labels that are options of the tool

	// ClockSteps are the changes of the wall clock during the run.
	ClockSteps []rundir.ClockStep `json:"-"`

	headline  series.Optional[tool.Latency]
	latencies []tool.Latency
	// rates and counts are of the operations that the tool distinguishes.
	rates  []tool.Rate
	counts []tool.Count
	// ServerSettings are the servers', for comparisons.
	ServerSettings map[string]string `json:"-"`
	// Executed is what the servers executed; nil: not recorded.
	Executed *Statements `json:"-"`
	// queue is how many transactions waited for a thread of the tool at its end.
	queue float64
	// IntervalValues are what the intervals prove, by the field of a measure and in its base unit.
	IntervalValues map[string]IntervalValues `json:"-"`
}

// NewRow returns a run without what was observed of its servers and machines, and without what follows from that: costs,
// balances, limits, statements.
func NewRow(s *ingest.Snapshot) Row {
	m := &s.Meta
	r := Row{
		ID: m.ID, Title: m.Title, Labels: m.Labels, Tool: m.Tool, Version: m.ToolVersion, Verb: m.Verb, Workload: m.Workload,
		Threads: s.Threads.Value, Target: m.Target, Database: m.Database, Generator: m.Generator, Group: m.Fact("group"),
		StartedAt: m.StartedAt, StartEstimated: m.StartEstimated, EndedAt: m.EndedAt, Phase: s.Phase, Result: m.Outcome, Reason: m.Reason,
		FailedShare:     s.FailedShare,
		queue:           series.Unknown(),
		Options:         m.Parameters,
		DurationSeconds: s.ElapsedSeconds(time.Now()),
	}
	if m.Clock != nil {
		r.ClockSteps = m.Clock.Steps
	}
	switch sum := s.Summary; {
	case sum != nil:
		if sum.ElapsedSeconds.Known {
			r.DurationSeconds = sum.ElapsedSeconds.Value
		}
		r.setValues(sum.Report())
		r.CoveredSeconds = sum.CoveredSeconds
		if r.FromIntervals = sum.FromIntervals; missesErrors(s) && r.Values.Of(tool.Errors).Value == 0 {
			r.Values.Set(tool.Errors, series.Optional[float64]{})
		}
	case s.Interval != nil:
		r.setValues(s.Interval)
		r.Values.Set(tool.Errors, s.ErrorTotal())
	}
	return r
}

// RestoreRow returns the run that was encoded as JSON. The facts come from meta.
func RestoreRow(data []byte, meta *rundir.Meta) (Row, error) {
	var r Row
	if err := json.Unmarshal(data, &r); err != nil {
		return Row{}, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return Row{}, err
	}
	own := NewRow(&ingest.Snapshot{Meta: *meta, Phase: ingest.Over})
	for _, m := range RowMeasures() {
		if text, ok := fields[m.Field()]; ok && m != tool.HeadlineLatency {
			var v series.Optional[float64]
			if err := json.Unmarshal(text, &v); err != nil {
				return Row{}, fmt.Errorf("%s: %w", m.Field(), err)
			}
			own.Values.Set(m, v)
		}
	}
	own.DurationSeconds, own.FailedShare, own.FromIntervals, own.Threads = r.DurationSeconds, r.FailedShare, r.FromIntervals, r.Threads
	var latencies []tool.Latency
	for stat, seconds := range r.Latency {
		latencies = append(latencies, tool.Latency{Operation: cmp.Or(table.Plain(r.LatencyOperation), tool.Transaction), Stat: table.Plain(stat), Seconds: seconds})
	}
	own.SetLatencies(&tool.Report{Latencies: latencies})
	return own, nil
}

// NewObservedRow returns a run with what was observed of its servers.
func NewObservedRow(h *record.History) Row {
	r := NewRow(&h.Snapshot)
	r.addIntervals(&h.Intervals)
	r.Servers, r.Machines = servers(h), machines(h)
	r.Executed = StatementsOf(h)
	r.queue = h.Intervals.Tally(ingest.Column{Measure: tool.QueueLength}).Last
	r.Stalls, r.StallEffect = stalls(h, &r)
	r.Limits = limitsOf(h, &r, nil)
	r.Captures = captures(h, &r)
	r.Costs = costs(h, &r)
	r.Balances = balances(h)
	r.ServerSettings = settingsOfRun(h.Settings)
	r.IntervalValues = r.intervalValuesOf(&h.Intervals)
	return r
}

// setValues takes the values of an interval or a summary.
func (r *Row) setValues(v *tool.Report) {
	for _, m := range RowMeasures() {
		if m != tool.HeadlineLatency {
			r.Values.Set(m, v.Value(m))
		}
	}
	r.rates, r.counts = v.Rates, v.Counts
	r.SetLatencies(v)
}

// SetLatencies takes the latencies of an interval or a summary.
func (r *Row) SetLatencies(v *tool.Report) {
	r.latencies, r.headline = v.Latencies, v.Headline()
	if !r.headline.Known {
		return
	}
	operation := r.headline.Value.Operation
	if operation != tool.Transaction {
		r.LatencyOperation = operation
	}
	r.Latency = map[string]float64{}
	for _, l := range v.Latencies {
		if l.Operation == operation {
			r.Latency[l.Stat] = l.Seconds
		}
	}
}

// addIntervals sums up what the tool printed of its intervals only.
func (r *Row) addIntervals(v *record.Intervals) {
	for _, n := range tool.Numbers() {
		if n.Short == "" || n.AtEnd || r.Values.Of(n.Measure).Known {
			continue
		}
		if t := v.Tally(ingest.Column{Measure: n.Measure}); t.Count > 0 {
			r.Values.Set(n.Measure, series.Of(tallied(n.Measure, t).Value))
		}
	}
}

// RowMeasures are the measures of a run that have a column in tables, in their order, the headline
// latency among them.
func RowMeasures() []*measure.Measure {
	return slices.DeleteFunc(measure.All(measure.Run), func(m *measure.Measure) bool { return m.Short == "" })
}

// MarshalJSON returns the row with a field for each value.
func (r Row) MarshalJSON() ([]byte, error) {
	type plain Row
	fields := make([]table.Field, len(r.Values))
	for i, v := range r.Values {
		fields[i] = table.Field{Name: v.Measure.Field(), Value: v.Value}
	}
	return table.MarshalFields(plain(r), fields)
}

// Headline returns the run's one latency as text, such as "p95 2.00 ms"; empty
// if it is unknown.
func (r *Row) Headline() string {
	if !r.headline.Known {
		return ""
	}
	l := r.headline.Value
	return LatencyName(l.Operation, l.Stat) + " " + table.Milliseconds.Signed(l.Seconds)
}

// LatencyName returns a statistic with its operation, which is omitted for transactions.
func LatencyName(operation, stat string) string {
	stat = tool.StatName(stat)
	if operation == tool.Transaction || operation == "" {
		return stat
	}
	return operation + " " + stat
}

// Facts returns the facts by which runs can differ.
func (r *Row) Facts() []rundir.Fact {
	m := rundir.Meta{
		Benchmark: rundir.Benchmark{Tool: r.Tool, ToolVersion: r.Version, Verb: r.Verb, Workload: r.Workload, Threads: r.Threads, Target: r.Target, Database: r.Database},
		Process:   rundir.Process{Generator: r.Generator},
		Labels:    r.Labels,
	}
	if r.Group != "" {
		m.Group = &rundir.Group{Name: r.Group}
	}
	return m.Facts()
}

// WithoutDetails returns the row without what only reports and comparisons show, to be kept in
// memory with many others.
func (r Row) WithoutDetails() Row {
	r.Limits, r.Costs, r.Balances, r.ServerSettings, r.Executed, r.IntervalValues, r.Stalls = nil, nil, nil, nil, nil, nil, nil
	return r
}

// State returns the result or, of an active run, its phase.
func (r *Row) State() string {
	if r.Result != "" {
		return string(r.Result)
	}
	return string(r.Phase)
}

// ManyFailures is the share of failed transactions above which it is part of the result: a tool that is configured to
// ignore errors succeeds whatever happens.
const ManyFailures = 0.01

// Status returns the state, with the share of failed transactions if it is high:
// "succeeded, 66 % of transactions failed".
func (r *Row) Status() string { return r.status(" of transactions") }

// ShortStatus is Status for a narrow column.
func (r *Row) ShortStatus() string { return r.status("") }

func (r *Row) status(of string) string {
	if r.FailedShare.Value < ManyFailures {
		return r.State()
	}
	return fmt.Sprintf("%s, %s%s failed", r.State(), table.Share(r.FailedShare.Value), of)
}

// Outcome returns a verb phrase for "the run …".
func (r *Row) Outcome() string {
	switch r.Result {
	case "":
		return "is still active"
	case rundir.Interrupted, rundir.Aborted, rundir.Lost:
		return "was " + string(r.Result)
	}
	return string(r.Result)
}

// OwnTitle returns what the title has beside the workload and the threads, which have
// columns of their own.
func (r *Row) OwnTitle() string {
	title := r.Title
	for _, part := range []string{r.Workload, table.Plural(r.Threads, "thread")} {
		if title == part {
			return ""
		}
		if rest, found := strings.CutPrefix(title, part+" "); found && part != "" {
			title = rest
		}
	}
	return strings.TrimSuffix(title, " "+table.Plural(r.Threads, "thread"))
}

// ThreadsCell returns the number of threads.
func (r *Row) ThreadsCell() table.Cell {
	if r.Threads == 0 {
		return table.Cell{}
	}
	return table.Whole(r.Threads)
}

// HeadlineName is which latency is the headline, such as "update p99"; empty if it is unknown.
func (r *Row) HeadlineName() string {
	if !r.headline.Known {
		return ""
	}
	return LatencyName(r.headline.Value.Operation, r.headline.Value.Stat)
}

// HeadlineCell is the headline latency, with its name unless the head of the column has that.
func (r *Row) HeadlineCell(named bool) table.Cell {
	if !r.headline.Known {
		return table.Cell{}
	}
	cell := table.Number(r.headline.Value.Seconds, table.Milliseconds)
	if named {
		return cell.As(cell.String() + " (" + r.HeadlineName() + ")")
	}
	return cell
}

// Stats returns statistics of latency in display order:
// min, avg, the percentiles, max.
func Stats(latency map[string]float64) []string {
	return slices.SortedFunc(maps.Keys(latency), func(a, b string) int {
		return cmp.Or(cmp.Compare(statRank(a), statRank(b)), strings.Compare(a, b))
	})
}

func statRank(stat string) float64 {
	switch stat {
	case "min":
		return -2
	case "avg":
		return -1
	case "max":
		return 1000
	}
	of, _ := tool.SplitWorst(stat)
	if p, err := strconv.ParseFloat(strings.TrimPrefix(of, "p"), 64); err == nil {
		return p
	}
	return 2000
}

// latencyOf returns a statistic of an operation's latency.
func (r *Row) latencyOf(operation, stat string) float64 {
	for _, l := range r.latencies {
		if l.Operation == operation && l.Stat == stat {
			return l.Seconds
		}
	}
	return series.Unknown()
}

// CountedTransactions is how many transactions the tool executed in the time in which statements were counted, on
// average; unknown if none were.
func (r *Row) CountedTransactions() float64 {
	if r.Executed == nil {
		return series.Unknown()
	}
	seconds, servers := 0.0, 0.0
	for _, s := range r.Executed.Servers {
		if s.Error == "" && s.From.Known {
			seconds, servers = seconds+min(s.To.Value, r.DurationSeconds)-max(s.From.Value, 0), servers+1
		}
	}
	if servers == 0 {
		return series.Unknown()
	}
	return series.Number(r.Values.Of(tool.Throughput)) * seconds / servers
}
