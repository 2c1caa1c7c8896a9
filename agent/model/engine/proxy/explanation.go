package proxy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

const (
	// nearLimit is the share of its limit from which on a pool counts as full: between two clients a connection is free for
	// a moment, which is longer on a busy machine.
	nearLimit = 0.75
	// fewUsed is the share of the time below which connections that clients hold are hardly used.
	fewUsed = 0.7
	// leastAway is the share of the servers from which on their absence explains a queue.
	leastAway = 0.05
)

// Setting is how a kind of proxy names what limits its connections to servers, and how to change it.
type Setting struct{ Name, Test string }

// Causes returns the causes that are the same for every kind of proxy. Each engine declares them with the name of its
// own setting.
func Causes(limit Setting) []cause.Cause {
	return []cause.Cause{
		{
			Name: "servers not in use", Of: []cause.Limit{cause.ProxyQueue, cause.Outside},
			Reads: "states of the servers, as the proxy reports them",
			Find:  serversAway, Test: "start the servers that are down, or look why the proxy's health check fails",
		},
		{
			Name: "limit of connections to servers", Of: []cause.Limit{cause.ProxyQueue},
			Reads: "limits and connections of the proxy",
			Find:  func(v *cause.View) (cause.Found, bool) { return fullPool(v, limit.Name) }, Test: limit.Test,
		},
		{
			Name: "unequal distribution", Of: []cause.Limit{cause.ProxyQueue, cause.ServerCPU, cause.ProcessCPU, cause.ServerCore},
			Reads: "sessions of each server, as the proxy counts them; limits and connections of the proxy",
			Find:  unequal, Test: "give the servers equal weights, or change how the proxy chooses one",
		},
		{
			Name: "retries", Of: []cause.Limit{cause.ProxyQueue, cause.Outside},
			Reads: "connections that the proxy tried again",
			Find:  retried, Test: "look at the servers' logs for refused connections",
		},
	}
}

// queued is how many clients waited in the queue, on average: see how limits counts them.
func queued(v *cause.View) float64 {
	return max(cause.OrZero(v.Mean(Queue)), cause.OrZero(v.Mean(Waited)))
}

// lost is how many connections the proxy would allow in addition if all servers were in use; 0 if it allows any number.
func lost(v *cause.View) float64 {
	up, listed := v.Mean(BackendsUp), v.Last(Listed)
	if !(up > 0) || !(listed > up) {
		return 0
	}
	return cause.OrZero(v.Mean(Limit)) * (listed - up) / up
}

func serversAway(v *cause.View) (cause.Found, bool) {
	up, listed := v.Mean(BackendsUp), v.Last(Listed)
	away := listed - up
	if !(listed > 0) || !(away >= leastAway*listed) {
		return cause.Found{}, false
	}
	evidence := fmt.Sprintf("%s of the %s servers of %s were not in use, on average", table.Rounded(away), table.Rounded(listed), v.Target)
	if downs := v.Increase(Downs); downs > 0 {
		evidence += fmt.Sprintf("; it marked one as down %s times", table.Rounded(downs))
	}
	part := away / listed
	if more := lost(v); v.Limit == cause.ProxyQueue && more > 0 {
		part = more / queued(v)
	}
	return cause.Found{Of: v.Target, Part: min(1, part), Evidence: evidence}, true
}

func fullPool(v *cause.View, setting string) (cause.Found, bool) {
	limit, open := v.Mean(Limit), v.Mean(Connections)
	if assigned := v.Mean(Assigned); assigned > 0 {
		open = assigned
	}
	if !(limit > 0) || !(open >= nearLimit*limit) {
		return cause.Found{}, false
	}
	part := 0.99
	in := v.Mean(InTransactions)
	if in < fewUsed*open || v.Mean(InQueries) < fewUsed*in || lost(v) >= queued(v)/2 { // what takes the connections says more
		part = 0.5
	}
	return cause.Found{Of: setting, Part: part, Evidence: fmt.Sprintf("%s allows %s connections to its servers (%s), and %s were in use on average",
		v.Target, table.Rounded(limit), setting, table.Rounded(open))}, true
}

// retryShare is the share of sessions that were tried again from which on retries are a cause.
const retryShare = 0.05

func retried(v *cause.View) (cause.Found, bool) {
	retries := v.Increase(Retries)
	sessions := v.Mean(Sessions)*v.Seconds - retries // each attempt counts as one
	if !(retries >= retryShare*sessions) || !(retries > 0) {
		return cause.Found{}, false
	}
	return cause.Found{Of: v.Target, Part: retries / max(sessions, retries), Evidence: fmt.Sprintf(
		"%s tried %s connections to its servers again, for %s sessions", v.Target, table.Rounded(retries), table.Rounded(sessions))}, true
}

// mostUnequal is how many times its equal share a server may get of the sessions.
const mostUnequal = 1.5

// unequal finds that one server gets most of the sessions while all are in use. The servers of several roles do different
// work.
func unequal(v *cause.View) (cause.Found, bool) {
	by := v.IncreaseBy(Given, "backend")
	if len(v.IncreaseBy(Given, "backend_role")) != 1 || len(by) < 2 || !(v.Last(Listed)-v.Mean(BackendsUp) < leastAway*v.Last(Listed)) {
		return cause.Found{}, false
	}
	name, most, all := "", 0.0, 0.0
	for _, backend := range slices.Sorted(maps.Keys(by)) {
		if all += cause.OrZero(by[backend]); by[backend] > most {
			name, most = backend, by[backend]
		}
	}
	share, equal := most/all, 1/float64(len(by))
	if !(share >= mostUnequal*equal) {
		return cause.Found{}, false
	}
	part := 1 - equal/share
	if v.Limit == cause.ProxyQueue {
		part = min(1, (v.Mean(Limit)-v.Mean(Connections))/queued(v)) // the others had room for so many
	}
	return cause.Found{Of: name, Part: part, Evidence: fmt.Sprintf("%s got %s of the sessions that %s gave to %d servers", name, table.Share(share), v.Target, len(by))}, true
}

// HeldConnections finds that clients keep connections to servers that they hardly use, for proxies that can take them back
// between transactions.
func HeldConnections(v *cause.View) (cause.Found, bool) {
	held, used := v.Mean(Assigned), v.Mean(InTransactions)
	if !(held > 0) || !(used < fewUsed*held) {
		return cause.Found{}, false
	}
	return cause.Found{Of: v.Target, Part: 1 - used/held, Evidence: fmt.Sprintf(
		"clients held %s connections to servers, but only %s were within a transaction, on average", table.Rounded(held), table.Rounded(used))}, true
}

// IdleTransactions finds that clients hold connections within transactions in which no query runs.
func IdleTransactions(v *cause.View) (cause.Found, bool) {
	in, queries := v.Mean(InTransactions), v.Mean(InQueries)
	if !(in > 0) || !(queries < fewUsed*in) {
		return cause.Found{}, false
	}
	return cause.Found{Of: v.Target, Part: 1 - queries/in, Evidence: fmt.Sprintf(
		"%s connections were within a transaction, but only %s of them had a query, on average", table.Rounded(in), table.Rounded(queries))}, true
}
