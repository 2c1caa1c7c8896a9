package mongodb

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/engine"
)

// parameters are the server parameters that matter to a benchmark. A server
// answers with those that it has.
var parameters = []string{
	"storageEngineConcurrentReadTransactions", "storageEngineConcurrentWriteTransactions", "storageEngineConcurrencyAdjustmentAlgorithm",
	"wiredTigerConcurrentReadTransactions", "wiredTigerConcurrentWriteTransactions",
	"enableFlowControl", "flowControlTargetLagSeconds", "replWriterThreadCount", "syncdelay", "journalCommitInterval",
	"transactionLifetimeLimitSeconds", "ttlMonitorEnabled", "notablescan",
	"ShardingTaskExecutorPoolMinSize", "ShardingTaskExecutorPoolMaxSize", "taskExecutorPoolSize",
}

// storageOptions are those of the server's start options that are read; others
// may name files with keys.
var storageOptions = [][]string{
	{"storage", "journal", "commitIntervalMs"},
	{"storage", "directoryPerDB"},
	{"storage", "wiredTiger", "engineConfig", "journalCompressor"},
	{"storage", "wiredTiger", "collectionConfig", "blockCompressor"},
	{"net", "compression", "compressors"},
	{"net", "maxIncomingConnections"},
	{"operationProfiling", "mode"},
}

// Settings implements engine.Configured. What the server refuses is left out.
func (p *prober) Settings(ctx context.Context) (engine.Settings, error) {
	if p.client == nil {
		return nil, errors.New("not connected")
	}
	out := engine.Settings{}
	status, err := p.optional(ctx, bson.D{{Key: "serverStatus", Value: 1}, {Key: "metrics", Value: 0}, {Key: "repl", Value: 0}, {Key: "locks", Value: 0}})
	if err != nil {
		return nil, err
	}
	add(out, "storageEngine", status, "storageEngine", "name")
	add(out, "wiredTiger.cache.maximum_bytes", status, "wiredTiger", "cache", "maximum bytes configured")

	ask := bson.D{{Key: "getParameter", Value: 1}}
	for _, name := range parameters {
		ask = append(ask, bson.E{Key: name, Value: 1})
	}
	values, err := p.optional(ctx, ask)
	if err != nil {
		return nil, err
	}
	for _, name := range parameters {
		add(out, name, values, name)
	}
	started, err := p.optional(ctx, bson.D{{Key: "getCmdLineOpts", Value: 1}})
	if err != nil {
		return nil, err
	}
	for _, path := range storageOptions {
		add(out, strings.Join(path, "."), started, append([]string{"parsed"}, path...)...)
	}
	concern, err := p.optional(ctx, bson.D{{Key: "getDefaultRWConcern", Value: 1}})
	if err != nil {
		return nil, err
	}
	add(out, "defaultReadConcern.level", concern, "defaultReadConcern", "level")
	add(out, "defaultWriteConcern.w", concern, "defaultWriteConcern", "w")
	add(out, "defaultWriteConcern.j", concern, "defaultWriteConcern", "j")
	return out, nil
}

// optional runs a command that a server may refuse: then the answer is empty.
func (p *prober) optional(ctx context.Context, cmd bson.D) (document, error) {
	d, err := p.command(ctx, cmd)
	if err == nil {
		return d, nil
	}
	if _, refused := refusal(err); refused {
		return document{}, nil
	}
	return nil, p.explain(err)
}

// add copies a number, a switch or a text, if there is one.
func add(out engine.Settings, name string, d document, path ...string) {
	if on, ok := d.boolean(path...); ok && d.isSwitch(path) {
		out[name] = strconv.FormatBool(on)
	} else if n, ok := d.number(path...); ok {
		out[name] = strconv.FormatFloat(n, 'f', -1, 64)
	} else if text := d.text(path...); text != "" {
		out[name] = text
	}
}

func (d document) isSwitch(path []string) bool {
	v, ok := d.value(path)
	return ok && v.Type == bson.TypeBoolean
}
