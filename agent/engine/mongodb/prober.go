package mongodb

import (
	"context"
	"log/slog"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/benchwatch/benchwatch/agent/engine"
)

const (
	// slowInterval is the pace of what changes slowly or costs more than a
	// status: hello, the oplog window, rights that were missing.
	slowInterval = 10 * time.Second
	closeTimeout = time.Second
)

// prober samples one server. The driver's client it holds has a pool of at
// most two connections and a monitor with one more; it lives on over errors,
// as the driver reconnects by itself. Only heartbeats is shared with the
// driver's goroutines.
type prober struct {
	target     engine.Target
	log        *slog.Logger
	client     *mongo.Client
	heartbeats heartbeats

	hello   greeting
	helloAt time.Time // zero: ask anew
	// loginState is the state of the member when the client was opened. The
	// driver logs in neither to arbiters nor again on open connections.
	loginState int

	denied     map[string]denial // by command
	statements uint64            // sent so far, heartbeats not counted
	window     slowValue
	shards     sharding
}

// denial is a command that the server refused.
type denial struct {
	at      time.Time
	missing string // text for Status.Missing; empty if no right is missing
}

// slowValue is a value that is asked for every slowInterval.
type slowValue struct {
	asked time.Time // last attempt
	known time.Time // last success
	v     float64
}

// current reports whether the value is fresh enough to be shown.
func (v *slowValue) current(now time.Time) bool {
	return !v.known.IsZero() && now.Sub(v.known) < 3*slowInterval
}

// Probe reads the server once: one round trip to a standalone server or a
// mongos, two to a member of a replica set, and a few more every ten seconds.
func (p *prober) Probe(ctx context.Context) (*engine.Status, error) {
	if p.client == nil {
		client, err := mongo.Connect(p.clientOptions())
		if err != nil {
			return nil, p.explain(err)
		}
		p.client = client
		p.denied = map[string]denial{}
		p.helloAt = time.Time{}
	}
	watched, release := p.heartbeats.watch(ctx)
	defer release()
	s, err := p.probe(watched)
	if err != nil {
		p.helloAt = time.Time{} // what comes back may have another role
		if lost, _ := p.heartbeats.last(); lost == nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, p.explain(err)
	}
	return s, nil
}

func (p *prober) probe(ctx context.Context) (*engine.Status, error) {
	now := time.Now()
	slow := now.Sub(p.helloAt) >= slowInterval
	// hello needs no right, so it stands in for a serverStatus that is refused.
	if _, blind := p.denied["serverStatus"]; slow || blind {
		if err := p.greet(ctx, now); err != nil {
			return nil, err
		}
	}
	s := &engine.Status{Flavour: "mongodb"}
	member := p.hello

	d, err := p.ask(ctx, "serverStatus", serverStatusCommand(slow && p.hello.set != ""), rightServerStatus)
	if err != nil {
		return nil, err
	}
	if d != nil {
		readServerStatus(s, d)
		if repl, ok := d.sub("repl"); ok {
			member = p.update(readGreeting(repl))
		}
		p.readOplogSection(d, now)
	} else if d, err = p.ask(ctx, "buildInfo", bson.D{{Key: "buildInfo", Value: 1}}, ""); err != nil {
		return nil, err
	} else if d != nil { // tells the version to everybody
		s.Version = d.text("version")
	}
	applyGreeting(s, &member)

	switch {
	case member.router:
		p.probeShards(ctx, s, now)
	case member.set != "":
		d, err := p.ask(ctx, "replSetGetStatus", bson.D{{Key: "replSetGetStatus", Value: 1}}, rightReplicaSet)
		if err != nil {
			return nil, err
		}
		if d != nil {
			readReplicaSet(s, d)
		}
		p.probeOplog(ctx, s, now)
	}
	s.Set(engine.AgentStatementsTotal, float64(p.statements))
	p.tellMissing(s, member.state)
	return s, nil
}

// What the user can't see without a right. Each is logged once.
const (
	rightServerStatus = "serverStatus (role clusterMonitor): operations, connections, queues, cache, tickets"
	rightReplicaSet   = "replSetGetStatus (role clusterMonitor): states and lag of the members"
	rightOplog        = "find on local.oplog.rs (role read on local): oplog window"
	rightShards       = "listShards, balancerStatus and find on config (role clusterMonitor): shards, chunks, balancer"
	rightCollStats    = "collStats on all databases (role clusterMonitor): load per shard"
)

// greet asks who the server is.
func (p *prober) greet(ctx context.Context, now time.Time) error {
	d, err := p.command(ctx, "admin", bson.D{{Key: "hello", Value: 1}})
	if code, _ := refusal(err); err != nil && code == codeCommandNotFound { // before 4.4.2
		d, err = p.command(ctx, "admin", bson.D{{Key: "isMaster", Value: 1}})
	}
	if err != nil {
		return err
	}
	first := p.helloAt.IsZero()
	p.hello, p.helloAt = readGreeting(d), now
	if first {
		p.loginState = p.hello.state
	}
	return nil
}

// update completes what serverStatus says about the member by what only hello
// says, and asks hello anew when the set was configured anew.
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

// ask runs a command that a server may refuse: then the answer is nil, and
// the command is left alone for a while. Other errors are the caller's.
func (p *prober) ask(ctx context.Context, name string, cmd bson.D, right string) (document, error) {
	if d, ok := p.denied[name]; ok && time.Since(d.at) < slowInterval {
		return nil, nil
	}
	d, err := p.command(ctx, "admin", cmd)
	if err == nil {
		delete(p.denied, name)
		return d, nil
	}
	if _, refused := refusal(err); !refused {
		return nil, err
	}
	p.deny(name, right, err)
	return nil, nil
}

// deny notes that the server refused a command.
func (p *prober) deny(name, right string, err error) {
	d := denial{at: time.Now()}
	if lacksRight(err) {
		d.missing = right
	}
	p.denied[name] = d
}

// tellMissing reports the rights that were found missing. A member that lets
// nobody log in is no matter of rights; when it becomes one that does, the
// client is opened anew.
func (p *prober) tellMissing(s *engine.Status, state int) {
	canLogin := state != stateArbiter
	if credential(&p.target) != nil && p.loginState == stateArbiter && canLogin && len(p.denied) > 0 {
		p.reset()
		return
	}
	for _, d := range p.denied {
		switch {
		case d.missing == "":
		case canLogin:
			s.Missing = append(s.Missing, d.missing)
		default:
			s.Missing = append(s.Missing, "an arbiter holds no users, so nobody can log in to it: "+d.missing)
		}
	}
}

// reset closes the client; the next probe opens another.
func (p *prober) reset() {
	if err := p.Close(); err != nil {
		p.log.Debug("closing the client failed", "target", p.target.Name, "err", err)
	}
}

// Close ends the connections.
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
