package web

import (
	"math"
	"sort"
	"strconv"
)

// maxTableSeries bounds the series of one table, whatever is in the files.
const maxTableSeries = 2048

// name tells a series of a table apart from the others: what is measured, of
// whom (an operation, a target), and for latencies which statistic.
type name struct{ kind, of, stat string }

// cell is a series' value in one row.
type cell struct {
	name
	value float64
}

// table is columns over one axis, one row an instant. What was not told is NaN.
// Rows are only ever appended, so a copy of the headers (snapshot) can be read
// while they are.
type table struct {
	x      []float64
	series []*tableSeries
	index  map[name]int
}

type tableSeries struct {
	name
	values []float64 // may be shorter than x: the rest is NaN
}

// column adds a whole series of len(x) values.
func (t *table) column(n name, values []float64) {
	if values == nil || len(t.series) >= maxTableSeries {
		return
	}
	if t.index == nil {
		t.index = map[name]int{}
	}
	t.index[n] = len(t.series)
	t.series = append(t.series, &tableSeries{n, values})
}

// append adds a row unless it does not come behind the one before.
func (t *table) append(x float64, cells []cell) {
	if n := len(t.x); n > 0 && !(x > t.x[n-1]) {
		return
	}
	t.x = append(t.x, x)
	for _, c := range cells {
		i, ok := t.index[c.name]
		if !ok {
			t.column(c.name, []float64{})
			if i, ok = t.index[c.name]; !ok {
				continue // too many
			}
		}
		s := t.series[i]
		for len(s.values) < len(t.x)-1 {
			s.values = append(s.values, math.NaN())
		}
		s.values = append(s.values, c.value)
	}
}

// snapshot is a copy that appending to t does not change.
func (t *table) snapshot() table {
	c := table{x: t.x, series: make([]*tableSeries, len(t.series))}
	for i, s := range t.series {
		copied := *s
		c.series[i] = &copied
	}
	return c
}

func (s *tableSeries) at(row int) float64 {
	if row >= len(s.values) {
		return math.NaN()
	}
	return s.values[row]
}

// bucket is rows begin to end, end left out.
type bucket struct{ begin, end int }

// buckets divides the rows between from and to, and one more on either side, into
// at most points/2 spans of equal length in time. No buckets: all rows are few
// enough to be drawn.
func (t *table) buckets(from, to float64, points int) (begin, end int, buckets []bucket) {
	begin = max(0, sort.SearchFloat64s(t.x, from)-1)
	end = min(len(t.x), sort.Search(len(t.x), func(i int) bool { return t.x[i] > to })+1)
	if end <= begin {
		return begin, begin, nil
	}
	if end-begin <= points {
		return begin, end, nil
	}
	first := t.x[begin]
	width := (t.x[end-1] - first) / float64(max(1, points/2))
	place := func(i int) int { return int((t.x[i] - first) / width) }
	for i := begin; i < end; {
		j := i + 1
		for j < end && place(j) == place(i) {
			j++
		}
		buckets = append(buckets, bucket{i, j})
		i = j
	}
	return begin, end, buckets
}

// extremes are the smallest and the largest value of rows begin to end, the
// earlier one first; NaN if there is none.
func (s *tableSeries) extremes(begin, end int) (first, second float64) {
	low, high := -1, -1
	for i := begin; i < min(end, len(s.values)); i++ {
		v := s.values[i]
		if math.IsNaN(v) {
			continue
		}
		if low < 0 || v < s.values[low] {
			low = i
		}
		if high < 0 || v > s.values[high] {
			high = i
		}
	}
	switch {
	case low < 0:
		return math.NaN(), math.NaN()
	case low <= high:
		return s.values[low], s.values[high]
	default:
		return s.values[high], s.values[low]
	}
}

// appendJSON writes the rows between from and to, thinned to about points: of
// each span of time that holds more than a row there are two, with the smallest
// and the largest value in the order in which they came. rows is how many there
// are. Each series comes with what it was over the whole table.
func (t *table) appendJSON(b []byte, from, to float64, points int) []byte {
	begin, end, buckets := t.buckets(from, to, points)
	b = strconv.AppendInt(append(b, `{"rows":`...), int64(end-begin), 10)
	b = append(b, `,"x":[`...)
	if buckets == nil {
		for i := begin; i < end; i++ {
			b = comma(appendSeconds(b, t.x[i]))
		}
	}
	for _, k := range buckets {
		b = comma(appendSeconds(b, t.x[k.begin]))
		if k.end-k.begin > 1 {
			b = comma(appendSeconds(b, t.x[k.end-1]))
		}
	}
	b = append(trim(b), `],"series":[`...)
	for _, s := range t.series {
		b = s.appendFacts(b)
		b = append(b, `,"values":[`...)
		if buckets == nil {
			for i := begin; i < end; i++ {
				b = comma(appendNumber(b, s.at(i)))
			}
		}
		for _, k := range buckets {
			if k.end-k.begin == 1 {
				b = comma(appendNumber(b, s.at(k.begin)))
				continue
			}
			first, second := s.extremes(k.begin, k.end)
			b = comma(appendNumber(comma(appendNumber(b, first)), second))
		}
		b = comma(append(trim(b), `]}`...))
	}
	return append(trim(b), `]}`...)
}

// appendFacts begins a series' object with its name and its extremes, mean and
// number of values over the whole table.
func (s *tableSeries) appendFacts(b []byte) []byte {
	low, high, sum, n := math.NaN(), math.NaN(), 0.0, 0
	for _, v := range s.values {
		if math.IsNaN(v) {
			continue
		}
		if n == 0 || v < low {
			low = v
		}
		if n == 0 || v > high {
			high = v
		}
		sum += v
		n++
	}
	b = append(b, `{"name":`...)
	b = s.name.appendJSON(b)
	b = appendNumber(append(b, `,"min":`...), low)
	b = appendNumber(append(b, `,"max":`...), high)
	b = appendNumber(append(b, `,"sum":`...), sum)
	return strconv.AppendInt(append(b, `,"count":`...), int64(n), 10)
}

func (n name) appendJSON(b []byte) []byte {
	b = appendString(append(b, '['), n.kind)
	b = appendString(append(b, ','), n.of)
	return append(appendString(append(b, ','), n.stat), ']')
}

// appendCells writes a row's values as [[kind, of, stat], value] pairs.
func appendCells(b []byte, cells []cell) []byte {
	b = append(b, '[')
	for _, c := range cells {
		b = c.name.appendJSON(append(b, '['))
		b = comma(append(appendNumber(append(b, ','), c.value), ']'))
	}
	return append(trim(b), ']')
}

// appendNumber writes six significant digits, which is more than a screen
// shows; null for what is no number.
func appendNumber(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'g', 6, 64)
}

func appendSeconds(b []byte, v float64) []byte {
	return strconv.AppendFloat(b, math.Round(v*1000)/1000, 'f', -1, 64)
}

func comma(b []byte) []byte { return append(b, ',') }

// trim takes a last comma away.
func trim(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == ',' {
		return b[:n-1]
	}
	return b
}
