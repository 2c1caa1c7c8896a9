package report

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"math"
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

// IntervalsCSV writes every interval of the runs, a line each, in base units. It has a column if any of the runs has
// values for it.
func IntervalsCSV(ctx context.Context, w io.Writer, hs []*record.History) error {
	columns := intervalColumns(hs)
	names := []string{"run", "time", "elapsed_seconds", "interval_seconds", "phase"}
	for _, c := range columns {
		names = append(names, columnName(c))
	}
	columns = slices.Insert(columns, 0, ingest.Column{Kind: ingest.Length})
	out := table.NewCSV(w, names...)
	values, cells := make([][]float64, len(columns)), make([]table.Cell, 0, len(names))
	for _, h := range hs {
		id := table.Text(h.Snapshot.Meta.ID)
		if err := h.EachInterval(ctx, func(v *ingest.Intervals) error {
			for i, c := range columns {
				values[i] = v.Values(c)
			}
			for row, elapsed := range v.Elapsed {
				cells = append(cells[:0], id, timeCell(h, elapsed), number(elapsed))
				cells = appendCells(cells, values[:1], row)
				cells = append(cells, table.Text(phaseOf(v.Warmup[row])))
				out.Add(appendCells(cells, values[1:], row)...)
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
	head := []string{"run", "time", "elapsed_seconds", "target", "engine",
		"cluster", "role", "up", "restarts", "lag_seconds", "lag_transactions"}
	out, cells := table.NewCSV(w, append(head, names...)...), []table.Cell{}
	for _, h := range hs {
		id := table.Text(h.Snapshot.Meta.ID)
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
					cells = append(cells[:0], id, timeCell(h, elapsed), number(elapsed), table.Text(s.Target), table.Text(s.Engine),
						table.Text(s.Cluster), table.Text(s.RoleAt.At(row)), table.Text(up))
					out.Add(appendCells(cells, values, row)...)
				}
			}
			return out.Err()
		}); err != nil {
			return err
		}
	}
	return out.Close()
}

// samplerColumns are the columns that the sampler adds to the values of each server.
var samplerColumns = []string{engine.RestartsTotal.Name, engine.ReplicationLagSeconds.Name, engine.ReplicationLagTransactions.Name}

func timeCell(h *record.History, elapsed float64) table.Cell {
	return table.Text(timeOf(h, elapsed))
}

func timeOf(h *record.History, elapsed float64) string { return h.At(elapsed).UTC().Format(timeFormat) }

func number(v float64) table.Cell { return table.Number(v, table.Digits) }

// appendCells appends one row of columns; nil ones are unknown.
func appendCells(cells []table.Cell, columns [][]float64, row int) []table.Cell {
	for _, values := range columns {
		cell := table.Cell{}
		if values != nil {
			cell = number(values[row])
		}
		cells = append(cells, cell)
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

	// Summary is what `runs` prints about the run.
	Summary *review.Row `json:"summary,omitempty"`

	Length  series.Optional[float64]      `json:"interval_seconds,omitzero"`
	Phase   string                        `json:"phase,omitempty"`
	Threads series.Optional[float64]      `json:"threads,omitzero"`
	Rates   map[string]float64            `json:"rates,omitempty"`
	Latency map[string]map[string]float64 `json:"latency_seconds,omitempty"`
	// Numbers are the other numbers that the tool printed. In JSON each has its own field.
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

	// Text is the text of a marker.
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

// JSONLines writes runs as JSON, one object per line: the run, its intervals, the samples of its servers, its markers.
func JSONLines(ctx context.Context, w io.Writer, hs []*record.History) error {
	buf := bufio.NewWriterSize(w, 1<<16)
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(false)
	for _, h := range hs {
		if err := jsonRun(ctx, &object{h: h, out: buf}, e); err != nil {
			return err
		}
	}
	return buf.Flush()
}

func jsonRun(ctx context.Context, o *object, e *json.Encoder) error {
	h := o.h
	line := func(kind string, elapsed float64) ExportLine {
		return ExportLine{Kind: kind, Run: h.Snapshot.Meta.ID, Time: timeOf(h, elapsed), Elapsed: elapsed}
	}
	first := line("run", h.Elapsed(h.Snapshot.Meta.StartedAt))
	row := review.NewRow(&h.Snapshot)
	first.Summary = &row
	if err := e.Encode(first); err != nil {
		return err
	}
	if err := h.EachInterval(ctx, o.intervals); err != nil {
		return err
	}
	if err := h.EachSample(ctx, o.samples); err != nil {
		return err
	}
	for _, m := range h.Markers {
		l := line("marker", h.Elapsed(m.Start))
		l.Text = m.Text
		if err := e.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// intervals writes the ExportLine of each interval. Package encoding/json takes ten times as long, which matters for
// millions of lines.
func (o *object) intervals(v *ingest.Intervals) error {
	length, threads := newField("interval_seconds", v.Values(ingest.Column{Kind: ingest.Length})),
		newField("threads", v.Values(ingest.Column{Measure: tool.Threads}))
	var numbers, rates []field
	for _, n := range tool.Numbers() {
		if values := v.Values(ingest.Column{Measure: n.Measure}); values != nil {
			numbers = append(numbers, newField(n.Measure.ID, values))
		}
	}
	for _, c := range v.Of(tool.Throughput) {
		rates = append(rates, newField(c.Operation, v.Values(c)))
	}
	stats := map[string][]field{}
	for _, c := range v.Of(tool.HeadlineLatency) {
		stats[c.Operation] = append(stats[c.Operation], newField(c.Stat, v.Values(c)))
	}
	sortFields(rates)
	operations := slices.Sorted(maps.Keys(stats))
	var latencies [][]field // of the operations
	for _, operation := range operations {
		sortFields(stats[operation])
		latencies = append(latencies, stats[operation])
	}
	for i, elapsed := range v.Elapsed {
		o.line("interval", i, elapsed)
		o.fields(length)
		o.string("phase", phaseOf(v.Warmup[i]))
		o.fields(threads)
		o.object("rates", rates)
		if slices.ContainsFunc(latencies, o.hasAny) {
			o.begin("latency_seconds")
			for k, operation := range operations {
				o.object(operation, latencies[k])
			}
			o.end()
		}
		for _, n := range numbers {
			if o.has(n) && !math.IsInf(n.values[i], 0) {
				o.fields(n)
			}
		}
		if err := o.endLine(); err != nil {
			return err
		}
	}
	return nil
}

// samples writes the ExportLine of each sample of the servers.
func (o *object) samples(servers []*record.ServerRows) error {
	for _, s := range servers {
		own := []field{
			newField("restarts", s.Restarts()),
			newField("lag_seconds", s.Values(engine.ReplicationLagSeconds.Name)),
			newField("lag_transactions", s.Values(engine.ReplicationLagTransactions.Name)),
		}
		var values []field
		for _, name := range s.Names() {
			values = append(values, newField(name, s.Values(name)))
		}
		for i := s.Begin; i < len(s.Elapsed); i++ {
			o.line("status", i, s.Elapsed[i])
			for _, text := range [][2]string{{"target", s.Target}, {"engine", s.Engine},
				{"cluster", s.Cluster}, {"role", s.RoleAt.At(i)}} {
				if text[1] != "" {
					o.string(text[0], text[1])
				}
			}
			if s.Sampled(i) { // else the agent missed the tick
				o.name("up")
				o.text = strconv.AppendBool(o.text, s.Up(i))
			}
			o.fields(own...)
			o.object("values", values)
			if err := o.endLine(); err != nil {
				return err
			}
		}
	}
	return nil
}

// field is a column under its name in JSON.
type field struct {
	name, key string
	values    []float64 // nil: all are unknown
}

func newField(name string, values []float64) field {
	o := object{}
	return field{name, string(o.quote(name)), values}
}

func sortFields(fields []field) {
	slices.SortFunc(fields, func(a, b field) int { return cmp.Compare(a.name, b.name) })
}

// object is the JSON object of a line while it is written. A key is a name in quotes.
type object struct {
	h    *record.History
	out  *bufio.Writer
	text []byte
	row  int
	err  error // the first
}

// line begins the line of a row of columns.
func (o *object) line(kind string, row int, elapsed float64) {
	o.text, o.row = append(o.text[:0], '{'), row
	o.string("kind", kind)
	o.string("run", o.h.Snapshot.Meta.ID)
	o.name("time")
	o.text = append(o.h.At(elapsed).UTC().AppendFormat(append(o.text, '"'), timeFormat), '"')
	o.number(`"elapsed_seconds"`, elapsed)
}

func (o *object) endLine() error {
	o.end()
	if o.err != nil {
		return o.err
	}
	_, err := o.out.Write(append(o.text, '\n'))
	return err
}

// begin begins an object within the object.
func (o *object) begin(name string) {
	o.name(name)
	o.text = append(o.text, '{')
}

func (o *object) end() { o.text = append(o.text, '}') }

func (o *object) name(name string) {
	o.separate()
	o.text = append(o.quote(name), ':')
}

func (o *object) separate() {
	if o.text[len(o.text)-1] != '{' {
		o.text = append(o.text, ',')
	}
}

func (o *object) string(name, value string) {
	o.name(name)
	o.text = o.quote(value)
}

func (o *object) quote(s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return o.encode(s)
		}
	}
	return append(append(append(o.text, '"'), s...), '"')
}

func (o *object) number(key string, v float64) {
	o.separate()
	o.text = append(append(o.text, key...), ':')
	if small := math.Abs(v); small != 0 && !(small >= 1e-6 && small < 1e21) { // encoding/json has exponents
		o.text = o.encode(v)
		return
	}
	o.text = table.AppendNumber(o.text, v)
}

func (o *object) encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	o.err = cmp.Or(o.err, e.Encode(v))
	return append(o.text, bytes.TrimSpace(b.Bytes())...)
}

func (o *object) has(f field) bool { return f.values != nil && series.IsKnown(f.values[o.row]) }

func (o *object) hasAny(fields []field) bool { return slices.ContainsFunc(fields, o.has) }

// fields writes those with a value.
func (o *object) fields(fields ...field) {
	for _, f := range fields {
		if o.has(f) {
			o.number(f.key, f.values[o.row])
		}
	}
}

// object writes the fields with a value as an object, unless there are none.
func (o *object) object(name string, fields []field) {
	if o.hasAny(fields) {
		o.begin(name)
		o.fields(fields...)
		o.end()
	}
}
