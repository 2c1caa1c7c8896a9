package ycsb

import (
	"bytes"
	"strings"

	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/tool/scan"
)

// microseconds is the scale of all latencies.
const microseconds = -6

// groups reads the groups of a status line, [READ: Count=…] and the like, into
// a report.
type groups struct {
	names scan.Memo[name]
	stats scan.Memo[string]
}

// tally is what the groups of one status line add up to.
type tally struct {
	// seconds is the interval's length, 0 if unknown.
	seconds float64
	// failed operations, known once a group of failures is there.
	failed series.Optional[uint64]
	// good operations, as far as the groups count them.
	good uint64
}

var (
	countIs   = []byte(": Count=")
	averageIs = []byte(" AverageLatency(us)=")
	rawCount  = []byte(" count: ")
	rawAvg    = []byte(", average latency(us): ")
)

// read takes all groups of text from index i on. more is true if the line
// ends where the combined measurement types put a line end into the status.
func (g *groups) read(text []byte, i int, r *tool.Report, t *tally) (more, ok bool) {
	g.names.Rewind()
	for {
		for i < len(text) && text[i] == ' ' {
			i++
		}
		if i == len(text) {
			return more && text[i-1] == ']', true
		}
		bracket := text[i] == '['
		if bracket {
			i++
		}
		start := i
		for i < len(text) && isNameByte(text[i]) {
			i++
		}
		if i == start {
			return false, false
		}
		n := g.names.Find(text[start:i], newName)
		if n == nil {
			return false, false
		}
		switch {
		case bracket && bytes.HasPrefix(text[i:], countIs):
			i, ok = g.histogram(text, i+len(countIs), n, r, t)
		case bracket && bytes.HasPrefix(text[i:], averageIs):
			i, ok = average(text, i+len(averageIs), n, r)
		case !bracket && bytes.HasPrefix(text[i:], rawCount):
			i, ok = raw(text, i+len(rawCount), n, r, t)
		default:
			ok = false
		}
		if !ok || i < len(text) && text[i] != ' ' {
			return false, false
		}
		more = n.first
	}
}

// histogram reads "45, Max=35231, Min=1, Avg=12872.58, 90=22815]".
func (g *groups) histogram(text []byte, i int, n *name, r *tool.Report, t *tally) (int, bool) {
	count, i, ok := whole(text, i)
	if !ok {
		return i, false
	}
	addCount(n, count, r, t)
	g.stats.Rewind()
	keep := count > 0 && n.kind != unused
	for {
		if i >= len(text) {
			return i, false
		}
		if text[i] == ']' {
			return i + 1, true
		}
		if text[i] != ',' || i+1 == len(text) || text[i+1] != ' ' {
			return i, false
		}
		i += 2
		key := i
		for i < len(text) && text[i] != '=' {
			i++
		}
		if i == len(text) {
			return i, false
		}
		s, ok := g.statOf(text[key:i])
		if !ok {
			return i, false
		}
		from := i + 1
		i = valueEnd(text, from)
		if !keep {
			// Without a sample the values are placeholders: NaN, 2^63-1.
			continue
		}
		v, ok := latency(text[from:i])
		if !ok {
			return i, false
		}
		r.AddLatency(n.operation, s, v)
	}
}

func (g *groups) statOf(key []byte) (string, bool) {
	switch string(key) {
	case "Max":
		return "max", true
	case "Min":
		return "min", true
	case "Avg":
		return "avg", true
	}
	if !isPercentile(key) {
		return "", false
	}
	s := g.stats.Find(key, newStat)
	if s == nil {
		return "", false
	}
	return *s, true
}

// valueEnd returns the index after a value: at its "]" or ", ". A comma
// without a blank is the decimal separator of some locales.
func valueEnd(text []byte, i int) int {
	for i < len(text) {
		switch text[i] {
		case ']', ' ':
			return i
		case ',':
			if i+1 < len(text) && text[i+1] == ' ' {
				return i
			}
		}
		i++
	}
	return i
}

// maxLatency bounds what is taken for a latency, in seconds: 30 years. YCSB
// prints 2^63-1 where it has no minimum.
const maxLatency = 1e9

func latency(text []byte) (float64, bool) {
	v, ok := decimal.ParseLocal(text, microseconds)
	return v, ok && v >= 0 && v <= maxLatency
}

// average reads "11837.11]".
func average(text []byte, i int, n *name, r *tool.Report) (int, bool) {
	end := valueEnd(text, i)
	if end == len(text) || text[end] != ']' {
		return end, false
	}
	v, ok := latency(text[i:end])
	if ok && n.kind != unused {
		r.AddLatency(n.operation, "avg", v)
	}
	return end + 1, ok
}

// raw reads "49, average latency(us): 31833.90". Its two decimals show that
// the line was not cut in the number.
func raw(text []byte, i int, n *name, r *tool.Report, t *tally) (int, bool) {
	count, i, ok := whole(text, i)
	if !ok || !bytes.HasPrefix(text[i:], rawAvg) {
		return i, false
	}
	i += len(rawAvg)
	end := valueEnd(text, i)
	if end-i < 4 || text[end-3]-'0' <= 9 {
		return end, false
	}
	v, ok := latency(text[i:end])
	if !ok {
		return end, false
	}
	addCount(n, count, r, t)
	if n.kind != unused && count > 0 {
		r.AddLatency(n.operation, "avg", v)
	}
	return end, true
}

func addCount(n *name, count uint64, r *tool.Report, t *tally) {
	switch n.kind {
	case unused:
		return
	case failed:
		t.failed = series.Some(t.failed.Value + count)
	case operation:
		t.good += count
		if t.seconds > 0 {
			r.AddRate(n.operation, float64(count)/t.seconds)
		}
	}
	r.AddCount(n.operation, count)
}

// kind is what the samples of a NAME are about.
type kind uint8

const (
	// operation: what the workload asked of the database.
	operation kind = iota
	// intended: the latency from the scheduled start, with waiting; the
	// operations are counted under the plain name.
	intended
	// failed: operations of which the status was not OK.
	failed
	// other: samples that are no operations: CLEANUP, latency per record.
	other
	// unused: figures of the JVM, and the second halves of the combined
	// measurement types, which repeat the first.
	unused
)

// name is how one of YCSB's NAMEs is reported.
type name struct {
	operation string // as in reports
	kind      kind
	// first: the first half of a combined measurement type, after which YCSB
	// writes a line end.
	first bool
}

func newName(raw string) *name {
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
		n.kind = unused // would be mistaken for the totals
	}
	return n
}

// isJVM recognises the figures that measurement.trackjvm puts among the operations,
// labelled as microseconds, which they are not.
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

// newStat returns p99.9 for 99.9.
func newStat(raw string) *string {
	stat := "p" + raw
	return &stat
}

// isPercentile reports whether raw is a number such as 99 or 99.9.
func isPercentile(raw []byte) bool {
	point := false
	for i, c := range raw {
		switch {
		case '0' <= c && c <= '9':
		case c == '.' && !point && i > 0 && i < len(raw)-1:
			point = true
		default:
			return false
		}
	}
	return len(raw) > 0 && len(raw) <= 12
}
