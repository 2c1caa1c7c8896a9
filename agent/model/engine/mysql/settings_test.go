package mysql

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// TestSettings guards which variables of a server become settings.
func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		variables Values
		want      engine.Settings
	}{
		"both names": {
			Values{
				"version": "8.0.36", "slave_parallel_workers": "4", "replica_parallel_workers": "4", "rpl_semi_sync_master_enabled": "ON", "rpl_semi_sync_source_enabled": "ON",
				"tx_isolation": "READ-COMMITTED", "transaction_isolation": "READ-COMMITTED", "log_slave_updates": "ON",
			},
			engine.Settings{"replica_parallel_workers": "4", "rpl_semi_sync_source_enabled": "ON", "transaction_isolation": "READ-COMMITTED", "log_slave_updates": "ON"},
		},
		"the old name only": {Values{"version": "10.11.6-MariaDB", "slave_parallel_threads": "8"}, engine.Settings{"slave_parallel_threads": "8"}},
		"not asked for":     {Values{"version": "8.0.36", "validate_password": "x", "innodb_flush_method": ""}, engine.Settings{"innodb_flush_method": ""}},
		// TiDB returns MySQL's defaults, which have no effect.
		"tidb": {Values{"version": "8.0.11-TiDB-v8.5.0", "innodb_buffer_pool_size": "134217728"}, engine.Settings{}},
	} {
		server, err := NewServer(c.variables)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, DecodeSettings(server, c.variables, nil)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
