package web

import (
	"time"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/series"
)

// Kinds of series about servers.
const (
	lagSeconds      = "lag_seconds"
	lagTransactions = "lag_transactions"
	up              = "up"
)

// shown are the servers' values that the page draws: by metric name, as what, and
// whether as growth per second. Of two for the same kind the first that a server
// tells is taken.
var shown = []struct {
	metric, kind string
	rate         bool
}{
	{"db_queries_total", "queries", true},
	// A Galera node counts what its clients committed, autocommit included.
	{"galera_local_commits_total", "commits", true},
	{"db_commits_total", "commits", true},
	{"db_threads_running", "threads_running", false},
	{"galera_flow_control_paused_seconds_total", "flow_control", true},
	{"mongodb_flow_control_lagged", "flow_control", false},
	{"replication_queue_transactions", "replication_queue", false},
}

// drawn reports whether a value of status.jsonl is needed.
func drawn(metric string) bool {
	for _, v := range shown {
		if v.metric == metric {
			return true
		}
	}
	return false
}

// sharesAtMostOne: time paused is taken between two answers, which are not
// exactly as far apart as the server's own readings.
func sharesAtMostOne(kind string, v float64) float64 {
	if kind == "flow_control" && v > 1 {
		return 1
	}
	return v
}

// serverTable is all servers' values over the ticks of all of them.
func serverTable(h *history.History) table {
	var t table
	for _, s := range h.Servers {
		t.x = series.Union(t.x, s.Elapsed)
	}
	for _, s := range h.Servers {
		place := func(kind string, values []float64) {
			if values != nil && series.AnyKnown(values) {
				t.column(name{kind, s.Target, ""}, series.Spread(t.x, s.Elapsed, values))
			}
		}
		taken := map[string]bool{}
		for _, v := range shown {
			values := s.Values(v.metric)
			if values == nil || taken[v.kind] {
				continue
			}
			taken[v.kind] = true
			if v.rate {
				values = s.Rate(v.metric)
				for i := range values {
					values[i] = sharesAtMostOne(v.kind, values[i])
				}
			}
			place(v.kind, values)
		}
		place(lagSeconds, s.Values(engine.ReplicationLagSeconds.Name))
		place(lagTransactions, s.Values(engine.ReplicationLagTransactions.Name))
		place(up, s.Values(engine.Up.Name))
	}
	return t
}

// counters make rows of frames: growth per second is taken against the frame
// before, as run.ServerHistory does it.
type counters struct {
	before map[string]reply // by target
}

type reply struct {
	at       time.Time
	restarts uint64
	values   map[string]float64
}

// row is what all servers answered at one tick.
func (c *counters) row(f engine.Frame) []cell {
	var cells []cell
	now := make(map[string]reply, len(f.Samples))
	for i := range f.Samples {
		s := &f.Samples[i]
		of := s.Target.Name
		cells = append(cells, cell{name{up, of, ""}, boolean(s.Up())})
		if s.LagSeconds.Known {
			cells = append(cells, cell{name{lagSeconds, of, ""}, s.LagSeconds.Value})
		}
		if s.LagTransactions.Known {
			cells = append(cells, cell{name{lagTransactions, of, ""}, s.LagTransactions.Value})
		}
		if !s.Up() {
			continue
		}
		a := reply{s.Answered, s.Restarts, map[string]float64{}}
		for _, v := range s.Status.Values {
			if len(v.Labels) == 0 && drawn(v.Metric.Name) {
				a.values[v.Metric.Name] = v.V
			}
		}
		now[of] = a
		cells = append(cells, a.cells(of, c.before[of])...)
	}
	c.before = now
	return cells
}

// cells are the values drawn, against the answer of the tick before.
func (a *reply) cells(of string, before reply) []cell {
	var cells []cell
	taken := map[string]bool{}
	seconds := a.at.Sub(before.at).Seconds()
	for _, v := range shown {
		value, ok := a.values[v.metric]
		if !ok || taken[v.kind] {
			continue
		}
		taken[v.kind] = true
		if v.rate {
			old, ok := before.values[v.metric]
			if !ok || value < old || seconds <= 0 || a.restarts != before.restarts {
				continue // a gap, not a fall
			}
			value = sharesAtMostOne(v.kind, (value-old)/seconds)
		}
		cells = append(cells, cell{name{v.kind, of, ""}, value})
	}
	return cells
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
