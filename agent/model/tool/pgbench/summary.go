package pgbench

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/message"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

const (
	maxScripts    = 32
	maxStatements = 128
)

// summary is what pgbench prints at the end of a run. The rows of scripts and statements follow the
// rates, so nothing marks its end.
type summary struct {
	open     bool
	reported bool
	workload string
	clients  series.Optional[int]

	processed, failed, skipped, retried, retries, late series.Optional[uint64]
	mean, stddev, lag, maxLag                          series.Optional[float64]
	// tps excludes the time for connecting, whole includes it. Versions before 14 print both; later
	// ones print only the latter with --connect.
	tps, whole series.Optional[float64]

	scripts    []script
	statements []statement
	columns    int // number of counts in the rows of statements, -1 outside
}

// script is what pgbench prints about one of several scripts.
type script struct {
	name            string
	transactions    series.Optional[uint64]
	failed          series.Optional[uint64]
	tps             float64
	mean, stddev    series.Optional[float64]
	statementsSoFar int
}

// statement is a row of --report-per-command.
type statement struct {
	operation string
	mean      float64
	failed    uint64
}

// begin reads the first line, after "transaction type: "; it is missing in an excerpt.
func (t *summary) begin(description []byte) {
	*t = summary{open: true, columns: -1}
	if len(description) > 0 {
		t.workload = workloadOf(string(description[:min(len(description), 512)]))
	}
}

// workloadOf returns the name by which -b selects a built-in script, or the name of a file.
func workloadOf(description string) string {
	description = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(description), "<builtin: "), ">")
	switch description {
	case "TPC-B (sort of)":
		return "tpcb-like"
	case "simple update", "Update only pgbench_accounts": // the second until 9.5, as below
		return "simple-update"
	case "select only", "SELECT only":
		return "select-only"
	case "Custom query":
		return "custom"
	}
	return message.Clean([]byte(path.Base(description)))
}

// add reads a line.
func (t *summary) add(text []byte) tool.Verdict {
	l := scan.New(text)
	if t.columns >= 0 && (text[0] == ' ' || text[0] == '\t') && !scan.HasPrefix(text, " - ") {
		return t.statement(l)
	}
	if l.Literal(" - ") {
		n := len(t.scripts)
		if l.Literal("statement latencies in milliseconds") { // version 9.6 prints this even for a single script
			return t.heading(l)
		}
		if n == 0 {
			return tool.Ignored
		}
		return t.scripts[n-1].add(l)
	}
	switch {
	case l.Literal("number of clients: "):
		n, ok := l.Int()
		if !ok || !l.End() {
			return tool.Malformed
		}
		t.clients = series.Some(n)
		return tool.Reported
	case l.Literal("number of transactions actually processed: "):
		return count(l, &t.processed)
	case l.Literal("number of failed transactions: "):
		return count(l, &t.failed)
	case l.Literal("number of transactions skipped: "):
		return count(l, &t.skipped)
	case l.Literal("number of transactions retried: "):
		return count(l, &t.retried)
	case l.Literal("total number of retries: "):
		return count(l, &t.retries)
	case l.Literal("number of transactions above the "):
		if _, ok := l.Until(" ms latency limit: "); !ok {
			return tool.Malformed
		}
		return count(l, &t.late)
	case l.Literal("latency average = "):
		return latency(l, &t.mean)
	case l.Literal("latency stddev = "):
		return latency(l, &t.stddev)
	case l.Literal("latency average: "): // 9.4 and 9.5
		return oldLatency(l, &t.mean)
	case l.Literal("latency stddev: "):
		return oldLatency(l, &t.stddev)
	case l.Literal("rate limit schedule lag: avg "):
		return t.scheduleLag(l)
	case l.Literal("tps = "):
		return t.rate(l)
	case l.Literal("SQL script "):
		return t.script(l)
	case l.Literal("statement latencies in milliseconds"):
		return t.heading(l)
	}
	return tool.Ignored
}

// scheduleLag reads how long transactions waited for a thread, after "avg ".
func (t *summary) scheduleLag(l scan.Line) tool.Verdict {
	var lag, most float64
	if !l.FixedTo(&lag, 3, 3) || !l.Literal(" (max ") || !l.FixedTo(&most, 3, 3) || !l.Literal(") ms") || !l.End() {
		return tool.Malformed
	}
	t.lag, t.maxLag = series.Of(lag), series.Of(most)
	return tool.Reported
}

// script begins one of several scripts.
func (t *summary) script(l scan.Line) tool.Verdict {
	n, ok := l.Int()
	if !ok || !l.Literal(": ") {
		return tool.Malformed
	}
	t.columns = -1
	if n != len(t.scripts)+1 || n > maxScripts {
		return tool.Ignored
	}
	t.scripts = append(t.scripts, script{name: scriptName(n)})
	// The operations have the numbers of the scripts, so runs with other scripts, or in another order, are different
	// workloads. The first line is only "multiple scripts".
	name := workloadOf(string(l.Rest()))
	if n == 1 {
		t.workload = name
	} else if len(t.workload)+len(name) < 512 {
		t.workload += "+" + name
	}
	return tool.Reported
}

// scriptName is the operation of one of several scripts, counted from 1 as in the summary.
func scriptName(n int) string { return "script_" + strconv.Itoa(n) }

// count reads a number. "/300" or " (5.167%)" may follow.
func count(l scan.Line, to *series.Optional[uint64]) tool.Verdict {
	n, ok := l.Count()
	if ok && l.Literal("/") {
		_, ok = l.Count()
	}
	if ok && l.Literal(" (") {
		_, ok = l.Until(")")
	}
	if !ok || !l.End() {
		return tool.Malformed
	}
	return once(to, series.Some(n))
}

// once keeps the first value of a summary: a later line with another one is a quotation, such as a comparison with
// other runs below the output.
func once[T any](to *series.Optional[T], v series.Optional[T]) tool.Verdict {
	if to.Known {
		return tool.Ignored
	}
	*to = v
	return tool.Reported
}

// latency reads milliseconds. A mean that includes failures is computed from the length of the run,
// so it is not the transactions' mean.
func latency(l scan.Line, to *series.Optional[float64]) tool.Verdict {
	v, ok := l.Fixed(3, 3)
	if !ok || !l.Literal(" ms") {
		return tool.Malformed
	}
	if l.Literal(" (including failures)") {
		return tool.Ignored
	}
	if !l.End() {
		return tool.Malformed
	}
	return once(to, series.Of(v))
}

// oldLatency reads a latency of versions 9.4 and 9.5, which print 0 for a run of --transactions: they divide its length
// by the number of transactions, and there is no length.
func oldLatency(l scan.Line, to *series.Optional[float64]) tool.Verdict {
	v := latency(l, to)
	if to.Value == 0 {
		*to = series.Optional[float64]{}
	}
	return v
}

// rate reads "1422.694782 (without initial connection time)".
func (t *summary) rate(l scan.Line) tool.Verdict {
	v, _, ok := l.Number(0)
	if !ok {
		return tool.Malformed
	}
	to := &t.tps
	switch {
	case l.Literal(" (without initial connection time)"), l.Literal(" (excluding connections establishing)"):
	case l.Literal(" (including connections establishing)"), l.Literal(" (including reconnection times)"):
		to = &t.whole
	default:
		return tool.Malformed
	}
	if !l.End() {
		return tool.Malformed
	}
	return once(to, series.Of(v))
}

// add reads a line about one of several scripts.
func (s *script) add(l scan.Line) tool.Verdict {
	switch {
	case l.Literal("number of transactions actually processed: "): // versions after 18
		return s.processed(l, " (tps = ")
	case l.Literal("number of failed transactions: "):
		return count(l, &s.failed)
	case l.Literal("latency average = "):
		return latency(l, &s.mean)
	case l.Literal("latency stddev = "):
		return latency(l, &s.stddev)
	case isDigit(l.Next()):
		return s.processed(l, ", tps = ")
	}
	return tool.Ignored
}

// processed reads "11241 transactions (75.2% of total, tps = 2816.392552)".
func (s *script) processed(l scan.Line, before string) tool.Verdict {
	n, ok := l.Count()
	if !ok {
		return tool.Malformed
	}
	if _, ok := l.Until(before); !ok {
		return tool.Ignored // share of all transactions that began
	}
	tps, ok := l.Fixed(6, 0)
	if !ok || !l.Literal(")") || !l.End() {
		return tool.Malformed
	}
	s.transactions, s.tps = series.Some(n), tps
	return tool.Reported
}

// heading reads which columns the rows of statements have.
func (t *summary) heading(l scan.Line) tool.Verdict {
	switch {
	case l.Literal(", failures and retries:"):
		t.columns = 2
	case l.Literal(" and failures:"):
		t.columns = 1
	case l.Literal(":"):
		t.columns = 0
	default:
		return tool.Malformed
	}
	return tool.Reported
}

// statement reads "         0.141        3122        7429  UPDATE pgbench_accounts SET …". Versions before 9.6 print
// six decimals.
func (t *summary) statement(l scan.Line) tool.Verdict {
	l.Blanks()
	mean, decimals, ok := l.Number(-3)
	if !ok || decimals != 3 && decimals != 6 {
		return tool.Malformed
	}
	row := statement{mean: mean}
	for i := range t.columns {
		l.Blanks()
		n, ok := l.Count()
		if !ok {
			return tool.Malformed
		}
		if i == 0 {
			row.failed = n
		}
	}
	l.Blanks()
	if len(t.statements) == maxStatements {
		return tool.Ignored
	}
	prefix, number := tool.StatementOperation, len(t.statements)+1
	if n := len(t.scripts); n > 0 {
		s := &t.scripts[n-1]
		s.statementsSoFar++
		prefix, number = s.name+"_"+prefix, s.statementsSoFar
	}
	row.operation = prefix + strconv.Itoa(number)
	if word := firstWord.FindSubmatch(l.Rest()); word != nil {
		row.operation += "_" + strings.ToLower(string(word[1]))
	}
	t.statements = append(t.statements, row)
	return tool.Reported
}

// firstWord matches the first word of a statement or of a command of pgbench, which makes names recognisable.
var firstWord = regexp.MustCompile(`^\\?([A-Za-z]{1,16})`)

// finishSummary reports the summary, once.
func (s *stream) finishSummary(emit func(*tool.Report)) {
	t := &s.summary
	if !t.open || t.reported || !t.processed.Known {
		return
	}
	t.reported = true
	s.start(t.workload, t.clients, emit)
	r := &s.report
	r.Reset(tool.Summary, s.run)
	r.Threads = t.clients
	t.fill(r)
	if t.processed.Value == 0 {
		// Versions before 12 exit with status 0 even if every client stopped.
		r.Failed, r.Message = true, "no transaction succeeded"
		if first := s.flood.First(nil); first != "" {
			r.Message += ": " + first
		}
	}
	emit(r)
}

// fill adds the values to r. pgbench does not print the length of the run, but the number of
// transactions divided by their rate gives it.
func (t *summary) fill(r *tool.Report) {
	n := float64(t.processed.Value)
	rate := t.tps
	if !rate.Known {
		rate = t.whole
	}
	if !t.whole.Known {
		t.whole = rate
	}
	if t.whole.Value > 0 && n > 0 {
		r.ElapsedSeconds = series.Some(round(n / t.whole.Value))
	}
	r.AddKnownRate(tool.Transaction, rate)
	r.AddKnownCount(tool.Transaction, t.processed)
	r.AddKnownCount(tool.ErrorCount, t.failed)
	r.AddKnownCount(opSkipped, t.skipped)
	r.AddKnownCount(opRetried, t.retried)
	r.AddKnownCount(opRetry, t.retries)
	r.AddKnownCount(opLate, t.late)
	if n > 0 {
		r.AddKnownLatency(tool.Transaction, "avg", t.mean)
		r.AddKnownLatency(tool.Transaction, statStddev, t.stddev)
		r.AddKnownLatency(tool.ScheduleLag, "avg", t.lag)
		r.AddKnownLatency(tool.ScheduleLag, "max", t.maxLag)
	}
	for i := range t.scripts {
		t.scripts[i].fill(r)
	}
	for _, statement := range t.statements {
		if statement.failed > 0 {
			r.AddCount(statement.operation+"_failed", statement.failed)
		}
		r.AddLatency(statement.operation, "avg", statement.mean)
	}
}

func (s *script) fill(r *tool.Report) {
	if s.transactions.Known {
		r.AddCount(s.name, s.transactions.Value)
		r.AddKnownRate(s.name, series.Of(s.tps))
	}
	r.AddKnownCount(s.name+"_failed", s.failed)
	r.AddKnownLatency(s.name, "avg", s.mean)
	r.AddKnownLatency(s.name, statStddev, s.stddev)
}
