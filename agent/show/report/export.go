package report

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

const timeFormat = "2006-01-02T15:04:05.000Z"

// IntervalsCSV writes every interval of the runs, a line each, in base units.
// Columns are those that any of the runs has.
func IntervalsCSV(ctx context.Context, w io.Writer, hs []*record.History) error {
	columns := intervalColumns(hs)
	names := []string{"run", "time", "elapsed_seconds", "interval_seconds", "phase"}
	for _, c := range columns {
		names = append(names, columnName(c))
	}
	columns = slices.Insert(columns, 0, ingest.Column{Kind: ingest.Length})
	out := table.NewCSV(w, names...)
	values := make([][]float64, len(columns))
	for _, h := range hs {
		if err := h.EachInterval(ctx, func(v *ingest.Intervals) error {
			for i, c := range columns {
				values[i] = v.Values(c)
			}
			for row, elapsed := range v.Elapsed {
				cells := cellsAt(values, row)
				out.Add(slices.Concat([]table.Cell{table.Text(h.Snapshot.Meta.ID), timeCell(h, elapsed), number(elapsed), cells[0], table.Text(phaseOf(v.Warmup[row]))}, cells[1:])...)
			}
			return out.Err()
		}); err != nil {
			return err
		}
	}
	return out.Close()
}

// intervalColumns returns the columns that have a value in any of the runs.
func intervalColumns(hs []*record.History) []ingest.Column {
	var columns []ingest.Column
	measures := []*measure.Measure{tool.Threads, tool.Throughput, tool.HeadlineLatency}
	for _, n := range tool.Numbers() {
		measures = append(measures, n.Measure)
	}
	for _, m := range measures {
		for _, h := range hs {
			for _, c := range h.Intervals.Of(m) {
				if t := h.Intervals.Tally(c); !slices.Contains(columns, c) && t.Count > 0 {
					columns = append(columns, c)
				}
			}
		}
	}
	return columns
}

func columnName(c ingest.Column) string {
	switch c.Measure {
	case tool.Throughput:
		return c.Operation + "_per_second"
	case tool.HeadlineLatency:
		return c.Operation + "_" + c.Stat + "_seconds"
	}
	return c.Measure.ID
}

// ServersCSV writes every sample of the runs' servers, a line each.
func ServersCSV(ctx context.Context, w io.Writer, hs []*record.History) error {
	found := map[string]bool{}
	for _, h := range hs {
		for _, s := range h.Servers {
			for _, name := range s.Names() {
				found[name] = true
			}
		}
	}
	names := slices.Sorted(maps.Keys(found))
	head := []string{"run", "time", "elapsed_seconds", "target", "engine", "cluster", "role", "up", "restarts", "lag_seconds", "lag_transactions"}
	out := table.NewCSV(w, append(head, names...)...)
	for _, h := range hs {
		if err := h.EachSample(ctx, func(servers []*record.ServerRows) error {
			for _, s := range servers {
				var values [][]float64
				for _, name := range slices.Concat(samplerColumns, names) {
					values = append(values, s.Values(name))
				}
				for row := s.Begin; row < len(s.Elapsed); row++ {
					elapsed := s.Elapsed[row]
					up := "" // the agent missed the tick
					if s.Sampled(row) {
						up = strconv.FormatBool(s.Up(row))
					}
					out.Add(append([]table.Cell{table.Text(h.Snapshot.Meta.ID), timeCell(h, elapsed), number(elapsed), table.Text(s.Target), table.Text(s.Engine),
						table.Text(s.Cluster), table.Text(s.RoleAt.At(row)), table.Text(up)}, cellsAt(values, row)...)...)
				}
			}
			return out.Err()
		}); err != nil {
			return err
		}
	}
	return out.Close()
}

// samplerColumns are what the sampler adds to the values of each server.
var samplerColumns = []string{engine.RestartsTotal.Name, engine.ReplicationLagSeconds.Name, engine.ReplicationLagTransactions.Name}

func timeCell(h *record.History, elapsed float64) table.Cell {
	return table.Text(h.At(elapsed).UTC().Format(timeFormat))
}

func number(v float64) table.Cell { return table.Number(v, table.Digits) }

// cellsAt returns one row of columns, of which nil ones are unknown.
func cellsAt(columns [][]float64, row int) []table.Cell {
	cells := make([]table.Cell, len(columns))
	for i, values := range columns {
		if values != nil {
			cells[i] = number(values[row])
		}
	}
	return cells
}

func phaseOf(warmup bool) string {
	if warmup {
		return string(tool.Warmup)
	}
	return string(tool.Measure)
}

// ExportLine is a line of JSON: a run, one of its intervals, a sample of a server or
// a marker. Unknown values have no key.
type ExportLine struct {
	// Kind is run, interval, status (a sample of a server) or marker.
	Kind string `json:"kind"`
	// Run is the run's id.
	Run     string  `json:"run"`
	Time    string  `json:"time"`
	Elapsed float64 `json:"elapsed_seconds"`

	// Summary is for a run what `runs` prints of it.
	Summary *review.Row `json:"summary,omitempty"`

	Length  series.Optional[float64]      `json:"interval_seconds,omitzero"`
	Phase   string                        `json:"phase,omitempty"`
	Threads series.Optional[float64]      `json:"threads,omitzero"`
	Rates   map[string]float64            `json:"rates,omitempty"`
	Latency map[string]map[string]float64 `json:"latency_seconds,omitempty"`
	// Numbers are the others that the tool printed. In JSON each has a field of its own.
	Numbers tool.Values `json:"-"`

	Target  string `json:"target,omitempty"`
	Engine  string `json:"engine,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	Role    string `json:"role,omitempty"`
	// Up is absent if the agent missed the tick.
	Up              *bool                    `json:"up,omitempty"`
	Restarts        series.Optional[float64] `json:"restarts,omitzero"`
	LagSeconds      series.Optional[float64] `json:"lag_seconds,omitzero"`
	LagTransactions series.Optional[float64] `json:"lag_transactions,omitzero"`
	// Values are the server's metrics by name.
	Values map[string]float64 `json:"values,omitempty"`

	// Text is the marker's.
	Text string `json:"text,omitempty"`
}

// MarshalJSON returns the line with a field for each number.
func (l ExportLine) MarshalJSON() ([]byte, error) {
	type plain ExportLine
	var fields []table.Field
	for _, v := range l.Numbers {
		fields = append(fields, table.Field{Name: v.Measure.ID, Value: v.Value})
	}
	return table.MarshalFields(plain(l), fields)
}

// JSONLines writes runs as JSON, an object a line: the run, its intervals, the
// samples of its servers, its markers.
func JSONLines(ctx context.Context, w io.Writer, hs []*record.History) error {
	buf := bufio.NewWriterSize(w, 1<<16)
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(false)
	for _, h := range hs {
		if err := jsonRun(ctx, e, h); err != nil {
			return err
		}
	}
	return buf.Flush()
}

func jsonRun(ctx context.Context, e *json.Encoder, h *record.History) error {
	line := func(kind string, elapsed float64) ExportLine {
		return ExportLine{Kind: kind, Run: h.Snapshot.Meta.ID, Time: h.At(elapsed).UTC().Format(timeFormat), Elapsed: elapsed}
	}
	first := line("run", h.Elapsed(h.Snapshot.Meta.StartedAt))
	row := review.NewRow(&h.Snapshot)
	first.Summary = &row
	if err := e.Encode(first); err != nil {
		return err
	}
	if err := h.EachInterval(ctx, func(v *ingest.Intervals) error { return jsonIntervals(e, v, line) }); err != nil {
		return err
	}
	if err := h.EachSample(ctx, func(servers []*record.ServerRows) error {
		for _, s := range servers {
			if err := jsonSamples(e, s, line); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for _, m := range h.Markers {
		o := line("marker", h.Elapsed(m.Start))
		o.Text = m.Text
		if err := e.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

func jsonIntervals(e *json.Encoder, v *ingest.Intervals, line func(kind string, elapsed float64) ExportLine) error {
	rates, latencies := v.Of(tool.Throughput), v.Of(tool.HeadlineLatency)
	for i, elapsed := range v.Elapsed {
		o := line("interval", elapsed)
		o.Phase, o.Length = phaseOf(v.Warmup[i]), series.Of(v.At(ingest.Column{Kind: ingest.Length}, i))
		o.Threads = series.Of(v.At(ingest.Column{Measure: tool.Threads}, i))
		for _, n := range tool.Numbers() {
			o.Numbers.Set(n.Measure, series.Of(v.At(ingest.Column{Measure: n.Measure}, i)))
		}
		o.Rates, o.Latency = map[string]float64{}, map[string]map[string]float64{}
		for _, c := range rates {
			if x := v.At(c, i); series.IsKnown(x) {
				o.Rates[c.Operation] = x
			}
		}
		for _, c := range latencies {
			x := v.At(c, i)
			if !series.IsKnown(x) {
				continue
			}
			if o.Latency[c.Operation] == nil {
				o.Latency[c.Operation] = map[string]float64{}
			}
			o.Latency[c.Operation][c.Stat] = x
		}
		if err := e.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

func jsonSamples(e *json.Encoder, s *record.ServerRows, line func(kind string, elapsed float64) ExportLine) error {
	names := s.Names()
	for i := s.Begin; i < len(s.Elapsed); i++ {
		o := line("status", s.Elapsed[i])
		o.Target, o.Engine, o.Cluster, o.Role = s.Target, s.Engine, s.Cluster, s.RoleAt.At(i)
		if up := s.Up(i); s.Sampled(i) { // else the agent missed the tick
			o.Up = &up
		}
		o.Restarts = series.Of(s.At(engine.RestartsTotal.Name, i))
		o.LagSeconds, o.LagTransactions = series.Of(s.At(engine.ReplicationLagSeconds.Name, i)), series.Of(s.At(engine.ReplicationLagTransactions.Name, i))
		o.Values = map[string]float64{}
		for _, name := range names {
			if x := s.At(name, i); series.IsKnown(x) {
				o.Values[name] = x
			}
		}
		if err := e.Encode(o); err != nil {
			return err
		}
	}
	return nil
}
