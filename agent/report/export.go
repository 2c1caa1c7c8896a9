package report

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/tool"
)

const timeFormat = "2006-01-02T15:04:05.000Z"

// column is one value of a table over time.
type column struct {
	name   string
	values func(*history.History) []float64
}

// IntervalsCSV writes every interval report of the runs, a line each, in base
// units. Columns are those that any of the runs has; what is not known is
// empty.
func IntervalsCSV(w io.Writer, hs []*history.History) error {
	columns := intervalColumns(hs)
	head := []string{"run", "time", "elapsed_seconds", "interval_seconds", "phase"}
	for _, c := range columns {
		head = append(head, c.name)
	}
	out := csv.NewWriter(w)
	_ = out.Write(head) // the error stays in out
	for _, h := range hs {
		v := &h.Intervals
		values := make([][]float64, len(columns))
		for i, c := range columns {
			values[i] = c.values(h)
		}
		for row, elapsed := range v.Elapsed {
			cells := append(make([]string, 0, len(head)), h.Snapshot.Meta.ID, h.At(elapsed).UTC().Format(timeFormat), shortest(elapsed), shortest(v.At(ingest.Column{Kind: ingest.Length}, row)), phaseOf(v.Warmup[row]))
			_ = out.Write(appendCells(cells, values, row))
		}
	}
	out.Flush()
	return out.Error()
}

func intervalColumns(hs []*history.History) []column {
	var columns []column
	seen := map[string]bool{}
	add := func(name string, values func(*history.History) []float64) {
		if !seen[name] {
			seen[name] = true
			columns = append(columns, column{name, values})
		}
	}
	gauge := func(name string, kind ingest.Kind) {
		add(name, func(h *history.History) []float64 { return h.Intervals.Values(ingest.Column{Kind: kind}) })
	}
	gauge("threads", ingest.Threads)
	for _, h := range hs {
		for _, s := range h.Intervals.Of(ingest.Rate) {
			add(s.Operation+"_per_second", func(h *history.History) []float64 { return h.Intervals.Rate(s.Operation) })
		}
	}
	for _, h := range hs {
		for _, s := range h.Intervals.Of(ingest.Latency) {
			add(s.Operation+"_"+s.Stat+"_seconds", func(h *history.History) []float64 { return h.Intervals.Latency(s.Operation, s.Stat) })
		}
	}
	gauge("errors_per_second", ingest.Errors)
	gauge("reconnects_per_second", ingest.Reconnects)
	gauge("queue_length", ingest.QueueLength)
	gauge("concurrency", ingest.Concurrency)
	return slices.DeleteFunc(columns, func(c column) bool {
		return !slices.ContainsFunc(hs, func(h *history.History) bool { return some(c.values(h)) })
	})
}

// ServersCSV writes every sample of the runs' servers, a line each.
func ServersCSV(w io.Writer, hs []*history.History) error {
	names := map[string]bool{}
	for _, h := range hs {
		for _, s := range h.Servers {
			for _, name := range s.Names() {
				names[name] = true
			}
		}
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	out := csv.NewWriter(w)
	head := []string{"run", "time", "elapsed_seconds", "target", "engine", "cluster", "role", "up", "restarts", "lag_seconds", "lag_transactions"}
	_ = out.Write(append(head, sorted...)) // the error stays in out
	for _, h := range hs {
		for _, s := range h.Servers {
			values := make([][]float64, 0, len(sorted)+3)
			values = append(values, s.Restarts(), s.Values(engine.ReplicationLagSeconds.Name), s.Values(engine.ReplicationLagTransactions.Name))
			for _, name := range sorted {
				values = append(values, s.Values(name))
			}
			for row, elapsed := range s.Elapsed {
				cells := append(make([]string, 0, len(head)+len(sorted)), h.Snapshot.Meta.ID, h.At(elapsed).UTC().Format(timeFormat), shortest(elapsed),
					cell(s.Target), cell(s.Engine), cell(s.Cluster), cell(s.RoleAt.At(row)), strconv.FormatBool(s.Up(row)))
				_ = out.Write(appendCells(cells, values, row))
			}
		}
	}
	out.Flush()
	return out.Error()
}

func appendCells(cells []string, values [][]float64, row int) []string {
	for _, v := range values {
		text := ""
		if row < len(v) {
			text = shortest(v[row])
		}
		cells = append(cells, text)
	}
	return cells
}

func shortest(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func phaseOf(warmup bool) string {
	if warmup {
		return string(tool.Warmup)
	}
	return string(tool.Measure)
}

// exported is a line of JSON: a run's facts, one interval or one server's
// sample. What is not known has no key.
type exported struct {
	Kind    string  `json:"kind"`
	Run     string  `json:"run"`
	Time    string  `json:"time"`
	Elapsed float64 `json:"elapsed_seconds"`

	Summary *Row `json:"summary,omitempty"`

	Length      *float64                      `json:"interval_seconds,omitempty"`
	Phase       string                        `json:"phase,omitempty"`
	Threads     *float64                      `json:"threads,omitempty"`
	Rates       map[string]float64            `json:"rates,omitempty"`
	Latency     map[string]map[string]float64 `json:"latency_seconds,omitempty"`
	Errors      *float64                      `json:"errors_per_second,omitempty"`
	Reconnects  *float64                      `json:"reconnects_per_second,omitempty"`
	Queue       *float64                      `json:"queue_length,omitempty"`
	Concurrency *float64                      `json:"concurrency,omitempty"`

	Target          string             `json:"target,omitempty"`
	Engine          string             `json:"engine,omitempty"`
	Cluster         string             `json:"cluster,omitempty"`
	Role            string             `json:"role,omitempty"`
	Up              *bool              `json:"up,omitempty"`
	Restarts        *float64           `json:"restarts,omitempty"`
	LagSeconds      *float64           `json:"lag_seconds,omitempty"`
	LagTransactions *float64           `json:"lag_transactions,omitempty"`
	Values          map[string]float64 `json:"values,omitempty"`

	Text string `json:"text,omitempty"`
}

// JSONLines writes runs as JSON, an object a line: the run, its intervals, its
// servers' samples, its markers.
func JSONLines(w io.Writer, hs []*history.History) error {
	buf := bufio.NewWriterSize(w, 1<<16)
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(false)
	for _, h := range hs {
		if err := jsonRun(e, h); err != nil {
			return err
		}
	}
	return buf.Flush()
}

func jsonRun(e *json.Encoder, h *history.History) error {
	line := func(kind string, elapsed float64) exported {
		return exported{Kind: kind, Run: h.Snapshot.Meta.ID, Time: h.At(elapsed).UTC().Format(timeFormat), Elapsed: elapsed}
	}
	first := line("run", h.Elapsed(h.Snapshot.Meta.StartedAt))
	row := RowOf(&h.Snapshot)
	first.Summary = &row
	if err := e.Encode(first); err != nil {
		return err
	}
	v := &h.Intervals
	for i, elapsed := range v.Elapsed {
		o := line("interval", elapsed)
		gauge := func(kind ingest.Kind) *float64 { return present(v.At(ingest.Column{Kind: kind}, i)) }
		o.Length, o.Phase, o.Threads = gauge(ingest.Length), phaseOf(v.Warmup[i]), gauge(ingest.Threads)
		o.Errors, o.Reconnects = gauge(ingest.Errors), gauge(ingest.Reconnects)
		o.Queue, o.Concurrency = gauge(ingest.QueueLength), gauge(ingest.Concurrency)
		o.Rates, o.Latency = map[string]float64{}, map[string]map[string]float64{}
		for _, c := range v.Of(ingest.Rate) {
			if rate := v.At(c, i); !math.IsNaN(rate) {
				o.Rates[c.Operation] = rate
			}
		}
		for _, c := range v.Of(ingest.Latency) {
			seconds := v.At(c, i)
			if math.IsNaN(seconds) {
				continue
			}
			if o.Latency[c.Operation] == nil {
				o.Latency[c.Operation] = map[string]float64{}
			}
			o.Latency[c.Operation][c.Stat] = seconds
		}
		if err := e.Encode(o); err != nil {
			return err
		}
	}
	for _, s := range h.Servers {
		names := s.Names()
		columns := make([][]float64, len(names))
		for i, name := range names {
			columns[i] = s.Values(name)
		}
		for i, elapsed := range s.Elapsed {
			o := line("status", elapsed)
			o.Target, o.Engine, o.Cluster, o.Role = s.Target, s.Engine, s.Cluster, s.RoleAt.At(i)
			up := s.Up(i)
			o.Up, o.Restarts = &up, &s.Restarts()[i]
			o.LagSeconds, o.LagTransactions = present(s.At(engine.ReplicationLagSeconds.Name, i)), present(s.At(engine.ReplicationLagTransactions.Name, i))
			o.Values = map[string]float64{}
			for j, name := range names {
				if !math.IsNaN(columns[j][i]) {
					o.Values[name] = columns[j][i]
				}
			}
			if err := e.Encode(o); err != nil {
				return err
			}
		}
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
