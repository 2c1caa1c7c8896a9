package mongodb

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// parameters are the server parameters that matter for a benchmark. A server returns those that it
// has.
var parameters = []string{
	"storageEngineConcurrentReadTransactions", "storageEngineConcurrentWriteTransactions", "storageEngineConcurrencyAdjustmentAlgorithm",
	"wiredTigerConcurrentReadTransactions", "wiredTigerConcurrentWriteTransactions",
	"enableFlowControl", "flowControlTargetLagSeconds", "replWriterThreadCount", "syncdelay", "journalCommitInterval",
	"transactionLifetimeLimitSeconds", "ttlMonitorEnabled", "notablescan",
	"ShardingTaskExecutorPoolMinSize", "ShardingTaskExecutorPoolMaxSize", "taskExecutorPoolSize",
}

// startOptions are the start options to read; others may name files with keys.
var startOptions = []string{
	"storage.journal.commitIntervalMs", "storage.directoryPerDB",
	"storage.wiredTiger.engineConfig.journalCompressor", "storage.wiredTiger.collectionConfig.blockCompressor",
	"net.compression.compressors", "net.maxIncomingConnections", "operationProfiling.mode",
}

// Settings implements engine.Configured. It leaves out what the server refuses, for whatever reason:
// a shard's member has no default concerns.
func (p *prober) Settings(ctx context.Context) (engine.Settings, error) {
	if p.client == nil {
		return nil, errors.New("not connected")
	}
	var names []bson.E
	for _, name := range parameters {
		names = append(names, bson.E{Key: name, Value: 1})
	}
	out := engine.Settings{}
	for _, ask := range []struct {
		command string
		options []bson.E
		prefix  string   // of paths in the answer
		paths   []string // these are also the names of the settings
	}{
		{"serverStatus", []bson.E{{Key: "metrics", Value: 0}, {Key: "repl", Value: 0}, {Key: "locks", Value: 0}}, "", []string{"storageEngine.name", "wiredTiger.cache.maximum bytes configured"}},
		{"getParameter", names, "", parameters},
		{"getCmdLineOpts", nil, "parsed.", startOptions},
		{"getDefaultRWConcern", nil, "", []string{"defaultReadConcern.level", "defaultWriteConcern.w", "defaultWriteConcern.j"}},
	} {
		d, err := p.command(ctx, ask.command, ask.options...)
		if err != nil && !answered(err) {
			return nil, p.explain(err)
		}
		for _, path := range ask.paths {
			add(out, path, d.value(strings.Split(ask.prefix+path, ".")...))
		}
	}
	return out, nil
}

// settingNames are the names of settings whose path is different.
var settingNames = map[string]string{"storageEngine.name": "storageEngine", "wiredTiger.cache.maximum bytes configured": "wiredTiger.cache.maximum_bytes"}

// add adds a number, a switch or a text, if it exists.
func add(out engine.Settings, path string, v bson.RawValue) {
	name := cmp.Or(settingNames[path], path)
	if on, ok := v.BooleanOK(); ok {
		out[name] = strconv.FormatBool(on)
	} else if n, ok := number(v); ok {
		out[name] = strconv.FormatFloat(n, 'f', -1, 64)
	} else if text, _ := v.StringValueOK(); text != "" {
		out[name] = text
	}
}
