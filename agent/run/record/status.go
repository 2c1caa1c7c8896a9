package record

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// status.jsonl holds what each target answered at each tick, a line of JSON each.
// A target's header comes before its first row and again when it changes, for
// example when the server reports a value that it did not report before:
//
//	{"target":"n1","engine":"mysql","cluster":"c","interval":1,"role":"primary","version":"8.4.3","flavour":"mysql","columns":["db_queries_total","db_threads_running"]}
//
// The interval is the distance of ticks in seconds. Where rows are further apart,
// the server was not sampled.
//
// Each tick is a row: target, tick in Unix seconds, restarts, when the target was
// asked and had answered in seconds after the tick, position, and a value for each
// column of the newest header, null if unknown. The row of a target that did not
// answer ends with the reason:
//
//	["n1",1795227243,0,0.0004,0.0031,"8e2c…:1-812",10422,4]
//	["n1",1795227244,0,"connection refused"]
//
// A row depends on nothing but the newest header of its target in the same file.
// The recorder writes all headers again when it was restarted or a write
// failed, so every whole line stays readable, wherever a crash cut the file.
type statusHeader struct {
	Target  string `json:"target"`
	Engine  string `json:"engine"`
	Cluster string `json:"cluster,omitempty"`
	Role    string `json:"role,omitempty"`
	Version string `json:"version,omitempty"`
	Flavour string `json:"flavour,omitempty"`
	// Interval is absent if samples have no regular distance.
	Interval float64  `json:"interval,omitempty"`
	Columns  []string `json:"columns"`
}

// LongestStatus bounds a line of status.jsonl in bytes; a longer one is
// unreadable.
const LongestStatus = 1 << 20

// statusWriter makes the lines of status.jsonl.
type statusWriter struct {
	targets map[string]*writtenHeader
	line    []byte
	values  []float64
}

// writtenHeader is the newest header of a target in the file.
type writtenHeader struct {
	statusHeader
	places map[string]int
	// metrics are the metrics of the columns. They find the place of a value without building its name: targets report
	// the same values in the same order each time.
	metrics []*measure.Metric
	labels  [][]string
}

// append appends the lines of a tick to b.
func (w *statusWriter) append(b []byte, f engine.Frame) []byte {
	if w.targets == nil {
		w.targets = map[string]*writtenHeader{}
	}
	for i := range f.Samples {
		b = w.appendSample(b, &f.Samples[i], f.Interval.Seconds())
	}
	return b
}

// forget makes the next lines begin with headers, since it is unknown which headers are in the file.
func (w *statusWriter) forget() { w.targets = nil }

func (w *statusWriter) appendSample(b []byte, s *engine.Sample, interval float64) []byte {
	t := s.Target
	h := w.targets[t.Name]
	changed := h == nil
	if changed {
		h = &writtenHeader{statusHeader: statusHeader{Target: t.Name, Columns: []string{}}, places: map[string]int{}}
		w.targets[t.Name] = h
	}
	now := statusHeader{t.Name, t.Engine, t.Cluster, t.Role, h.Version, h.Flavour, interval, h.Columns}
	if s.Up() {
		now.Version, now.Flavour = s.Status.Version, s.Status.Flavour
		if now.Role == "" {
			now.Role = s.Status.Role
		}
	} else if now.Role == "" {
		now.Role = h.Role
	}
	changed = changed || now.Engine != h.Engine || now.Cluster != h.Cluster || now.Role != h.Role ||
		now.Version != h.Version || now.Flavour != h.Flavour || now.Interval != h.Interval
	h.statusHeader = now
	if s.Up() && w.place(h, s) {
		changed = true
	}
	if changed {
		header, _ := json.Marshal(h.statusHeader) // strings always can be
		b = append(append(b, header...), '\n')
	}
	b = appendText(append(b, '['), t.Name)
	b = appendSeconds(append(b, ','), s.Tick.UnixMicro())
	b = strconv.AppendUint(append(b, ','), s.Restarts, 10)
	if !s.Up() {
		reason := ""
		if s.Err != nil {
			reason = s.Err.Error()
		}
		return append(appendText(append(b, ','), reason), "]\n"...)
	}
	b = appendAfter(append(b, ','), s.Asked, s.Tick)
	b = appendAfter(append(b, ','), s.Answered, s.Tick)
	position := ""
	if s.Status.Position != nil {
		position = s.Status.Position.String()
	}
	b = appendText(append(b, ','), position)
	for _, v := range w.values {
		b = appendNumber(append(b, ','), v)
	}
	return append(b, "]\n"...)
}

// place puts the values of a sample in the order of the columns, and reports
// whether there are new columns.
func (w *statusWriter) place(h *writtenHeader, s *engine.Sample) (added bool) {
	w.values = w.values[:0]
	for range h.Columns {
		w.values = append(w.values, series.Unknown())
	}
	next := 0
	for v := range s.All {
		if v.Metric == engine.Up || v.Metric == engine.RestartsTotal {
			continue // in each row
		}
		if next >= len(h.metrics) || h.metrics[next] != v.Metric || !slices.Equal(h.labels[next], v.Labels) {
			name := v.Name()
			at, ok := h.places[name]
			if !ok && len(h.Columns) < maxColumns {
				at, ok, added = len(h.Columns), true, true
				h.places[name] = at
				h.Columns = append(h.Columns, name)
				h.metrics, h.labels = append(h.metrics, v.Metric), append(h.labels, v.Labels)
				w.values = append(w.values, series.Unknown())
			}
			if !ok {
				continue
			}
			next = at
		}
		w.values[next] = v.V
		next++
	}
	return added
}

func appendText(b []byte, s string) []byte {
	text, _ := json.Marshal(s)
	return append(b, text...)
}

// appendSeconds writes microseconds as seconds.
func appendSeconds(b []byte, micros int64) []byte {
	if micros < 0 {
		b, micros = append(b, '-'), -micros
	}
	b = strconv.AppendInt(b, micros/1e6, 10)
	rest := micros % 1e6
	if rest == 0 {
		return b
	}
	b = append(b, '.')
	for unit := int64(1e5); rest > 0; unit /= 10 {
		b = append(b, byte('0'+rest/unit))
		rest %= unit
	}
	return b
}

func appendAfter(b []byte, t, tick time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	return appendSeconds(b, t.Sub(tick).Microseconds())
}

func appendNumber(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return append(b, "null"...)
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// readStatus reads status.jsonl onto an axis that begins at zero. It calls visit with the rows of all servers once one
// has rows, and at the end. A line that is unreadable is counted. torn is set if the file ends within a line; in an
// active run, this line is still being written. Outside the given part of the axis, only the last tick before it is
// read, from which rates continue. keep returns whether to read a metric; nil: all metrics.
func readStatus(ctx context.Context, path string, zero time.Time, within series.Span,
	rows int, keep func(metric string) bool, visit func([]*ServerRows) error) (Damage, error) {
	d := statusReader{zero: zero, within: within, rows: rows, keep: keep, visit: visit, targets: map[string]*readTarget{}}
	err := d.read(ctx, path)
	if err == nil {
		err = visit(d.servers)
	}
	return d.damage, err
}

func (d *statusReader) read(ctx context.Context, path string) error {
	file, err := rundir.Open(path)
	if err != nil {
		return fmt.Errorf("read status: %w", err)
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, LongestStatus)
	for n := 0; d.err == nil; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := r.ReadSlice('\n')
		switch {
		case err == nil:
			line = bytes.TrimSpace(line)
			if len(line) > 0 && !d.add(line) {
				d.damage.UnreadableStatus++
			}
		case errors.Is(err, io.EOF):
			d.damage.TornStatus = len(line) > 0
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			d.damage.UnreadableStatus++
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
		default:
			return fmt.Errorf("read status: %w", err)
		}
	}
	return d.err
}

// statusReader reads lines of status.jsonl.
type statusReader struct {
	zero    time.Time
	within  series.Span
	rows    int // from which on they are visited
	keep    func(metric string) bool
	visit   func([]*ServerRows) error
	damage  Damage
	err     error // of visit
	newest  time.Time
	servers []*ServerRows          // in the order of their first appearance
	targets map[string]*readTarget // by name in JSON
	values  []float64              // of the row that is being read
}

// visitFull visits the rows before a new tick, if there are enough: all
// targets have the same ticks.
func (d *statusReader) visitFull(tick time.Time) {
	if !tick.After(d.newest) || d.err != nil {
		return
	}
	d.newest = tick
	if !slices.ContainsFunc(d.servers, func(s *ServerRows) bool { return len(s.Elapsed) >= d.rows }) {
		return
	}
	d.err = d.visit(d.servers)
	for _, s := range d.servers {
		s.next()
	}
}

// readTarget is a target and its newest header.
type readTarget struct {
	server *ServerRows
	header statusHeader
	places []int // of the header's columns in the server's table; -1: not kept
}

// add adds a line; false if it is unreadable.
func (d *statusReader) add(line []byte) bool {
	if line[0] == '[' {
		return d.addRow(line)
	}
	var h statusHeader
	if json.Unmarshal(line, &h) != nil || h.Target == "" || h.Columns == nil {
		return false
	}
	t := &readTarget{server: d.server(&h), header: h}
	for _, name := range h.Columns {
		place := -1
		if c, ok := measure.ParseColumn(name); ok && t.server != nil && d.isKept(c.Metric) {
			place = t.server.column(c)
		}
		t.places = append(t.places, place)
	}
	d.targets[string(appendText(nil, h.Target))] = t
	return true
}

func (d *statusReader) isKept(metric string) bool {
	return d.keep == nil || d.keep(metric) || slices.Contains(own, metric)
}

// addRow reads a row of the form that is described above.
func (d *statusReader) addRow(line []byte) bool {
	r := rowScanner{rest: line}
	t := d.targets[string(r.raw())]
	tick, restarts := r.micros(), r.number()
	if t == nil || r.failed || !series.IsKnown(restarts) {
		return false
	}
	if at := time.UnixMicro(tick).Sub(d.zero).Seconds(); at < d.within.From-t.header.Interval || at > d.within.To {
		return true
	}
	answer := tickAnswer{
		tick: time.UnixMicro(tick), restarts: restarts, interval: t.header.Interval,
		role: t.header.Role, version: t.header.Version, flavour: t.header.Flavour,
	}
	if r.isText() {
		answer.err = r.text()
		if !r.ended() {
			return false
		}
		d.addTick(t.server, &answer)
		return true
	}
	answer.up = true
	answer.asked, answer.answered = r.after(tick), r.after(tick)
	r.raw() // the position: its number is among the values
	d.values = d.values[:0]
	for _, place := range t.places {
		if place < 0 {
			r.next()
		} else {
			d.values = append(d.values, r.number())
		}
	}
	if !r.ended() {
		return false
	}
	if d.addTick(t.server, &answer) {
		i := 0
		for _, place := range t.places {
			if place >= 0 {
				if v := d.values[i]; series.IsKnown(v) {
					t.server.SetAt(place, v)
				}
				i++
			}
		}
	}
	return true
}

// addTick adds a tick without its values; false if the target has none there or
// there are too many targets.
func (d *statusReader) addTick(s *ServerRows, a *tickAnswer) bool {
	d.visitFull(a.tick)
	if s == nil || !s.row(a, d.zero) {
		d.damage.MisplacedStatus++
		return false
	}
	return true
}

// server returns the rows of a header's target, or begins them; nil if there are too
// many targets.
func (d *statusReader) server(header *statusHeader) *ServerRows {
	for _, s := range d.servers {
		if s.Target == header.Target {
			return s
		}
	}
	if len(d.servers) >= maxServers {
		return nil
	}
	s := &ServerRows{ServerFacts: &ServerFacts{Target: header.Target, Engine: header.Engine, Cluster: header.Cluster}}
	s.MaxColumns = maxColumns
	s.column(measure.NewColumn(engine.Up.Name)) // these two are always there
	s.column(measure.NewColumn(engine.RestartsTotal.Name))
	d.servers = append(d.servers, s)
	return s
}

// rowScanner reads the elements of a JSON array of numbers, texts and nulls as the writer writes it, without blanks. It
// is fast, because a run of ten hours with three servers has a hundred thousand rows, and the page needs only a few
// values of each.
type rowScanner struct {
	rest   []byte // from the bracket or comma before the next element
	failed bool
}

// next returns the next element as it is in the line.
func (r *rowScanner) next() []byte {
	if r.failed || len(r.rest) < 2 || r.rest[0] != ',' && r.rest[0] != '[' {
		r.failed = true
		return nil
	}
	b := r.rest[1:]
	end := 0
	if b[0] == '"' {
		for end = 1; end < len(b) && b[end] != '"'; end++ {
			if b[end] == '\\' {
				end++
			}
		}
		end++
	} else if end = bytes.IndexByte(b, ','); end < 0 {
		end = len(b) - 1
	}
	if end < 1 || end >= len(b) {
		r.failed = true
		return nil
	}
	r.rest = b[end:]
	return b[:end]
}

// ended reports whether the array ends here and was read without a failure.
func (r *rowScanner) ended() bool { return !r.failed && string(r.rest) == "]" }

// isText reports whether the next element is a text.
func (r *rowScanner) isText() bool { return len(r.rest) > 1 && r.rest[1] == '"' }

// raw returns a text as it is in the line, with quotes.
func (r *rowScanner) raw() []byte {
	b := r.next()
	if !r.failed && b[0] != '"' {
		r.failed = true
	}
	return b
}

func (r *rowScanner) text() string {
	var text string
	b := r.raw()
	r.failed = r.failed || json.Unmarshal(b, &text) != nil
	return text
}

// number reads a number; null is unknown.
func (r *rowScanner) number() float64 {
	b := r.next()
	if r.failed || string(b) == "null" {
		return series.Unknown()
	}
	v, ok := decimal.Parse(b, 0)
	r.failed = !ok
	return v
}

// micros reads seconds as microseconds, which must be whole.
func (r *rowScanner) micros() int64 {
	v, ok := decimal.Parse(r.next(), 6)
	if r.failed = r.failed || !ok || v != math.Trunc(v) || math.Abs(v) > 1<<53; r.failed {
		return 0
	}
	return int64(v)
}

// after reads an instant in seconds after the tick; null is unknown.
func (r *rowScanner) after(tick int64) time.Time {
	if bytes.HasPrefix(r.rest, []byte(",null,")) {
		r.next()
		return time.Time{}
	}
	return time.UnixMicro(tick + r.micros())
}
