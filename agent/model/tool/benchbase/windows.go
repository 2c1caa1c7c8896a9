package benchbase

import (
	"bytes"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
)

// windowHeaders begin the files with a row for each window of time: *.samples.csv and *.results.csv, and OLTPBench's *.res.
var windowHeaders = []string{"Time (seconds),", "time(sec),"}

// latencyNames are the statistics in the columns of these files, without their units, in lower case.
var latencyNames = map[string]string{
	"minimum latency": "min", "25th percentile latency": "p25", "median latency": "p50", "average latency": "avg", "75th percentile latency": "p75",
	"90th percentile latency": "p90", "95th percentile latency": "p95", "99th percentile latency": "p99", "maximum latency": "max",
	"min_lat": "min", "25th_lat": "p25", "median_lat": "p50", "avg_lat": "avg", "75th_lat": "p75", "90th_lat": "p90", "95th_lat": "p95",
	"99th_lat": "p99", "max_lat": "max",
}

// windowUnits are the units of the latencies, as exponents of ten seconds.
var windowUnits = map[string]int{"microseconds": -6, "millisecond": -3, "milliseconds": -3, "ms": -3, "us": -6}

// Meanings of columns that are not latencies.
const (
	windowStart = "start"
	windowCount = "count"
	windowRate  = "rate"
)

// maxColumns bounds the columns of a table.
const maxColumns = 16

// column is a column of a table of windows.
type column struct {
	meaning  string // the statistic of a latency, windowStart, windowCount or windowRate; empty: not used
	exponent int    // of the unit of a latency
	decimal  bool   // the column has decimals, which a comma can separate from the whole number
}

// windows is the state within a table of windows.
type windows struct {
	columns  []column
	decimals int
	counted  bool    // the table has numbers of requests
	last     float64 // start of the previous window
	first    []byte  // the first row, whose window is known from the second one
}

// newWindows reads the header of a table; its columns are nil if it has none that are known.
func newWindows(header []byte) windows {
	w := windows{last: -1}
	whole := bytes.Contains(header, []byte(",Requests,")) // microseconds are whole numbers, and so are requests
	for i, name := range strings.Split(string(header), ",") {
		if i == maxColumns {
			return windows{}
		}
		name, unit, _ := strings.Cut(strings.ToLower(strings.TrimSpace(name)), "(")
		unit, _, _ = strings.Cut(unit, ")")
		name = strings.TrimSpace(name)
		c := column{decimal: i > 0 && !whole}
		exponent, known := windowUnits[unit]
		switch stat := latencyNames[name]; {
		case stat != "" && known:
			c.meaning, c.exponent = stat, exponent
		case i == 0:
			c.meaning = windowStart
		case name == "requests":
			c.meaning, w.counted = windowCount, true
		case name == "throughput":
			c.meaning, c.decimal = windowRate, true
		}
		if c.decimal {
			w.decimals++
		}
		w.columns = append(w.columns, c)
	}
	if len(w.columns) < 3 {
		return windows{}
	}
	return w
}

// isWindowHeader reports whether a line is the header of a table of windows.
func isWindowHeader(text []byte) bool {
	for _, h := range windowHeaders {
		if bytes.HasPrefix(text, []byte(h)) {
			return true
		}
	}
	return false
}

// row reads a row: a window that begins at the time in its first column. The length of a window is the distance between
// two.
func (w *windows) row(text []byte, r *tool.Report, run int, emit func(*tool.Report)) tool.Verdict {
	first, _, _ := bytes.Cut(text, []byte(","))
	start, ok := decimal.Parse(first, 0)
	if !ok || start <= w.last {
		return tool.Malformed
	}
	before := w.last
	w.last = start
	if before < 0 {
		w.first = append(w.first, text...)
		return tool.Reported
	}
	if w.first != nil {
		w.window(w.first, before, start-before, r, run, emit)
		w.first = nil
	}
	return w.window(text, start, start-before, r, run, emit)
}

// window reports a row.
func (w *windows) window(text []byte, start, seconds float64, r *tool.Report, run int, emit func(*tool.Report)) tool.Verdict {
	r.Reset(tool.Interval, run)
	r.Phase = tool.Measure
	if seconds > 0 {
		r.ElapsedSeconds, r.IntervalSeconds = series.Some(start+seconds), series.Some(seconds)
	}
	comma := bytes.Count(text, []byte(",")) == len(w.columns)-1+w.decimals && w.decimals > 0
	for i, c := range w.columns {
		field, rest, more := bytes.Cut(text, []byte(","))
		if more != (i < len(w.columns)-1 || comma && c.decimal) {
			return tool.Malformed
		}
		var fraction []byte
		if comma && c.decimal {
			fraction, rest, _ = bytes.Cut(rest, []byte(","))
		}
		text = rest
		value, ok := localised(field, fraction, c.exponent)
		switch {
		case c.meaning == "" || c.meaning == windowStart:
		case !ok || value < 0 || value >= 1<<53:
			return tool.Malformed
		case c.meaning == windowCount:
			r.AddCountOver(tool.Transaction, uint64(value), seconds)
		case c.meaning == windowRate:
			if !w.counted {
				r.AddRate(tool.Transaction, value)
			}
		default:
			r.AddLatency(tool.Transaction, c.meaning, value)
		}
	}
	emit(r)
	return tool.Reported
}

// localised returns a number whose fraction was after a comma, in a language that separates it so. Without a fraction,
// the number may have a point.
func localised(number, fraction []byte, exponent int) (float64, bool) {
	if len(fraction) == 0 {
		return decimal.Parse(bytes.TrimSpace(number), exponent)
	}
	var joined [48]byte
	text := append(append(append(joined[:0], bytes.TrimSpace(number)...), '.'), bytes.TrimSpace(fraction)...)
	return decimal.Parse(text, exponent)
}

// finish reports the only row of a short run.
func (w *windows) finish(r *tool.Report, run int, emit func(*tool.Report)) {
	if w.first != nil {
		w.window(w.first, w.last, 0, r, run, emit)
	}
	*w = windows{}
}
