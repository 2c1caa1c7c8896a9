package report

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/series"
)

// Server is what was seen of one server during a run. What is not known is nil.
type Server struct {
	Target  string   `json:"target"`
	Engine  string   `json:"engine"`
	Role    string   `json:"role,omitempty"`
	Version []string `json:"versions,omitempty"`

	QueriesPerSecond   *float64 `json:"queries_per_second,omitempty"`
	CommitsPerSecond   *float64 `json:"commits_per_second,omitempty"`
	WriteSetsPerSecond *float64 `json:"write_sets_per_second,omitempty"`
	MostThreadsRunning *float64 `json:"threads_running_max,omitempty"`

	// FlowControlShare is the part of the time that the server was paused.
	FlowControlShare *float64 `json:"flow_control_share,omitempty"`
	// FlowControlSent counts the pauses that this server asked for.
	FlowControlSent *float64 `json:"flow_control_sent,omitempty"`

	WorstLagSeconds      *float64 `json:"lag_seconds_max,omitempty"`
	WorstLagAt           *float64 `json:"lag_seconds_max_at,omitempty"`
	WorstLagTransactions *float64 `json:"lag_transactions_max,omitempty"`
	DrainSeconds         *float64 `json:"drain_seconds,omitempty"`
	DrainTimedOut        bool     `json:"drain_timed_out,omitempty"`

	Deadlocks             *float64 `json:"deadlocks,omitempty"`
	CertificationFailures *float64 `json:"certification_failures,omitempty"`
	Restarts              float64  `json:"restarts"`
	// Ticks are the samples taken while the tool ran, Unanswered those without
	// an answer.
	Ticks      int      `json:"ticks"`
	Unanswered int      `json:"unanswered"`
	Errors     []string `json:"errors,omitempty"`
	// Settings are values that do not change and matter.
	Settings map[string]float64 `json:"settings,omitempty"`
}

// settings are the values that are shown as what they are: settings.
var settings = []string{
	"db_connections_limit", "galera_applier_threads", "galera_flow_control_limit", "galera_cluster_size",
	"mongodb_cache_limit_bytes", "group_replication_group_size",
}

// servers sums up each server over the time that the tool ran.
func servers(h *history.History) []Server {
	all := make([]Server, 0, len(h.Servers))
	for _, s := range h.Servers {
		all = append(all, serverOf(h, s))
	}
	return all
}

func serverOf(h *history.History, s *history.ServerHistory) Server {
	first, last := running(h, s)
	out := Server{Target: s.Target, Engine: s.Engine, Role: s.Role, Version: s.Versions, Errors: s.Errors, Ticks: last - first}
	for row := first; row < last; row++ {
		if !s.Up(row) {
			out.Unanswered++
		}
	}
	restarts := s.Restarts()
	if first < last {
		out.Restarts = restarts[len(restarts)-1] - restarts[first]
	}
	average := func(name string) *float64 { return present(mean(cut(s.Rate(name), first, last))) }
	grown := func(name string) *float64 {
		return present(series.Increase(cut(s.Values(name), first, last), restarts[first:last]))
	}
	most := func(values []float64) (*float64, *float64) {
		if i, ok := largest(values); ok {
			return &values[i], &s.Elapsed[i]
		}
		return nil, nil
	}
	out.QueriesPerSecond = average("db_queries_total")
	out.CommitsPerSecond = average("db_commits_total")
	out.WriteSetsPerSecond = average("galera_last_committed")
	out.FlowControlShare = average("galera_flow_control_paused_seconds_total")
	out.FlowControlSent = grown("galera_flow_control_sent_total")
	out.Deadlocks = grown("mysql_innodb_deadlocks_total")
	out.CertificationFailures = grown("galera_certification_failures_total")
	out.MostThreadsRunning, _ = most(s.Values("db_threads_running"))
	out.WorstLagSeconds, out.WorstLagAt = most(s.Values(engine.ReplicationLagSeconds.Name))
	out.WorstLagTransactions, _ = most(s.Values(engine.ReplicationLagTransactions.Name))
	if d, ok := h.Snapshot.Meta.Drain[s.Target]; ok {
		out.DrainSeconds, out.DrainTimedOut = d.Seconds, d.TimedOut
	}
	for _, name := range settings {
		if v := finite(s.Values(name)); len(v) > 0 {
			if out.Settings == nil {
				out.Settings = map[string]float64{}
			}
			out.Settings[name] = v[len(v)-1]
		}
	}
	return out
}

// running is the range of a server's ticks while the tool ran: [first, last).
func running(h *history.History, s *history.ServerHistory) (first, last int) {
	first = sort.SearchFloat64s(s.Elapsed, 0)
	last = len(s.Elapsed)
	if end := h.Snapshot.Meta.EndedAt; end != nil {
		last = sort.Search(len(s.Elapsed), func(i int) bool { return s.Elapsed[i] > h.Elapsed(*end) })
	}
	return first, max(first, last)
}

func cut(values []float64, first, last int) []float64 {
	if values == nil {
		return nil
	}
	return values[first:last]
}

func present(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

// observations says in sentences what stood out.
func observations(all []Server) []string {
	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	var paused *Server
	var senders []string
	total := 0.0
	for i := range all {
		s := &all[i]
		if s.FlowControlShare != nil && (paused == nil || *s.FlowControlShare > *paused.FlowControlShare) {
			paused = s
		}
		if s.FlowControlSent != nil && *s.FlowControlSent > 0 {
			total += *s.FlowControlSent
			senders = append(senders, fmt.Sprintf("%s (%.0f)", s.Target, *s.FlowControlSent))
		}
	}
	if paused != nil {
		say("flow control paused the cluster %.1f %% of the time (most on %s)", *paused.FlowControlShare*100, paused.Target)
	}
	if total > 0 {
		say("pauses were asked for by %s", joinWords(senders))
	}
	if worst := worstLag(all); worst != nil {
		say("the worst lag was %.1f s, on %s at %s", *worst.WorstLagSeconds, worst.Target, clockText(*worst.WorstLagAt))
	}
	for i := range all {
		s := &all[i]
		switch {
		case s.DrainTimedOut:
			say("%s had not caught up when the wait for it ended", s.Target)
		case s.DrainSeconds != nil && *s.DrainSeconds >= 1:
			say("%s needed %.1f s after the end to catch up", s.Target, *s.DrainSeconds)
		}
		if s.Restarts > 0 {
			say("%s restarted %.0f times", s.Target, s.Restarts)
		}
		if s.Unanswered > 0 {
			say("%s did not answer %d of %d samples", s.Target, s.Unanswered, s.Ticks)
		}
		if s.CertificationFailures != nil && *s.CertificationFailures > 0 {
			say("%s: %.0f transactions failed certification", s.Target, *s.CertificationFailures)
		}
		if s.Deadlocks != nil && *s.Deadlocks > 0 {
			say("%s: %.0f deadlocks", s.Target, *s.Deadlocks)
		}
		if limit, ok := s.Settings["db_connections_limit"]; ok && s.MostThreadsRunning != nil && *s.MostThreadsRunning > 0.9*limit {
			say("%s ran %.0f threads of at most %.0f connections", s.Target, *s.MostThreadsRunning, limit)
		}
	}
	if len(all) == 0 {
		say("no servers were sampled during this run")
	}
	return said
}

func worstLag(all []Server) *Server {
	var worst *Server
	for i := range all {
		s := &all[i]
		if s.WorstLagSeconds != nil && *s.WorstLagSeconds >= 0.1 && (worst == nil || *s.WorstLagSeconds > *worst.WorstLagSeconds) {
			worst = s
		}
	}
	return worst
}

func joinWords(words []string) string {
	words = slices.Clone(words)
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		last := words[n-1]
		text := words[0]
		for _, w := range words[1 : n-1] {
			text += ", " + w
		}
		return text + " and " + last
	}
}
