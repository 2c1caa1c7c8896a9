package engine

import "time"

const (
	// historyAge is how far back lag in seconds can be told.
	historyAge = time.Hour
	// historyLimit bounds the entries of a history: an hour of ticks of one
	// second, and the same hour more coarsely when they are shorter.
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

// add notes that p was the most advanced position at a moment. With whole, p
// was found among all targets of the cluster; else a more advanced one may
// just be out of reach, and entries beyond p stay true.
func (h *history) add(p Position, at time.Time, whole bool) {
	for n := len(h.entries); whole && n > 0 && !Reached(p, h.entries[n-1].position); n-- {
		h.entries = h.entries[:n-1] // the cluster went back
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

// lag returns how long before at the most advanced position was p; false if
// that was before the history begins. Between two entries it goes by how far p
// has come from one to the other.
func (h *history) lag(p Position, at time.Time) (time.Duration, bool) {
	reached := -1 // the last entry that p has wholly
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
	gap := float64(to.first.Sub(from.last))
	was := from.last.Add(time.Duration(gap * progress(from.position, p, to.position)))
	return max(0, at.Sub(was)), true
}

// progress returns which share of the way from one position to another p has
// made: by transactions, or by the positions' numbers where those can't be
// counted.
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
