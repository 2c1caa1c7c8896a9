package postgresql

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// inStates returns how many sessions of a class were in states with these beginnings, and in any state.
func inStates(v *cause.View, class string, names ...string) (some, all float64) {
	for _, s := range v.States {
		if s.Class != class {
			continue
		}
		all += s.Sessions
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(s.Name, name) }) {
			some += s.Sessions
		}
	}
	return some, all
}

func walSync(v *cause.View) (cause.Found, bool) {
	some, all := inStates(v, engine.Commit, "IO:WAL", "LWLock:WALWrite")
	syncs := v.Mean(WALSyncs)
	if !(some > 0) || !(syncs > 0) {
		return cause.Found{}, false
	}
	f := cause.Found{Part: some / all, Evidence: fmt.Sprintf("%s synchronisations of the WAL a second", table.Rounded(syncs))}
	if seconds := v.Mean(WALSyncTime); seconds > 0 {
		f.Evidence += fmt.Sprintf(", %.2g ms each", seconds*1000)
	}
	if shared := v.Throughput / syncs; shared >= 1 {
		f.Evidence += fmt.Sprintf("; one served %s transactions", table.Digits.Format(shared))
	}
	return f, true
}

func fullBuffers(v *cause.View) (cause.Found, bool) {
	n := v.Increase(WALBuffersFull)
	each := n / (v.Throughput * v.Seconds)
	if !(each >= 0.1) {
		return cause.Found{}, false
	}
	return cause.Found{Of: "wal_buffers", Part: min(1, each), Evidence: fmt.Sprintf("sessions wrote the WAL %s times since its buffers were full (wal_buffers = %s)",
		table.Rounded(n), size(v, "wal_buffers"))}, true
}

// requestsCheckpoints reports whether max_wal_size is reached during the run. Checkpoints by time are spread, and
// belong to any load.
func requestsCheckpoints(v *cause.View) bool { return v.Increase(CheckpointsRequested) >= 1 }

// page is the size of an image of a page in the WAL, without compression.
const page = 8192

// longCheckpoint is the share of the time from which on a single checkpoint counts: on a slow disk it takes all of a run.
const longCheckpoint = 0.5

func requestedCheckpoints(v *cause.View) (cause.Found, bool) {
	requested, ran := v.Increase(CheckpointsRequested), v.Mean(CheckpointRunning)
	images, bytes := v.Mean(WALImages)*page, v.Mean(WALRate)
	if !(requested >= 2 || requested >= 1 && ran >= longCheckpoint) || !(bytes > 0) {
		return cause.Found{}, false
	}
	part := min(1, images/bytes)
	if v.Limit == cause.Checkpoint {
		part = 1
	}
	text := fmt.Sprintf("%s checkpoints were requested in %s, one each %s", table.Rounded(requested), table.Clock(v.Seconds), table.Clock(v.Seconds/requested))
	if requested < 2 {
		text = fmt.Sprintf("checkpoints ran for %s of the time, and one was requested", table.Share(ran))
	}
	return cause.Found{Of: "max_wal_size", Part: part,
		Evidence: fmt.Sprintf("%s, since the WAL reached max_wal_size (%s); %s of the WAL were images of pages that changed the first time after a checkpoint",
			text, size(v, "max_wal_size"), table.Share(min(1, images/bytes)))}, true
}

func slowStandby(v *cause.View) (cause.Found, bool) {
	name, seconds, all := most(v, StandbyWait, labelStandby)
	if !(seconds > 0) {
		return cause.Found{}, false
	}
	return cause.Found{Of: name, Part: seconds / all, Evidence: fmt.Sprintf(
		"%s was the synchronous standby that lacked the most WAL for %s of the time that commits waited", name, table.Share(seconds/all)),
		Test: "repeat with synchronous_commit=local, or without " + name + " in synchronous_standby_names"}, true
}

// most returns the label value with the largest increase of a measure.
func most(v *cause.View, m *measure.Measure, label string) (name string, largest, all float64) {
	if v.Record == nil {
		return "", 0, 0
	}
	by := v.Record.IncreaseBy(m, label)
	for _, key := range slices.Sorted(maps.Keys(by)) {
		if !series.IsKnown(by[key]) {
			continue
		}
		if all += by[key]; by[key] > largest {
			name, largest = key, by[key]
		}
	}
	return name, largest, all
}

func holderOfLocks(v *cause.View) (cause.Found, bool) {
	name, seconds, _ := most(v, BlockedTime, labelHolder)
	waited := v.Share * v.Threads * v.Seconds
	if !(seconds >= 1) || !(waited > 0) {
		return cause.Found{}, false
	}
	return cause.Found{Of: name, Part: min(1, seconds/waited), Evidence: fmt.Sprintf("%s held locks for which sessions waited for %s s in sum", name, table.Digits.Format(seconds))}, true
}

// longIdle is the age in seconds of a transaction that is no pause between two statements.
const longIdle = 1

func idleTransaction(v *cause.View) (cause.Found, bool) {
	values, long, known := v.Values(IdleAge), 0.0, 0.0
	for _, age := range values {
		known++
		if age >= longIdle {
			long++
		}
	}
	if long == 0 {
		return cause.Found{}, false
	}
	return cause.Found{Part: long / known, Evidence: fmt.Sprintf("in %s of the time a session was idle in a transaction that was older than %d s, for up to %s s: it keeps its locks meanwhile",
		table.Share(long/known), longIdle, table.Digits.Format(v.Max(IdleAge)))}, true
}

// manyWait is the share of the clients that wait for a few transactions, and therefore for the same rows.
const manyWait = 0.4

func sameRows(v *cause.View) (cause.Found, bool) {
	queued, all := inStates(v, engine.RowLock, "Lock:tuple")
	if !(all >= manyWait*v.Threads) && !(queued >= 0.1*all && queued > 0) || v.Max(IdleAge) >= longIdle {
		return cause.Found{}, false
	}
	deadlocked, _ := deadlockPart(v)
	f := cause.Found{Part: 1 - deadlocked, Evidence: fmt.Sprintf(
		"%s of %s clients waited for rows at the same time, and no transaction was left open", table.Digits.Format(all), table.Rounded(v.Threads))}
	if len(v.Executed) > 0 && !v.Executed[0].IsSum {
		f.Of = v.Executed[0].Text
		f.Evidence += fmt.Sprintf("; %s of the statements' time was in %s", table.Share(v.Executed[0].Share), v.Executed[0].Text)
	}
	return f, true
}

// lightweight are what waits for lightweight locks mean, by the beginning of the state.
var lightweight = []struct{ state, meaning, test string }{
	{"LWLock:LockManager",
		"sessions that wait for locks, or statements with more tables and indexes than a session can lock on its own",
		"look at waits for locks first; then repeat with fewer partitions and indexes, or with prepared statements"},
	{"LWLock:ProcArray", "snapshots of many connections", "repeat with fewer connections, or a pooler"},
	{"LWLock:BufferMapping", "blocks that change their place in shared buffers", "repeat with larger shared_buffers, or with less data"},
	{"LWLock:BufferContent", "many sessions use the same block", "spread the rows over more blocks (a lower fillfactor), or repeat with fewer clients"},
	{"LWLock:WALInsert", "many sessions add to the WAL", "repeat with fewer clients, or with fewer and larger transactions"},
	{"LWLock:WALBufMapping", "WAL buffers are replaced", "repeat with larger wal_buffers"},
	{"LWLock:MultiXact", "several transactions lock the same rows (foreign keys, FOR SHARE)", "repeat without foreign keys or row locks that are shared"},
	{"LWLock:Subtrans", "subtransactions (savepoints, exceptions)", "repeat without savepoints"},
	{"LWLock:XactSLRU", "states of transactions", "repeat with fewer clients; version 17: raise transaction_buffers"},
	{"Lock:extend", "many sessions append to the same table", "repeat with fewer clients, or with a partitioned table"},
	{"BufferPin:", "a session keeps a block in use", "look for open cursors"},
}

func lightweightLock(v *cause.View) (cause.Found, bool) {
	var top cause.StateSessions
	_, all := inStates(v, engine.Latch)
	for _, s := range v.States {
		if s.Class == engine.Latch && s.Sessions > top.Sessions {
			top = s
		}
	}
	if !(top.Sessions > 0) {
		return cause.Found{}, false
	}
	f := cause.Found{Of: top.Name, Part: top.Sessions / all, Evidence: fmt.Sprintf("%s of %s sessions waited for %s", table.Digits.Format(top.Sessions), table.Digits.Format(all), top.Name)}
	for _, l := range lightweight {
		if strings.HasPrefix(top.Name, l.state) {
			f.Evidence, f.Test = f.Evidence+": "+l.meaning, l.test
			break
		}
	}
	return f, true
}

// fewReads is how many blocks for each transaction are read even by a server that nobody waits for, such as a standby.
const fewReads = 0.01

func sharedBuffers(v *cause.View) (cause.Found, bool) {
	some, all := inStates(v, engine.Disk, "IO:DataFileRead", "IPC:BufferIO", "IO:AioIoCompletion", "IO:DataFilePrefetch")
	read, misses := v.Mean(engine.PagesRead), v.Mean(engine.PageMisses)
	if !(read >= fewReads*v.Throughput) || !(read > 0) || all > 0 && some == 0 {
		return cause.Found{}, false
	}
	part := 1.0
	if all > 0 {
		part = some / all
	}
	f := cause.Found{Of: "shared_buffers", Part: part, Evidence: fmt.Sprintf(
		"%s blocks a second were not in shared buffers (%s), %s of those that were used", table.Rounded(read), size(v, "shared_buffers"), table.Share(misses))}
	if waiting := v.Mean(ReadTime); waiting > 0 {
		f.Evidence += fmt.Sprintf("; a read takes %.2g ms", waiting/read*1000)
		if waiting/read < 0.0001 {
			f.Evidence += ", so most are in the operating system's cache"
		}
	}
	return f, true
}

func temporaryFiles(v *cause.View) (cause.Found, bool) {
	some, all := inStates(v, engine.Disk, "IO:BufFile")
	part, of, bytes, calls := 0.0, "", 0.0, 0.0
	for i := range v.Executed {
		if s := &v.Executed[i]; s.TemporaryBytes > 0 {
			part += s.Share
			if of == "" && !s.IsSum {
				of, bytes, calls = s.Text, s.TemporaryBytes, s.Executions
			}
		}
	}
	if v.Limit == cause.Disk && all > 0 {
		part = some / all
	}
	written := v.Mean(TemporaryBytes)
	if !(part > 0) || of == "" && !(written > 0) {
		return cause.Found{}, false
	}
	f := cause.Found{Of: of, Part: part, Evidence: fmt.Sprintf("work_mem is %s", size(v, "work_mem"))}
	if of != "" {
		f.Evidence = fmt.Sprintf("%s used %s of temporary files for each execution; ", of, megabytes(bytes/calls)) + f.Evidence
	} else {
		f.Evidence = fmt.Sprintf("sorts and hashes wrote %s a second to temporary files; ", megabytes(written)) + f.Evidence
	}
	return f, true
}

const (
	// mostDeadShare is the share of dead rows that autovacuum leaves by its default at most, twice.
	mostDeadShare = 0.4
	// oldSnapshot is the age in transactions of a snapshot that keeps rows which would otherwise be removed.
	oldSnapshot = 10_000
)

func deadRowsLeft(v *cause.View) (cause.Found, bool) {
	dead, share, age := v.Max(DeadRows), v.Max(DeadShare), v.Max(OldestSnapshot)
	if !(share >= mostDeadShare) || !(dead >= 1000) {
		return cause.Found{}, false
	}
	f := cause.Found{Part: share, Evidence: fmt.Sprintf("%s of the rows in a table were dead (%s in all tables)", table.Share(share), table.Rounded(dead))}
	switch {
	case age >= oldSnapshot:
		f.Evidence += fmt.Sprintf(", and none that is newer than the oldest snapshot can be removed: that is %s transactions old", table.Rounded(age))
	case v.Setting("autovacuum") == "off":
		f.Of, f.Test = "autovacuum", "VACUUM the tables, or switch autovacuum on"
		f.Evidence += ", and autovacuum is off"
	default:
		f.Test = "VACUUM the tables, or let autovacuum do more (autovacuum_vacuum_cost_limit, autovacuum_vacuum_scale_factor)"
	}
	return f, true
}

const (
	// manyBlocksEach is the number of blocks of an execution from which on it is no access by an index.
	manyBlocksEach = 50
	// blocksForRow is how many blocks for each row are many.
	blocksForRow = 20
)

func manyBlocks(v *cause.View) (cause.Found, bool) {
	if len(v.Executed) == 0 || v.Max(DeadShare) >= mostDeadShare {
		return cause.Found{}, false
	}
	s := &v.Executed[0]
	blocks, rows := s.Blocks/s.Executions, s.Rows/s.Executions
	if s.IsSum || !(blocks >= manyBlocksEach) || !(blocks >= blocksForRow*max(1, rows)) {
		return cause.Found{}, false
	}
	f := cause.Found{Of: s.Text, Part: s.Share, Evidence: fmt.Sprintf(
		"%s used %s blocks for %s rows on average, %s of the statements' time", s.Text, table.Rounded(blocks), table.Digits.Format(rows), table.Share(s.Share))}
	if scanned := v.PerTransaction(RowsReturned); scanned > 10*max(1, rows) {
		f.Evidence += fmt.Sprintf("; scans read %s rows for each transaction", table.Rounded(scanned))
	}
	return f, true
}

func planning(v *cause.View) (cause.Found, bool) {
	planned, all := 0.0, 0.0
	for i := range v.Executed {
		planned, all = planned+v.Executed[i].PlanSeconds, all+v.Executed[i].Seconds
	}
	if !(planned > 0) {
		return cause.Found{}, false
	}
	return cause.Found{Part: planned / all, Evidence: fmt.Sprintf("planning took %s of the statements' time", table.Share(planned/all))}, true
}

func newConnections(v *cause.View) (cause.Found, bool) {
	each := v.PerTransaction(engine.OpenedConnections)
	if !(each >= 0.5) || math.IsInf(each, 0) {
		return cause.Found{}, false
	}
	return cause.Found{Part: min(1, each), Evidence: fmt.Sprintf("clients opened %s connections for each transaction, and the server starts a process for each", table.Digits.Format(each))}, true
}

// deadlockPart is the part of the waits that deadlocks explain, and the time after which the server looks for one. Each
// one that it found ended such a wait of at least two sessions. 0: hardly any.
func deadlockPart(v *cause.View) (part, seconds float64) {
	n, waited := v.Increase(engine.Deadlocks), v.Share*v.Threads*v.Seconds
	timeout, err := time.ParseDuration(v.Setting("deadlock_timeout"))
	if err != nil || !(n >= 2) || !(waited > 0) {
		return 0, 0
	}
	seconds = timeout.Seconds()
	if part = min(1, 2*n*seconds/waited); part < 0.1 {
		return 0, seconds
	}
	return part, seconds
}

func deadlocksWaited(v *cause.View) (cause.Found, bool) {
	part, seconds := deadlockPart(v)
	if part == 0 {
		return cause.Found{}, false
	}
	return cause.Found{Part: part, Evidence: fmt.Sprintf("%s deadlocks: for each of them at least two sessions waited for %s s (deadlock_timeout), and one transaction was undone",
		table.Rounded(v.Increase(engine.Deadlocks)), table.Digits.Format(seconds))}, true
}

// leastCompiling is the share of the statements' time from which on compilation is worth a look.
const leastCompiling = 0.1

func compiling(v *cause.View) (cause.Found, bool) {
	compiled, all, of, longest := 0.0, 0.0, "", 0.0
	for i := range v.Executed {
		s := &v.Executed[i]
		compiled, all = compiled+s.JITSeconds, all+s.Seconds
		if s.JITSeconds > longest && !s.IsSum {
			of, longest = s.Text, s.JITSeconds
		}
	}
	if !(compiled >= leastCompiling*all) || !(compiled > 0) {
		return cause.Found{}, false
	}
	f := cause.Found{Of: of, Part: min(1, compiled/all), Evidence: fmt.Sprintf("compiling statements took %s of their time", table.Share(min(1, compiled/all)))}
	if of != "" {
		f.Evidence += ", most of it for " + of
	}
	return f, true
}

// running is how many sessions of clients executed a statement without a wait, on average.
func running(v *cause.View) float64 {
	_, n := inStates(v, engine.Running)
	return n
}

const leastWorkers = 0.5

func parallelPlans(v *cause.View) (cause.Found, bool) {
	workers, clients := v.Mean(ParallelWorkers), running(v)
	if !(workers >= leastWorkers) || !(v.Threads >= 2) {
		return cause.Found{}, false
	}
	return cause.Found{Part: workers / (workers + clients), Evidence: fmt.Sprintf("%s parallel workers ran for %s clients on average",
		table.Digits.Format(workers), table.Rounded(v.Threads))}, true
}

func autovacuums(v *cause.View) (cause.Found, bool) {
	workers, clients := v.Mean(AutovacuumWorkers)-cause.OrZero(v.Mean(PausedWorkers)), running(v)
	if v.Limit == cause.Disk {
		_, clients = inStates(v, engine.Disk)
	}
	if !(workers >= leastWorkers) {
		return cause.Found{}, false
	}
	return cause.Found{Of: "autovacuum", Part: workers / (workers + clients), Evidence: fmt.Sprintf("%s autovacuum workers ran on average without a pause, up to %s in all", table.Digits.Format(workers),
		table.Rounded(v.Max(AutovacuumWorkers)))}, true
}

const (
	// leastHot is the share of updates without a change of an index below which few have space in their block.
	leastHot = 0.2
	// coldPart is what such updates explain at most: each has an entry in every index to write, but the row, too.
	coldPart = 0.3
)

func coldUpdates(v *cause.View) (cause.Found, bool) {
	hot, rows := v.Mean(HotShare), v.PerTransaction(RowUpdates)
	if !(hot < leastHot) || !(rows >= 0.5) {
		return cause.Found{}, false
	}
	return cause.Found{Part: coldPart * (1 - hot), Evidence: fmt.Sprintf(
		"%s of %s updated rows for each transaction kept their indexes as they were (HOT); each of the others has a "+
			"new entry in every index of its table",
		table.Share(hot), table.Digits.Format(rows))}, true
}

func smallCaches(v *cause.View) (cause.Found, bool) {
	class := engine.Latch
	if v.Limit == cause.Disk {
		class = engine.Disk
	}
	some, all := inStates(v, class, "IO:SLRU", "LWLock:MultiXact", "LWLock:Subtrans", "LWLock:XactSLRU", "LWLock:XactBuffer", "LWLock:CommitTs", "LWLock:NotifySLRU")
	if !(some > 0) {
		return cause.Found{}, false
	}
	f := cause.Found{Part: some / all, Evidence: fmt.Sprintf(
		"%s of %s sessions waited for the states of transactions, multixacts or subtransactions", table.Digits.Format(some), table.Digits.Format(all))}
	if name, blocks, _ := most(v, SmallCacheReads, "cache"); blocks >= 1 {
		f.Of = name
		f.Evidence += fmt.Sprintf("; %s blocks of %s were read into its cache", table.Rounded(blocks), name)
	}
	return f, true
}

func megabytes(bytes float64) string { return table.Digits.Format(bytes/(1<<20)) + " MB" }

// size returns a setting in bytes, readable.
func size(v *cause.View, name string) string {
	n := v.Number(name)
	if !series.IsKnown(n) {
		return "not known"
	}
	return megabytes(n)
}
