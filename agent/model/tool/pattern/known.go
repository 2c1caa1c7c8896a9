package pattern

import "bytes"

// known are texts that the tools of docs/patterns-cookbook.md print, and the names of their patterns. The first one that
// the output has counts.
var known = []struct{ text, name string }{
	{"Avg. Latency     p50 Latency", "memtier"},
	{`"test","rps","avg_latency_ms"`, "valkey-benchmark"},
	{" runtime(sec): ", "ycsb-cpp"},
	{"total ops,    op/s,", "cassandra-stress"},
	{"time,per. metric/s,", "tsbs"},
	{", queries: ", "clickhouse-benchmark"},
	{"Latency distribution:\n", "hey"},
	{"  Requests/sec:\t", "etcd-benchmark"},
}

// Known returns the name of the cookbook's pattern for the output of a tool; empty if it has none.
func Known(head []byte) string {
	for _, k := range known {
		if bytes.Contains(head, []byte(k.text)) {
			return k.name
		}
	}
	return ""
}
