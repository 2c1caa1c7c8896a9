package tidb

import (
	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/engine/mysql"
)

// settingNames are the variables that matter on TiDB, which has MySQL's in name
// only.
var settingNames = []string{
	"tidb_txn_mode", "tidb_enable_async_commit", "tidb_enable_1pc", "tidb_guarantee_linearizability", "tidb_rc_read_check_ts",
	"tidb_mem_quota_query", "tidb_server_memory_limit", "tidb_executor_concurrency", "tidb_distsql_scan_concurrency", "tidb_index_lookup_concurrency",
	"tidb_enable_prepared_plan_cache", "tidb_session_plan_cache_size", "tidb_replica_read", "tidb_isolation_read_engines",
	"tidb_tso_client_batch_max_wait_time", "tidb_enable_tso_follower_proxy", "tidb_store_batch_size",
	"transaction_isolation", "autocommit", "max_connections",
}

// SettingNames implements mysql.Configured.
func (*Detail) SettingNames() []string { return settingNames }

// ReadSettings implements mysql.Configured.
func (*Detail) ReadSettings(server *mysql.Server, variables mysql.Values, out engine.Settings) {
	if server.Flavour == "tidb" {
		mysql.Copy(settingNames, variables, out)
	}
}
