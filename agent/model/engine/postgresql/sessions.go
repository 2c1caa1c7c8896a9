package postgresql

import (
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// sessions are the answers about sessions of one tick.
type sessions struct {
	asked      bool
	hidden     float64 // sessions of other users
	counts     map[engine.SessionState]float64
	states     map[string]float64
	processes  map[string]float64
	oldest     map[string]float64 // transaction by state, in seconds
	snapshots  map[string]float64
	clients    float64
	active     float64
	paused     float64 // autovacuum workers
	encrypted  float64 // if it is known
	known      bool    // whether they have TLS
	checkpoint bool
	cut        bool
	rows       int
}

// clientBackend is the type of clients' sessions.
const clientBackend = "client backend"

const (
	clientRead   = "ClientRead"
	vacuumWorker = "autovacuum worker"
)

// workers are the types of processes that work for clients.
var workers = []string{vacuumWorker, "parallel worker", "walsender", "logical replication worker", "logical replication parallel worker"}

// holders name what keeps a snapshot, by the type of its process.
var holders = map[string]string{clientBackend: "session", "walsender": "standby", vacuumWorker: "vacuum", "parallel worker": "session"}

// read takes a group of sessions.
func (s *sessions) read(r row) {
	if s.counts == nil {
		*s = sessions{asked: true, counts: map[engine.SessionState]float64{}, states: map[string]float64{}, processes: map[string]float64{},
			oldest: map[string]float64{}, snapshots: map[string]float64{}}
	}
	if s.rows++; s.rows > 1000 {
		s.cut = true
		return
	}
	n, ok := r.number("n")
	if !ok || n <= 0 {
		return
	}
	if hidden, _ := r.number("hidden"); hidden > 0 {
		s.hidden += hidden
		s.clients += hidden
		return
	}
	kind, state, event := r.text("backend_type"), r.text("state"), r.text("wait_event")
	if age, ok := r.number("snapshot"); ok && holders[kind] != "" {
		s.snapshots[holders[kind]] = max(s.snapshots[holders[kind]], age)
	}
	switch kind {
	case clientBackend:
	case "checkpointer":
		s.checkpoint = event != "CheckpointerMain"
		return
	default:
		s.processes[kind] += n
		if kind == vacuumWorker && event == "VacuumDelay" {
			s.paused += n
		}
		return
	}
	s.clients += n
	if state == "" {
		state = "starting"
	}
	s.states[state] += n
	if v, ok := r.number("encrypted"); ok {
		s.encrypted += v
		s.known = true
	}
	if age, ok := r.number("transaction"); ok && age > 0 {
		s.oldest[state] = max(s.oldest[state], age)
	}
	// A session whose statement is complete waits for the client, even if its state is older.
	if event != clientRead && (state == "active" || state == "fastpath function call") {
		s.active += n
		s.counts[stateOf(r.text("wait_event_type"), event)] += n
	}
}

const (
	// manySessions is the number of clients from which on idle sessions are only counted, if at most one of manyIdle is in
	// a transaction: each of those is searched among all.
	manySessions = 500
	manyIdle     = 10
)

// mostlyIdle reports whether the next tick may leave out what idle sessions do.
func (s *sessions) mostlyIdle() bool {
	return s.clients >= manySessions && (s.clients-s.states["idle"])*manyIdle <= s.clients
}

// set sets the metrics of sessions. The agent's own session counts as a connection.
func (s *sessions) set(t *tick) {
	if !s.asked {
		return
	}
	out := t.out
	out.Set(engine.Connections, s.clients+1)
	out.Set(engine.ThreadsRunning, s.active+1)
	t.p.sessions.Known(engine.SessionState{Class: engine.Disk, Event: "IO:DataFileRead"}) // waits for blocks are always seen
	t.p.sessions.Set(out, s.counts)
	for _, state := range []string{"active", "idle", "idle in transaction", "idle in transaction (aborted)"} {
		out.Set(sessionStates, s.states[state], state)
	}
	if t.p.server.sees {
		for _, kind := range workers {
			out.Set(processes, s.processes[kind], kind)
		}
		out.Set(pausedWorkers, s.paused)
		out.SetBool(checkpointRunning, s.checkpoint)
	}
	for state, age := range s.oldest {
		out.Set(oldestOpen, age, state)
	}
	for holder, age := range s.snapshots {
		t.snapshots[holder] = max(t.snapshots[holder], age)
	}
	if s.known {
		t.p.encrypted = s.encrypted
	}
	out.Set(encrypted, t.p.encrypted)
	if s.cut {
		out.Missing = append(out.Missing, "sessions: those in other states than the 1000 most frequent ones")
	}
}

// stateOf returns what an executing session waits for.
func stateOf(kind, event string) engine.SessionState {
	if event == "" {
		return engine.SessionState{Class: engine.Running, Event: engine.Running}
	}
	for _, r := range renamed {
		if rest, ok := strings.CutPrefix(event, r.since17); ok {
			event = r.before + rest
		}
	}
	return engine.SessionState{Class: classOf(kind, event), Event: kind + ":" + event}
}

// renamed are beginnings of events that version 17 spells in another way. All versions have the older one, so
// that they can be compared.
var renamed = []struct{ since17, before string }{
	{"Wal", "WAL"}, {"Slru", "SLRU"}, {"Buffile", "BufFile"}, {"Procarray", "ProcArray"}, {"BufferIo", "BufferIO"},
}

// rule is a wait event, or the beginning of its name, and its class.
type rule struct{ event, class string }

// classes are what the events of each type mean (src/backend/utils/activity/wait_event_names.txt, versions 14
// to 18); the last rule of a type is for all others.
var classes = map[string][]rule{
	// A transaction waits for the rows of another one: for its end, for its turn, or for a unique key.
	"Lock": {{"transactionid", engine.RowLock}, {"tuple", engine.RowLock}, {"spectoken", engine.RowLock}, {"applytransaction", engine.Replication},
		{"extend", engine.Latch}, {"page", engine.Latch}, {"", engine.Lock}},
	// WALWrite: another session writes and flushes the log for this one as well (group commit).
	"LWLock": {{"WALWrite", engine.Commit}, {"SyncRep", engine.Replication}, {"", engine.Latch}},
	"IO":     {{"WAL", engine.Commit}, {"", engine.Disk}},
	"IPC": {{"SyncRep", engine.Replication}, {"BufferIO", engine.Disk}, {"ProcArrayGroupUpdate", engine.Latch},
		{"XactGroupUpdate", engine.Commit}, {"ClogGroupUpdate", engine.Commit}, {"RecoveryConflict", engine.Replication}, {"SafeSnapshot", engine.Lock},
		{"", engine.Other}},
	"BufferPin": {{"", engine.Latch}},
	"Client":    {{"", engine.Network}},
	"Timeout":   {{"SpinDelay", engine.Latch}, {"CommitDelay", engine.Commit}, {"", engine.Other}},
}

// classOf returns the class of a wait event.
func classOf(kind, event string) string {
	for _, r := range classes[kind] {
		if strings.HasPrefix(event, r.event) {
			return r.class
		}
	}
	return engine.Other
}
