package tidb

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// TestConfig guards that the configuration of the members becomes settings, on an answer composed after
// TiDB's documentation: one value for equal members, the members' names for different ones.
func TestConfig(t *testing.T) {
	server, err := mysql.NewServer(mysql.Values{"version": "5.7.25-TiDB-v3.0.5"})
	if err != nil {
		t.Fatal(err)
	}
	q := &querier{rows: rows("Type|Instance|Name|Value", strings.Split(`tikv|10.0.0.4:20160|storage.block-cache.capacity|32GiB
tikv|10.0.0.5:20160|storage.block-cache.capacity|32GiB
tikv|10.0.0.4:20160|readpool.coprocessor.normal-concurrency|8
tikv|10.0.0.5:20160|readpool.coprocessor.normal-concurrency|16
tidb|10.0.0.1:4000|performance.max-procs|24
pd|10.0.0.1:2379|replication.max-replicas|3
pd|10.0.0.1:2379|data-dir|/data/pd
tidb|10.0.0.1:4000|storage.block-cache.capacity|1`, "\n")...)}
	out := engine.Settings{}
	if err := newDetail(t).ReadSettings(context.Background(), q, server, out); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(engine.Settings{
		"tikv.storage.block-cache.capacity":            "32GiB",
		"tikv.readpool.coprocessor.normal-concurrency": "16 on 10.0.0.5:20160; 8 on 10.0.0.4:20160",
		"tidb.performance.max-procs":                   "24",
		"pd.replication.max-replicas":                  "3",
	}, out); d != "" {
		t.Error(d)
	}
	if strings.Contains(configStatement, "data-dir") || !strings.Contains(configStatement, "'storage.block-cache.capacity'") {
		t.Error(configStatement)
	}
}
