package engine

import (
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// lagTracker measures how far the members of one cluster are behind its most
// advanced one: in transactions by their positions at the same tick, in seconds
// by when the most advanced one was where they are now. The sampler's mutex
// guards it.
type lagTracker struct {
	// histories of the most advanced position. There is more than one only if
	// targets belong to another cluster, or the cluster was set up again.
	histories []*history
}

// maxHistories bounds what is kept if members disagree on their history.
const maxHistories = 4

// measure sets the lag of the samples of one tick.
func (t *lagTracker) measure(samples []*Sample) {
	for _, s := range samples {
		ownLag(s)
	}
	for _, group := range byHistory(samples) {
		source := sourceOf(group)
		if source != nil {
			source.Source = true
		}
		if source == nil {
			t.addReceived(group)
		}
		if len(group) < 2 {
			continue
		}
		lead := mostAdvanced(group)
		h := t.historyOf(lead.Status.Position)
		h.add(lead.Status.Position, lead.Answered, len(group) == len(samples))
		for _, s := range group {
			if s == source { // others are ahead only by the time between two answers
				s.LagSeconds = series.Optional[float64]{}
				continue
			}
			if behind, ok := s.Status.Position.Behind(lead.Status.Position); ok {
				s.LagTransactions = series.Some(float64(behind))
			}
			if s.Status.LagSeconds.Known && !h.complete(s.Status.Position) {
				continue
			}
			if lag, ok := h.lag(s.Status.Position, s.Answered); ok {
				s.LagSeconds = series.Some(max(0, lag-s.Status.Delay).Seconds())
			}
		}
	}
}

// addReceived adds where a source that does not answer is by what its replicas have received.
// Without that, it would seem to have moved all the time when it answers again.
func (t *lagTracker) addReceived(group []*Sample) {
	for _, s := range group {
		for _, h := range t.histories {
			if p := s.Status.Received; p != nil && h.has(p) {
				h.add(p, s.Answered, false)
			}
		}
	}
}

// sourceOf returns the only primary of a group, nil if it has none or, as in
// multi-primary mode, several.
func sourceOf(group []*Sample) *Sample {
	var source *Sample
	for _, s := range group {
		switch {
		case s.Status.Role != "primary":
		case source != nil:
			return nil
		default:
			source = s
		}
	}
	return source
}

// ownLag sets the lag to what the server itself reports.
func ownLag(s *Sample) {
	s.Source = false
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

// mostAdvanced returns the sample that lacks the least of the others.
func mostAdvanced(group []*Sample) *Sample {
	lead := group[0]
	for _, s := range group[1:] {
		if ahead(s.Status.Position, lead.Status.Position) {
			lead = s
		}
	}
	return lead
}

// ahead reports whether p is more advanced than q. If each has what the other
// lacks, as after writes on both, the one that lacks less is.
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

// historyOf returns the history that p belongs to, a new one if there is none.
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

const (
	// historyAge is the largest lag in seconds that can be measured.
	historyAge = time.Hour
	// historyLimit bounds the entries of a history: an hour of ticks of one
	// second; shorter ticks are thinned out.
	historyLimit = 4096
)

// history remembers when a cluster's most advanced position was where.
type history struct {
	entries []historyEntry // in the order of positions and of times
}

// historyEntry is a position and the time during which it was seen to be the
// most advanced.
type historyEntry struct {
	position    Position
	first, last time.Time
}

// has reports whether p can be compared with what the history holds.
func (h *history) has(p Position) bool {
	if len(h.entries) == 0 {
		return false
	}
	return sameHistory(p, h.entries[len(h.entries)-1].position)
}

// add records that p was the most advanced position at a moment. If p was found
// among the whole cluster, entries beyond p are dropped: the cluster went back.
// Otherwise a more advanced member may just be unreachable.
func (h *history) add(p Position, at time.Time, whole bool) {
	for n := len(h.entries); whole && n > 0 && !Reached(p, h.entries[n-1].position); n-- {
		h.entries = h.entries[:n-1]
	}
	if n := len(h.entries); n > 0 && Reached(h.entries[n-1].position, p) {
		if Reached(p, h.entries[n-1].position) {
			h.entries[n-1].last = at
		}
		return
	}
	h.entries = append(h.entries, historyEntry{position: p, first: at, last: at})
	h.trim(at)
}

// trim drops what is too old, and every second entry of the older half when
// there are too many.
func (h *history) trim(now time.Time) {
	old := 0
	for old < len(h.entries)-1 && now.Sub(h.entries[old+1].first) > historyAge {
		old++
	}
	if old > 0 {
		h.entries = append(h.entries[:0], h.entries[old:]...)
	}
	if len(h.entries) <= historyLimit {
		return
	}
	kept := h.entries[:0]
	for i, e := range h.entries {
		if i > len(h.entries)/2 || i%2 == 0 {
			kept = append(kept, e)
		}
	}
	clear(h.entries[len(kept):])
	h.entries = kept
}

// complete reports whether p has everything that was ever seen.
func (h *history) complete(p Position) bool {
	return Reached(p, h.entries[len(h.entries)-1].position)
}

// lag returns how long before at the most advanced position was p; false if
// that was before the history begins. Between two entries it interpolates by how
// far p has come from one to the other. After an idle time that says nothing of
// when the first transaction came: what follows it counts from when it was seen,
// and is unknown until it was seen twice.
func (h *history) lag(p Position, at time.Time) (time.Duration, bool) {
	reached := -1 // the last entry that p has reached
	for lo, hi := 0, len(h.entries)-1; lo <= hi; {
		mid := (lo + hi) / 2
		if Reached(p, h.entries[mid].position) {
			reached, lo = mid, mid+1
		} else {
			hi = mid - 1
		}
	}
	if reached < 0 {
		return 0, false
	}
	if reached == len(h.entries)-1 {
		return 0, true
	}
	from, to := &h.entries[reached], &h.entries[reached+1]
	if from.last.After(from.first) {
		newest := reached+1 == len(h.entries)-1 && to.last.Equal(to.first)
		return max(0, at.Sub(to.first)), !newest
	}
	gap := float64(to.first.Sub(from.last))
	was := from.last.Add(time.Duration(gap * progress(from.position, p, to.position)))
	return max(0, at.Sub(was)), true
}

// progress returns which share of the way from one position to another p has
// covered: by transactions, or by Scalar where those can't be counted.
func progress(from, p, to Position) float64 {
	step, ok1 := from.Behind(to)
	lacks, ok2 := p.Behind(to)
	if ok1 && ok2 {
		return float64(step-min(lacks, step)) / float64(max(step, 1))
	}
	way := to.Scalar() - from.Scalar()
	if way <= 0 {
		return 0
	}
	return min(1, max(0, p.Scalar()-from.Scalar())/way)
}
