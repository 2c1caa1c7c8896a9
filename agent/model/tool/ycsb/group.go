package ycsb

import (
	"bytes"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// microseconds is the scale of all latencies: 10^-6.
const microseconds = -6

// groups reads the groups of a status line, such as [READ: Count=…], into a report.
type groups struct {
	names scan.Memo[name]
	stats scan.Memo[string]
}

// tally sums up the groups of one status line.
type tally struct {
	// seconds is the interval's length, 0 if unknown.
	seconds float64
	// failed operations, known if there is a group of failures.
	failed series.Optional[uint64]
	// good is the number of successful operations in the groups.
	good uint64
}

const averageIs = " AverageLatency(us)="

// read reads all groups in l. more is true if the line ends where the combined measurement types
// break a status into lines.
func (g *groups) read(l *scan.Line, r *tool.Report, t *tally) (more, ok bool) {
	g.names.Rewind()
	for closed := bytes.HasSuffix(l.Rest(), []byte("]")); ; {
		for l.Literal(" ") {
		}
		if l.End() {
			return more && closed, true
		}
		bracket := l.Literal("[")
		text, i := l.Rest(), 0
		for i < len(text) && isNameByte(text[i]) {
			i++
		}
		l.Skip(i)
		n := g.names.Find(text[:i], newName)
		switch {
		case n == nil:
			return false, false
		case bracket && l.Literal(": Count="):
			ok = g.histogram(l, n, r, t)
		case bracket && l.Literal(averageIs):
			ok = average(l, n, r)
		case !bracket && l.Literal(" count: "):
			ok = raw(l, n, r, t)
		default:
			ok = false
		}
		if !ok || l.Next() != ' ' && !l.End() {
			return false, false
		}
		more = n.first
	}
}

// histogram reads "45, Max=35231, Min=1, Avg=12872.58, 90=22815]".
func (g *groups) histogram(l *scan.Line, n *name, r *tool.Report, t *tally) bool {
	count, ok := whole(l)
	if !ok {
		return false
	}
	addCount(n, count, r, t)
	g.stats.Rewind()
	for l.Literal(", ") {
		key, ok := l.Until("=")
		stat := g.stats.Find(key, newStat)
		if !ok || stat == nil {
			return false
		}
		text := value(l)
		if count == 0 || n.kind == unused {
			continue // without samples the values are placeholders: NaN, 2^63-1
		}
		v, ok := latency(text)
		if !ok {
			return false
		}
		r.AddLatency(n.operation, *stat, v)
	}
	return l.Literal("]")
}

// value reads a number up to its "]", " " or ", ". A comma without a blank is the decimal separator
// of some locales.
func value(l *scan.Line) []byte {
	text, i := l.Rest(), 0
	for i < len(text) && text[i] != ']' && text[i] != ' ' {
		i++
	}
	if i > 0 && i < len(text) && text[i] == ' ' && text[i-1] == ',' {
		i--
	}
	l.Skip(i)
	return text[:i]
}

// maxLatency is the largest plausible latency in seconds: 30 years. YCSB prints 2^63-1 if it has no
// minimum.
const maxLatency = 1e9

func latency(text []byte) (float64, bool) {
	v, ok := decimal.ParseLocal(text, microseconds)
	return v, ok && v >= 0 && v <= maxLatency
}

// average reads "11837.11]".
func average(l *scan.Line, n *name, r *tool.Report) bool {
	v, ok := latency(value(l))
	if ok && n.kind != unused {
		r.AddLatency(n.operation, "avg", v)
	}
	return ok && l.Literal("]")
}

// raw reads "49, average latency(us): 31833.90". The two decimals prove that the number was not
// truncated.
func raw(l *scan.Line, n *name, r *tool.Report, t *tally) bool {
	count, ok := whole(l)
	if !ok || !l.Literal(", average latency(us): ") {
		return false
	}
	text := value(l)
	if len(text) < 4 || text[len(text)-3]-'0' <= 9 {
		return false
	}
	v, ok := latency(text)
	if !ok {
		return false
	}
	addCount(n, count, r, t)
	if n.kind != unused && count > 0 {
		r.AddLatency(n.operation, "avg", v)
	}
	return true
}

func addCount(n *name, count uint64, r *tool.Report, t *tally) {
	switch n.kind {
	case unused:
		return
	case failed:
		t.failed = series.Some(t.failed.Value + count)
	case operation:
		t.good += count
		r.AddCountOver(n.operation, count, t.seconds)
		return
	}
	r.AddCount(n.operation, count)
}

// kind is what the samples of a NAME measure.
type kind uint8

const (
	// operation: operations that the workload asked the database to do.
	operation kind = iota
	// intended: latencies from the scheduled start, including waiting. The plain name counts the
	// operations.
	intended
	// failed: operations whose status was not OK.
	failed
	// other: samples that are not operations: CLEANUP, latency per record.
	other
	// unused: figures of the JVM, and the second halves of the combined measurement types, which
	// repeat the first.
	unused
)

// name is how reports call one of YCSB's NAMEs.
type name struct {
	operation string // as in reports
	kind      kind
	// first: the first half of a combined measurement type, after which YCSB writes a line end.
	first bool
}

func newName(raw string) *name {
	if raw == "" {
		return nil
	}
	n := &name{kind: operation}
	s := raw
	switch {
	case strings.HasPrefix(s, "Hdr"):
		s, n.first = s[len("Hdr"):], true
	case strings.HasPrefix(s, "Bucket"), strings.HasPrefix(s, "Raw"):
		n.kind = unused
	}
	plain := strings.TrimPrefix(s, "Intended-")
	switch {
	case n.kind == unused:
	case isJVM(plain):
		n.kind = unused
	case plain == "CLEANUP" || plain == "SCAN-LATENCY-PER-RECORD":
		n.kind = other
	case plain != s:
		n.kind = intended
	case isFailure(plain):
		n.kind = failed
	}
	n.operation = strings.ToLower(strings.ReplaceAll(s, "-", "_"))
	if n.operation == tool.Transaction || n.operation == tool.ErrorCount {
		n.kind = unused // would be taken for the totals
	}
	return n
}

// isJVM recognises the figures of measurement.trackjvm, which YCSB lists among the operations and
// wrongly labels as microseconds.
func isJVM(s string) bool {
	switch s {
	case "THREAD_COUNT", "USED_MEM_MB", "SYS_LOAD_AVG", "GCS", "GCS_TIME":
		return true
	}
	return strings.HasPrefix(s, "TOTAL_GC") || strings.HasPrefix(s, "MAX_") || strings.HasPrefix(s, "MIN_")
}

// isFailure reports whether s is an operation followed by a status:
// READ-FAILED, UPDATE-NOT_FOUND.
func isFailure(s string) bool {
	for _, op := range [...]string{"READ-MODIFY-WRITE", "READ", "UPDATE", "INSERT", "SCAN", "DELETE"} {
		rest, ok := strings.CutPrefix(s, op)
		if !ok || rest == "" {
			continue
		}
		return rest[0] == '-' && rest != "-MODIFY-WRITE"
	}
	return strings.HasSuffix(s, "-FAILED")
}

func isNameByte(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// newStat returns p99.9 for 99.9 and max for Max, nil for anything else.
func newStat(raw string) *string {
	stat := "p" + raw
	if raw == "Max" || raw == "Min" || raw == "Avg" {
		stat = strings.ToLower(raw)
	} else if !isPercentile(raw) {
		return nil
	}
	return &stat
}

// isPercentile reports whether raw is a number such as 99 or 99.9.
func isPercentile(raw string) bool {
	whole, decimals, point := strings.Cut(raw, ".")
	return len(raw) <= 12 && scan.Only(whole, scan.Digits) && (!point || scan.Only(decimals, scan.Digits))
}
