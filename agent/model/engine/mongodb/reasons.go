package mongodb

import (
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
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
		{Name: "ticket", Reads: "operations that wait for a ticket of the storage engine, and tickets left", Find: ticketStall},
		{Name: "eviction", Reads: "dirty share of WiredTiger's cache, pages that clients' threads evict", Find: evictionStall},
		{Name: "flow control", Reads: "`flowControl.isLagged`, tickets granted, lag of each member", Find: laggedStall},
		{Name: "no primary", Reads: "the members that this one sees as primary", Find: noPrimary},
	},
})

// ticketStall finds operations that wait for a ticket.
func ticketStall(s *evidence.Scene) (evidence.Found, bool) {
	queued := func(a *evidence.Answer) (sum float64) {
		for _, kind := range []string{"read", "write"} {
			if left := engine.Said(a, ticketsLeft, kind); !(left < 1) {
				continue
			}
			n := engine.Said(a, ticketQueue, kind)
			if !series.IsKnown(n) { // before 7.0
				n = engine.Said(a, queuedOperations, kind)
			}
			if n > 0 {
				sum += n
			}
		}
		return sum
	}
	worst, n := s.Worst(queued)
	if worst == nil || !(n > 0) || !s.Most(func(a *evidence.Answer) bool { return queued(a) > 0 }) {
		return evidence.Found{}, false
	}
	return evidence.Found{Share: 0.8 * s.Share(n, worst), Text: fmt.Sprintf("%.0f operations waited for a ticket of the storage engine on %s, which had none left", n, s.Target)}, true
}

// evictionStall finds clients that had to write the cache's dirty pages themselves.
func evictionStall(s *evidence.Scene) (evidence.Found, bool) {
	dirty := func(a *evidence.Answer) float64 {
		return engine.Said(a, cacheDirtyBytes) / engine.Said(a, cacheLimitBytes)
	}
	worst, share := s.Worst(dirty)
	evicted := s.Increase(cacheAppEvictions.Name)
	if worst == nil || !(share >= dirtyCache) || !(evicted > 0) || !s.Most(func(a *evidence.Answer) bool { return dirty(a) >= dirtyCache*0.9 }) {
		return evidence.Found{}, false
	}
	return evidence.Found{Share: 0.7, Text: fmt.Sprintf("%s of the cache of %s were not yet written, so that clients evicted %s pages/s themselves",
		table.Share(share), s.Target, table.Rounded(evicted))}, true
}

// laggedStall finds writes that the primary holds back, and the member that is furthest behind.
func laggedStall(s *evidence.Scene) (evidence.Found, bool) {
	worst, granted := s.Worst(func(a *evidence.Answer) float64 { return engine.Said(a, flowControlTarget) })
	if worst == nil || !s.Most(func(a *evidence.Answer) bool { return engine.Said(a, flowControlLagged) > 0 }) {
		return evidence.Found{}, false
	}
	text := fmt.Sprintf("flow control of %s held writes back", s.Target)
	if granted >= 0 {
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
	return evidence.Found{Share: 0.75, Text: text}, true
}

// noPrimary finds a replica set without a primary.
func noPrimary(s *evidence.Scene) (evidence.Found, bool) {
	none := func(a *evidence.Answer) bool {
		for name, v := range a.Values {
			if strings.HasPrefix(name, setPrimaries.Name+"{") {
				return v == 0
			}
		}
		return false
	}
	if !s.Most(none) {
		return evidence.Found{}, false
	}
	return evidence.Found{Share: 0.9, Text: fmt.Sprintf("the replica set had no primary, as %s saw it", s.Target)}, true
}
