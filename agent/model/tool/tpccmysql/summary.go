package tpccmysql

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// results are the tables at the end of a run.
type results struct {
	open    bool // "<Raw Results>" was seen
	rows    [5]row
	seconds series.Optional[float64]
	tpmC    series.Optional[float64]
	second  bool // in "<Raw Results2", which repeats the first table
}

// row is a line of the first table:
//
//	[0] sc:45 lt:1240  rt:0  fl:0 avg_rt: 48.9 (5)
//	[0] sc:498  lt:0  rt:0  fl:0
type row struct {
	known                        bool
	success, late, retry, failed uint64
	average                      float64 // seconds, 0 if not printed
}

func (t *results) reset() { *t = results{} }

// result reads a line after "<Raw Results>".
func (p *Parser) result(text []byte, emit func(*tool.Report)) tool.Verdict {
	l := scan.New(text)
	t := &p.results
	switch {
	case string(text) == startBanner, string(text) == loadBanner, l.Literal("RAMP-UP TIME."), l.Literal("option "):
		t.open = false
		return p.word(text, emit)
	case l.Literal("<Raw Results2"):
		t.second = true
		return tool.Ignored
	case l.Literal("<"):
		t.second = !bytes.HasPrefix(text, []byte("<TpmC>"))
		return tool.Ignored
	case t.second:
		return tool.Ignored
	case l.Literal("  ["):
		return t.row(l)
	case l.Literal(" in "):
		n, ok := l.Count()
		if !ok || !l.Literal(" sec.") || !l.End() {
			return tool.Malformed
		}
		t.seconds = series.Some(float64(n))
		return tool.Reported
	case bytes.HasSuffix(text, []byte(" TpmC")):
		return p.tpmC(l, emit)
	}
	return tool.Ignored
}

func (t *results) row(l scan.Line) tool.Verdict {
	i, ok := l.Count()
	if !ok || i >= uint64(len(t.rows)) || !l.Literal("]") {
		return tool.Malformed
	}
	r := row{known: true}
	for _, f := range []struct {
		name string
		to   *uint64
	}{{"sc:", &r.success}, {"lt:", &r.late}, {"rt:", &r.retry}, {"fl:", &r.failed}} {
		if l.Blanks(); !l.Literal(f.name) || !l.CountTo(f.to) {
			return tool.Malformed
		}
	}
	if l.Blanks(); l.Literal("avg_rt: ") && !l.NotANumber() {
		if r.average, _, ok = l.Number(-3); !ok {
			return tool.Malformed
		}
	}
	if l.Blanks(); !l.End() && l.Next() != '(' {
		return tool.Malformed
	}
	t.rows[i] = r
	return tool.Reported
}

func (p *Parser) tpmC(l scan.Line, emit func(*tool.Report)) tool.Verdict {
	l.Blanks()
	if !l.NotANumber() {
		v, _, ok := l.Number(0)
		if !ok {
			return tool.Malformed
		}
		p.results.tpmC = series.Some(v)
	}
	if !l.Literal(" TpmC") {
		p.results.tpmC = series.Optional[float64]{}
		return tool.Malformed
	}
	p.summary(emit)
	return tool.Reported
}

// summary reports the results that are complete, once.
func (p *Parser) summary(emit func(*tool.Report)) {
	t := &p.results
	if !t.open || !t.rows[0].known {
		t.open = false
		return
	}
	t.open = false
	p.start(emit)
	r := &p.report
	r.Reset(tool.Summary, p.number)
	r.Threads, r.ElapsedSeconds = p.run.threads, t.seconds
	r.Values.Set(tool.TpmC, t.tpmC)
	total, complete := t.count(r)
	for i, row := range t.rows {
		addLatency(r, kinds[i], "avg", row.average)
	}
	if complete && total == 0 {
		r.Failed, r.Message = true, p.run.failure()
	}
	emit(r)
}

// count adds the counts to r. Sums need all five rows.
func (t *results) count(r *tool.Report) (total uint64, complete bool) {
	var failed, retried uint64
	complete = true
	for _, row := range t.rows {
		complete = complete && row.known
		total += row.success + row.late
		failed += row.failed
		retried += row.retry
	}
	if complete {
		r.AddCountOver(tool.Transaction, total, t.seconds.Value)
	}
	for i, row := range t.rows {
		if row.known {
			r.AddCountOver(kinds[i], row.success+row.late, t.seconds.Value)
		}
	}
	for i, row := range t.rows {
		if row.known {
			r.AddCount(lateKinds[i], row.late)
		}
	}
	if complete {
		r.AddCount(tool.ErrorCount, failed)
		r.AddCount(opRetry, retried)
	}
	return total, complete
}
