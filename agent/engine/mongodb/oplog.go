package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/benchwatch/benchwatch/agent/engine"
)

// probeOplog keeps the oplog window, the time between the oplog's ends. The ends
// are in serverStatus if that was asked for them (since 3.0, no further right
// needed). Otherwise the first entry of the oplog is read; the last one is the
// position.
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
	cursor, err := p.client.Database("local").Collection("oplog.rs").Find(ctx, bson.D{},
		options.Find().SetSort(bson.D{{Key: "$natural", Value: 1}}).SetLimit(1).
			SetProjection(bson.D{{Key: "ts", Value: 1}}))
	entries, err := p.all(ctx, cursor, err)
	if !p.allowed("oplog", rightOplog, err) || len(entries) == 0 {
		return optime{}, false
	}
	return optimeAt("", entries[0], "ts")
}
