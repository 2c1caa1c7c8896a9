package mysql

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// settingNames are the system variables of MySQL, MariaDB and Percona Server that affect a
// benchmark. A server returns those that it has.
var settingNames = []string{
	"datadir", "innodb_buffer_pool_size", "innodb_buffer_pool_instances", "innodb_dedicated_server", "innodb_page_size",
	"innodb_flush_log_at_trx_commit", "innodb_flush_method", "innodb_flush_neighbors", "innodb_doublewrite", "innodb_use_native_aio",
	"innodb_redo_log_capacity", "innodb_log_file_size", "innodb_log_files_in_group", "innodb_log_buffer_size",
	"innodb_log_writer_threads", "innodb_log_file_buffering", "innodb_data_file_buffering", "innodb_log_write_ahead_size",
	"innodb_io_capacity", "innodb_io_capacity_max", "innodb_read_io_threads", "innodb_write_io_threads", "innodb_random_read_ahead", "innodb_read_ahead_threshold",
	"innodb_purge_threads", "innodb_max_purge_lag", "innodb_page_cleaners", "innodb_lru_scan_depth", "innodb_max_dirty_pages_pct", "innodb_max_dirty_pages_pct_lwm",
	"innodb_thread_concurrency", "innodb_adaptive_hash_index", "innodb_change_buffering", "innodb_autoinc_lock_mode",
	"innodb_deadlock_detect", "innodb_lock_wait_timeout", "innodb_file_per_table", "innodb_numa_interleave", "innodb_encrypt_tables",

	"max_connections", "back_log", "skip_name_resolve", "host_cache_size", "thread_handling", "thread_pool_size", "thread_cache_size",
	"table_open_cache", "table_open_cache_instances", "table_definition_cache",
	"tmp_table_size", "max_heap_table_size", "sort_buffer_size", "join_buffer_size", "query_cache_type", "query_cache_size",
	"performance_schema", "userstat", "general_log", "slow_query_log", "long_query_time",
	"transaction_isolation", "tx_isolation", "autocommit", "default_storage_engine", "character_set_server", "collation_server",
	"require_secure_transport", "read_only", "super_read_only",

	"log_bin", "sync_binlog", "binlog_format", "binlog_row_image", "binlog_cache_size", "binlog_order_commits",
	"binlog_group_commit_sync_delay", "binlog_group_commit_sync_no_delay_count", "binlog_commit_wait_count", "binlog_commit_wait_usec",
	"binlog_transaction_compression", "binlog_transaction_dependency_tracking", "gtid_mode", "gtid_strict_mode",
	"log_slave_updates", "log_replica_updates",
	"slave_parallel_workers", "slave_parallel_threads", "slave_parallel_mode", "slave_parallel_type", "slave_preserve_commit_order",
	"replica_parallel_workers", "replica_parallel_type", "replica_preserve_commit_order", "sync_relay_log",
	"rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled", "rpl_semi_sync_slave_enabled", "rpl_semi_sync_replica_enabled",
}

// renamed maps old names to new ones; servers may have both.
var renamed = strings.NewReplacer("slave", "replica", "master", "source", "tx_isolation", "transaction_isolation")

// errNotConnected is returned if the connection was lost since the last probe.
var errNotConnected = errors.New("not connected")

// SettingsDetail is a Detail with settings that need a statement of their own.
type SettingsDetail interface {
	// ReadSettings adds to out. After an error, what was read before remains.
	ReadSettings(ctx context.Context, q Querier, server *Server, out engine.Settings) error
}

// Settings implements engine.Configured with one statement, and the statements of the details.
func (p *prober) Settings(ctx context.Context) (engine.Settings, error) {
	if p.conn == nil || p.conn.server == nil {
		return nil, errNotConnected
	}
	variables := Values{}
	if err := p.conn.values(ctx, p.showSettings, variables); err != nil {
		at := p.progress
		if !answered(err) {
			p.drop()
		}
		return nil, explain(&p.target, at, err)
	}
	out := DecodeSettings(p.conn.server, variables, p.details)
	for _, d := range p.details {
		more, ok := d.(SettingsDetail)
		if !ok {
			continue
		}
		if err := more.ReadSettings(ctx, p.conn, p.conn.server, out); err != nil && !answered(err) {
			p.drop()
			break
		}
	}
	return out, nil
}

// Statements implements engine.StatementReader.
func (p *prober) Statements(ctx context.Context, before *engine.StatementReading) (*engine.StatementReading, error) {
	if p.conn == nil || p.conn.server == nil {
		return nil, errNotConnected
	}
	p.budget.Renew()
	for _, d := range p.details {
		reader, ok := d.(StatementDetail)
		if !ok {
			continue
		}
		r, err := reader.ReadStatements(ctx, p.conn, &p.target, p.conn.server, before)
		if errors.Is(err, engine.ErrSwitchedOff) {
			continue
		}
		if _, missing := errors.AsType[engine.MissingError](err); err == nil || missing {
			return r, err
		}
		err = p.budget.Check(err)
		at := p.progress
		if !answered(err) {
			p.drop()
		}
		return nil, explain(&p.target, at, err)
	}
	return nil, engine.ErrSwitchedOff
}

// DecodeSettings returns the settings among a server's variables.
func DecodeSettings(server *Server, variables Values, details []Detail) engine.Settings {
	out := engine.Settings{}
	// TiDB also has MySQL's variables, but most of them have no effect.
	if server.Flavour != "tidb" {
		Copy(settingNames, variables, out)
	}
	for _, d := range details {
		if read := d.Needs().ReadSettings; read != nil {
			read(server, variables, out)
		}
	}
	maps.DeleteFunc(out, func(name, _ string) bool {
		other := renamed.Replace(name)
		_, has := out[other]
		return other != name && has
	})
	return out
}

// Copy adds the variables with these names that the server has.
func Copy(names []string, variables Values, out engine.Settings) {
	for _, name := range names {
		if v, ok := variables[name]; ok {
			out[name] = v
		}
	}
}
