package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/benchwatch/benchwatch/agent/engine"
)

// readOplogSection takes the oplog's ends from serverStatus, which has them
// only when asked (since 3.0) and needs no right beyond its own.
func (p *prober) readOplogSection(d document, now time.Time) {
	first, ok1 := optimeAt("", d, "oplog", "earliestOptime")
	last, ok2 := optimeAt("", d, "oplog", "latestOptime")
	if ok1 && ok2 && last.seconds >= first.seconds {
		p.window = slowValue{asked: now, known: now, v: float64(last.seconds - first.seconds)}
	}
}

// probeOplog sets the oplog window. If serverStatus did not tell it, the first
// entry of the oplog is read, every ten seconds; the last is the position.
func (p *prober) probeOplog(ctx context.Context, s *engine.Status, now time.Time) {
	position, ok := s.Position.(optime)
	if !ok {
		return
	}
	if now.Sub(p.window.asked) >= slowInterval {
		p.window.asked = now
		if first, ok := p.firstOplogEntry(ctx); ok && position.seconds >= first.seconds {
			p.window.known, p.window.v = now, float64(position.seconds-first.seconds)
		}
	}
	if p.window.current(now) {
		s.Set(oplogWindow, p.window.v)
	}
}

func (p *prober) firstOplogEntry(ctx context.Context) (optime, bool) {
	ctx, cancel := part(ctx)
	defer cancel()
	cursor, err := p.client.Database("local").Collection("oplog.rs").Find(ctx, bson.D{},
		options.Find().SetSort(bson.D{{Key: "$natural", Value: 1}}).SetLimit(1).
			SetProjection(bson.D{{Key: "ts", Value: 1}}))
	entries, err := p.all(ctx, cursor, err)
	if err != nil {
		p.deny("oplog", rightOplog, err)
		return optime{}, false
	}
	delete(p.denied, "oplog")
	if len(entries) == 0 {
		return optime{}, false
	}
	return optimeAt("", entries[0], "ts")
}

// part bounds what is asked in addition to a sample to half of the time that
// the tick has left, so that the sample itself is kept.
func part(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/2)
}
