package engine

import (
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// lagTracker measures how far the members of one cluster are behind the most advanced one: in
// transactions by the positions at the same tick, in seconds by the time since the most advanced
// member was at the same position. The sampler's mutex guards it.
type lagTracker struct {
	// histories of the most advanced position. There are several only if targets belong to
	// different clusters, or the cluster was set up again.
	histories []*history
	// sources are the histories of the servers from which replicas with known sources replicate, by id.
	sources map[string]*sourceHistory
}

// maxHistories limits the histories if members disagree.
const maxHistories = 4

// measure sets the lag of the samples of one tick.
func (t *lagTracker) measure(samples []*Sample) {
	for _, s := range samples {
		ownLag(s)
	}
	followers, sources := t.follow(samples)
	rest := slices.DeleteFunc(slices.Clone(samples), func(s *Sample) bool { return followers[s] })
	for _, group := range byHistory(rest) {
		source := sourceOf(group)
		if source != nil {
			source.Source = true
		}
		for _, s := range group {
			s.Source = s.Source || sources[s]
		}
		if source == nil {
			t.addReceived(group)
		}
		if len(group) < 2 && len(followers) == 0 {
			continue
		}
		lead := mostAdvanced(group)
		h := t.historyOf(lead.Status.Position)
		h.add(lead.Status.Position, lead.Answered, len(group)+len(followers) == len(samples))
		if len(group) < 2 {
			continue
		}
		for _, s := range group {
			if s == source || sources[s] { // others are ahead only by the time between two answers
				s.LagSeconds = series.Optional[float64]{}
				continue
			}
			if behind, ok := s.Status.Position.Behind(lead.Status.Position); ok {
				s.LagTransactions = series.Some(float64(behind))
			}
			// The bytes within a configured delay are not lag, and can't be distinguished from others.
			if counter, ok := s.Status.Position.(ByteCounter); ok && s.Status.Delay == 0 {
				if behind, ok := counter.BytesBehind(lead.Status.Position); ok {
					s.LagBytes = series.Some(float64(behind))
				}
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

// addReceived adds the position of a source that does not answer, according to what its replicas
// have received. Otherwise the source would seem to have moved during the whole time when it
// answers again.
func (t *lagTracker) addReceived(group []*Sample) {
	for _, s := range group {
		for _, h := range t.histories {
			if p := s.Status.Received; p != nil && h.has(p) {
				h.add(p, s.Answered, false)
			}
		}
	}
}

// sourceOf returns the only primary of a group, nil if there is none or, as in multi-primary mode,
// several.
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

// ownLag sets the lag that the server itself reports.
func ownLag(s *Sample) {
	s.Source, s.Channels = false, nil
	s.LagTransactions, s.LagSeconds, s.LagBytes = series.Optional[float64]{}, series.Optional[float64]{}, series.Optional[float64]{}
	if !s.Up() {
		return
	}
	s.LagSeconds = s.Status.LagSeconds
	if !s.LagSeconds.Known {
		s.LagSeconds = s.Status.CoarseLagSeconds
	}
}

// byHistory groups samples whose positions belong to the same history.
func byHistory(samples []*Sample) [][]*Sample {
	var groups [][]*Sample
next:
	for _, s := range samples {
		if !s.Up() || !s.Status.Replicating || s.Status.Position == nil {
			continue
		}
		for i, g := range groups {
			if SameHistory(g[0].Status.Position, s.Status.Position) {
				groups[i] = append(g, s)
				continue next
			}
		}
		groups = append(groups, []*Sample{s})
	}
	return groups
}

// mostAdvanced returns the sample that lacks the fewest transactions.
func mostAdvanced(group []*Sample) *Sample {
	lead := group[0]
	for _, s := range group[1:] {
		if ahead(s.Status.Position, lead.Status.Position) {
			lead = s
		}
	}
	return lead
}

// ahead reports whether p is more advanced than q. If each lacks transactions of the other, as
// after writes on both, the one that lacks fewer is ahead.
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

// historyOf returns the history of p, a new one if necessary.
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
	// historyLimit is the maximum number of entries in a history: an hour of ticks of one second.
	// Shorter ticks are thinned out.
	historyLimit = 4096
)

// history records the most advanced position of a cluster over time.
type history struct {
	entries []historyEntry // ordered by position and time
}

// historyEntry is a position and the time during which it was the most advanced one.
type historyEntry struct {
	position    Position
	first, last time.Time
}

// has reports whether p can be compared with the history.
func (h *history) has(p Position) bool {
	if len(h.entries) == 0 {
		return false
	}
	return SameHistory(p, h.entries[len(h.entries)-1].position)
}

// add records that p was the most advanced position at a time. If the whole cluster answered,
// entries beyond p are dropped: the cluster went back. Otherwise a more advanced member may just be
// unreachable.
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

// trim drops entries that are too old and, if there are too many, every second entry of the older
// half.
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

// lag returns for how long the most advanced position has been beyond p at a time; false if the
// history is too short. Between two entries it interpolates by the transactions that p has covered.
// After an idle period it is unknown when the first transaction came, so the lag counts from when
// that was seen, and is unknown until it was seen twice.
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

// progress returns the share of the distance between two positions that p has covered: by
// transactions, or by Scalar if those can't be counted.
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
