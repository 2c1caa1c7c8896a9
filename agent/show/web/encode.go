package web

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// The tables of a history and the rows of a stream are written without
// reflection: a run of ten hours has tens of thousands of values, and a frame of
// all servers comes every second.

// encode returns a view as JSON. The views are plain structs, so that can't fail.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return data
}

// appendTable appends the rows of t between two instants, thinned to about points rows: a piece of the axis that holds
// more than one row becomes two, with the smallest and the largest value in the order in which they came. Each column
// comes with its extremes and its mean from whole; t may be a part of it.
func appendTable(b []byte, t, whole *table, from, to float64, points int) []byte {
	begin, end := t.Between(from, to)
	axis := t.Elapsed[begin:end]
	width := 0.0
	if n := len(axis); n > points {
		width = (axis[n-1] - axis[0]) / float64(max(1, points/2))
	}
	var buckets []series.Bucket
	if len(axis) > 0 {
		buckets = series.Buckets(axis, axis[0], width)
	}
	b = strconv.AppendInt(append(b, `{"rows":`...), int64(t.Weight(begin, end)), 10)
	b = append(b, `,"x":[`...)
	for _, k := range buckets {
		b = comma(appendSeconds(b, axis[k.Begin]))
		if k.End-k.Begin > 1 {
			b = comma(appendSeconds(b, axis[k.End-1]))
		}
	}
	b = append(trim(b), `],"series":[`...)
	for _, n := range t.Keys() {
		all := t.Values(n)
		stats := whole.Tally(n)
		b = n.appendJSON(append(b, `{"name":`...))
		b = appendNumber(append(b, `,"min":`...), stats.Min)
		b = appendNumber(append(b, `,"max":`...), stats.Max)
		b = appendNumber(append(b, `,"mean":`...), stats.Mean())
		if hasMedian[n.measure] {
			b = appendNumber(append(b, `,"median":`...), stats.Median())
		}
		b = append(b, `,"values":[`...)
		values := all[begin:end]
		for _, k := range buckets {
			if k.End-k.Begin == 1 {
				b = comma(appendNumber(b, values[k.Begin]))
				continue
			}
			first, second := series.Extremes(values, k)
			b = comma(appendNumber(b, valueAt(values, first)))
			b = comma(appendNumber(b, valueAt(values, second)))
		}
		b = comma(append(trim(b), `]}`...))
	}
	return append(trim(b), `]}`...)
}

// hasMedian are the measures of intervals that have a median instead of a mean.
var hasMedian = map[string]bool{tool.HeadlineLatency.ID: true}

func valueAt(values []float64, row int) float64 {
	if row < 0 {
		return series.Unknown()
	}
	return values[row]
}

func (n name) appendJSON(b []byte) []byte {
	b = appendString(append(b, '['), n.measure)
	b = appendString(append(b, ','), n.of)
	return append(appendString(append(b, ','), n.stat), ']')
}

// appendCells appends a row as [[measure, of, stat], value] pairs.
func appendCells(b []byte, cells []cell) []byte {
	b = append(b, '[')
	for _, c := range cells {
		b = c.appendJSON(append(b, '['))
		b = comma(append(appendNumber(append(b, ','), c.value), ']'))
	}
	return append(trim(b), ']')
}

// appendNumber appends six significant digits, which is more than a screen
// shows; null for an unknown or infinite value.
func appendNumber(b []byte, v float64) []byte {
	if !series.IsKnown(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'g', 6, 64)
}

func appendSeconds(b []byte, v float64) []byte {
	return strconv.AppendFloat(b, math.Round(v*1000)/1000, 'f', -1, 64)
}

func appendString(b []byte, s string) []byte { return append(b, encode(s)...) }

func comma(b []byte) []byte { return append(b, ',') }

// trim removes a trailing comma.
func trim(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == ',' {
		return b[:n-1]
	}
	return b
}

// event is one server-sent event. JSON has no line breaks.
func event(kind string, data []byte) []byte {
	b := make([]byte, 0, len(data)+len(kind)+20)
	b = append(append(append(b, "event: "...), kind...), "\ndata: "...)
	return append(append(b, data...), "\n\n"...)
}

// timedRow is the event of a new row of a run's table or, if id is empty, of one
// that all runs share. Its rows are a step in seconds apart, or there is a gap.
func timedRow(table, id string, at time.Time, step float64, cells []cell) []byte {
	b := appendString([]byte(`{"table":`), table)
	if id != "" {
		b = appendString(append(b, `,"run":`...), id)
	}
	b = strconv.AppendInt(append(b, `,"at":`...), at.UnixMilli(), 10)
	b = appendNumber(append(b, `,"step":`...), step)
	b = appendCells(append(b, `,"cells":`...), cells)
	return event("row", append(b, '}'))
}

// intervalRow is the event of a new report of a run's tool.
func intervalRow(id string, elapsed float64, cells []cell, r *tool.Report) []byte {
	b := appendString([]byte(`{"table":"intervals","run":`), id)
	b = appendSeconds(append(b, `,"x":`...), elapsed)
	if r.Phase == tool.Warmup && r.IntervalSeconds.Known {
		b = appendNumber(append(b, `,"warmup":`...), r.IntervalSeconds.Value)
	}
	b = appendCells(append(b, `,"cells":`...), cells)
	return event("row", append(b, '}'))
}
