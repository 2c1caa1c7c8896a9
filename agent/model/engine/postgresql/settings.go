package postgresql

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// settingsText returns all settings that can't contain a secret: numbers, switches and choices that differ from their
// default or matter for a benchmark, and texts that are listed here. A text such as primary_conninfo can
// contain a password.
var settingsText = `SELECT name, setting, coalesce(unit, '') AS unit, source, pending_restart FROM pg_settings
WHERE vartype <> 'string' AND (name IN (` + quoted(settingNames) + `)
OR source NOT IN ('default', 'override', 'client', 'session', 'environment variable') AND name <> 'port' AND category NOT LIKE 'Reporting%'
AND category NOT LIKE 'Connections%' AND category NOT LIKE '%Locale%')
OR name IN (` + quoted(settingTexts) + `) LIMIT 500`

// settingNames are settings that are read even if they have their default.
var settingNames = []string{
	"shared_buffers", "huge_pages", "work_mem", "hash_mem_multiplier", "maintenance_work_mem", "temp_buffers", "effective_cache_size",
	"max_connections", "reserved_connections", "superuser_reserved_connections", "max_worker_processes", "max_parallel_workers", "max_parallel_workers_per_gather",
	"fsync", "synchronous_commit", "wal_sync_method", "wal_level", "wal_buffers", "wal_compression", "wal_writer_delay", "wal_writer_flush_after", "full_page_writes",
	"wal_log_hints", "commit_delay", "commit_siblings", "max_wal_size", "min_wal_size", "checkpoint_timeout", "checkpoint_completion_target", "checkpoint_flush_after",
	"bgwriter_delay", "bgwriter_lru_maxpages", "bgwriter_lru_multiplier", "backend_flush_after", "effective_io_concurrency", "maintenance_io_concurrency",
	"io_method", "io_workers", "io_combine_limit", "random_page_cost", "seq_page_cost", "jit", "jit_above_cost", "plan_cache_mode", "default_statistics_target",
	"autovacuum", "autovacuum_max_workers", "autovacuum_naptime", "autovacuum_vacuum_scale_factor", "autovacuum_vacuum_cost_limit", "autovacuum_vacuum_cost_delay",
	"vacuum_buffer_usage_limit", "old_snapshot_threshold", "idle_in_transaction_session_timeout", "deadlock_timeout", "default_transaction_isolation", "track_io_timing",
	"track_wal_io_timing", "track_activity_query_size", "compute_query_id", "max_standby_streaming_delay", "hot_standby_feedback", "recovery_min_apply_delay",
	"max_slot_wal_keep_size", "archive_mode", "ssl", "data_checksums", "wal_segment_size", "block_size",
}

// settingTexts are texts without secrets.
var settingTexts = []string{
	"server_version", "synchronous_standby_names", "synchronized_standby_slots", "shared_preload_libraries", "wal_consistency_checking", "default_tablespace",
	"temp_tablespaces", "default_table_access_method", "data_directory", "server_encoding", "debug_io_direct", "jit_provider",
}

// extensionsText lists what else makes two servers differ.
const extensionsText = `SELECT (SELECT string_agg(extname || ' ' || extversion, ', ' ORDER BY extname) FROM pg_extension WHERE extname <> 'plpgsql') AS extensions,
(SELECT datcollate FROM pg_database WHERE datname = current_database()) AS collation,
(SELECT pg_database_collation_actual_version(oid) FROM pg_database WHERE datname = current_database()) AS collation_version`

const extensionsBefore15 = `SELECT (SELECT string_agg(extname || ' ' || extversion, ', ' ORDER BY extname) FROM pg_extension WHERE extname <> 'plpgsql') AS extensions,
(SELECT datcollate FROM pg_database WHERE datname = current_database()) AS collation, NULL AS collation_version`

func quoted(names []string) string { return "'" + strings.Join(names, "','") + "'" }

// Settings implements engine.Configured.
func (p *prober) Settings(ctx context.Context) (engine.Settings, error) {
	if p.conn == nil {
		return nil, errNotConnected
	}
	out, pending := engine.Settings{}, []string(nil)
	extensions := extensionsText
	if p.server.major < 15 {
		extensions = extensionsBefore15
	}
	err := p.conn.ask(ctx, []statement{
		{name: "settings", text: settingsText, read: func(r row) {
			name := r.text("name")
			out[name] = settingOf(r.text("setting"), r.text("unit"))
			if r.is("pending_restart") {
				pending = append(pending, name)
			}
		}},
		{name: "extensions", text: extensions, read: func(r row) {
			for _, name := range []string{"extensions", "collation", "collation_version"} {
				if v := r.text(name); v != "" {
					out[name] = v
				}
			}
		}},
	})
	if err != nil {
		at := p.connector.at
		p.drop()
		return nil, explain(&p.target, at, err)
	}
	if refusal := p.conn.refused["settings"]; refusal != nil {
		return nil, explain(&p.target, asking, refusal)
	}
	if len(pending) > 0 {
		out["pending_restart"] = strings.Join(pending, ", ")
	}
	return out, nil
}

// sizes are the units of sizes, in bytes.
var sizes = map[string]float64{"B": 1, "kB": 1 << 10, "MB": 1 << 20}

// settingOf returns a size in bytes, and a time with its unit.
func settingOf(value, unit string) string {
	if unit == "" {
		return value
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || n < 0 { // -1: switched off, or automatic
		return value
	}
	number, name := 1.0, unit
	if digits := strings.TrimRight(unit, "kMB"); digits != "" && digits != unit { // 8kB
		if number, err = strconv.ParseFloat(digits, 64); err != nil {
			return value + unit
		}
		name = strings.TrimPrefix(unit, digits)
	}
	if size, ok := sizes[name]; ok {
		return strconv.FormatFloat(n*number*size, 'f', -1, 64)
	}
	return fmt.Sprint(value, unit)
}
