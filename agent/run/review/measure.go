package review

import (
	"maps"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Measure is a value of a run as tables of several runs show and compare it: one
// that the tool reported, a value of one server, or the worst of all servers.
type Measure struct {
	// Name is for people, without the unit: "tps", "read p95", "n1 write sets".
	Name string
	// Field names the value in CSV and JSON, with the base unit.
	Field string
	// Condition is how a [Condition] names the measure, empty for one that it can't.
	Condition string
	// Base is the unit of Value, empty for a measure of the tool, whose Field has it;
	// Unit is the human-readable one.
	Base measure.Unit
	Unit table.Unit
	// Server measures were observed on servers, not reported by the tool.
	Server bool
	// Figure names the figure that the measure shares with those of other machines, Line is its
	// line there; both are empty if it has a figure of its own.
	Figure, Line string
	// MoreIsBetter: it has a best value, and tables of sweeps have its spread.
	MoreIsBetter bool
	// IsCost: it is what a transaction took.
	IsCost bool
	// Of is the measure of servers or machines that it shows, nil for the tool's own; isHeadline is
	// set for throughput and the headline latency, isDetail for what explains other measures.
	Of         *measure.Measure
	IsHeadline bool
	IsDetail   bool
	// scope is what a condition about it is about, empty for the tool; atEnd is set if it has
	// no value while a run is in progress.
	scope measure.Scope
	atEnd bool
	// Value returns the run's value in the base unit, [series.Unknown] if it has
	// none.
	Value func(*Row) float64
}

// Column returns the head of a column of the measure.
func (m *Measure) Column() table.Column {
	return table.Column{Name: m.Field, Head: m.Head()}
}

// Head returns the name with the unit. That of rates goes without saying.
func (m *Measure) Head() string {
	if m.Unit.Sign == table.PerSecond.Sign {
		return m.Name
	}
	return strings.TrimSpace(m.Name + " " + m.Unit.Sign)
}

// Cell returns a run's value.
func (m *Measure) Cell(r *Row) table.Cell { return table.Number(m.Value(r), m.Unit) }

// Measures returns the measures that at least one of the runs has, in the order
// of tables: the tool's, with the headline latency's operation first, then the
// servers'.
func Measures(rows []Row) []Measure {
	all := slices.Concat(ToolMeasures(rows), ServerMeasures(rows), balanceMeasures(rows), machineMeasures(rows), costMeasures(rows))
	return slices.DeleteFunc(all, func(m Measure) bool {
		return !slices.ContainsFunc(rows, func(r Row) bool { return series.IsKnown(m.Value(&r)) })
	})
}

// ToolMeasures returns the measures of the catalogue that have a column in tables, with all statistics of the headline
// latency.
func ToolMeasures(rows []Row) []Measure {
	var all []Measure
	for _, m := range RowMeasures() {
		if m == tool.HeadlineLatency {
			all = append(all, latencyMeasures(rows)...)
			continue
		}
		n := tool.NumberOf(m)
		all = append(all, Measure{
			Name: m.Short, Field: m.Field(), Condition: conditionOf(m), Unit: table.UnitOf(m),
			IsHeadline: m == tool.Throughput, MoreIsBetter: m.MoreIsBetter,
			atEnd: n != nil && n.AtEnd, Value: func(r *Row) float64 { return series.Number(r.Values.Of(m)) },
		})
	}
	return all
}

// conditionOf returns how conditions name a measure of the tool: by its short name or, if that can't be
// part of a condition, by its id.
func conditionOf(m *measure.Measure) string {
	if name := strings.ToLower(m.Short); conditionName.MatchString(name) {
		return name
	}
	return m.ID
}

// latencyMeasures returns the statistics of the operations whose latencies are
// headlines: of transactions or, of a tool that prints none of them, of the
// operation that Row.LatencyOperation names.
func latencyMeasures(rows []Row) []Measure {
	stats := map[string]map[string]float64{}
	var operations []string
	for i := range rows {
		operation := rows[i].LatencyOperation
		if stats[operation] == nil {
			stats[operation] = map[string]float64{}
			operations = append(operations, operation)
		}
		maps.Copy(stats[operation], rows[i].Latency)
	}
	var all []Measure
	for _, operation := range operations {
		for _, stat := range Stats(stats[operation]) {
			all = append(all, Measure{Name: LatencyName(operation, stat), Field: LatencyField(operation, stat),
				IsHeadline: isHeadline(rows, operation, stat), Condition: stat, Unit: table.Milliseconds,
				Value: func(r *Row) float64 { return r.latency(operation, stat) }})
		}
	}
	return all
}

// isHeadline reports whether a statistic is the headline latency of the first run that has one.
func isHeadline(rows []Row, operation, stat string) bool {
	for i := range rows {
		if r := &rows[i]; r.headline.Known {
			return r.LatencyOperation == operation && r.headline.Value.Stat == stat
		}
	}
	return false
}

// LatencyField returns the field of a statistic of an operation's latency; an empty
// operation stands for transactions.
func LatencyField(operation, stat string) string {
	if operation == "" {
		return "latency_" + stat + "_seconds"
	}
	return "latency_" + operation + "_" + stat + "_seconds"
}

// latency returns a statistic of an operation's latency; empty stands for
// transactions.
func (r *Row) latency(operation, stat string) float64 {
	if operation == r.LatencyOperation {
		if v, ok := r.Latency[stat]; ok {
			return v
		}
		return series.Unknown()
	}
	if operation == "" {
		operation = tool.Transaction
	}
	return r.latencyOf(operation, stat)
}

const DrainCondition = "drain" // how conditions name the drain

// serverColumns is how many servers get their own columns: a wider table is unreadable.
const serverColumns = 6

// ServerMeasures returns each server's measures, then the worst of all servers.
func ServerMeasures(rows []Row) []Measure {
	var all []Measure
	targets := targetsOf(rows)
	if len(targets) > serverColumns {
		targets = nil
	}
	for _, target := range targets {
		for _, m := range measure.All(measure.Server) {
			if m.Column == measure.EachServer {
				all = append(all, measureOfServer(target, m))
			}
		}
	}
	for _, m := range measure.All(measure.Server) {
		if m.Column == measure.WorstOfAll {
			name := m.Name()
			if m.Summary == measure.Max {
				name = "worst " + name
			}
			one := worst(name, m.Base(), m.Unit, table.UnitOf(m), func(s *Server) (float64, bool) { return s.Value(m), true })
			one.Of = m
			all = append(all, one)
		}
	}
	// A drain that was given up has no length.
	drain := worst("drain", DrainCondition, measure.Seconds, table.Seconds, func(s *Server) (float64, bool) {
		return series.Number(s.DrainSeconds), !s.DrainTimedOut
	})
	drain.atEnd = true
	return append(all, drain)
}

// largestMeasures are the measures of servers and machines for which serverMeasures has no worst value: the largest
// value of all, which conditions and trends name by the id.
func largestMeasures() []Measure {
	var all []Measure
	add := func(m *measure.Measure, value func(*Row) float64) {
		one := newServerMeasure("largest "+m.Name(), m.Unit, table.UnitOf(m), value)
		one.Condition, one.scope, one.atEnd = m.ID, m.Scope, m.Summary == measure.Increase
		all = append(all, one)
	}
	for _, m := range measure.All(measure.Server) {
		if m == engine.MachineCPU { // of databases that do not report it, their machines have it
			add(m, busiest("", rundir.ServerHost).Value)
		} else if m.Column != measure.WorstOfAll && m.Summary != measure.Cost && m != engine.Answered && m != engine.Restarts {
			add(m, func(r *Row) float64 {
				return largest(r.Servers, func(s *Server) float64 { return s.Value(m) })
			})
		}
	}
	for _, m := range measure.All(measure.Host) {
		if m.Summary != measure.Cost {
			add(m, func(r *Row) float64 {
				return largest(r.Machines, func(one *Machine) float64 { return one.Value(m) })
			})
		}
	}
	return all
}

// largest returns the largest known value.
func largest[T any](all []T, value func(*T) float64) float64 {
	most := series.Unknown()
	for i := range all {
		if v := value(&all[i]); series.IsKnown(v) && !(v <= most) {
			most = v
		}
	}
	return most
}

// targetsOf returns the servers' names in the order in which the runs have them.
func targetsOf(rows []Row) []string {
	var names []string
	for i := range rows {
		for j := range rows[i].Servers {
			if name := rows[i].Servers[j].Target; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func measureOfServer(target string, m *measure.Measure) Measure {
	one := newServerMeasure(target+" "+m.Name(), m.Unit, table.UnitOf(m), func(r *Row) float64 {
		i := slices.IndexFunc(r.Servers, func(s Server) bool { return s.Target == target })
		if i < 0 || r.Servers[i].superseded(m) {
			return series.Unknown()
		}
		return r.Servers[i].Value(m)
	})
	one.Of, one.IsDetail = m, true
	return one
}

// worst is the largest value of all servers. It is unknown if get returns false
// for one of them.
func worst(name, condition string, base measure.Unit, unit table.Unit, get func(*Server) (float64, bool)) Measure {
	m := newServerMeasure(name, base, unit, func(r *Row) float64 {
		most := series.Unknown()
		for i := range r.Servers {
			v, ok := get(&r.Servers[i])
			if !ok {
				return series.Unknown()
			}
			if series.IsKnown(v) && !(v <= most) {
				most = v
			}
		}
		return most
	})
	m.Condition, m.scope = condition, measure.Server
	return m
}

func newServerMeasure(name string, base measure.Unit, unit table.Unit, value func(*Row) float64) Measure {
	field := strings.ReplaceAll(name, " ", "_")
	if base != measure.Count {
		field += "_" + string(base)
	}
	return Measure{Name: name, Field: field, Base: base, Unit: unit, Server: true, Value: value}
}

// HeadlineOf returns the headline latency of a run's intervals, chosen by their
// medians.
func HeadlineOf(v *record.Intervals) series.Optional[tool.Latency] {
	var all []tool.Latency
	for _, c := range v.Of(tool.HeadlineLatency) {
		t := v.Tally(c)
		all = append(all, tool.Latency{Operation: c.Operation, Stat: c.Stat, Seconds: t.Median()})
	}
	return tool.Headline(all, nil)
}
