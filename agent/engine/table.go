package engine

import "github.com/benchwatch/benchwatch/agent/measure"

// Variable maps a number that a server reports under a name of its own to a
// metric.
type Variable struct {
	Metric *measure.Metric
	Labels []string
	// Names of the number in different versions of the server. The first that
	// the server reports is used.
	Names []string
	// Plus are added to it if the server reports them.
	Plus []string
	// Divisor is how many of the server's units make one of the metric's: 1e3
	// for milliseconds. 0 means 1. Dividing by it rounds only once.
	Divisor float64
}

// Table is what an engine reads of one kind of answer.
type Table []Variable

// Names returns all names in the table.
func (t Table) Names() []string {
	var names []string
	for i := range t {
		names = append(append(names, t[i].Names...), t[i].Plus...)
	}
	return names
}

// Read sets the metrics of the variables that a server reports. number returns
// a variable by its name; false if the server does not report it.
func (t Table) Read(s *Status, number func(name string) (float64, bool)) {
	for i := range t {
		v := &t[i]
		sum, known := 0.0, false
		read := func(name string) bool {
			n, ok := number(name)
			ok = ok && plausible(v.Metric.Kind, n)
			if ok {
				sum, known = sum+n, true
			}
			return ok
		}
		for _, name := range v.Names {
			if read(name) {
				break
			}
		}
		for _, name := range v.Plus {
			read(name)
		}
		if !known {
			continue
		}
		if v.Divisor != 0 {
			sum /= v.Divisor
		}
		s.Set(v.Metric, sum, v.Labels...)
	}
}

// plausible rejects what can't be a count: negative numbers, those beyond 64
// bits, and gauges that a server let fall below 0, which it prints as nearly
// 2^64.
func plausible(kind measure.Kind, n float64) bool {
	if kind == measure.Counter {
		return n >= 0 && n <= 1<<64
	}
	return n >= 0 && n < 1<<63
}
