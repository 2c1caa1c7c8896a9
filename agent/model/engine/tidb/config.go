package tidb

import (
	"context"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// configNames are the relevant items of the configuration files, by the kind of member.
var configNames = map[string][]string{
	"tidb": {
		"performance.max-procs", "performance.txn-total-size-limit", "token-limit", "oom-action", "mem-quota-query", "log.level", "log.slow-threshold",
		"prepared-plan-cache.enabled", "tikv-client.grpc-connection-count", "tikv-client.copr-cache.capacity-mb", "pessimistic-txn.max-retry-count",
	},
	"tikv": {
		"readpool.coprocessor.high-concurrency", "readpool.coprocessor.normal-concurrency", "readpool.coprocessor.low-concurrency", "readpool.coprocessor.use-unified-pool",
		"readpool.storage.high-concurrency", "readpool.storage.normal-concurrency", "readpool.storage.low-concurrency", "readpool.storage.use-unified-pool",
		"readpool.unified.max-thread-count", "readpool.unified.min-thread-count", "server.grpc-concurrency",
		"storage.block-cache.capacity", "storage.block-cache.shared", "storage.scheduler-worker-pool-size", "storage.flow-control.enable",
		"rocksdb.defaultcf.block-cache-size", "rocksdb.writecf.block-cache-size", "rocksdb.defaultcf.write-buffer-size", "rocksdb.max-background-jobs",
		"raftstore.apply-pool-size", "raftstore.store-pool-size", "raftstore.sync-log", "raft-engine.enable", "pessimistic-txn.pipelined", "pessimistic-txn.in-memory",
		"coprocessor.region-max-size", "coprocessor.region-split-size",
	},
	"pd": {
		"replication.max-replicas", "replication.location-labels", "schedule.leader-schedule-limit", "schedule.region-schedule-limit",
		"schedule.hot-region-schedule-limit", "schedule.max-merge-region-size", "schedule.merge-schedule-limit",
	},
}

// configStatement asks for these items alone: others may name files and addresses.
var configStatement = func() string {
	var names []string
	for _, of := range configNames {
		names = append(names, of...)
	}
	slices.Sort(names)
	return "SHOW CONFIG WHERE Type IN ('pd', 'tidb', 'tikv') AND Name IN ('" + strings.Join(slices.Compact(names), "', '") + "')"
}()

// ReadSettings implements mysql.SettingsDetail: the configuration of all members of the cluster, under
// names that begin with their kind. A value that differs between members names them.
func (*Detail) ReadSettings(ctx context.Context, q mysql.Querier, server *mysql.Server, out engine.Settings) error {
	if server.Flavour != "tidb" {
		return nil
	}
	rows, err := q.Rows(ctx, configStatement)
	if mysql.Refused(err) { // without the privilege CONFIG, or before TiDB 4
		return nil
	}
	if err != nil {
		return err
	}
	values := map[string][]string{}             // by name
	members := map[string]map[string][]string{} // by name and value
	for _, row := range rows {
		kind, name, value := row.Text("Type"), row.Text("Name"), row.Text("Value")
		if !slices.Contains(configNames[kind], name) {
			continue
		}
		name = kind + "." + name
		if members[name] == nil {
			members[name] = map[string][]string{}
		}
		if members[name][value] == nil {
			values[name] = append(values[name], value)
		}
		members[name][value] = append(members[name][value], row.Text("Instance"))
	}
	for name, all := range values {
		if len(all) == 1 {
			out[name] = all[0]
			continue
		}
		var each []string
		for _, value := range all {
			each = append(each, value+" on "+strings.Join(members[name][value], ", "))
		}
		slices.Sort(each)
		out[name] = strings.Join(each, "; ")
	}
	return nil
}
