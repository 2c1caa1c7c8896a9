package mongodb

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

const (
	// chunkInterval is the interval for counting chunks, which reads an index of the config
	// servers.
	chunkInterval = time.Minute
	// maxCollections limits the collections whose load per shard is read, sharded ones first. Each
	// costs one query to all shards every slowInterval.
	maxCollections = 8
	// maxDatabases limits the databases whose primary shard is shown.
	maxDatabases = 20
)

// probeShards reads the load of the shards as the router sees it, less often than at each tick.
// After an error the values are absent; the router's own status does not depend on the shards.
func (p *prober) probeShards(ctx context.Context, now time.Time) {
	if p.slow.due("shards round", now, slowInterval) {
		ctx, cancel := engine.WithShare(ctx, 0.5)
		defer cancel()
		p.askShards(ctx, now)
	}
}

func (p *prober) askShards(ctx context.Context, now time.Time) {
	keep := func(name string, interval time.Duration, read func(*engine.Status) error) {
		var s engine.Status
		if p.allowed(name, rightShards, read(&s)) {
			p.slow.keep(name, now, interval, &s)
		}
	}
	keep("listShards", slowInterval, func(s *engine.Status) error {
		d, err := p.command(ctx, "listShards")
		readShards(s, d)
		return err
	})
	keep("balancerStatus", slowInterval, func(s *engine.Status) error {
		d, err := p.command(ctx, "balancerStatus")
		readBalancer(s, d)
		return err
	})
	if p.slow.due("chunks", now, chunkInterval) {
		keep("chunks", chunkInterval, func(s *engine.Status) error {
			docs, err := p.chunks(ctx)
			readChunks(s, docs)
			return err
		})
	}
	collections, err := p.shardedCollections(ctx)
	p.allowed("collections", rightShards, err)
	var databases []string
	keep("databases", slowInterval, func(s *engine.Status) error {
		docs, err := p.databases(ctx)
		databases = readDatabases(s, docs)
		return err
	})
	others, err := p.collections(ctx, databases)
	p.allowed("listCollections", rightCollStats, err)
	collections = append(collections, slices.DeleteFunc(others, func(name string) bool { return slices.Contains(collections, name) })...)
	for _, name := range collections[:min(len(collections), maxCollections)] {
		docs, err := p.load(ctx, name)
		if p.allowed("collStats", rightCollStats, err) {
			var s engine.Status
			readLoad(&s, name, docs)
			p.slow.keep("load of "+name, now, slowInterval, &s)
		}
	}
}

func (p *prober) chunks(ctx context.Context) ([]document, error) {
	return p.documents(p.client.aggregate(ctx, "config", "chunks", bson.A{
		bson.M{"$group": bson.M{"_id": "$shard", "count": bson.M{"$sum": 1}}},
	}))
}

// shardedCollections returns the first few sharded collections in alphabetical order, without the
// server's own.
func (p *prober) shardedCollections(ctx context.Context) ([]string, error) {
	docs, err := p.documents(p.client.find(ctx, "config", "collections",
		bson.M{"dropped": bson.M{"$ne": true}}, // dropped collections stayed until 5.0
		options.Find().SetProjection(bson.M{"_id": 1})))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range docs {
		name := d.text("_id")
		database, collection, ok := strings.Cut(name, ".")
		if ok && database != "config" && database != "admin" && !strings.HasPrefix(collection, "system.") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxCollections)], nil
}

// databases returns the databases of clients, each with its primary shard, which contains
// collections that are neither sharded nor moved.
func (p *prober) databases(ctx context.Context) ([]document, error) {
	return p.documents(p.client.find(ctx, "config", "databases", bson.M{},
		options.Find().SetProjection(bson.M{"_id": 1, "primary": 1}).SetSort(bson.M{"_id": 1}).SetLimit(maxDatabases)))
}

// readDatabases sets the primary shard of each database, and returns their names.
func readDatabases(s *engine.Status, docs []document) (names []string) {
	for _, d := range docs {
		name, shard := d.text("_id"), d.text("primary")
		if _, set := s.Get(databasePrimary, name, shard); set || name == "" || shard == "" || name == "config" || name == "admin" {
			continue
		}
		s.Set(databasePrimary, 1, name, shard)
		names = append(names, name)
	}
	return names
}

// collections returns the names of the first few collections in these databases that the user can
// see, sharded or not.
func (p *prober) collections(ctx context.Context, databases []string) (names []string, err error) {
	for _, database := range databases {
		if len(names) >= maxCollections {
			break
		}
		p.statements++
		found, err := p.client.collections(ctx, database)
		if err != nil {
			return names, err
		}
		slices.Sort(found)
		for _, collection := range found {
			if !strings.HasPrefix(collection, "system.") {
				names = append(names, database+"."+collection)
			}
		}
	}
	return names, nil
}

// load asks all shards for the statistics of one collection.
func (p *prober) load(ctx context.Context, name string) ([]document, error) {
	database, collection, _ := strings.Cut(name, ".")
	return p.documents(p.client.aggregate(ctx, database, collection, bson.A{
		bson.M{"$collStats": bson.M{"latencyStats": bson.M{}, "storageStats": bson.M{}}},
		// The statistics of the storage engine are large and not needed.
		bson.M{"$project": bson.M{"shard": 1, "latencyStats": 1, "storageStats.count": 1, "storageStats.size": 1, "storageStats.numOrphanDocs": 1}},
	}))
}

func readShards(s *engine.Status, d document) {
	shards := d.list("shards")
	s.Set(shardCount, float64(len(shards)))
	for _, shard := range shards {
		name := shard.text("_id")
		if _, set := s.Get(shardDraining, name); !set && name != "" {
			s.SetBool(shardDraining, shard.is("draining"), name)
		}
	}
}

func readBalancer(s *engine.Status, d document) {
	if mode := d.text("mode"); mode != "" {
		s.SetBool(balancerEnabled, mode != "off")
	}
	if running, ok := d.number("inBalancerRound"); ok {
		s.Set(balancerRunning, running)
	}
}

func readChunks(s *engine.Status, docs []document) {
	for _, d := range docs {
		shard := d.text("_id")
		_, set := s.Get(shardChunks, shard)
		if n, ok := d.number("count"); ok && shard != "" && !set {
			s.Set(shardChunks, n, shard)
		}
	}
}

// readLoad reads the answers of all shards to $collStats.
func readLoad(s *engine.Status, collection string, docs []document) {
	seen := map[string]bool{}
	for _, d := range docs {
		shard := d.text("shard")
		if shard == "" || seen[shard] {
			continue
		}
		seen[shard] = true
		readLatencies(s, d, "latencyStats", shardLatency, shardOperations, shard, collection)
		for name, m := range map[string]*measure.Metric{"count": shardDocuments, "size": shardDataBytes, "numOrphanDocs": shardOrphans} {
			if v, ok := d.number("storageStats", name); ok {
				s.Set(m, v, shard, collection)
			}
		}
	}
}
