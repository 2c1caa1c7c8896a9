package pgbouncer

import (
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

var _ = cause.Declare(cause.Explanation{
	Engine: Engine.Name, Programs: []string{processName},
	Messages: map[cause.Limit][]string{cause.Connections: {"no more connections allowed"}},
	Settings: map[cause.Limit]string{cause.Connections: "max_client_conn"},
	Advice: map[cause.Limit]string{
		cause.ProxyThread: "start several processes on one port (so_reuseport), or repeat without the proxy: if the throughput rises, this was the cause",
	},
	Causes: append(proxy.Causes(proxy.Setting{
		Name: "pool_size", Test: "raise default_pool_size, or pool_size of the database",
	}), cause.Cause{
		Name: "session mode", Of: []cause.Limit{cause.ProxyQueue},
		Reads: "`total_xact_time`, `sv_active`", // in other modes, clients hold a connection only within a transaction
		Find:  proxy.HeldConnections,
		Test:  "set pool_mode = transaction, unless the tool needs its session",
	}, cause.Cause{
		Name: "idle transactions", Of: []cause.Limit{cause.ProxyQueue},
		Reads: "`total_xact_time`, `total_query_time`",
		Find:  proxy.IdleTransactions, Test: "shorten what the tool does between the statements of a transaction",
	}),
})
