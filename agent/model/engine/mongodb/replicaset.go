package mongodb

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// States of a member, with the numbers of replSetGetStatus.
const (
	stateStartup    = 0
	statePrimary    = 1
	stateSecondary  = 2
	stateRecovering = 3
	stateStartup2   = 5
	stateUnknown    = 6
	stateArbiter    = 7
	stateDown       = 8
	stateRollback   = 9
	stateRemoved    = 10
)

// roles by state, in the words of the `role` label.
var roles = map[int]string{
	stateStartup: "startup", statePrimary: "primary", stateSecondary: "secondary",
	stateRecovering: "recovering", stateStartup2: "initial_sync", stateArbiter: "arbiter",
	stateRollback: "rollback", stateRemoved: "removed",
}

// holdsData reports whether a member in this state has a history that is comparable with the other
// members'. An arbiter has none, and the data of a member in its initial sync or in a rollback is
// not yet the set's.
func holdsData(state int) bool {
	return state == statePrimary || state == stateSecondary || state == stateRecovering
}

// greeting is a server's answer to hello.
type greeting struct {
	router bool
	set    string // empty unless the server belongs to a replica set
	state  int    // a state constant; stateUnknown if hello contains none
	delay  time.Duration
	config float64 // version of the set's configuration
	// lastWrite is the last operation applied.
	lastWrite    optime
	hasLastWrite bool
	// members are the addresses in the set's configuration, me the member's own among them; only hello
	// has them, and the id of the server's process.
	members []string
	me      string
	process string
}

// readGreeting reads the answer to hello or isMaster, or the `repl` section of serverStatus, which
// has the same fields.
func readGreeting(d document) greeting {
	g := greeting{router: d.text("msg") == "isdbgrid", set: d.text("setName"), state: stateUnknown}
	switch {
	case d.is("arbiterOnly"):
		g.state = stateArbiter
	case d.is("isWritablePrimary"), d.is("ismaster"):
		g.state = statePrimary
	case d.is("secondary"):
		g.state = stateSecondary
	}
	for _, name := range []string{"secondaryDelaySecs", "slaveDelay"} { // 5.0, before
		if seconds, ok := d.number(name); ok && seconds > 0 {
			g.delay = time.Duration(seconds) * time.Second
		}
	}
	g.config, _ = d.number("setVersion")
	for _, kind := range []string{"hosts", "passives", "arbiters"} {
		g.members = append(g.members, d.texts(kind)...)
	}
	g.me = d.text("me")
	if id, ok := d.value("topologyVersion", "processId").ObjectIDOK(); ok { // since 4.4
		g.process = id.Hex()
	}
	g.lastWrite, g.hasLastWrite = optimeAt(g.set, d, "lastWrite", "opTime")
	g.lastWrite = g.lastWrite.at(d, "lastWrite", "lastWriteDate")
	return g
}

// role returns the value of the `role` label.
func (g *greeting) role() string {
	switch {
	case g.router:
		return "router"
	case g.set != "":
		return roles[g.state]
	case g.state == statePrimary:
		return "standalone"
	}
	return ""
}

// applyGreeting sets role and position.
func applyGreeting(s *engine.Status, g *greeting) {
	s.Role, s.NoData = g.role(), g.router || g.state == stateArbiter
	if g.set == "" || g.router {
		return
	}
	s.Delay = g.delay
	if g.state != stateUnknown {
		s.Set(setState, float64(g.state))
	}
	if holdsData(g.state) && g.hasLastWrite {
		s.Position, s.Replicating = g.lastWrite, true
	}
}

// membership returns who the server is and who else is in its replica set. Names of sets are often the
// same (rs0), but not with the same members.
func (g *greeting) membership() engine.Membership {
	m := engine.Membership{ServerID: g.process}
	if g.set == "" || len(g.members) == 0 {
		return m
	}
	m.ClusterIDs = []string{g.set + "/" + strings.Join(slices.Sorted(slices.Values(g.members)), ",")}
	for _, address := range g.members {
		m.Members = append(m.Members, engine.Member{Address: address, Self: address == g.me})
	}
	return m
}

// setMember is a member of a replica set as another member sees it.
type setMember struct {
	name    string
	state   int
	healthy bool
	self    bool
	ping    series.Optional[float64] // milliseconds
	optime  optime
	applied bool      // optime is known
	wall    time.Time // time at which optime was written on the primary; zero: unknown
	precise bool      // wall has milliseconds (since 5.0), otherwise whole seconds
}

func readMembers(set string, d document) []setMember {
	var members []setMember
	for _, doc := range d.list("members") {
		m := setMember{name: doc.text("name"), state: stateUnknown, self: doc.is("self")}
		if state, ok := doc.number("state"); ok {
			m.state = int(state)
		}
		if ms, ok := doc.number("pingMs"); ok && !m.self {
			m.ping = series.Some(ms)
		}
		health, ok := doc.number("health")
		m.healthy = m.self || !ok || health != 0
		if m.healthy && holdsData(m.state) {
			m.optime, m.applied = optimeAt(set, doc, "optime")
			m.optime = m.optime.at(doc, "lastAppliedWallTime")
			m.wall, m.precise = doc.time("lastAppliedWallTime")
			if !m.precise {
				m.wall, _ = doc.time("optimeDate")
			}
		}
		members = append(members, m)
	}
	return members
}

// readReplicaSet fills s from the answer to replSetGetStatus.
func readReplicaSet(s *engine.Status, d document) {
	set := d.text("set")
	members := readMembers(set, d)
	state := stateUnknown
	for _, m := range members {
		if m.self {
			state = m.state
		}
	}
	if n, ok := d.number("myState"); ok {
		state = int(n)
	}
	if role, ok := roles[state]; ok {
		s.Role = role
	}
	s.NoData = state == stateArbiter
	setOnce(s, setState, float64(state))
	if term, ok := d.number("term"); ok && term >= 0 {
		s.Set(setTerm, term)
	}
	s.Set(setMembers, float64(len(members)))

	s.Position, s.Replicating = nil, false
	if holdsData(state) {
		if own, ok := ownOptime(set, d, members); ok {
			s.Position, s.Replicating = own, true
		}
	}
	setQueue(s, state)
	readMemberStates(s, set, members)
}

// ownOptime returns the last operation that the asked member has applied. Its entry in the list
// equals `optimes`. Arbiters have only `optimes`, as reported by other members.
func ownOptime(set string, d document, members []setMember) (optime, bool) {
	if o, ok := optimeAt(set, d, "optimes", "appliedOpTime"); ok {
		return o.at(d, "optimes", "lastAppliedWallTime"), true
	}
	for _, m := range members {
		if m.self {
			return m.optime, m.applied
		}
	}
	return optime{}, false
}

// readMemberStates sets how this member sees the others, and the resulting lag.
func readMemberStates(s *engine.Status, set string, members []setMember) {
	primary := -1
	primaries := 0
	for i, m := range members {
		if m.state != statePrimary || !m.healthy {
			continue
		}
		primaries++ // two for some seconds after a partition: the later term counts
		if primary < 0 || members[primary].optime.before(m.optime) {
			primary = i
		}
	}
	s.Set(setPrimaries, float64(primaries), set)
	for _, m := range members {
		if _, known := s.Get(memberState, m.name); known || m.name == "" {
			continue
		}
		s.Set(memberState, float64(m.state), m.name)
		s.SetBool(memberHealth, m.healthy, m.name)
		if m.ping.Known && m.healthy {
			s.Set(memberPing, m.ping.Value/milli, m.name)
		}
		if primary < 0 {
			continue
		}
		lag, ok := lagBehind(&members[primary], &m)
		if !ok {
			continue
		}
		s.Set(memberLag, lag.Seconds(), m.name)
		if m.self && s.Replicating && m.state != statePrimary {
			s.CoarseLagSeconds = series.Some(max(0, lag-s.Delay).Seconds())
		}
	}
}

// lagBehind returns the time between the last operations of the primary and of m. A heartbeat of m
// may be newer than the primary's; that is not lag.
func lagBehind(primary, m *setMember) (time.Duration, bool) {
	if !primary.applied || !m.applied {
		return 0, false
	}
	if !m.optime.before(primary.optime) {
		return 0, true
	}
	if primary.precise && m.precise {
		return max(0, primary.wall.Sub(m.wall)), true
	}
	return time.Duration(max(0, int64(primary.optime.seconds)-int64(m.optime.seconds))) * time.Second, true
}

// setQueue sets the queue of replicated operations for a member that applies them; on other members
// the buffer is always empty.
func setQueue(s *engine.Status, state int) {
	if state != stateSecondary && state != stateRecovering {
		return
	}
	n, ok := s.Get(applyBuffer, "apply")
	if !ok {
		return
	}
	write, _ := s.Get(applyBuffer, "write")
	s.Set(engine.ReplicationQueueTransactions, n+write)
}

// setOnce sets a value and replaces one from a less exact source.
func setOnce(s *engine.Status, m *measure.Metric, v float64, labels ...string) {
	for i := range s.Values {
		if s.Values[i].Metric == m && slices.Equal(s.Values[i].Labels, labels) {
			s.Values[i].V = v
			return
		}
	}
	s.Set(m, v, labels...)
}

// probeOplog keeps the oplog window: the time between the oplog's ends. serverStatus contains the ends if asked for
// them (since 3.0, without an additional privilege). Otherwise the first entry of the oplog is read, and the position
// is the last one.
func (p *prober) probeOplog(ctx context.Context, s *engine.Status, status document, now time.Time) {
	last, ok := s.Position.(optime)
	if !ok {
		return
	}
	first, known := optimeAt("", status, "oplog", "earliestOptime")
	if latest, ok := optimeAt("", status, "oplog", "latestOptime"); known && ok {
		last = latest
	} else if !p.slow.due("oplog", now, slowInterval) {
		return
	} else if first, known = p.firstOplogEntry(ctx); !known {
		return
	}
	if last.seconds >= first.seconds {
		var window engine.Status
		window.Set(oplogWindow, float64(last.seconds-first.seconds))
		p.slow.keep("oplog", now, slowInterval, &window)
	}
}

func (p *prober) firstOplogEntry(ctx context.Context) (optime, bool) {
	ctx, cancel := engine.WithShare(ctx, 0.5)
	defer cancel()
	entries, err := p.documents(p.client.find(ctx, "local", "oplog.rs", bson.D{},
		options.Find().SetSort(bson.M{"$natural": 1}).SetLimit(1).SetProjection(bson.M{"ts": 1})))
	if !p.allowed("oplog", rightOplog, err) || len(entries) == 0 {
		return optime{}, false
	}
	return optimeAt("", entries[0], "ts")
}
