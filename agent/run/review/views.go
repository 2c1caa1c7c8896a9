package review

import (
	"fmt"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// leastInStatements is the share of the clients' time that statements must take in a server to explain anything.
const leastInStatements = 0.1

// mostInStatements is the share from which on the statements are others', too: clients have one statement at a time.
const mostInStatements = 1.3

// leastOften is how often a transaction of the run must execute a statement at least, on average: rarer ones, such as the
// queries of somebody who watches the server, may be others'. leastCounted is the part of the clients' statements that the
// counters by statement must have: else they were reset or do not have all.
const leastOften, leastCounted = 0.01, 0.8

// mostForeign is the share of foreign statements from which on a server's counters are not the run's.
const mostForeign = 0.3

// views returns what causes can read: of each server that the evidence has, and of the run.
func views(h *record.History, r *Row, e *limits.Evidence) []cause.View {
	run := cause.View{
		Tool: e.Tool, Seconds: e.Seconds, Threads: e.Threads, Rate: e.Rate, Throughput: e.Throughput, Statements: e.Statements,
		FailedShare: r.FailedShare.Value, ForeignShare: e.ForeignShare,
		Record: machineRecord{h}, RoundTrip: directRoundTrip(h, e), Silent: silent(h),
		Opened: openedConnections(h) / e.Throughput,
	}
	for i := range e.Machines {
		if m := &e.Machines[i]; m.Generator {
			run.CPU, run.ToolCores = m.Use(), m.ToolCPU/e.Seconds
		}
	}
	all := []cause.View{run}
	for i := range e.Servers {
		s := &e.Servers[i]
		if s.Samples < limits.LeastSamples || s.Engine == record.DumpEngine {
			continue
		}
		v, of := run, newView(h, h.Server(s.Name))
		v.Target, v.Engine, v.Version, v.Record = of.Target, of.Engine, of.Version, of.Record
		v.ServerCores, v.FullCores = series.Unknown(), series.Unknown()
		for j := range e.Machines {
			if m := &e.Machines[j]; slices.Contains(m.Servers, s.Name) {
				v.ServerCores, v.FullCores = m.ServerCores(e.Seconds), m.CPU.High
			}
		}
		for _, state := range s.States {
			v.States = append(v.States, cause.StateSessions(state))
		}
		if e.ForeignShare < mostForeign || !series.IsKnown(e.ForeignShare) {
			v.Executed, v.InStatements = executedOf(h, s.Name, e.Threads, e.Throughput)
		}
		all = append(all, v)
	}
	for i := range e.Proxies {
		p := &e.Proxies[i]
		v, of := run, newView(h, h.Server(p.Name))
		v.Target, v.Engine, v.Version, v.Record = of.Target, of.Engine, of.Version, of.Record
		all = append(all, v)
	}
	return all
}

// directRoundTrip is the round trip to the servers if the tool connects to them and not to a proxy, else unknown.
func directRoundTrip(h *record.History, e *limits.Evidence) float64 {
	server := h.Snapshot.Meta.Servers.Server(e.RoundTripTo)
	if server == nil || !server.Connected || server.Proxy || e.RoundTrips < limits.LeastSamples {
		return series.Unknown()
	}
	return e.RoundTrip
}

// mostlySilent is the share of samples without an answer from which on a server counts as silent.
const mostlySilent = 0.3

// silent describes the servers of the run that mostly did not answer, by name.
func silent(h *record.History) map[string]string {
	all := map[string]string{}
	for _, s := range h.Servers {
		server := h.Snapshot.Meta.Servers.Server(s.Target)
		if server == nil || server.Proxy || s.Ticks < limits.LeastSamples || float64(s.Unanswered) < mostlySilent*float64(s.Ticks) || !slices.ContainsFunc(s.Errors, engine.IsSilence) {
			continue
		}
		all[s.Target] = fmt.Sprintf("%s did not answer %d of %d samples", s.Target, s.Unanswered, s.Ticks)
	}
	return all
}

// executedOf returns the statements of a server that can explain something, and their time as a share of the clients'
// time. throughput is in transactions per second.
func executedOf(h *record.History, target string, threads, throughput float64) (all []cause.Statement, share float64) {
	for i := range h.Statements {
		s := &h.Statements[i]
		if s.Target != target || s.Error != "" {
			continue
		}
		total := s.Total()
		seconds := s.To.Sub(s.From).Seconds()
		share = total.Seconds / (threads * seconds)
		if !(share >= leastInStatements) || share > mostInStatements || s.Questions.Known && total.Executions < leastCounted*s.Questions.Value {
			return nil, series.Unknown()
		}
		for j := range s.Statements {
			if s.Statements[j].Executions < leastOften*throughput*seconds {
				continue
			}
			kind := newStatementKind(&s.Statements[j])
			all = append(all, cause.Statement{Text: table.Clip(table.Plain(kind.Text), longestStatement),
				Share: quotient(s.Statements[j].Seconds, total.Seconds), IsSum: kind.of != oneStatement, StatementCounts: s.Statements[j].StatementCounts})
		}
		return all, min(1, share)
	}
	return nil, series.Unknown()
}

// newView returns the view of a server without the run's own values.
func newView(h *record.History, s *record.Server) *cause.View {
	v := &cause.View{Target: s.Target, Engine: s.Engine, Record: serverRecord{h, s}}
	if n := len(s.Versions); n > 0 {
		v.Version = s.Versions[n-1]
	}
	return v
}

// serverRecord implements cause.Record for a server.
type serverRecord struct {
	h *record.History
	s *record.Server
}

func (r serverRecord) key(m *measure.Measure) record.ServerMeasure {
	return record.ServerMeasure{Target: r.s.Target, Measure: m}
}

func (r serverRecord) Values(m *measure.Measure) []float64   { return r.h.Samples.Values(r.key(m)) }
func (r serverRecord) Tally(m *measure.Measure) series.Tally { return r.h.Samples.Tally(r.key(m)) }
func (r serverRecord) Increase(m *measure.Measure) float64   { return r.s.Increase(m) }
func (r serverRecord) Cluster(m *measure.Measure) float64    { return clusterIncrease(r.h, m) }
func (r serverRecord) IncreaseBy(m *measure.Measure, label string) map[string]float64 {
	return r.s.IncreaseBy(m, label)
}

func (r serverRecord) Setting(name string) string {
	for i := range r.h.Settings {
		if s := &r.h.Settings[i]; s.Target == r.s.Target {
			return s.Settings[name]
		}
	}
	return ""
}

// openedConnections returns how many connections clients opened per second on all servers of the run.
func openedConnections(h *record.History) (sum float64) {
	for _, s := range h.Servers {
		t := h.Samples.Tally(record.ServerMeasure{Target: s.Target, Measure: engine.OpenedConnections})
		if mean := t.Mean(); series.IsKnown(mean) {
			sum += mean
		}
	}
	return sum
}

// clusterIncrease returns the sum of an increase over the run's servers.
func clusterIncrease(h *record.History, m *measure.Measure) float64 {
	sum := 0.0
	for _, s := range h.Servers {
		if v := s.Increase(m); series.IsKnown(v) {
			sum += v
		}
	}
	return sum
}

// machineRecord implements cause.Record for the tool's machine.
type machineRecord struct{ h *record.History }

func (r machineRecord) server() *record.Server { return r.h.Host.Server }

func (r machineRecord) key(m *measure.Measure) record.ServerMeasure {
	return record.ServerMeasure{Target: r.server().Target, Measure: m}
}

func (r machineRecord) Values(m *measure.Measure) []float64 {
	if r.server() == nil {
		return nil
	}
	return r.h.HostSamples.Values(r.key(m))
}

func (r machineRecord) Tally(m *measure.Measure) series.Tally { return r.h.Host.Tally(m) }

func (r machineRecord) Increase(m *measure.Measure) float64 {
	if r.server() == nil {
		return series.Unknown()
	}
	return r.server().Increase(m)
}

func (r machineRecord) IncreaseBy(m *measure.Measure, label string) map[string]float64 {
	if r.server() == nil {
		return nil
	}
	return r.server().IncreaseBy(m, label)
}

func (r machineRecord) Cluster(m *measure.Measure) float64 { return clusterIncrease(r.h, m) }

func (machineRecord) Setting(string) string { return "" }

// stallsOf returns the states that a server's engine declares, with what they cost.
func stallsOf(h *record.History, v *cause.View, threads float64, stops []standstill) (all []limits.StallEvidence) {
	for _, stall := range cause.StallsOf(v.Engine) {
		high, from := stall.High, table.Share(stall.High)
		if stall.HighSetting != "" {
			high = v.Number(stall.HighSetting)
			from = table.Rounded(high)
		}
		if !(high > 0) || stall.Applies != nil && !stall.Applies(v) {
			continue
		}
		all = append(all, limits.StallEvidence{Stall: stall, From: from, Slowdown: slowdown(h, v.Target, stall.Measure, high, threads, stops)})
	}
	return all
}
