package sessions

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Reasons for stalls that InnoDB's monitor proves.
var _ = evidence.Declare(evidence.Rules{
	Engine: mysql.Name,
	Reasons: []evidence.Reason{
		{Name: "latch", Reads: "threads that wait for a latch in `SHOW ENGINE INNODB STATUS`, and where", Find: latchStall},
		{Name: "flush of files", Reads: "sessions that wait for their commits, and pending flushes in `SHOW ENGINE INNODB STATUS`", Find: flushStall},
	},
})

// latchStall finds threads that wait for a latch of InnoDB.
func latchStall(s *evidence.Scene) (evidence.Found, bool) {
	worst, n := s.Worst(func(a *evidence.Answer) float64 { return a.Number(LatchWaits) })
	if worst == nil || !(n > 0) || !s.Most(func(a *evidence.Answer) bool { return s.Share(a.Values[LatchWaits], a) >= 0.5 }) {
		return evidence.Found{}, false
	}
	return evidence.Found{Share: 0.7 * s.Share(n, worst), Text: fmt.Sprintf("%.0f threads of %s waited for a latch of InnoDB for up to %s s, most at %s",
		n, s.Target, table.Rounded(worst.Values[LongestLatch]), table.Plain(worst.Texts[LatchAt]))}, true
}

// flushStall finds commits that wait until files are flushed.
func flushStall(s *evidence.Scene) (evidence.Found, bool) {
	waiting := func(a *evidence.Answer) float64 { return float64(a.Waiting[evidence.Committing]) }
	worst, n := s.Worst(waiting)
	if worst == nil || !(n > 0) || !s.Most(func(a *evidence.Answer) bool { return a.Values[PendingFlushes] > 0 && s.Share(waiting(a), a) >= 0.5 }) {
		return evidence.Found{}, false
	}
	return evidence.Found{Share: 0.9 * s.Share(n, worst), Text: fmt.Sprintf("%.0f sessions of %s waited for their commits, with %s of the redo log or the tables pending",
		n, s.Target, fmt.Sprintf("%.0f fsync", worst.Values[PendingFlushes]))}, true
}
