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
		{Name: "latch", Reads: "threads that wait for a latch in `SHOW ENGINE INNODB STATUS`, and where",
			Part: func(l *evidence.Look) float64 { return l.Share(l.Number(LatchWaits)) },
			Text: func(s *evidence.Scene, worst *evidence.Look) string {
				return fmt.Sprintf("%.0f threads of %s waited for a latch of InnoDB for up to %s s, most at %s", worst.Number(LatchWaits), s.Target,
					table.Rounded(worst.Number(LongestLatch)), table.Plain(worst.Texts[LatchAt]))
			}},
		{Name: "flush of files", Reads: "sessions that wait for their commits, and pending flushes in `SHOW ENGINE INNODB STATUS`",
			Part: func(l *evidence.Look) float64 {
				if !(l.Number(PendingFlushes) > 0) {
					return 0
				}
				return l.Share(l.Waits(evidence.Committing))
			},
			Text: func(s *evidence.Scene, worst *evidence.Look) string {
				return fmt.Sprintf("%.0f sessions of %s waited for their commits, with %.0f fsync of the redo log or the tables pending",
					worst.Waits(evidence.Committing), s.Target, worst.Number(PendingFlushes))
			}},
	},
})
