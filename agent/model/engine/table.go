package engine

import (
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Table maps the numbers in one kind of answer, under the server's own names, to metrics. An engine
// fills it while declaring its metrics:
//
//	var variables engine.Table
//	var waits = variables.Map(measure.NewCounter("turbine_waits_total", "…"), "Waits")
type Table []variable

// variable is one value of a metric.
type variable struct {
	metric *measure.Metric
	labels []string
	names  []string // in different versions of the server
	plus   []string // added if the server reports them
	// divisor is the number of the server's units in one unit of the metric. Dividing rounds only
	// once.
	divisor float64
}

// Map adds m, which is read from the numbers with these names:
//
//	"Com_commit"                             a number
//	"Aurora_writer | Aurora_master"          alternatives; the first that the server reports is used
//	"insert: Com_insert + Com_insert_select" value of m's label; a number that is added if reported
//
// Values of several labels are separated by commas.
func (t *Table) Map(m *measure.Metric, names ...string) *measure.Metric {
	return t.Convert(m, 1, names...)
}

// Convert is Map for numbers whose unit is smaller than the metric's by divisor: 1e3 for
// milliseconds.
func (t *Table) Convert(m *measure.Metric, divisor float64, names ...string) *measure.Metric {
	for _, text := range names {
		v := variable{metric: m, divisor: divisor}
		if labels, rest, ok := strings.Cut(text, ": "); ok {
			v.labels, text = strings.Split(labels, ","), rest
		}
		parts := strings.Split(text, " + ")
		v.names, v.plus = strings.Split(parts[0], " | "), parts[1:]
		*t = append(*t, v)
	}
	return m
}

// Names returns all names in the table.
func (t Table) Names() []string {
	var names []string
	for i := range t {
		names = append(append(names, t[i].names...), t[i].plus...)
	}
	return names
}

// Read sets the metrics of the variables that a server reports. number returns a variable by name;
// false if the server does not report it.
func (t Table) Read(s *Status, number func(name string) (float64, bool)) {
	for i := range t {
		v := &t[i]
		sum, known := 0.0, false
		read := func(name string) bool {
			n, ok := number(name)
			ok = ok && plausible(v.metric.Kind, n)
			if ok {
				sum, known = sum+n, true
			}
			return ok
		}
		for _, name := range v.names {
			if read(name) {
				break
			}
		}
		for _, name := range v.plus {
			read(name)
		}
		if known {
			s.Set(v.metric, sum/v.divisor, v.labels...)
		}
	}
}

// plausible rejects impossible values: negative numbers, numbers beyond 64 bits, and gauges that
// fell below 0, which a server prints as nearly 2^64.
func plausible(kind measure.Kind, n float64) bool {
	if kind == measure.Counter {
		return n >= 0 && n <= 1<<64
	}
	return n >= 0 && n < 1<<63
}
