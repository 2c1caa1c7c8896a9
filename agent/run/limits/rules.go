package limits

import (
	"slices"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// rule is a limit with the function that finds it. Everything that a rule reads was computed before.
type rule[T any] struct {
	limit cause.Limit
	// find returns the finding without its limit; its share is unknown or 0 if there is no finding.
	find func(*T) LimitFinding
	// charts are the measures whose charts show it, the most telling first.
	charts measures
}

type measures []*measure.Measure

// The rules, by what they are applied to. A wait, a state that slows a server, or advice is declared by the engine, see
// package cause. A new limit is an entry here and, if its share is not part of the evidence, a step of newShares.
var (
	runRules = []rule[Evidence]{
		{cause.Connections, (*Evidence).refusedConnections, measures{engine.RefusedConnections, engine.OpenConnections}},
		{cause.Ports, (*Evidence).missingPorts, measures{engine.OpenedConnections}},
		{cause.Files, (*Evidence).missingFiles, measures{engine.OpenConnections}},
	}
	poolRules = []rule[serverShares]{
		{cause.Pool, (*serverShares).smallPool, measures{engine.PageMisses, engine.PagesRead, host.DiskBusy}},
	}
	serverRules = []rule[serverShares]{
		{cause.ServerCPU, (*serverShares).reportedCores, measures{host.Busy, engine.RunningSessions}},
	}
	sessionRules = []rule[shares]{
		{cause.State, (*shares).unruledState, measures{engine.OtherSessions}},
		{cause.FlowControl, (*shares).flowControl, measures{engine.FlowControl, engine.FlowControlSent, engine.ReplicationQueue}},
	}
	machineRules = []rule[machineShares]{
		{cause.ToolCPU, (*machineShares).confinedTool, measures{host.Busy, host.CPUStall}},
		{cause.ProcessCPU, (*machineShares).confinedServers, measures{engine.ServerCPU, host.Busy}},
		{cause.Neighbours, (*machineShares).otherPrograms, measures{host.Busy, host.CPUStall}},
		{cause.ServerCPU, (*machineShares).serverCores, measures{host.Busy, engine.RunningSessions}},
		{cause.SharedCPU, (*machineShares).sharedCores, measures{host.Busy, engine.RunningSessions}},
		{cause.GeneratorCPU, (*machineShares).generatorCores, measures{host.Busy, host.CPUStall}},
		{cause.ServerCore, (*machineShares).fullServerCore, measures{host.BusiestCore}},
		{cause.OneCore, (*machineShares).fullGeneratorCore, measures{host.BusiestCore}},
		{cause.Steal, (*machineShares).steal, measures{host.Steal}},
		{cause.Disk, (*machineShares).busyDisk, measures{host.DiskBusy, host.DiskWait, host.DiskQueue}},
	}
	linkRules = []rule[machineShares]{
		{cause.Network, (*machineShares).fullLink, measures{host.NetworkBusy, engine.NetworkSessions}},
	}
	proxyRules = []rule[proxyShares]{
		{cause.ProxyQueue, (*proxyShares).queue, measures{proxy.Queue, proxy.Connections, engine.RunningSessions}},
		{cause.ProxyThread, (*proxyShares).fullThread, measures{proxy.ThreadUse, engine.ServerCPU}},
	}
	pathRules = []rule[shares]{
		{cause.RoundTrip, (*shares).roundTrips, measures{engine.RoundTrip}},
	}
)

// concluded are the charts of the limits that follow from the other findings and from the time that remains.
var concluded = map[cause.Limit]measures{
	cause.Outside:   {engine.RunningThreads, engine.RoundTrip},
	cause.Clients:   {engine.RunningThreads, host.Busy},
	cause.Rate:      {tool.QueueLength},
	cause.OtherLoad: {engine.QueryRate},
}

// alsoShown are the charts that show a wait or a state beside its own measure.
var alsoShown = map[cause.Limit]measures{
	cause.Replication: {engine.LagSeconds},
	cause.Commit:      {host.DiskBusy, host.DiskWait},
	cause.RowLocks:    {engine.LockWaits, engine.Deadlocks},
	cause.Checkpoint:  {host.DiskBusy},
}

// Charts returns the measures whose charts are the evidence of a limit, the most telling first.
func Charts(limit cause.Limit) []*measure.Measure {
	var all measures
	add := func(more measures) {
		for _, m := range more {
			if m != nil && !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	add(chartsOf(limit, runRules))
	add(chartsOf(limit, poolRules))
	add(chartsOf(limit, serverRules))
	add(chartsOf(limit, sessionRules))
	add(chartsOf(limit, machineRules))
	add(chartsOf(limit, linkRules))
	add(chartsOf(limit, proxyRules))
	add(chartsOf(limit, pathRules))
	add(concluded[limit])
	for _, class := range cause.Classes(limit) {
		add(measures{engine.SessionsOf(class)})
	}
	for _, state := range cause.Stalls(limit) {
		add(measures{state.Measure})
	}
	add(alsoShown[limit])
	return all
}

func chartsOf[T any](limit cause.Limit, rules []rule[T]) (all measures) {
	for _, r := range rules {
		if r.limit == limit {
			all = append(all, r.charts...)
		}
	}
	return all
}
