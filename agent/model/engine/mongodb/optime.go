package mongodb

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// optime is the position of a member in the history of its replica set: the timestamp of the last
// operation it has applied, and the term of the primary that wrote it. Operations between two
// optimes can't be counted.
type optime struct {
	set       string // name of the replica set
	seconds   uint32 // of the operation, since 1970
	increment uint32 // number of the operation within the second
	term      int64  // -1 if unknown
	// wall is the primary's clock at the time of the operation, in milliseconds since 1970; 0:
	// unknown.
	wall int64
}

// optimeAt reads an optime, {ts: Timestamp, t: term}; older answers contain only the timestamp. It
// returns false for the null optime of members without data.
func optimeAt(set string, d document, path ...string) (optime, bool) {
	o := optime{set: set, term: -1}
	v := d.value(path...)
	if sub, ok := d.sub(path...); ok {
		if n, ok := sub.number("t"); ok {
			o.term = int64(n)
		}
		v = sub.value("ts")
	}
	var ok bool
	o.seconds, o.increment, ok = v.TimestampOK()
	return o, ok && o.seconds > 0
}

// before orders two optimes of a set like the server: by term, then by timestamp; only by timestamp
// if a term is unknown.
func (o optime) before(other optime) bool {
	if o.term != other.term && o.term >= 0 && other.term >= 0 {
		return o.term < other.term
	}
	if o.seconds != other.seconds {
		return o.seconds < other.seconds
	}
	return o.increment < other.increment
}

// Behind returns false, since optimes do not count operations.
func (o optime) Behind(engine.Position) (uint64, bool) { return 0, false }

// Reaches reports whether o has everything that goal has.
func (o optime) Reaches(goal engine.Position) bool {
	g, ok := goal.(optime)
	return ok && g.set == o.set && !o.before(g)
}

// at returns the optime with the wall clock in the same answer.
func (o optime) at(d document, path ...string) optime {
	if t, ok := d.time(path...); ok {
		o.wall = t.UnixMilli()
	}
	return o
}

// Scalar returns the time of the operation in Unix seconds: by the primary's clock or, without it,
// the whole second with the number within the second as millionths.
func (o optime) Scalar() float64 {
	if o.wall > 0 {
		return float64(o.wall) / 1e3
	}
	return float64(o.seconds) + float64(min(o.increment, 999_999))/1e6
}

func (o optime) String() string {
	return fmt.Sprintf("{ ts: Timestamp(%d, %d), t: %d }", o.seconds, o.increment, o.term)
}
