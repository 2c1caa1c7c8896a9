package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/measure"
	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/table"
)

// Cost is what a transaction of a run took: of all its servers, or of all machines with
// the same roles.
type Cost struct {
	Name string `json:"name"`
	// Of is "servers" for what the servers report, else the role of the machines.
	Of string `json:"of"`
	// Unit is the base unit of Value, a count or bytes or seconds.
	Unit  measure.Unit `json:"unit"`
	Value float64      `json:"value"`

	measure *measure.Measure
}

// costs divides what servers and machines did a second by the transactions of a second. A
// value that one of them lacks is left out: a part would look like the whole.
func costs(r *Row, machineRates, serverRates map[*measure.Measure]map[string][]float64) []Cost {
	tps := series.Number(r.TPS)
	if !(tps > 0) {
		return nil
	}
	var all []Cost
	for scope, rates := range map[measure.Scope]map[*measure.Measure]map[string][]float64{measure.Host: machineRates, measure.Server: serverRates} {
		for _, m := range measure.All(scope) {
			for of, values := range rates[m] {
				sum := 0.0
				for _, v := range values {
					sum += v
				}
				if series.IsKnown(sum) {
					all = append(all, Cost{Name: m.Title + suffix(m), Of: of, Unit: m.Unit, Value: sum / tps, measure: m})
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

// costTable has a row for each cost and a column for servers and machines.
func costTable(all []Cost) *table.Table {
	var of []string
	for _, c := range all {
		if !slices.Contains(of, c.Of) {
			of = append(of, c.Of)
		}
	}
	t := table.New(append(table.Named("per transaction"), table.Named(of...)...)...)
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
	for i := range rows {
		for _, c := range rows[i].Costs {
			name := strings.ToLower(c.Name[:1]) + strings.ReplaceAll(c.Name[1:], ",", "") + "/trx"
			if strings.HasPrefix(c.Name, "CPU") || strings.HasPrefix(c.Name, "InnoDB") {
				name = c.Name + "/trx"
			}
			if c.Of != "servers" {
				name = c.Of + " " + name
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
			m.IsCost = true
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b Measure) int { return strings.Compare(roleOf(a.Name), roleOf(b.Name)) })
	return all
}

func roleOf(name string) string {
	for _, role := range []string{"generator", "proxy", "server"} {
		if strings.HasPrefix(name, role) {
			return role
		}
	}
	return "" // servers
}

// machineRates returns what costs are made of, by the machines' role.
func machineRates(h *history.History) map[*measure.Measure]map[string][]float64 {
	rates := map[*measure.Measure]map[string][]float64{}
	for _, one := range h.Hosts {
		m := Machine{Machine: one.Machine}
		addRates(rates, measure.Host, one.Server, m.Role())
	}
	return rates
}

// serverRates returns what costs are made of, of all servers but proxies.
func serverRates(h *history.History) map[*measure.Measure]map[string][]float64 {
	rates := map[*measure.Measure]map[string][]float64{}
	for _, s := range h.Servers {
		if server := h.Snapshot.Meta.Servers.Server(s.Target); server == nil || !server.Proxy {
			addRates(rates, measure.Server, s, "servers")
		}
	}
	return rates
}

// addRates adds how much a server or machine did a second while the tool ran.
func addRates(rates map[*measure.Measure]map[string][]float64, scope measure.Scope, s *history.Server, of string) {
	seconds := s.Sampled.To - s.Sampled.From
	if !(seconds > 0) || of == "" {
		return
	}
	for _, m := range measure.All(scope) {
		if m.Summary != measure.Cost {
			continue
		}
		if _, has := s.Source(m); has {
			if rates[m] == nil {
				rates[m] = map[string][]float64{}
			}
			rates[m][of] = append(rates[m][of], s.Increase(m)/seconds)
		}
	}
}
