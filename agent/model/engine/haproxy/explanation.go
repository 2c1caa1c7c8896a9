package haproxy

import (
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

var _ = cause.Declare(cause.Explanation{
	Engine: Engine.Name, Programs: []string{processName},
	Advice: map[cause.Limit]string{
		cause.ProxyThread: "raise nbthread, or repeat without the proxy: if the throughput rises, this was the cause",
	},
	Causes: proxy.Causes(proxy.Setting{
		Name: "maxconn", Test: "raise maxconn of the servers (server … maxconn N), above the clients divided by the servers",
	}),
})
