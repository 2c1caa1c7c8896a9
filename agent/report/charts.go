package report

import (
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/host"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// axis is what all charts of a run share.
type axis struct {
	from, to float64
	bands    []Band
	marks    []Mark
}

func axisOf(h *history.History) axis {
	a := axis{}
	reach := func(values []float64) {
		if n := len(values); n > 0 {
			a.from, a.to = min(a.from, values[0]), max(a.to, values[n-1])
		}
	}
	reach(h.Intervals.Elapsed)
	for _, s := range h.Servers {
		reach(s.Elapsed)
	}
	reach(h.Host.Elapsed)
	m := &h.Snapshot.Meta
	if m.EndedAt != nil {
		a.to = max(a.to, h.Elapsed(*m.EndedAt))
	}
	if h.Intervals.QuietWarmup {
		a.from = min(a.from, h.Elapsed(m.StartedAt))
		a.bands = append(a.bands, Band{"warmup", a.from, 0})
	}
	a.bands = append(append(a.bands, warmups(&h.Intervals)...), drainBand(h)...)
	for i, p := range h.Markers {
		a.marks = append(a.marks, Mark{h.Elapsed(p.Start), i + 1})
	}
	return a
}

// warmups are the times that the tool's summary leaves out.
func warmups(v *ingest.Intervals) []Band {
	var bands []Band
	for _, s := range series.Spans(v.Elapsed, v.Warmup) {
		bands = append(bands, Band{"warmup", s.From, s.To})
	}
	return bands
}

// drainBand is from the tool's end until the last replica had caught up.
func drainBand(h *history.History) []Band {
	m := &h.Snapshot.Meta
	if m.EndedAt == nil || len(m.Drain) == 0 {
		return nil
	}
	from := h.Elapsed(*m.EndedAt)
	to := from
	for _, d := range m.Drain {
		switch {
		case d.Seconds != nil:
			to = max(to, from+*d.Seconds)
		case m.ClosedAt != nil:
			to = max(to, h.Elapsed(*m.ClosedAt))
		}
	}
	return []Band{{"drain", from, to}}
}

// Charts draws a run: the tool's reports first, then the servers.
func Charts(h *history.History) []Chart {
	a := axisOf(h)
	charts := append(toolCharts(&h.Intervals), serverCharts(h.Servers)...)
	charts = append(charts, hostChart(&h.Host))
	charts = slices.DeleteFunc(charts, func(c Chart) bool { return c.Empty() })
	for i := range charts {
		charts[i].From, charts[i].To, charts[i].Bands, charts[i].Marks = a.from, a.to, a.bands, a.marks
	}
	return charts
}

func toolCharts(v *ingest.Intervals) []Chart {
	throughput := Chart{Title: "Throughput by operation", Unit: "operations per second"}
	for _, c := range ordered(v.Of(ingest.Rate)) {
		throughput.add(c.Operation, v.Elapsed, v.Values(c))
	}
	latency := Chart{Title: "Latency", Unit: "milliseconds, as the tool tells for each interval", Spikes: true}
	for _, c := range ordered(v.Of(ingest.Latency)) {
		latency.add(c.Operation+" "+c.Stat, v.Elapsed, scaled(v.Values(c), 1000))
	}
	errors := Chart{Title: "Errors", Unit: "per second"}
	errors.add("errors", v.Elapsed, v.Values(ingest.Column{Kind: ingest.Errors}))
	errors.add("reconnects", v.Elapsed, v.Values(ingest.Column{Kind: ingest.Reconnects}))
	queue := Chart{Title: "Queue", Unit: "events waiting, threads at work"}
	queue.add("waiting", v.Elapsed, v.Values(ingest.Column{Kind: ingest.QueueLength}))
	queue.add("at work", v.Elapsed, v.Values(ingest.Column{Kind: ingest.Concurrency}))
	return []Chart{throughput, latency, errors, queue}
}

// ordered puts transactions first and bounds the lines of a chart: what a tool
// names is the tool's.
func ordered(all []ingest.Column) []ingest.Column {
	slices.SortStableFunc(all, func(a, b ingest.Column) int {
		if (a.Operation == tool.Transaction) != (b.Operation == tool.Transaction) {
			if a.Operation == tool.Transaction {
				return -1
			}
			return 1
		}
		return 0
	})
	return all[:min(len(all), maxLines)]
}

// maxLines bounds the lines of one chart.
const maxLines = 24

func (c *Chart) add(name string, x, y []float64) {
	if some(y) && len(c.Lines) < maxLines {
		c.Lines = append(c.Lines, Line{name, Points{x, y}})
	}
}

// hostChart is the CPU of the load generator's machine.
func hostChart(v *host.History) Chart {
	c := Chart{Title: "CPU of the load generator's machine", Unit: "% of all its cores"}
	c.add("busy", v.Elapsed, scaled(host.Busy.Values(v), 100))
	c.add("waiting for disks", v.Elapsed, scaled(host.IOWait.Values(v), 100))
	c.add("stolen by other machines", v.Elapsed, scaled(host.Steal.Values(v), 100))
	return c
}

// measure is one value of every server as a chart.
type measure struct {
	title, unit string
	values      func(*history.ServerHistory) []float64
}

func gauge(name string, factor float64) func(*history.ServerHistory) []float64 {
	return func(s *history.ServerHistory) []float64 { return scaled(s.Values(name), factor) }
}

func perSecond(name string, factor float64) func(*history.ServerHistory) []float64 {
	return func(s *history.ServerHistory) []float64 { return scaled(s.Rate(name), factor) }
}

// measures in the order of the charts; each is drawn where a server tells it.
var measures = []measure{
	{"Queries", "per second", perSecond("db_queries_total", 1)},
	{"Commits", "per second", perSecond("db_commits_total", 1)},
	{"Write sets committed (Galera, own and others')", "per second", perSecond("galera_last_committed", 1)},
	{"Threads running", "at the instant of each sample", gauge("db_threads_running", 1)},
	{"Connections", "open", gauge("db_connections", 1)},
	{"Flow control (Galera)", "% of the time paused", perSecond("galera_flow_control_paused_seconds_total", 100)},
	{"Flow control (MongoDB)", "% of the time lagged", perSecond("mongodb_flow_control_lagged_seconds_total", 100)},
	{"Flow control (Group Replication)", "% of the time throttled, summed over sessions", perSecond("group_replication_flow_control_throttled_seconds_total", 100)},
	{"Receive queue (Galera)", "write sets", gauge("galera_receive_queue", 1)},
	{"Replication queue", "transactions received and not applied", gauge("replication_queue_transactions", 1)},
	{"Replication lag", "seconds", gauge(engine.ReplicationLagSeconds.Name, 1)},
	{"Replication lag", "transactions", gauge(engine.ReplicationLagTransactions.Name, 1)},
	{"Waiting for row locks", "clients, on average", perSecond("db_lock_wait_seconds_total", 1)},
	{"Deadlocks", "per second", perSecond("mysql_innodb_deadlocks_total", 1)},
	{"Certification failures (Galera)", "per second", perSecond("galera_certification_failures_total", 1)},
	{"InnoDB checkpoint age", "MB", gauge("mysql_innodb_checkpoint_age_bytes", 1e-6)},
	{"InnoDB history list", "undo logs not purged", gauge("mysql_innodb_history_list_length", 1)},
	{"WiredTiger cache", "dirty MB", gauge("mongodb_cache_dirty_bytes", 1e-6)},
	{"Queued operations (MongoDB)", "waiting", sum("mongodb_queued_operations")},
}

func serverCharts(servers []*history.ServerHistory) []Chart {
	var charts []Chart
	for _, m := range measures {
		c := Chart{Title: m.title, Unit: m.unit}
		for _, s := range servers {
			c.add(s.Target, s.Elapsed, m.values(s))
		}
		if !c.zero() {
			charts = append(charts, c)
		}
	}
	return charts
}

// zero reports whether nothing ever happened: a chart of a flat 0 is left out.
func (c *Chart) zero() bool {
	for i := range c.Lines {
		for _, v := range c.Lines[i].Y {
			if v != 0 && !math.IsNaN(v) {
				return false
			}
		}
	}
	return true
}

// sum adds up the series of one metric over all its labels.
func sum(metric string) func(*history.ServerHistory) []float64 {
	return func(s *history.ServerHistory) []float64 {
		var total []float64
		for _, name := range s.Names() {
			if name != metric && !strings.HasPrefix(name, metric+"{") {
				continue
			}
			values := s.Values(name)
			if total == nil {
				total = slices.Clone(values)
				continue
			}
			for i := range total {
				total[i] += values[i]
			}
		}
		return total
	}
}
