package mongodb

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/engine"
)

// The rights that are needed.
const (
	missingTop    = "statements: the right top (role clusterMonitor)"
	missingUptime = "statements: the right serverStatus (role clusterMonitor)"
)

// kinds are the commands by which `top` counts, with their names there. Its other fields are
// sums of these.
var kinds = []struct{ field, name string }{
	{"queries", "find"}, {"getmore", "getMore"}, {"insert", "insert"}, {"update", "update"}, {"remove", "delete"}, {"commands", "command"},
}

// mostNamespaces bounds what is read of the answer to `top`.
const mostNamespaces = 5000

// Statements implements engine.StatementReader: what `top` counts by collection and command. A
// mongos has none, its shards do.
func (p *prober) Statements(ctx context.Context, _ *engine.StatementReading) (*engine.StatementReading, error) {
	switch {
	case p.target.Options[engine.OptionStatements] == engine.Off || p.hello.router || p.hello.state == stateArbiter:
		return nil, engine.ErrSwitchedOff
	case p.client == nil:
		return nil, errors.New("not connected")
	}
	p.budget.Renew()
	watched, release := p.heartbeats.watch(ctx)
	defer release()
	r := &engine.StatementReading{}
	status, err := p.command(watched, "serverStatus", statusSections(false)...)
	if err != nil {
		return nil, p.unreadable(err, missingUptime)
	}
	var s engine.Status
	readServerStatus(&s, status)
	r.UptimeSeconds = s.Uptime.Seconds()
	top, err := p.command(watched, "top")
	if err != nil {
		return nil, p.unreadable(err, missingTop)
	}
	r.Statements = readTop(top)
	return r, nil
}

// unreadable returns why a command has no answer.
func (p *prober) unreadable(err error, right string) error {
	switch _, refused := refusal(err); {
	case lacksRight(err):
		return engine.MissingError(right)
	case refused: // it is no mongod
		return engine.ErrSwitchedOff
	}
	return p.explain(p.budget.Check(err))
}

// readTop returns what was counted of each collection but the server's own.
func readTop(d document) []engine.Statement {
	var all []engine.Statement
	totals, _ := d.sub("totals")
	elements, _ := bson.Raw(totals).Elements() // the valid ones
	for _, e := range elements[:min(len(elements), mostNamespaces)] {
		counts, ok := e.Value().DocumentOK()
		database, collection, _ := strings.Cut(e.Key(), ".")
		if !ok || collection == "" || database == "local" || database == "admin" || database == "config" || strings.HasPrefix(collection, "system.") {
			continue
		}
		for _, kind := range kinds {
			n, ok1 := document(counts).number(kind.field, "count")
			microseconds, ok2 := document(counts).number(kind.field, "time")
			if !ok1 || !ok2 || n <= 0 || microseconds < 0 {
				continue
			}
			text := kind.name + " " + e.Key()
			all = append(all, engine.Statement{Schema: database, Digest: text, Text: text,
				StatementCounts: engine.StatementCounts{Executions: n, Seconds: microseconds * float64(time.Microsecond) / float64(time.Second)}})
		}
	}
	return all
}
