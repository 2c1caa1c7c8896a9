package mongodb

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

const (
	// slowInterval is the interval for readings that change slowly or cost more than a status:
	// hello, the oplog window, rights that were missing.
	slowInterval = 10 * time.Second
	closeTimeout = time.Second
)

// prober samples one server. Its client has a pool of at most two connections, and a monitor with
// one more. The client is kept after an error, since the driver reconnects by itself. The driver's
// goroutines share only heartbeats.
type prober struct {
	target     engine.Target
	log        *slog.Logger
	client     *client
	heartbeats heartbeats
	budget     engine.Budget

	hello      greeting
	helloAt    time.Time // zero: ask again
	membership engine.Membership
	// loginState is the state of the member when the client was opened. The driver does not log in
	// to arbiters, and never again on open connections.
	loginState int

	denied     map[string]denial // by command
	statements uint64            // sent so far, without heartbeats
	queries    uint64            // those that the server counts as a client's, since its start
	served     float64           // queries of clients since the server's start
	started    time.Time         // latest possible start of the server by its last answer
	slow       slowAnswers
	sessions   engine.SessionStates
	oplog      oplogReads
}

// denial is a command that the server refused.
type denial struct {
	at      time.Time
	missing string // text for Status.Missing; empty if no right is missing
}

// slowAnswers are values that are not read at each tick, by what was asked. Each is shown for at
// most three of its intervals.
type slowAnswers map[string]slowAnswer

type slowAnswer struct {
	next   time.Time // when to ask again
	until  time.Time // when the values expire
	values []engine.Value
}

// due reports whether it is time to ask; if so, it sets the next time.
func (a slowAnswers) due(what string, now time.Time, interval time.Duration) bool {
	answer := a[what]
	if now.Before(answer.next) {
		return false
	}
	answer.next = now.Add(interval)
	a[what] = answer
	return true
}

// keep stores an answer.
func (a slowAnswers) keep(what string, now time.Time, interval time.Duration, s *engine.Status) {
	a[what] = slowAnswer{next: now.Add(interval), until: now.Add(3 * interval), values: s.Values}
}

// add adds the values that have not expired to s.
func (a slowAnswers) add(s *engine.Status, now time.Time) {
	for what, answer := range a {
		switch {
		case !now.After(answer.until):
			s.Values = append(s.Values, answer.values...)
		case now.After(answer.next):
			delete(a, what)
		}
	}
}

// Probe reads the server once. It takes three round trips to a standalone server or a mongos, one
// of them a ping, and four to a member of a replica set, plus a few every ten seconds.
func (p *prober) Probe(ctx context.Context) (*engine.Status, error) {
	p.budget.Renew()
	if p.client == nil {
		client, err := connect(p.clientOptions())
		if err != nil {
			return nil, p.explain(err)
		}
		p.client = client
		p.denied, p.slow = map[string]denial{}, slowAnswers{}
		p.helloAt = time.Time{}
	}
	watched, release := p.heartbeats.watch(ctx)
	defer release()
	s, err := p.probe(watched)
	if err = p.budget.Check(err); errors.Is(err, engine.ErrTooMuch) {
		return nil, engine.Explain(err, "%s: %v", p.target.Address, err)
	}
	if err != nil {
		p.helloAt = time.Time{} // the server may come back with another role
		if _, lost := p.heartbeats.last(); lost == nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, p.explain(err)
	}
	return s, nil
}

func (p *prober) probe(ctx context.Context) (*engine.Status, error) {
	now := time.Now()
	slow := now.Sub(p.helloAt) >= slowInterval
	// hello needs no right, so it replaces a refused serverStatus.
	if _, blind := p.denied["serverStatus"]; slow || blind {
		if err := p.greet(ctx, now); err != nil {
			return nil, err
		}
	}
	s := &engine.Status{Flavour: "mongodb"}
	member := p.hello

	d, err := p.probeServer(ctx, s, &member, slow)
	if err != nil {
		return nil, err
	}
	applyGreeting(s, &member)
	s.Membership = p.membership
	if err := p.leaveOutOplogReads(ctx, s, d); err != nil {
		return nil, err
	}

	switch {
	case member.router:
		p.probeShards(ctx, now)
	case member.set != "":
		set, err := p.ask(ctx, "replSetGetStatus", rightReplicaSet)
		if err != nil {
			return nil, err
		}
		if set != nil {
			readReplicaSet(s, set)
		}
		p.probeOplog(ctx, s, d, now)
	}
	if member.state == stateArbiter {
		p.sessions.Set(s, nil) // it serves no clients
	} else if err := p.probeSessions(ctx, s, member.router); err != nil {
		return nil, err
	}
	asked := time.Now()
	if pong, err := p.ask(ctx, "ping", ""); err != nil {
		return nil, err
	} else if pong != nil {
		s.RoundTrip = time.Since(asked)
	}
	p.slow.add(s, now)
	s.Set(engine.AgentStatementsTotal, float64(p.statements))
	p.reportMissing(s, member.state)
	return s, nil
}

// probeServer reads serverStatus and returns it, nil without the privilege. It sets member accordingly.
func (p *prober) probeServer(ctx context.Context, s *engine.Status, member *greeting, slow bool) (document, error) {
	asked := time.Now()
	// Without an oplog, 4.4 answers the request for its ends with an error.
	d, err := p.ask(ctx, "serverStatus", rightServerStatus, statusSections(slow && p.hello.set != "" && holdsData(p.hello.state))...)
	if err != nil {
		return d, err
	}
	if d != nil {
		readServerStatus(s, d)
		if asked.Add(-s.Uptime).Sub(p.started) > engine.RestartTolerance { // however slow the answers
			p.oplog, p.queries, p.served = oplogReads{}, 0, 0
		}
		p.started = time.Now().Add(-s.Uptime)
		if n, ok := s.Get(engine.QueriesTotal); ok {
			p.served = max(p.served, n-float64(p.queries)) // a mirrored read may count before its query does
			setOnce(s, engine.QueriesTotal, p.served)
		}
		if repl, ok := d.sub("repl"); ok {
			*member = p.update(readGreeting(repl))
		}
		return d, nil
	}
	info, err := p.ask(ctx, "buildInfo", "") // needs no right
	if info != nil {
		s.Version = info.text("version")
	}
	return nil, err
}

// What the user can't see because of a missing right. Each text is logged once.
const (
	rightServerStatus = "serverStatus (role clusterMonitor): operations, connections, queues, cache, tickets"
	rightReplicaSet   = "replSetGetStatus (role clusterMonitor): states and lag of the members"
	rightOplog        = "find on local.oplog.rs (role read on local): oplog window"
	rightShards       = "listShards, balancerStatus and find on config (role clusterMonitor): shards, chunks, balancer"
	rightCollStats    = "collStats on all databases (role clusterMonitor): load per shard"
)

// greet asks for the kind of server.
func (p *prober) greet(ctx context.Context, now time.Time) error {
	d, err := p.command(ctx, "hello")
	if code, _ := refusal(err); err != nil && code == codeCommandNotFound { // before 4.4.2
		d, err = p.command(ctx, "isMaster")
	}
	if err != nil {
		return err
	}
	first := p.helloAt.IsZero()
	p.hello, p.helloAt = readGreeting(d), now
	p.membership = p.hello.membership()
	if first {
		p.loginState = p.hello.state
	}
	return nil
}

// update adds to the member state of serverStatus what only hello reports. If the set was
// reconfigured, hello is sent again.
func (p *prober) update(repl greeting) greeting {
	if repl.config != p.hello.config || repl.set != p.hello.set {
		p.helloAt = time.Time{}
	}
	repl.delay = p.hello.delay
	if repl.state == stateUnknown && p.hello.state == stateArbiter {
		repl.state = stateArbiter
	}
	return repl
}

// ask runs a command that a server may refuse. If the server refuses, the answer is nil and the
// command is not sent for a while. Other errors are returned.
func (p *prober) ask(ctx context.Context, name, right string, options ...bson.E) (document, error) {
	return p.attempt(name, right, func() (document, error) { return p.command(ctx, name, options...) })
}

// attempt is ask for a command that shares its name with others.
func (p *prober) attempt(name, right string, ask func() (document, error)) (document, error) {
	if d, ok := p.denied[name]; ok && time.Since(d.at) < slowInterval {
		return nil, nil
	}
	d, err := ask()
	if _, refused := refusal(err); err != nil && !refused {
		return nil, err
	}
	p.allowed(name, right, err)
	return d, nil
}

// allowed reports whether a command succeeded, and notes a refusal.
func (p *prober) allowed(name, right string, err error) bool {
	if err == nil {
		delete(p.denied, name)
		return true
	}
	d := denial{at: time.Now()}
	if lacksRight(err) {
		d.missing = right
	}
	p.denied[name] = d
	return false
}

// reportMissing adds the missing rights to s. An arbiter has no users; when it becomes a member
// that has users, the client is opened again to log in.
func (p *prober) reportMissing(s *engine.Status, state int) {
	canLogin := state != stateArbiter
	if credential(&p.target) != nil && p.loginState == stateArbiter && canLogin && len(p.denied) > 0 {
		if err := p.Close(); err != nil {
			p.log.Debug("closing the client failed", "target", p.target.Name, "err", err)
		}
		return
	}
	why := ""
	if !canLogin {
		why = "an arbiter holds no users, so that no login is possible: "
	}
	for _, d := range p.denied {
		if d.missing != "" {
			s.Missing = append(s.Missing, why+d.missing)
		}
	}
}

// Close closes the connections. A later probe opens new ones.
func (p *prober) Close() error {
	if p.client == nil {
		return nil
	}
	client := p.client
	p.client = nil
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return client.Disconnect(ctx)
}
