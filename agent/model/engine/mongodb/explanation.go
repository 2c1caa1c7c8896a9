package mongodb

import "github.com/benchwatch/benchwatch/agent/model/cause"

var _ = cause.Declare(cause.Explanation{
	Engine: Engine.Name,
	Advice: map[cause.Limit]string{
		cause.Commit:      "repeat with the write concern j: false, for the test only: if the throughput rises, this was the cause",
		cause.Replication: "repeat with the write concern w: 1, for the test only: if the throughput rises, this was the cause",
		cause.Disk:        "repeat with a larger cache of WiredTiger or a faster disk",
	},
	Messages: map[cause.Limit][]string{cause.Connections: {"too many open connections"}},
	Programs: []string{"mongod", "mongos"},
})
