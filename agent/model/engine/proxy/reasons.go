package proxy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// What the answer of a proxy has beside the values of its sample.
const (
	fullQueues  = "queues"       // text: the longest queues
	unusedAll   = "all down"     // text: backends of a role that has no other
	unusedSome  = "down"         // text: other backends that are down
	failures    = "failures"     // value: errors, failed checks and servers marked down since the proxy began
	refusals    = "refused"      // value: clients refused since the proxy began
	clientShare = "client share" // value: connections of clients as a share of their limit
)

var (
	_ = engine.DeclareTestimony(testify)
	_ = engine.DeclareOnset(engine.Onset{Metric: QueueLength, High: 1, Text: "a queue began in %s"})
)

// testify puts what a proxy reports of its queues and backends into words. It does nothing for other servers.
func testify(s *engine.Status, a *evidence.Answer) {
	queues, limits := map[string]float64{}, map[string]float64{}
	up, down := map[string]int{}, map[string][]string{}
	clients, limit := 0.0, 0.0
	for i := range s.Values {
		switch v := &s.Values[i]; v.Metric {
		case QueueLength:
			queues[v.Labels[0]] += v.V
		case PoolLimit:
			limits[v.Labels[0]] += v.V
		case BackendUp:
			if v.V > 0 {
				up[v.Labels[1]]++
			} else {
				down[v.Labels[1]] = append(down[v.Labels[1]], v.Labels[0])
			}
		case ErrorsTotal, CheckFailuresTotal, DownsTotal:
			a.Set(failures, max(0, a.Values[failures])+v.V)
		case RefusedTotal:
			a.Set(refusals, v.V)
		case ClientConnections:
			clients = v.V
		case ClientLimit:
			limit = v.V
		}
	}
	if limit > 0 {
		a.Set(clientShare, clients/limit)
	}
	for _, role := range slices.Sorted(maps.Keys(down)) {
		kind := unusedSome
		if up[role] == 0 {
			kind = unusedAll
		}
		a.Say(kind, strings.Trim(a.Texts[kind]+", "+strings.Join(down[role], ", ")+in(role), ", "))
	}
	for _, role := range slices.Sorted(maps.Keys(queues)) {
		if queues[role] == 0 {
			continue
		}
		a.Queued += queues[role]
		text := fmt.Sprintf("%s%s", table.Plural(int(queues[role]), "client"), in(role))
		if limits[role] > 0 {
			text += fmt.Sprintf(", which allows %s", table.Plural(int(limits[role]), "connection"))
		}
		a.Say(fullQueues, strings.Trim(a.Texts[fullQueues]+", "+text, ", "))
	}
}

// in names a role.
func in(role string) string {
	if role == "" {
		return ""
	}
	return " of " + table.Plain(role)
}

// failing is the part of the clients that a server is taken to hold up that fails while others of its role work.
const failing = 0.6

// Reasons for stalls that any proxy can show.
var _ = evidence.Declare(evidence.Rules{
	Of: "proxies",
	Reasons: []evidence.Reason{
		{Name: "queue of a proxy", Reads: "clients that wait in the proxy, and how many connections it allows", Level: evidence.Symptom,
			Part: func(l *evidence.Look) float64 { return l.ShareOfAll(l.Queued) },
			Text: func(s *evidence.Scene, worst *evidence.Look) string {
				return fmt.Sprintf("%s of %.0f waited in the queue of %s: %s", table.Plural(int(worst.Queued), "client"),
					max(worst.Queued, s.Clients), s.Target, table.Plain(worst.Texts[fullQueues]))
			}},
		{Name: "servers behind a proxy down", Reads: "states of the servers, failed checks and errors, as the proxy reports them", Level: evidence.Origin,
			Part: func(l *evidence.Look) float64 {
				switch {
				case l.Texts[unusedAll] != "":
					return l.Remaining()
				case l.Texts[unusedSome] != "" && l.Increase(failures) > 0:
					return failing * l.Remaining()
				}
				return 0
			},
			Text: func(s *evidence.Scene, worst *evidence.Look) string {
				if down := worst.Texts[unusedAll]; down != "" {
					return fmt.Sprintf("%s had no server to use: down were %s", s.Target, table.Plain(down))
				}
				return fmt.Sprintf("%s marked %s as down, with %s errors and failed checks per second", s.Target,
					table.Plain(worst.Texts[unusedSome]), table.Rounded(s.Increase(failures)))
			}},
		{Name: "clients refused by a proxy", Reads: "connections of clients, their limit, and how many were refused",
			Part: func(l *evidence.Look) float64 {
				if !(l.Increase(refusals) > 0) || !(l.Number(clientShare) >= 1) {
					return 0
				}
				return l.Remaining()
			},
			Text: func(s *evidence.Scene, _ *evidence.Look) string {
				return fmt.Sprintf("%s refused %s clients/s: all connections that it allows were in use", s.Target, table.Rounded(s.Increase(refusals)))
			}},
	},
})
