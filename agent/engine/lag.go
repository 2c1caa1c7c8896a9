package engine

import "github.com/benchwatch/benchwatch/agent/series"

// lagTracker measures how far the members of one cluster are behind its most
// advanced one. It is guarded by the sampler's mutex.
type lagTracker struct {
	// histories of the most advanced position, one for each history that the
	// cluster's members follow: one, unless some belong to another cluster or
	// the cluster was set up anew.
	histories []*history
}

// maxHistories bounds what is kept when members disagree on their history.
const maxHistories = 4

// measure sets the lag of the samples of one tick.
func (t *lagTracker) measure(samples []*Sample) {
	for _, s := range samples {
		ownLag(s)
	}
	for _, group := range byHistory(samples) {
		if len(group) < 2 {
			continue
		}
		lead := mostAdvanced(group)
		h := t.historyOf(lead.Status.Position)
		h.add(lead.Status.Position, lead.Answered, len(group) == len(samples))
		for _, s := range group {
			if behind, ok := s.Status.Position.Behind(lead.Status.Position); ok {
				s.LagTransactions = series.Some(float64(behind))
			}
			if s.Status.LagSeconds.Known {
				continue
			}
			if lag, ok := h.lag(s.Status.Position, s.Answered); ok {
				s.LagSeconds = series.Some(max(0, lag-s.Status.Delay).Seconds())
			}
		}
	}
}

// ownLag sets the lag to what the server itself says of it.
func ownLag(s *Sample) {
	s.LagTransactions, s.LagSeconds = series.Optional[float64]{}, series.Optional[float64]{}
	if !s.Up() {
		return
	}
	s.LagSeconds = s.Status.LagSeconds
	if !s.LagSeconds.Known {
		s.LagSeconds = s.Status.CoarseLagSeconds
	}
}

// byHistory groups the samples whose positions lie in the same history.
func byHistory(samples []*Sample) [][]*Sample {
	var groups [][]*Sample
next:
	for _, s := range samples {
		if !s.Up() || !s.Status.Replicating || s.Status.Position == nil {
			continue
		}
		for i, g := range groups {
			if sameHistory(g[0].Status.Position, s.Status.Position) {
				groups[i] = append(g, s)
				continue next
			}
		}
		groups = append(groups, []*Sample{s})
	}
	return groups
}

// sameHistory reports whether two positions can be compared.
func sameHistory(a, b Position) bool {
	_, ok := a.Behind(b)
	return ok || Reached(a, b) || Reached(b, a)
}

// mostAdvanced returns the sample that lacks least of the others.
func mostAdvanced(group []*Sample) *Sample {
	lead := group[0]
	for _, s := range group[1:] {
		if ahead(s.Status.Position, lead.Status.Position) {
			lead = s
		}
	}
	return lead
}

// ahead reports whether p is more advanced than q. Where each has what the
// other lacks, as after writes on two sides, the one that lacks less is.
func ahead(p, q Position) bool {
	if Reached(q, p) {
		return false
	}
	pLacks, ok1 := p.Behind(q)
	qLacks, ok2 := q.Behind(p)
	if ok1 && ok2 {
		return pLacks < qLacks
	}
	return Reached(p, q)
}

// historyOf returns the history that p belongs to, a new one if need be.
func (t *lagTracker) historyOf(p Position) *history {
	for _, h := range t.histories {
		if h.has(p) {
			return h
		}
	}
	h := &history{}
	t.histories = append(t.histories, h)
	if len(t.histories) > maxHistories {
		t.histories = t.histories[1:]
	}
	return h
}
