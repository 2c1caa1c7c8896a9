package proxy

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

const (
	// nearLimit is the share of its limit from which on a pool counts as full.
	nearLimit = 0.9
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
			Name: "retries", Of: []cause.Limit{cause.ProxyQueue, cause.Outside},
			Reads: "connections that the proxy tried again",
			Find:  retried, Test: "look at the servers' logs for refused connections",
		},
	}
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
	return cause.Found{Of: v.Target, Part: min(1, away/listed), Evidence: evidence}, true
}

func fullPool(v *cause.View, setting string) (cause.Found, bool) {
	limit, open := v.Last(Limit), v.Mean(Connections)
	if assigned := v.Mean(Assigned); assigned > 0 {
		open = assigned
	}
	if !(limit > 0) || !(open >= nearLimit*limit) {
		return cause.Found{}, false
	}
	part := 0.99
	if v.Mean(InTransactions) < fewUsed*open { // what holds the connections says more
		part = 0.5
	}
	return cause.Found{Of: setting, Part: part, Evidence: fmt.Sprintf("%s allows %s connections to its servers (%s), and %s were in use on average",
		v.Target, table.Rounded(limit), setting, table.Rounded(open))}, true
}

// retryShare is the share of sessions that were tried again from which on retries are a cause.
const retryShare = 0.05

func retried(v *cause.View) (cause.Found, bool) {
	retries, sessions := v.Increase(Retries), v.Mean(Sessions)*v.Seconds
	if !(retries >= retryShare*sessions) || !(retries > 0) {
		return cause.Found{}, false
	}
	return cause.Found{Of: v.Target, Part: min(1, retries/max(sessions, retries)), Evidence: fmt.Sprintf(
		"%s tried %s connections to its servers again, for %s sessions", v.Target, table.Rounded(retries), table.Rounded(sessions))}, true
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
