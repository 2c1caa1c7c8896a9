package live

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/run/ingest"
)

// keptRuns are the ended runs that a Watcher keeps: the newest ones, up to a limit. It also has the ids of the others,
// which are not read. The Watcher's mu guards it.
type keptRuns struct {
	runs    map[string]ingest.Snapshot
	sorted  []ingest.Snapshot // runs, oldest first; nil: to be sorted
	others  map[string]bool   // ended runs beyond the limit
	limit   int               // MaxKept at the last scan
	edition uint64            // of the run kept last
}

func newKeptRuns() keptRuns {
	return keptRuns{runs: map[string]ingest.Snapshot{}, others: map[string]bool{}}
}

// has reports whether a run has ended and was found before, kept or not.
func (k *keptRuns) has(id string) bool {
	_, kept := k.runs[id]
	return kept || k.others[id]
}

// leaveOut notes an ended run that is not kept.
func (k *keptRuns) leaveOut(id string) { k.others[id] = true }

// add keeps a run.
func (k *keptRuns) add(snap ingest.Snapshot) {
	k.edition++
	snap.Edition = k.edition
	k.runs[snap.Meta.ID], k.sorted = snap, nil
	k.dropOldest()
}

// setLimit changes how many runs are kept, and reports whether some were dropped.
func (k *keptRuns) setLimit(limit int) bool {
	if limit > k.limit {
		clear(k.others) // they are read again, as there may be room now
	}
	k.limit = limit
	return k.dropOldest()
}

// dropOldest leaves out the oldest runs beyond the limit, and reports whether there were any.
func (k *keptRuns) dropOldest() bool {
	over := len(k.runs) - k.limit
	if over <= 0 {
		return false
	}
	for _, snap := range k.oldestFirst()[:over] {
		delete(k.runs, snap.Meta.ID)
		k.leaveOut(snap.Meta.ID)
	}
	k.sorted = nil
	return true
}

// forget forgets runs that are gone.
func (k *keptRuns) forget(isGone func(id string) bool) {
	maps.DeleteFunc(k.runs, func(id string, _ ingest.Snapshot) bool { return isGone(id) })
	maps.DeleteFunc(k.others, func(id string, _ bool) bool { return isGone(id) })
	k.sorted = nil
}

// oldestFirst returns the kept runs.
func (k *keptRuns) oldestFirst() []ingest.Snapshot {
	if k.sorted == nil {
		k.sorted = slices.SortedFunc(maps.Values(k.runs), byBegin)
	}
	return k.sorted
}

func byBegin(a, b ingest.Snapshot) int {
	return cmp.Or(a.Meta.StartedAt.Compare(b.Meta.StartedAt), strings.Compare(a.Meta.ID, b.Meta.ID))
}
