package mongodb

import (
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// manyQueued is the number of queued operations that is no chance.
const manyQueued = 8

var (
	_ = engine.DeclareOnset(engine.Onset{Metric: flowControlLagged, High: 1, Text: "flow control began on %s"})
	_ = engine.DeclareOnset(engine.Onset{Metric: queuedOperations, High: manyQueued, Text: "a queue began on %s"})
)

// Reasons for stalls that a sample of a server proves. Who waits for whom is explained for every engine.
var _ = evidence.Declare(evidence.Rules{
	Engine: Engine.Name,
	Reasons: []evidence.Reason{
		{Name: "ticket", Reads: "operations that wait for a ticket of the storage engine, and tickets left",
			Part: func(l *evidence.Look) float64 { return l.Share(withoutTicket(l)) },
			Text: func(s *evidence.Scene, worst *evidence.Look) string {
				return fmt.Sprintf("%.0f operations waited for a ticket of the storage engine on %s, which had none left", withoutTicket(worst), s.Target)
			}},
		{Name: "eviction", Reads: "dirty share of WiredTiger's cache, pages that clients' threads evict, active operations",
			Part: func(l *evidence.Look) float64 {
				if !(dirtyShare(l) >= dirtyCache*0.9) || !(l.Increase(cacheAppEvictions.Name) > 0) {
					return 0
				}
				return l.Executing()
			},
			Text: func(s *evidence.Scene, _ *evidence.Look) string {
				_, share := s.Worst(dirtyShare)
				return fmt.Sprintf("%s of the cache of %s were not yet written, so that clients evicted %s pages/s themselves",
					table.Share(share), s.Target, table.Rounded(s.Increase(cacheAppEvictions.Name)))
			}},
		{Name: "flow control", Reads: "`flowControl.isLagged`, tickets granted, lag of each member, active operations",
			Part: func(l *evidence.Look) float64 {
				if !(said(l, flowControlLagged) > 0) {
					return 0
				}
				return l.Executing()
			},
			Text: laggedText},
		{Name: "no primary", Reads: "the members that this one sees as primary", Level: evidence.Origin,
			Part: func(l *evidence.Look) float64 {
				if !seesNone(l) {
					return 0
				}
				return l.Remaining()
			},
			Text: func(s *evidence.Scene, _ *evidence.Look) string {
				return fmt.Sprintf("the replica set had no primary, as %s saw it", s.Target)
			}},
	},
})

func said(l *evidence.Look, m *measure.Metric, labels ...string) float64 {
	return engine.Said(l.Answer, m, labels...)
}

// withoutTicket is how many operations wait for a ticket.
func withoutTicket(l *evidence.Look) (sum float64) {
	for _, kind := range []string{"read", "write"} {
		if !(said(l, ticketsLeft, kind) < 1) {
			continue
		}
		n := said(l, ticketQueue, kind)
		if !series.IsKnown(n) { // before 7.0
			n = said(l, queuedOperations, kind)
		}
		if n > 0 {
			sum += n
		}
	}
	return sum
}

// dirtyShare is the share of the cache that is not written.
func dirtyShare(l *evidence.Look) float64 {
	return said(l, cacheDirtyBytes) / said(l, cacheLimitBytes)
}

// laggedText says that the primary holds writes back, and which member is furthest behind.
func laggedText(s *evidence.Scene, worst *evidence.Look) string {
	text := fmt.Sprintf("flow control of %s held writes back", s.Target)
	if granted := said(worst, flowControlTarget); granted >= 0 {
		text += fmt.Sprintf(" (up to %s tickets/s)", table.Rounded(granted))
	}
	member, most := "", 0.0
	for name, v := range worst.Values {
		if label, ok := strings.CutPrefix(name, memberLag.Name+"{member="); ok && v > most {
			member, most = strings.Trim(label, `"}`), v
		}
	}
	if member != "" {
		text += fmt.Sprintf("; %s was %.0f s behind", member, most)
	}
	return text
}

// seesNone reports whether a member sees no primary.
func seesNone(l *evidence.Look) bool {
	for name, v := range l.Values {
		if strings.HasPrefix(name, setPrimaries.Name+"{") {
			return v == 0
		}
	}
	return false
}
