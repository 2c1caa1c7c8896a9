package review

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// FigureMeasures are the measures that figures show by default: throughput, the mean and the headline statistics of the
// latency, then the worst of the servers and the CPU of each machine.
func FigureMeasures(rows []Row) []Measure {
	all := slices.DeleteFunc(Measures(rows), func(m Measure) bool {
		if m.Server {
			return m.Condition == ""
		}
		if m.Field == tool.Errors.Field() || m.Condition == "min" || m.Condition == "max" {
			return true
		}
		return m.Field == tool.QueryRate.Field() && followsThroughput(rows)
	})
	return append(all, measuresOfMachines(machinesOf(rows))...)
}

// followsThroughput reports whether a transaction has the same number of statements in all runs: then the figure of
// queries would repeat the figure of transactions.
func followsThroughput(rows []Row) bool {
	const alike = 0.02
	low, high := math.Inf(1), math.Inf(-1)
	for i := range rows {
		if v := series.Number(rows[i].Values.Of(tool.QueryRate)) / series.Number(rows[i].Values.Of(tool.Throughput)); series.IsKnown(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	return high-low <= alike*high
}

// MeasuresNamed returns the measure that [MeasureNamed] does or, for the name of a figure of
// machines, such as cpu_busy, the measure of each machine.
func MeasuresNamed(rows []Row, name string) ([]Measure, error) {
	each := slices.DeleteFunc(measuresOfMachines(machinesOf(rows)), func(m Measure) bool { return underscored(m.Figure) != name })
	if len(each) > 0 {
		return each, nil
	}
	m, err := MeasureNamed(rows, name)
	return []Measure{m}, err
}

// MeasureNamed returns the measure of these runs with a name as in a condition or, with _ for blanks, as in the head of
// a column: n1_write_sets, read_avg, insert_count, duration, cpu.
func MeasureNamed(rows []Row, name string) (Measure, error) {
	if c, err := ParseName(name); err == nil {
		if m, ok := c.Measure(rows); ok {
			return m, nil
		}
	}
	var known []string
	for _, m := range slices.Concat(Measures(rows), detailMeasures(rows)) {
		if name == m.Condition || name == m.Field || name == underscored(m.Name) {
			return m, nil
		}
		if !m.Server || m.Condition != "" {
			known = append(known, cmp.Or(m.Condition, underscored(m.Name)))
		}
	}
	return Measure{}, fmt.Errorf("no run has the measure %s: there are %s, and those of servers, such as n1_queries",
		name, strings.Join(slices.Compact(known), ", "))
}

func underscored(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "_") }

// detailMeasures are the measures that tables show only if they are named: the duration, what the tool counted of each
// operation and its latencies, and the CPU of the busiest machine.
func detailMeasures(rows []Row) []Measure {
	all := []Measure{{Name: "duration", Field: "duration_seconds",
		Unit: table.Seconds, Value: func(r *Row) float64 { return r.DurationSeconds }}}
	var operations []string
	for i := range rows {
		for _, c := range rows[i].counts {
			if !slices.Contains(operations, c.Operation) {
				operations = append(operations, c.Operation)
			}
		}
		for _, l := range rows[i].latencies {
			if !slices.Contains(operations, l.Operation) {
				operations = append(operations, l.Operation)
			}
		}
	}
	for _, operation := range operations {
		all = append(all, Measure{Name: operation + " count",
			Field: operation + "_count", Unit: table.Count, Value: func(r *Row) float64 {
				for _, c := range r.counts {
					if c.Operation == operation {
						return float64(c.N)
					}
				}
				return series.Unknown()
			}}, Measure{Name: operation + " rate", Field: operation + "_per_second", Unit: table.PerSecond, Value: func(r *Row) float64 {
			for _, c := range r.rates {
				if c.Operation == operation {
					return c.PerSecond
				}
			}
			return series.Unknown()
		}})
		stats := map[string]float64{}
		for i := range rows {
			for _, l := range rows[i].latencies {
				if l.Operation == operation {
					stats[l.Stat] = 0
				}
			}
		}
		for _, stat := range Stats(stats) {
			all = append(all, Measure{Name: operation + " " + tool.StatName(stat),
				Field: LatencyField(operation, stat), Unit: table.Milliseconds,
				Value: func(r *Row) float64 { return r.latencyOf(operation, stat) }})
		}
	}
	for _, target := range targetsOf(rows) {
		for _, m := range measure.All(measure.Server) {
			all = append(all, measureOfServer(target, m))
		}
		all = append(all, drainedRate(target))
	}
	all = append(all, busiest("cpu", ""), busiest("generator cpu", rundir.GeneratorHost))
	return slices.DeleteFunc(all, func(m Measure) bool {
		return !slices.ContainsFunc(rows, func(r Row) bool { return series.IsKnown(m.Value(&r)) })
	})
}

// drainedRate is the rate of the cluster's transactions in the time that a server needed for them: the run and its
// drain.
func drainedRate(target string) Measure {
	return newServerMeasure(target+" tps with drain", measure.PerSecond, table.PerSecond, func(r *Row) float64 {
		_, most := highest(r.Servers, engine.Replicated)
		i := slices.IndexFunc(r.Servers, func(s Server) bool { return s.Target == target })
		if i < 0 || most.Measure == nil || r.Servers[i].DrainTimedOut || r.DurationSeconds <= 0 {
			return series.Unknown()
		}
		return most.Value / (r.DurationSeconds + r.Servers[i].DrainSeconds.Value) // the server that was written to has no drain
	})
}

// busiest is the CPU of the busiest machine with a role, of all machines if it is empty. The machine of a
// server may be one that only the database reports.
func busiest(name string, role rundir.HostRole) Measure {
	m := newServerMeasure(name, host.Busy.Unit, table.UnitOf(host.Busy), func(r *Row) float64 {
		most := series.Unknown()
		for i := range r.Machines {
			one := &r.Machines[i]
			if v := one.Value(host.Busy); series.IsKnown(v) && !(v <= most) && (role == "" || slices.Contains(one.Roles, role)) {
				most = v
			}
		}
		for i := range r.Servers {
			if v := r.Servers[i].Value(engine.MachineCPU); series.IsKnown(v) &&
				!(v <= most) && (role == "" || role == rundir.ServerHost) {
				most = v
			}
		}
		return most
	})
	return m
}
