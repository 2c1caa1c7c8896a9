package review

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// foreignLoad is how many times the tool's statements, and foreignRate how many more per second, the servers must
	// execute for another load to be reported.
	foreignLoad, foreignRate = 1.5, 100
	// fewTicks is the number of ticks below which rates of servers and tool cover times that differ too much to be
	// compared; mostOfTheRun is the share of the run that must have been sampled to compare them with a summary.
	fewTicks, mostOfTheRun = 5, 0.9
	// listedRuns bounds the other runs that are listed, listedSteps the changes of
	// one value.
	listedRuns, listedSteps = 5, 6
)

// observed returns what stood out, in sentences. others are runs that may have used
// the same servers.
func observed(h *record.History, r *Row, others []rundir.Meta) []string {
	lines := otherRuns(h, others)
	lines = append(lines, membership(h)...)
	lines = append(lines, commits(h, r)...)
	if line, _ := foreignStatements(h, r); line != "" {
		lines = append(lines, line)
	}
	lines = append(lines, observations(r.Servers)...)
	for _, s := range h.Servers {
		lines = append(lines, cause.Observations(newView(h, s))...)
	}
	if len(r.Servers) == 0 && r.Limits == nil && h.Snapshot.Meta.Servers.Notice() == "" { // else it is said elsewhere
		lines = append(lines, "no server was sampled during this run")
	}
	return lines
}

// otherRuns names the runs that used the same servers in the same time.
func otherRuns(h *record.History, others []rundir.Meta) []string {
	m := &h.Snapshot.Meta
	end := func(m *rundir.Meta) time.Time {
		if m.EndedAt != nil {
			return *m.EndedAt
		}
		return time.Now()
	}
	var lines []string
	for i := range others {
		o := &others[i]
		shared := sharedServers(m, o)
		if o.ID == m.ID || sameGroup(m, o) || shared == "" || !o.StartedAt.Before(end(m)) || !m.StartedAt.Before(end(o)) {
			continue
		}
		if len(lines) == listedRuns {
			return append(lines, "more runs used the same servers at the same time")
		}
		from, to := max(0, h.Elapsed(o.StartedAt)), min(h.Elapsed(end(m)), h.Elapsed(end(o)))
		lines = append(lines, fmt.Sprintf("run %s (%s) used %s at the same time, from %s to %s",
			o.ID, o.Title, shared, table.Clock(from), table.Clock(to)))
	}
	return lines
}

// sameGroup reports whether two runs are of one group.
func sameGroup(a, b *rundir.Meta) bool {
	return a.Group != nil && b.Group != nil && a.Group.Name == b.Group.Name
}

// sharedServers names the servers that take part in both runs; empty if there are
// none. Of runs whose servers are unknown, the target that the tools connected to
// decides.
func sharedServers(a, b *rundir.Meta) string {
	if a.Servers == nil || b.Servers == nil || len(a.Servers.Targets) == 0 || len(b.Servers.Targets) == 0 {
		if a.Target != "" && a.Target == b.Target {
			return a.Target
		}
		return ""
	}
	var shared []string
	for _, s := range a.Servers.Targets {
		if slices.ContainsFunc(b.Servers.Targets, func(o rundir.Server) bool { return o.Target == s.Target && o.Cluster == s.Cluster }) {
			shared = append(shared, s.Target)
		}
	}
	return table.Join(shared)
}

// membership reports servers that could not commit, since they were not in their
// cluster's primary component, and changes of the cluster's size.
func membership(h *record.History) []string {
	var lines []string
	for _, s := range h.Servers {
		t := h.Samples.Tally(record.ServerMeasure{Target: s.Target, Measure: engine.Primary})
		if t.Zeros > 0 {
			lines = append(lines, fmt.Sprintf("%s was not in the primary component in %s, from %s to %s: it could not commit",
				s.Target, table.Plural(t.Zeros, "sample"), table.Clock(t.FirstZero), table.Clock(t.LastZero)))
		}
	}
	// All members see the same change, at about the same time.
	var texts []string
	seen := map[string][]string{}
	for _, s := range h.Servers {
		t := h.Samples.Tally(record.ServerMeasure{Target: s.Target, Measure: engine.ClusterSize})
		if text := steps(t.Changes); text != "" {
			if seen[text] == nil {
				texts = append(texts, text)
			}
			seen[text] = append(seen[text], s.Target)
		}
	}
	for _, text := range texts {
		lines = append(lines, fmt.Sprintf("the cluster's size changed as seen by %s: %s", table.Join(seen[text]), text))
	}
	return lines
}

// steps describes the changes of a value: "from 3 to 2 at 0:31". It is empty without
// a change.
func steps(changes []series.Change) string {
	var texts []string
	for _, c := range changes {
		if len(texts) == listedSteps {
			return strings.Join(append(texts, "…"), ", ")
		}
		texts = append(texts, fmt.Sprintf("from %g to %g at %s", c.From, c.To, table.Clock(c.At)))
	}
	return strings.Join(texts, ", ")
}

// commits compares the transactions of a group's generators with the commits of the servers, excluding replicas. It is
// only for groups.
func commits(h *record.History, r *Row) []string {
	m := &h.Snapshot.Meta
	if !m.IsGroup() || r.Result == "" {
		return nil
	}
	committed, span := 0.0, series.Span{From: math.Inf(1)} // in which they were sampled
	for i := range r.Servers {
		s := &r.Servers[i]
		v, server := s.Value(engine.CommitRate), m.Servers.Server(s.Target)
		if !series.IsKnown(v) || s.Ticks < fewTicks || s.Role == "replica" || server != nil && server.Proxy {
			continue
		}
		sampled := h.Server(s.Target).Sampled
		committed += v
		span.From, span.To = min(span.From, sampled.From), max(span.To, sampled.To)
	}
	done := h.Intervals.Throughput.During(span, h.Intervals.Lengths.Median())
	if !(done > 0) {
		return nil
	}
	difference := committed/done - 1
	text := fmt.Sprintf("the generators report %s transactions/s together, the servers committed %s/s (%+.1f %%)",
		table.Digits.Format(done), table.Digits.Format(committed), difference*100)
	switch errors := r.Values.Of(tool.Errors).Value; {
	case math.Abs(difference) < sameCommits:
		return []string{text}
	case difference > 0 && errors > 0:
		text += fmt.Sprintf(": a transaction that failed may have been committed in part, and there were %s",
			table.Plural(int(errors), "error"))
	case difference > 0:
		text += ": a transaction of the tool is several of the server if its statements commit by themselves; or something else wrote"
	default:
		text += ": transactions that only read are none of the server's if their statements commit by themselves"
	}
	return []string{text}
}

// sameCommits is the relative difference that the ends of the run alone can cause.
const sameCommits = 0.02

// foreignStatements reports servers that executed far more statements than the tool sent in the same time, and the
// share of the other statements: another load used these servers.
func foreignStatements(h *record.History, r *Row) (line string, share float64) {
	if r.Result == "" {
		return "", series.Unknown()
	}
	executed, connecting, ticks := 0.0, 0.0, 0
	span := series.Span{From: math.Inf(1)} // in which they were sampled
	for i := range r.Servers {
		s := &r.Servers[i]
		v, server := s.Value(engine.QueryRate), h.Snapshot.Meta.Servers.Server(s.Target)
		if !series.IsKnown(v) || server != nil && server.Proxy {
			continue
		}
		executed += v
		if opened := s.Value(engine.OpenedConnections); opened > 0 {
			connecting += min(v, statementsOfConnection*opened)
		}
		ticks = max(ticks, s.Ticks)
		sampled := h.Server(s.Target).Sampled
		span.From, span.To = min(span.From, sampled.From), max(span.To, sampled.To)
	}
	if ticks < fewTicks {
		return "", series.Unknown()
	}
	asked := sent(h, r, span)
	others := executed - connecting
	if !series.IsKnown(asked) || others < foreignLoad*asked || others-asked < max(foreignRate, mostAtEnds(h, span)) {
		return "", series.Unknown()
	}
	text := "the servers executed " + table.Digits.Format(executed) + " statements/s"
	if connecting >= foreignRate {
		text += ", up to " + table.Digits.Format(connecting) + " of them to connect"
	}
	text += ", the tool sent " + table.Digits.Format(asked)
	return text + ": something else used them", 1 - asked/others
}

// statementsOfConnection is how many statements that no tool counts a server counts for a connection, at most: its end
// (MariaDB 10.11), and one that a client library sends first.
const statementsOfConnection = 2

// mostAtEnds returns how many statements a second of a span its ends can add: a tick and the end of an
// interval are up to an interval apart, and the tool may have sent most of its statements then.
func mostAtEnds(h *record.History, span series.Span) float64 {
	usual, most := h.Intervals.Lengths.Median(), 0.0
	for _, level := range h.Intervals.Queries.All(usual) {
		most = max(most, level.Mean)
	}
	if !series.IsKnown(usual) {
		return 0
	}
	return 2 * usual * most / (span.To - span.From)
}

// sent returns how many statements a second the tool reported for a span: its mean over the intervals whose middle is
// in it. A tool that reports no intervals has only a summary, which covers the whole run except the warm-up.
func sent(h *record.History, r *Row, span series.Span) float64 {
	v := &h.Intervals
	usual := v.Lengths.Median()
	levels := v.Queries.All(usual)
	if len(levels) == 0 || !series.IsKnown(usual) {
		if v.QuietWarmup || span.To-span.From < mostOfTheRun*r.DurationSeconds {
			return series.Unknown()
		}
		return series.Number(r.Values.Of(tool.QueryRate))
	}
	return v.Queries.During(span, usual)
}

// observations are sentences about what stood out.
func observations(all []Server) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if s, v := highest(all, engine.FlowControl); s != nil && v.Value > 0 {
		add("flow control held back writes for %s of the time (most on %s)", table.Share(v.Value), s.Target)
	}
	for _, m := range measure.All(measure.Server) {
		if m.Summary != measure.Increase || m == engine.Replicated { // that is the work, no event
			continue
		}
		var counts []string
		for i := range all {
			if v := all[i].Value(m); v > 0 {
				counts = append(counts, fmt.Sprintf("%.0f on %s", v, all[i].Target))
			}
		}
		if len(counts) > 0 {
			add("%s: %s", table.Uncapitalised(m.Title), table.Join(counts))
		}
	}
	if s, v := highest(all, engine.LagSeconds); s != nil && v.Value >= 0.1 {
		add("the highest replication lag was %.1f s, on %s at %s", v.Value, s.Target, table.Clock(v.At))
	}
	for i := range all {
		s := &all[i]
		switch {
		case s.DrainTimedOut:
			add("%s had not caught up when the drain timed out", s.Target)
		case s.DrainSeconds.Value >= 1:
			add("%s needed %s after the end of the run to catch up", s.Target, s.drain())
		}
		if s.Restarts > 0 {
			add("%s restarted %s", s.Target, table.Plural(int(s.Restarts), "time"))
		}
		switch {
		case s.Unanswered > 0 && s.Unanswered == s.Ticks && len(s.Errors) > 0:
			add("%s did not answer: %s", s.Target, s.Errors[0])
		case s.Unanswered > 0:
			add("%s did not answer %d of %s", s.Target, s.Unanswered, table.Plural(s.Ticks, "sample"))
		}
		if running, limit := s.Value(engine.RunningThreads), s.Value(engine.ConnectionLimit); running > 0.9*limit {
			add("%s ran %.0f threads; its limit is %s", s.Target, running, table.Plural(int(limit), "connection"))
		}
	}
	return lines
}
