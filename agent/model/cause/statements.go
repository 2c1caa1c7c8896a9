package cause

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/table"
)

// TopOf returns the statement that took the most time among those for which a condition holds, and their share of the
// time of all statements together; nil if there is none. Sums of several statements don't count: their means belong to
// none of them.
func (v *View) TopOf(holds func(*Statement) bool) (top *Statement, share float64) {
	for i := range v.Executed {
		s := &v.Executed[i]
		if !(s.Executions > 0) || s.IsSum || !holds(s) {
			continue
		}
		if top == nil {
			top = s
		}
		share += s.Share
	}
	return top, share
}

// Per returns a count for each execution.
func (s *Statement) Per(count float64) float64 { return count / s.Executions }

// Took describes the time of the statement: its share, and the mean of an execution.
func (s *Statement) Took() string {
	return fmt.Sprintf("%s of the statements' time, %s ms on average", table.Share(s.Share), table.Milliseconds.Format(s.Per(s.Seconds)))
}
