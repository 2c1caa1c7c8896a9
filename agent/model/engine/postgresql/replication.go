package postgresql

import (
	"math"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

type metricOf = measure.Metric

// Roles. A standby is a replica, as with other engines.
const (
	primary = "primary"
	replica = "replica"
)

// sender is a standby or subscriber of this server. Several can have the same name; the slowest counts.
type sender struct {
	synchronous bool
	bytes, lag  map[string]float64 // by stage
}

// stages are the columns of a sender: bytes that a standby lacks, and its own lag.
var stages = []struct{ name, bytes, lag string }{
	{"sent", "sent", ""}, {"write", "written", "write_lag"}, {"flush", "flushed", "flush_lag"}, {"replay", "replayed", "replay_lag"},
}

func (t *tick) readSender(r row) {
	name := r.text("standby")
	if !t.p.server.sees {
		name = "walsender" // it is all that the user sees
	}
	s := t.senders[name]
	if s == nil {
		s = &sender{bytes: map[string]float64{}, lag: map[string]float64{}}
		t.senders[name] = s
	}
	if address := r.text("address"); address != "" { // this server listens on the same port
		t.out.Members = append(t.out.Members, engine.Member{Address: address, State: r.text("state")})
	}
	state := r.text("sync_state")
	s.synchronous = s.synchronous || state == "sync" || state == "quorum"
	for _, stage := range stages {
		if v, ok := r.number(stage.bytes); ok {
			s.bytes[stage.name] = max(s.bytes[stage.name], v, 0)
		}
		if v, ok := r.number(stage.lag); ok && stage.lag != "" {
			s.lag[stage.name] = max(s.lag[stage.name], v, 0)
		}
	}
}

func (t *tick) readSlot(r row) {
	name := r.text("slot_name")
	if has(t.out, slotActive, name) {
		return
	}
	t.slots++
	t.out.SetBool(slotActive, r.is("active"), name)
	status := r.text("wal_status")
	t.out.SetBool(slotLost, status == "lost" || status == "unreserved", name)
	if v, ok := r.number("retained"); ok {
		t.out.Set(slotRetained, max(v, 0), name)
	}
	if v, ok := r.number("safe_wal_size"); ok {
		t.out.Set(slotSafe, max(v, 0), name)
	}
	if age, ok := r.number("snapshot"); ok {
		t.snapshots["slot"] = max(t.snapshots["slot"], age)
	}
}

// readReplay reads the positions of a standby.
func (t *tick) readReplay(r row) {
	t.replayed, t.hasReplayed = r.lsn("replayed")
	t.received, t.hasReceived = r.lsn("received")
	t.paused, t.streams = r.is("paused"), r.is("streams")
	if age, ok := r.number("age"); ok {
		t.replayAge = age
	}
}

func (t *tick) readReceiver(r row) {
	t.streaming = r.text("status") == "streaming"
	if n, ok := r.number("received_tli"); ok && n > 0 && n < 1<<32 {
		t.p.timeline = uint32(n)
	}
	if host, port := r.text("sender_host"), r.text("sender_port"); host != "" && !strings.HasPrefix(host, "/") && port != "" {
		t.out.Members = append(t.out.Members, engine.Member{Address: net.JoinHostPort(host, port)})
	}
	if v, ok := r.number("silence"); ok {
		t.silence = v
	}
}

// subscription is a subscription of logical replication.
type subscription struct {
	running  bool
	received uint64
}

func (t *tick) readSubscription(r row) {
	s := subscription{running: r.bytes("pid") != nil}
	s.received, _ = r.lsn("received_lsn")
	t.subscriptions = append(t.subscriptions, s)
	if name := r.text("subname"); !has(t.out, engine.ReplicationRunning, name, "applier") {
		t.out.SetBool(engine.ReplicationRunning, s.running, name, "applier")
	}
}

// channel names the streaming of a standby in the metrics.
const channel = "wal"

// concludeReplication sets role, position and lag.
func (t *tick) concludeReplication() {
	out, s := t.out, &t.p.server
	switch {
	case !t.positioned:
		return
	case t.recovery:
		t.concludeStandby()
	case len(t.subscriptions) > 0 && len(t.senders) == 0:
		t.concludeSubscriber()
	default:
		out.Role = primary
		out.Position = lsn{system: s.system, timeline: t.timeline, at: t.lsn}
		t.p.timeline = t.timeline
	}
	t.setSenders()
}

// concludeStandby: a standby that has replayed all that it received while the connection is up is not
// behind, however long ago the last transaction was.
func (t *tick) concludeStandby() {
	out, p := t.out, t.p
	out.Role = replica
	if !t.streaming && !t.hasReplayed {
		return
	}
	if t.hasReplayed {
		out.Position = lsn{system: p.server.system, timeline: p.timeline, at: t.replayed}
	}
	if t.streaming && t.hasReceived {
		out.Received = lsn{system: p.server.system, timeline: p.timeline, at: max(t.received, t.replayed)}
	}
	if t.streams || t.streaming {
		out.SetBool(engine.ReplicationRunning, t.streaming, channel, "receiver")
	}
	out.SetBool(engine.ReplicationRunning, !t.paused, channel, "applier")
	out.SetBool(replayPaused, t.paused)
	if t.hasReplayed && t.hasReceived {
		out.Set(replayQueue, float64(max(t.received, t.replayed)-t.replayed))
	}
	if !math.IsNaN(t.replayAge) && t.replayAge >= 0 {
		out.Set(replayAge, t.replayAge)
	}
	switch {
	case !t.streaming || !t.hasReplayed || !t.hasReceived:
	case t.replayed >= t.received:
		out.CoarseLagSeconds = series.Some(0.0)
	case !math.IsNaN(t.replayAge):
		out.CoarseLagSeconds = series.Some(max(0, t.replayAge-out.Delay.Seconds()))
	}
}

// concludeSubscriber: the position of a subscriber is in its publisher's log. A subscriber that is not
// connected keeps its position.
func (t *tick) concludeSubscriber() {
	t.out.Role = replica
	at := uint64(math.MaxUint64)
	for _, s := range t.subscriptions {
		if s.running && s.received > 0 {
			at = min(at, s.received)
		}
	}
	if at != math.MaxUint64 {
		t.p.received = at
	}
	if t.p.received > 0 {
		t.out.Position = lsn{at: t.p.received}
	}
}

// setSenders sets what the server reports about its standbys and subscribers.
func (t *tick) setSenders() {
	synchronous := 0.0
	for name, s := range t.senders {
		for _, stage := range stages {
			if v, ok := s.bytes[stage.name]; ok {
				t.out.Set(standbyBytes, v, name, stage.name)
			}
			if v, ok := s.lag[stage.name]; ok {
				t.out.Set(standbyLag, v, name, stage.name)
			}
		}
		t.out.SetBool(standbySync, s.synchronous, name)
		if s.synchronous {
			synchronous++
		}
	}
	if !t.recovery {
		t.out.Set(syncStandbys, synchronous)
		t.out.Set(syncWanted, synchronousWanted(t.synchronous))
	}
}

// several matches "FIRST 2 (a, b)", "ANY 1 (a, b)" and "2 (a, b)".
var several = regexp.MustCompile(`(?i)^\s*(?:first|any)?\s*([0-9]+)\s*\(`)

// synchronousWanted returns for how many standbys a commit waits by synchronous_standby_names.
func synchronousWanted(names string) float64 {
	if strings.TrimSpace(names) == "" {
		return 0
	}
	if m := several.FindStringSubmatch(names); m != nil {
		n, _ := strconv.Atoi(m[1])
		return float64(n)
	}
	return 1
}

// find returns the value of a metric; nil if it is not set.
func find(s *engine.Status, m *metricOf, labels ...string) *engine.Value {
	for i := range s.Values {
		if v := &s.Values[i]; v.Metric == m && equal(v.Labels, labels) {
			return v
		}
	}
	return nil
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
