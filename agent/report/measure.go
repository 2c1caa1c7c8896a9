package report

import (
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/history"
)

// Measure is one value of a run that tables show and compare: what the tool said of
// itself, or what was seen of the servers meanwhile.
type Measure struct {
	// Name is the column's, without the unit.
	Name string
	// Unit is what Value is in: /s, ms, s, % or nothing.
	Unit string
	// Server measures are of the servers, not of the tool.
	Server bool
	// Value is false where the run does not have it.
	Value func(*Row) (float64, bool)
}

// Base returns a value of the measure in base units, and their name as in metrics:
// seconds, ratio, per_second or nothing.
func (m *Measure) Base(v float64) (float64, string) {
	switch m.Unit {
	case "ms":
		return v / 1000, "seconds"
	case "s":
		return v, "seconds"
	case "%":
		return v / 100, "ratio"
	case "/s":
		return v, "per_second"
	}
	return v, ""
}

// serverColumns is how many servers get columns of their own: a table with more is no
// longer one that people read.
const serverColumns = 6

// Measures are the values that at least one of the runs has, in the order of tables.
func Measures(rows []Row) []Measure {
	all := append(toolMeasures(rows), serverMeasures(rows)...)
	return slices.DeleteFunc(all, func(m Measure) bool {
		return !slices.ContainsFunc(rows, func(r Row) bool {
			v, ok := m.Value(&r)
			return ok && (m.Name != "errors" || v > 0)
		})
	})
}

func toolMeasures(rows []Row) []Measure {
	optional := func(get func(*Row) *float64) func(*Row) (float64, bool) {
		return func(r *Row) (float64, bool) { return value(get(r)) }
	}
	all := []Measure{
		{Name: "tps", Unit: "/s", Value: optional(func(r *Row) *float64 { return r.TPS })},
		{Name: "qps", Unit: "/s", Value: optional(func(r *Row) *float64 { return r.QPS })},
		{Name: "tpmC", Value: optional(func(r *Row) *float64 { return r.TpmC })},
	}
	for _, stat := range Stats(rows) {
		all = append(all, Measure{Name: stat, Unit: "ms", Value: func(r *Row) (float64, bool) {
			v, ok := r.Latency[stat]
			return v * 1000, ok
		}})
	}
	return append(all, Measure{Name: "errors", Value: optional(func(r *Row) *float64 { return r.Errors })})
}

// serverMeasures are each server's own throughput, then the worst of all servers. A
// drain that did not come to its end has no length.
func serverMeasures(rows []Row) []Measure {
	var all []Measure
	names := targets(rows)
	if len(names) <= serverColumns {
		for _, name := range names {
			all = append(all,
				ofServer(name, "write sets", func(s *Server) *float64 { return s.WriteSetsPerSecond }),
				ofServer(name, "queries", func(s *Server) *float64 {
					if s.WriteSetsPerSecond != nil {
						return nil // of a cluster's nodes only one is asked, but all work
					}
					return s.QueriesPerSecond
				}))
		}
	}
	return append(all,
		worst("flow control", "%", 100, func(s *Server) *float64 { return s.FlowControlShare }),
		worst("worst lag", "s", 1, func(s *Server) *float64 { return s.WorstLagSeconds }),
		worst("drain", "s", 1, func(s *Server) *float64 {
			if s.DrainTimedOut {
				return ptr(math.NaN())
			}
			return s.DrainSeconds
		}))
}

// targets are the servers' names in the order in which the runs have them.
func targets(rows []Row) []string {
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

func ofServer(target, what string, get func(*Server) *float64) Measure {
	return Measure{Name: target + " " + what, Unit: "/s", Server: true, Value: func(r *Row) (float64, bool) {
		for i := range r.Servers {
			if r.Servers[i].Target == target {
				return value(get(&r.Servers[i]))
			}
		}
		return 0, false
	}}
}

func worst(name, unit string, scale float64, get func(*Server) *float64) Measure {
	return Measure{Name: name, Unit: unit, Server: true, Value: func(r *Row) (most float64, some bool) {
		for i := range r.Servers {
			v, ok := get(&r.Servers[i]), true
			switch {
			case v == nil:
				continue
			case math.IsNaN(*v):
				return 0, false
			}
			most, some = max(most, *v*scale), ok
		}
		return most, some
	}}
}

func value(v *float64) (float64, bool) {
	if v == nil || math.IsNaN(*v) {
		return 0, false
	}
	return *v, true
}

// ObservedRow is RowOf with what was seen of the servers.
func ObservedRow(h *history.History) Row {
	row := RowOf(&h.Snapshot)
	row.Servers = servers(h)
	row.settings = settingsOfRun(h.Settings)
	return row
}
