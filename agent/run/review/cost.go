package review

import (
	"cmp"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// ofServers is Cost.Of for values that servers report.
const ofServers = "servers"

// Cost is what a transaction of a run cost all its servers, or all machines with the same roles.
type Cost struct {
	Name string `json:"name"`
	// Of is "servers" for the values that servers report, else the role of the machines.
	Of string `json:"of"`
	// Unit is the base unit of Value, a count or bytes or seconds.
	Unit  measure.Unit `json:"unit"`
	Value float64      `json:"value"`

	measure *measure.Measure
	sampled record.Coverage // the least of the servers or machines
}

// costs adds up what a transaction cost the servers and the machines. A value that one of them does not report is left
// out: the sum of the others would look complete.
func costs(h *record.History, r *Row) []Cost {
	var all []Cost
	for _, scope := range []measure.Scope{measure.Host, measure.Server} {
		parts := costParts(h, r, scope)
		for _, m := range measure.All(scope) {
			for of, part := range parts[m] {
				if series.IsKnown(part.sum) {
					all = append(all, Cost{Name: m.Title + suffix(m), Of: of,
						Unit: m.Unit, Value: part.sum, measure: m, sampled: part.sampled})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b Cost) int {
		return cmp.Or(a.measure.Rank-b.measure.Rank, strings.Compare(b.Of, a.Of))
	})
	return all
}

// suffix distinguishes operations from their bytes.
func suffix(m *measure.Measure) string {
	if m.Unit == measure.Bytes && !strings.HasPrefix(m.Title, "Bytes") {
		return ", bytes"
	}
	return ""
}

// CostTable has a row for each cost and a column for servers and machines.
func CostTable(all []Cost) *table.Table {
	var of []string
	for _, c := range all {
		if !slices.Contains(of, c.Of) {
			of = append(of, c.Of)
		}
	}
	t := table.New(table.Named("per transaction")...)
	for _, name := range of {
		i := slices.IndexFunc(all, func(c Cost) bool { return c.Of == name })
		if !all[i].sampled.IsWhole() {
			name += ", " + all[i].sampled.String()
		}
		t.Columns = append(t.Columns, table.Column{Name: name})
	}
	for i, c := range all {
		if slices.ContainsFunc(all[:i], func(o Cost) bool { return o.measure == c.measure }) {
			continue
		}
		row := []table.Cell{table.Text(c.Name)}
		known := false
		for _, one := range of {
			j := slices.IndexFunc(all, func(o Cost) bool { return o.measure == c.measure && o.Of == one })
			if j < 0 {
				row = append(row, table.Cell{})
				continue
			}
			known = known || all[j].Value != 0
			row = append(row, table.Number(all[j].Value, table.UnitOf(c.measure)).Signed())
		}
		if known {
			t.Add(row...)
		}
	}
	return t
}

// costMeasures returns the costs as measures of several runs.
func costMeasures(rows []Row) []Measure {
	var all []Measure
	order := map[string]string{} // by name: those of the servers first, then by role
	for i := range rows {
		for _, c := range rows[i].Costs {
			name := strings.ReplaceAll(table.Uncapitalised(c.Name), ",", "") + "/trx"
			if c.Of != ofServers {
				name = c.Of + " " + name
				order[name] = c.Of
			}
			if slices.ContainsFunc(all, func(m Measure) bool { return m.Name == name }) {
				continue
			}
			m := newServerMeasure(name, c.Unit, table.UnitOf(c.measure), func(r *Row) float64 {
				j := slices.IndexFunc(r.Costs, func(o Cost) bool { return o.measure == c.measure && o.Of == c.Of })
				if j < 0 {
					return series.Unknown()
				}
				return r.Costs[j].Value
			})
			m.Field = strings.ToLower(strings.NewReplacer("/trx", "_per_transaction").Replace(m.Field))
			m.IsCost, m.IsDetail, m.Of = true, true, c.measure
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b Measure) int { return strings.Compare(order[a.Name], order[b.Name]) })
	return all
}

// costPart is what a transaction cost the servers, or the machines with the same roles.
type costPart struct {
	sum     float64
	sampled record.Coverage
}

// costParts adds up the costs of all machines by their role, or of all servers but proxies.
func costParts(h *record.History, r *Row, scope measure.Scope) map[*measure.Measure]map[string]costPart {
	parts := map[*measure.Measure]map[string]costPart{}
	add := func(s *record.Server, of string) {
		seconds := s.Sampled.To - s.Sampled.From
		transactions := transactionRate(h, r, s) * seconds
		if !(transactions > 0) || of == "" {
			return
		}
		for _, m := range measure.All(scope) {
			if _, has := s.Source(m); !has || m.Summary != measure.Cost {
				continue
			}
			if parts[m] == nil {
				parts[m] = map[string]costPart{}
			}
			part, has := parts[m][of]
			if part.sum += s.Increase(m) / transactions; !has || s.Coverage.Share() < part.sampled.Share() {
				part.sampled = s.Coverage
			}
			parts[m][of] = part
		}
	}
	if scope == measure.Host {
		for _, one := range h.Hosts {
			m := Machine{Machine: one.Machine}
			add(one.Server, m.Role())
		}
		return parts
	}
	for _, s := range h.Servers {
		if server := h.Snapshot.Meta.Servers.Server(s.Target); server == nil || !server.Proxy {
			add(s, ofServers)
		}
	}
	return parts
}

// transactionRate returns the transactions a second while a server was sampled; for a whole run the
// summary has them.
func transactionRate(h *record.History, r *Row, s *record.Server) float64 {
	whole := series.Number(r.Values.Of(tool.Throughput))
	if s.Coverage.IsWhole() {
		return whole
	}
	if v := h.Intervals.Throughput.During(s.Sampled, h.Intervals.Lengths.Median()); series.IsKnown(v) {
		return v
	}
	return whole
}
