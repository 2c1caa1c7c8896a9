package pgbouncer

import "github.com/benchwatch/benchwatch/agent/model/cause"

var _ = cause.Declare(cause.Explanation{
	Engine: Engine.Name, Programs: []string{processName},
	Messages: map[cause.Limit][]string{cause.Connections: {"no more connections allowed"}},
	Settings: map[cause.Limit]string{cause.Connections: "max_client_conn"},
})
