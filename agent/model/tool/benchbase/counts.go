package benchbase

import (
	"bytes"
	"strings"
	"unicode"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// Counts that are neither operations nor errors: transactions that the application rolled back by its own rules, and
// those that the server rejected and that were tried again.
const (
	aborted  = "aborted"
	rejected = "rejected"
)

// blocks are the headings of the counts by procedure. Of the first one each procedure is an operation; of the others the
// sum counts.
var blocks = map[string]string{
	"Completed Transactions:": "", "Aborted Transactions:": aborted,
	"Rejected Transactions:": rejected, "Rejected Transactions (Server Retry):": rejected, "Rejected Transactions (Retry Different):": rejected,
	"Unexpected SQL Errors:": tool.ErrorCount, "Unexpected Errors:": tool.ErrorCount, "Unknown Status Transactions:": tool.ErrorCount,
}

// mostProcedures bounds the procedures of one benchmark.
const mostProcedures = 64

// counts is the state within the counts by procedure.
type counts struct {
	within bool
	sum    string // the count to which the block belongs; empty: each procedure is an operation
	all    []tool.Count
}

// count reads a heading, a row "com.oltpbenchmark.benchmarks.tpcc.procedures.NewOrder/01   [5065] *****" or the line
// that ends the counts.
func (p *Parser) count(text []byte, emit func(*tool.Report)) tool.Verdict {
	if sum, ok := blocks[string(text)]; ok {
		if p.number == 0 {
			return tool.Ignored
		}
		p.counts.within, p.counts.sum = true, sum
		return tool.Reported
	}
	if !p.counts.within {
		return tool.Ignored
	}
	if bytes.HasPrefix(text, []byte("=====")) {
		p.endCounts()
		p.summary.Emit(emit)
		return tool.Ignored
	}
	name, after, ok := bytes.Cut(text, []byte("["))
	l := scan.New(bytes.TrimLeft(after, " "))
	n, counted := l.Count()
	if !ok || !counted || !l.Literal("]") {
		return tool.Ignored // <EMPTY>
	}
	operation := p.counts.sum
	if operation == "" {
		operation = procedure(string(bytes.TrimSpace(name)))
	}
	for i := range p.counts.all {
		if p.counts.all[i].Operation == operation {
			p.counts.all[i].N += n
			return tool.Reported
		}
	}
	if operation == "" || len(p.counts.all) == mostProcedures {
		return tool.Malformed
	}
	p.counts.all = append(p.counts.all, tool.Count{Operation: operation, N: n})
	return tool.Reported
}

// endCounts adds the counts to the summary of the run.
func (p *Parser) endCounts() {
	all := p.counts.all
	p.counts = counts{}
	r := p.summary.Report()
	if r == nil {
		return
	}
	for _, c := range all {
		if c.Operation == tool.ErrorCount {
			r.AddCount(c.Operation, c.N)
		} else {
			r.AddCountOver(c.Operation, c.N, p.run.seconds)
		}
	}
}

// procedure returns the operation of "com.oltpbenchmark.benchmarks.tpcc.procedures.NewOrder/01": new_order.
func procedure(name string) string {
	name, _, _ = strings.Cut(name, "/")
	name = name[strings.LastIndexByte(name, '.')+1:]
	if len(name) > 64 {
		return ""
	}
	var b strings.Builder
	lower := false // the last letter
	for _, c := range name {
		switch {
		case unicode.IsUpper(c):
			if lower {
				b.WriteByte('_')
			}
			lower = false
		case c != '_' && !unicode.IsLower(c) && !unicode.IsDigit(c):
			return ""
		default:
			lower = true
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
