package pgbouncer

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
	"github.com/benchwatch/benchwatch/agent/model/table"
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
	}, cause.Cause{
		Name: "TLS handshakes", Of: []cause.Limit{cause.ProxyThread},
		Reads: "`client_tls_sslmode`, `total_client_login_count` (version 1.24 and later), CPU time for each login",
		Find:  func(v *cause.View) (cause.Found, bool) { return logins(v, true) },
		Test:  "repeat with connections that stay open, or with a certificate whose key is an elliptic curve",
	}, cause.Cause{
		Name: "a connection for each transaction", Of: []cause.Limit{cause.ProxyThread},
		Reads: "`total_client_login_count` (version 1.24 and later), CPU time for each login, without TLS",
		Find:  func(v *cause.View) (cause.Found, bool) { return logins(v, false) },
		Test:  "repeat with connections that stay open",
	}),
})

const (
	// usualCPU is about what a transaction takes of the CPU in seconds, leastLogin what makes a login expensive.
	usualCPU   = 50e-6
	leastLogin = 6 * usualCPU
)

// logins finds that clients log in for each transaction, with or without TLS. Optional TLS leaves open which it is.
func logins(v *cause.View, encrypted bool) (cause.Found, bool) {
	rate := v.PerSecond(proxy.Accepted)
	each := v.Mean(engine.ServerCPU) / rate
	if !(rate >= v.Throughput/2) || !(each >= leastLogin) {
		return cause.Found{}, false
	}
	what := "logins"
	switch v.Setting("client_tls_sslmode") {
	case "require", "verify-ca", "verify-full":
		if !encrypted {
			return cause.Found{}, false
		}
		what = "TLS handshakes"
	case "disable":
		if encrypted {
			return cause.Found{}, false
		}
	default:
		return cause.Found{}, false
	}
	return cause.Found{Of: v.Target, Part: 1 - usualCPU/each, Evidence: fmt.Sprintf("clients made %s %s a second, %s for each transaction, and %s used %s ms of CPU for each",
		table.Rounded(rate), what, table.Digits.Format(rate/v.Throughput), v.Target, table.Milliseconds.Format(each))}, true
}
