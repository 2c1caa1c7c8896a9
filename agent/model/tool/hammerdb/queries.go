package hammerdb

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// mostQueries is the number of TPROC-H's queries.
const mostQueries = 22

// queries are the results of TPROC-H of all virtual users of a run.
type queries struct {
	times   [mostQueries]timing
	sets    int
	seconds float64 // of the longest virtual user
	means   []float64
}

// timing is what is known of the executions of one query, in seconds.
type timing struct {
	n              uint64
	sum, low, high float64
}

func (t *timing) add(seconds float64) {
	if t.n == 0 || seconds < t.low {
		t.low = seconds
	}
	t.n, t.sum, t.high = t.n+1, t.sum+seconds, max(t.high, seconds)
}

// query reads a result of TPROC-H: "query 14 completed in 0.553 seconds", "Completed 1 query set(s) in 5 seconds", and
// "Geometric mean of query times returning rows (21) is 0.15523".
func (p *Parser) query(text []byte, emit func(*tool.Report)) tool.Verdict {
	l := scan.New(text)
	q := &p.queries
	switch {
	case l.Literal("query "):
		n, ok := l.Int()
		if !ok || !l.Literal(" completed in ") {
			return tool.Ignored // returned 10 rows
		}
		seconds, _, ok := l.Number(0)
		if !ok || n < 1 || n > mostQueries || !l.Literal(" seconds") {
			return tool.Malformed
		}
		p.need(emit)
		p.run.workload = olap
		q.times[n-1].add(seconds)
		return tool.Reported
	case l.Literal("Completed "):
		sets, ok := l.Int()
		if !ok || !l.Literal(" query set(s) in ") {
			return tool.Ignored
		}
		seconds, _, ok := l.Number(0)
		if !ok {
			return tool.Malformed
		}
		q.sets += sets
		q.seconds = max(q.seconds, seconds)
		return tool.Reported
	}
	if _, ok := l.Until(") is "); ok && len(q.means) < 1<<16 {
		if mean, _, ok := l.Number(0); ok {
			q.means = append(q.means, mean)
			return tool.Reported
		}
	}
	return tool.Malformed
}

// sumQueries makes the summary of a run of TPROC-H.
func (p *Parser) sumQueries() {
	q := p.queries
	p.queries = queries{}
	if q.sets == 0 {
		return
	}
	r := p.summary.Begin(tool.Summary, p.number)
	r.Threads = p.run.threads
	if q.seconds > 0 {
		r.ElapsedSeconds = series.Some(q.seconds)
	}
	total := uint64(0)
	for i, t := range q.times {
		if t.n == 0 {
			continue
		}
		total += t.n
		name := fmt.Sprintf("q%d", i+1)
		r.AddCountOver(name, t.n, q.seconds)
		r.AddLatency(name, "min", t.low)
		r.AddLatency(name, "avg", t.sum/float64(t.n))
		r.AddLatency(name, "max", t.high)
	}
	r.AddCountOver(tool.Transaction, total, q.seconds)
	if len(q.means) == 1 {
		r.Set(tool.QueryMean, q.means[0])
	}
}
