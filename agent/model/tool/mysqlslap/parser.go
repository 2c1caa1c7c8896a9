package mysqlslap

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/message"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// Parser reads mysqlslap's output. Each concurrency is a separate run.
type Parser struct {
	number int // of the current run, 0 before the first
	report tool.Report
	block  block
	csv    bool // the last run was a row of CSV
}

// block is the result for one concurrency. seconds is the average time of an iteration, in which
// all clients together send clients × queries queries.
type block struct {
	workload string
	seconds  series.Optional[float64]
	clients  series.Optional[uint64]
	queries  series.Optional[uint64]
	broken   bool
}

// NewParser returns a parser for one output.
func NewParser() *Parser { return &Parser{} }

// Parse takes the next line.
func (p *Parser) Parse(line tool.Line, emit func(*tool.Report)) tool.Verdict {
	if line.Cut {
		return tool.Malformed
	}
	text := bytes.TrimSuffix(line.Text, []byte("\r"))
	switch {
	case len(text) == 0:
		return tool.Ignored
	case complaint(text):
		return p.fail(line.Stream, text, emit)
	case line.Stream == tool.Stderr:
		return tool.Ignored
	case string(text) == "Benchmark":
		p.block = block{}
		return tool.Reported
	case text[0] == '\t' || text[0] == ' ': // blanks where somebody pasted it
		return p.value(bytes.TrimLeft(text, " \t"), emit)
	case bytes.Count(text, []byte(",")) == 6:
		return p.row(text, emit)
	}
	return tool.Ignored
}

// Close reports nothing: an incomplete block has no values.
func (p *Parser) Close(func(*tool.Report)) {}

// value reads a line of a block.
func (p *Parser) value(text []byte, emit func(*tool.Report)) tool.Verdict {
	b := &p.block
	l := scan.New(bytes.TrimRight(text, " "))
	switch {
	case l.Literal("Average number of seconds to run all queries: "):
		v, _, ok := l.Number(0)
		return b.check(ok && l.Literal(" seconds") && l.End(), func() { b.seconds = series.Some(v) })
	case l.Literal("Minimum number of seconds to run all queries: "), l.Literal("Maximum number of seconds to run all queries: "):
		_, _, ok := l.Number(0)
		return b.check(ok && l.Literal(" seconds") && l.End(), func() {})
	case l.Literal("Number of clients running queries: "):
		n, ok := l.Count()
		return b.check(ok && l.End() && n <= maxClients, func() { b.clients = series.Some(n) })
	case l.Literal("Average number of queries per client: "):
		n, ok := l.Count()
		v := b.check(ok && l.End(), func() { b.queries = series.Some(n) })
		p.end(emit)
		return v
	}
	return tool.Ignored
}

// maxClients limits the number of clients.
const maxClients = 1 << 30

func (b *block) check(ok bool, set func()) tool.Verdict {
	if !ok {
		b.broken = true
		return tool.Malformed
	}
	set()
	return tool.Reported
}

// row reads a row of CSV: engine, load type, average, minimum and maximum
// seconds, clients, queries per client.
func (p *Parser) row(text []byte, emit func(*tool.Report)) tool.Verdict {
	l := scan.New(text)
	engine, _ := l.Until(",")
	load, _ := l.Until(",")
	if !word(engine) || !word(load) {
		return tool.Ignored
	}
	var seconds [3]float64
	for i := range seconds {
		v, decimals, ok := l.Number(0)
		if !ok || decimals != 3 || !l.Literal(",") {
			return tool.Malformed
		}
		seconds[i] = v
	}
	var clients, queries uint64
	if !l.CountTo(&clients) || clients > maxClients || !l.Literal(",") || !l.CountTo(&queries) || !l.End() {
		return tool.Malformed
	}
	p.block = block{
		workload: string(load),
		seconds:  series.Some(seconds[0]), clients: series.Some(clients), queries: series.Some(queries),
	}
	p.end(emit)
	p.csv = true
	return tool.Reported
}

// word reports whether s can be the name of an engine or a load type.
func word(s []byte) bool {
	return len(s) == 0 || len(s) <= 64 && scan.Only(s, "_-"+scan.Small+scan.Capital+scan.Digits)
}

// end reports the block.
func (p *Parser) end(emit func(*tool.Report)) {
	b := p.block
	p.block = block{}
	p.csv = false
	if b.broken || !b.clients.Known && !b.seconds.Known {
		return
	}
	p.number++
	r := &p.report
	r.Reset(tool.Start, p.number)
	r.Tool, r.Workload = Name, b.workload
	if b.clients.Known {
		r.Threads = series.Some(int(b.clients.Value))
	}
	threads := r.Threads
	emit(r)

	r.Reset(tool.Summary, p.number)
	r.Threads, r.ElapsedSeconds = threads, b.seconds
	if b.clients.Known && b.queries.Value > 0 && b.queries.Value <= maxQueries { // 0: mysqlslap does not count generated ones
		n := b.clients.Value * b.queries.Value
		r.AddCountOver(tool.Transaction, n, b.seconds.Value)
		r.AddCountOver(tool.Query, n, b.seconds.Value)
	}
	emit(r)
}

// maxQueries limits the queries per client, so that the product with the clients cannot overflow.
const maxQueries = 1 << 33

// complaint recognises an error message of the program: the name under which it was started, then
// the error. It ignores warnings.
func complaint(text []byte) bool {
	i := bytes.Index(text, []byte("slap: "))
	if i < 0 || i > 256 || bytes.IndexByte(text[:i], ' ') >= 0 {
		return false
	}
	rest := text[i+len("slap: "):]
	for _, harmless := range []string{"[Warning]", "Warning: ", "Deprecated ", "WARNING: "} {
		if bytes.HasPrefix(rest, []byte(harmless)) {
			return false
		}
	}
	return true
}

// fail reports an error. mysqlslap stops at the first error, sometimes with exit status 0. Standard
// error does not distinguish runs, so everything belongs to run 1.
func (p *Parser) fail(stream tool.Stream, text []byte, emit func(*tool.Report)) tool.Verdict {
	run := 1
	if stream == tool.Stdout {
		run = max(run, p.number)
	}
	p.report.ResetError(run, message.Clean(text), true)
	emit(&p.report)
	return tool.Reported
}
