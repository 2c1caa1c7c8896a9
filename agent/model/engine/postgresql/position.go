package postgresql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// lsn is a position in the write-ahead log of a cluster of servers.
type lsn struct {
	// system is the identifier that all physical copies of a database share; empty for a subscriber,
	// which does not learn its publisher's.
	system string
	// timeline is the number of the last promotion; 0: unknown.
	timeline uint32
	// at is the number of bytes since the log began.
	at uint64
}

// comparable reports whether two positions can belong to the same log.
func (p lsn) comparable(other engine.Position) (lsn, bool) {
	o, ok := other.(lsn)
	return o, ok && (p.system == o.system || p.system == "" || o.system == "")
}

// Behind returns false, since the log does not count transactions.
func (p lsn) Behind(engine.Position) (uint64, bool) { return 0, false }

// BytesBehind implements engine.ByteCounter.
func (p lsn) BytesBehind(other engine.Position) (uint64, bool) {
	o, ok := p.comparable(other)
	return max(o.at, p.at) - p.at, ok
}

// Reaches reports whether p has everything that goal has. A server on an older timeline has not
// followed the promotion, even if its own log is longer.
func (p lsn) Reaches(goal engine.Position) bool {
	g, ok := p.comparable(goal)
	return ok && p.at >= g.at && (p.timeline >= g.timeline || p.timeline == 0)
}

// Scalar returns the number of bytes since the log began.
func (p lsn) Scalar() float64 { return float64(p.at) }

// String returns the position as the server prints it.
func (p lsn) String() string { return fmt.Sprintf("%X/%X", p.at>>32, uint32(p.at)) }

// parseLSN reads a position as the server prints it.
func parseLSN(text string) (uint64, bool) {
	high, low, ok := strings.Cut(text, "/")
	h, err1 := strconv.ParseUint(high, 16, 32)
	l, err2 := strconv.ParseUint(low, 16, 32)
	return h<<32 | l, ok && err1 == nil && err2 == nil
}

// lsn returns a column with a position.
func (r row) lsn(name string) (uint64, bool) { return parseLSN(r.text(name)) }
