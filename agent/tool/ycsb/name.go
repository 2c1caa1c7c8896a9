package ycsb

import (
	"strings"

	"github.com/benchwatch/benchwatch/agent/tool"
)

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
	// first: the first half of a combined measurement type, behind which
	// YCSB writes a line end.
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
	if n.operation == tool.Transaction || n.operation == "error" {
		n.kind = unused // would be mistaken for the totals
	}
	return n
}

// isJVM: with measurement.trackjvm these stand among the operations, labelled
// as microseconds, which they are not.
func isJVM(s string) bool {
	switch s {
	case "THREAD_COUNT", "USED_MEM_MB", "SYS_LOAD_AVG", "GCS", "GCS_TIME":
		return true
	}
	return strings.HasPrefix(s, "TOTAL_GC") || strings.HasPrefix(s, "MAX_") || strings.HasPrefix(s, "MIN_")
}

// isFailure reports whether s is an operation with a status behind it:
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
