package review

import (
	"cmp"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Balance is how a run's servers, or the shards behind them, shared one kind of load.
type Balance struct {
	// Load is operations, bytes or CPU.
	Load string `json:"load"`
	// By is what the parts are: server or shard.
	By    string     `json:"by"`
	Parts []LoadPart `json:"parts"`
	// Imbalance is the excess of the largest share over the mean: 0 if all shares are equal, 2 if one of three parts
	// has everything.
	Imbalance float64 `json:"imbalance"`

	measure *measure.Measure
}

// LoadPart is the load of one server or shard.
type LoadPart struct {
	Name string `json:"name"`
	// PerSecond is the load of the part per second: operations, bytes, or seconds of CPU.
	PerSecond float64 `json:"per_second"`
	Share     float64 `json:"share"`
}

// balances returns how servers and shards shared each load, if at least two of them are known. A load that one of the
// servers does not report is left out, because the others' shares would be wrong.
func balances(h *record.History) []Balance {
	var all []Balance
	for _, m := range measure.All(measure.Cluster) {
		b := Balance{Load: m.Line, By: "server", measure: m}
		var ok bool
		switch m.By {
		case "":
			b.Parts, ok = partsByServer(h, m)
		default:
			b.By, b.Parts, ok = m.By, partsByLabel(h, m), true
		}
		sum, most := 0.0, 0.0
		for _, p := range b.Parts {
			sum, most = sum+p.PerSecond, max(most, p.PerSecond)
		}
		if !ok || len(b.Parts) < 2 || !(sum > 0) {
			continue
		}
		for i := range b.Parts {
			b.Parts[i].Share = b.Parts[i].PerSecond / sum
		}
		b.Imbalance = most*float64(len(b.Parts))/sum - 1
		all = append(all, b)
	}
	return all
}

// router is the role of servers that only forward operations to other servers.
const router = "router"

// partsByServer returns the load of each server, without proxies and, if there are others,
// without routers; false if one of them is unknown.
func partsByServer(h *record.History, m *measure.Measure) (parts []LoadPart, ok bool) {
	var servers []*record.Server
	for _, s := range h.Servers {
		if one := h.Snapshot.Meta.Servers.Server(s.Target); one != nil && !one.Proxy && s.Answered {
			servers = append(servers, s)
		}
	}
	if slices.ContainsFunc(servers, func(s *record.Server) bool { return s.Role != router }) {
		servers = slices.DeleteFunc(servers, func(s *record.Server) bool { return s.Role == router })
	}
	for _, s := range servers {
		v := loadOf(h, s, m.Of)
		if m.Of == engine.ServerCPU && !series.IsKnown(v) {
			v = machineCPU(h, s.Target)
		}
		if !series.IsKnown(v) {
			return nil, false
		}
		parts = append(parts, LoadPart{Name: s.Target, PerSecond: v})
	}
	return parts, true
}

// loadOf returns the mean rate of a server's measure while the tool ran.
func loadOf(h *record.History, s *record.Server, m *measure.Measure) float64 {
	if m.Summary == measure.Mean {
		t := h.Samples.Tally(record.ServerMeasure{Target: s.Target, Measure: m})
		return t.Mean()
	}
	if seconds := s.Sampled.To - s.Sampled.From; seconds > 0 {
		return s.Increase(m) / seconds
	}
	return series.Unknown()
}

// machineCPU returns the cores in use of a server's machine, unknown if the machine has another role in the run.
func machineCPU(h *record.History, target string) float64 {
	for _, one := range h.Hosts {
		if len(one.Targets) == 1 && one.Targets[0] == target && !one.Has(rundir.GeneratorHost) && one.Cores > 0 {
			t := one.Tally(host.Busy)
			return t.Mean() * float64(one.Cores)
		}
	}
	return series.Unknown()
}

// partsByLabel returns the load of each value of a label. If several servers report the same value, the largest load
// counts.
func partsByLabel(h *record.History, m *measure.Measure) []LoadPart {
	var most []LoadPart
	largest := 0.0
	for _, s := range h.Servers {
		seconds := s.Sampled.To - s.Sampled.From
		if h.Snapshot.Meta.Servers.Server(s.Target) == nil || !(seconds > 0) {
			continue
		}
		var parts []LoadPart
		sum := 0.0
		for name, v := range s.IncreaseBy(m.Of, m.By) {
			parts, sum = append(parts, LoadPart{Name: name, PerSecond: v / seconds}), sum+v
		}
		if sum > largest {
			most, largest = parts, sum
		}
	}
	slices.SortFunc(most, func(a, b LoadPart) int { return strings.Compare(a.Name, b.Name) })
	return most
}

// BalanceTable has a row for each server and shard, and one for the imbalance.
func BalanceTable(all []Balance) *table.Table {
	t := table.New(table.Column{Name: "part"})
	var loads, kinds []string
	for _, b := range all {
		if !slices.Contains(loads, b.Load) {
			loads = append(loads, b.Load)
			t.Columns = append(t.Columns, table.Column{Name: b.Load})
		}
		if !slices.Contains(kinds, b.By) {
			kinds = append(kinds, b.By)
		}
	}
	find := func(by, load string) *Balance {
		i := slices.IndexFunc(all, func(b Balance) bool { return b.By == by && b.Load == load })
		if i < 0 {
			return &Balance{}
		}
		return &all[i]
	}
	for _, by := range kinds {
		var names []string
		for _, load := range loads {
			for _, p := range find(by, load).Parts {
				if !slices.Contains(names, p.Name) {
					names = append(names, p.Name)
				}
			}
		}
		row := func(name string, value func(*Balance) table.Cell) {
			cells := []table.Cell{table.Text(name)}
			for _, load := range loads {
				cells = append(cells, value(find(by, load)))
			}
			t.Add(cells...)
		}
		for _, name := range names {
			row(by+" "+name, func(b *Balance) table.Cell {
				i := slices.IndexFunc(b.Parts, func(p LoadPart) bool { return p.Name == name })
				if i < 0 {
					return table.Cell{}
				}
				return table.Number(b.Parts[i].Share, table.Percent).Signed()
			})
		}
		row("imbalance of "+by+"s", func(b *Balance) table.Cell {
			if len(b.Parts) == 0 {
				return table.Cell{}
			}
			return table.Number(b.Imbalance, table.Percent).Signed()
		})
	}
	return t
}

// balanceMeasures returns the imbalances as measures of several runs.
func balanceMeasures(rows []Row) []Measure {
	var found []*measure.Measure
	for i := range rows {
		for _, b := range rows[i].Balances {
			if b.measure != nil && !slices.Contains(found, b.measure) {
				found = append(found, b.measure)
			}
		}
	}
	slices.SortFunc(found, func(a, b *measure.Measure) int { return cmp.Compare(a.Rank, b.Rank) })
	var all []Measure
	for _, m := range found {
		one := newServerMeasure(m.Name(), m.Unit, table.UnitOf(m), func(r *Row) float64 {
			i := slices.IndexFunc(r.Balances, func(b Balance) bool { return b.measure == m })
			if i < 0 {
				return series.Unknown()
			}
			return r.Balances[i].Imbalance
		})
		one.Of, one.IsDetail = m, true
		one.Field, one.Condition = m.ID+"_ratio", ""
		all = append(all, one)
	}
	return all
}
