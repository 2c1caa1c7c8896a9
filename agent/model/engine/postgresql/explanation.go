package postgresql

import "github.com/benchwatch/benchwatch/agent/model/cause"

// What limits of PostgreSQL's servers mean, and what to do about them.
var _ = cause.Declare(cause.Explanation{
	Engine:   Engine.Name,
	Settings: map[cause.Limit]string{cause.Connections: "max_connections"},
	Messages: map[cause.Limit][]string{cause.Connections: {"too many clients already", "remaining connection slots are reserved"}},
	Programs: []string{"postgres", "pgbouncer"},
})
