package review

import (
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Machine is what was observed of one machine during a run.
type Machine struct {
	rundir.Machine
	Cores int `json:"cores,omitempty"`
	// Values sum up the measures that the machine has, in the catalogue's order. In JSON
	// each has a field of its own, as for servers.
	Values []Value `json:"-"`
	// Unanswered is the number of Ticks without an answer, Errors has the reasons.
	Ticks      int      `json:"ticks,omitempty"`
	Unanswered int      `json:"unanswered,omitempty"`
	Errors     []string `json:"errors,omitempty"`
	// SampledSeconds is how much of the run the samples of the machine cover. Its means are of these seconds.
	SampledSeconds float64 `json:"sampled_seconds,omitempty"`

	Coverage record.Coverage `json:"-"`
}

// Value returns the machine's value of m, [series.Unknown] if it has none.
func (m *Machine) Value(of *measure.Measure) float64 {
	v, _ := valueOf(m.Values, of)
	return v.Value
}

// OtherPrograms returns the share of the CPU of the tool's machine that programs other than the tool and the servers
// took, and the machine's name. It is unknown if the processes were not read.
func (r *Row) OtherPrograms() (share float64, name string) {
	for i := range r.Machines {
		m := &r.Machines[i]
		if used := m.Value(host.OthersCPU); series.IsKnown(used) && m.Cores > 0 && r.DurationSeconds > 0 {
			return min(1, used/(float64(m.Cores)*r.DurationSeconds)), m.Host
		}
	}
	return series.Unknown(), ""
}

// Role is what the machine does in the run: "generator", "server", "generator and server".
func (m *Machine) Role() string {
	roles := make([]string, len(m.Roles))
	for i, r := range m.Roles {
		roles[i] = string(r)
	}
	slices.Sort(roles)
	return strings.Join(roles, " and ")
}

// MarshalJSON returns the machine with a field for each measure.
func (m Machine) MarshalJSON() ([]byte, error) {
	type plain Machine
	if m.Roles == nil { // the run ended before they were recorded
		m.Roles = []rundir.HostRole{}
	}
	return table.MarshalFields(plain(m), valueFields(m.Values))
}

// machines sums up each machine over the time that the tool ran.
func machines(h *record.History) []Machine {
	var all []Machine
	for _, one := range h.Hosts {
		out := Machine{Machine: one.Machine, Cores: one.Cores, Ticks: one.Ticks, Unanswered: one.Unanswered,
			Errors: one.Errors, SampledSeconds: one.Coverage.Seconds, Coverage: one.Coverage}
		if out.Host == "" {
			out.Host = one.Nodename
		}
		for _, m := range measure.All(measure.Host) {
			if m.Summary == measure.Last {
				continue
			}
			if v := sumUp(m, one.Tally(m), one.Server); series.IsKnown(v.Value) {
				out.Values = append(out.Values, v)
			}
		}
		all = append(all, out)
	}
	return all
}

// MachineTable has a row for each fact and measure and a column for each machine.
func MachineTable(all []Machine) *table.Table {
	t := newSideBySide(all, func(m *Machine) string { return m.Host })
	t.add("role", func(m *Machine) table.Cell { return table.Text(m.Role()) })
	t.add("servers", func(m *Machine) table.Cell { return table.Text(table.Join(m.Targets)) })
	t.add("cores", func(m *Machine) table.Cell {
		if m.Cores == 0 {
			return table.Cell{}
		}
		return table.Whole(m.Cores)
	})
	t.add("sampled", func(m *Machine) table.Cell { return coverageCell(m.Coverage) })
	measures := slices.DeleteFunc(slices.Clone(measure.All(measure.Host)),
		func(m *measure.Measure) bool { return m.Summary == measure.Cost })
	t.addMeasures(measures, (*Machine).Value)
	t.add("Samples without an answer", func(m *Machine) table.Cell {
		if m.Unanswered == 0 {
			return table.Cell{}
		}
		return table.Whole(m.Unanswered)
	})
	return t.table
}

// sideBySide is a table with a column for each server or machine.
type sideBySide[T any] struct {
	table *table.Table
	all   []T
}

func newSideBySide[T any](all []T, name func(*T) string) *sideBySide[T] {
	t := table.New(table.Column{Name: "measure"})
	for i := range all {
		t.Columns = append(t.Columns, table.Column{Name: name(&all[i])})
	}
	return &sideBySide[T]{t, all}
}

// add adds a row, unless all of its cells are unknown.
func (t *sideBySide[T]) add(head string, cell func(*T) table.Cell) {
	row := []table.Cell{table.Text(head)}
	for i := range t.all {
		row = append(row, cell(&t.all[i]))
	}
	if slices.ContainsFunc(row[1:], func(c table.Cell) bool { return !c.IsUnknown() }) {
		t.table.Add(row...)
	}
}

// addMeasures adds a row for each measure that is not 0 or unknown everywhere.
func (t *sideBySide[T]) addMeasures(measures []*measure.Measure, value func(*T, *measure.Measure) float64) {
	for _, m := range measures {
		if !slices.ContainsFunc(t.all, func(one T) bool { v := value(&one, m); return series.IsKnown(v) && v != 0 }) {
			continue
		}
		head, unit := headOf(m)
		t.add(head, func(one *T) table.Cell {
			cell := table.Number(value(one, m), unit)
			if unit.Sign == table.PerSecond.Sign {
				return cell
			}
			return cell.Signed()
		})
	}
}

// headOf returns a measure's title in a table of several measures, and its unit.
func headOf(m *measure.Measure) (string, table.Unit) {
	unit := table.UnitOf(m)
	switch {
	case m.Summary == measure.Max:
		return m.Title + ", highest", unit
	case m.IsRate():
		return m.Title + " per second", unit
	}
	return m.Title, unit
}

// machineMeasures returns the measures of machines that have a column.
func machineMeasures(rows []Row) []Measure {
	names := machinesOf(rows)
	if len(names) > serverColumns {
		return nil
	}
	return measuresOfMachines(names)
}

// machinesOf returns the machines' names in the order in which the runs have them.
func machinesOf(rows []Row) []string {
	var names []string
	for i := range rows {
		for j := range rows[i].Machines {
			if name := rows[i].Machines[j].Host; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// measuresOfMachines returns the measures that have a column for each machine, of these
// machines.
func measuresOfMachines(names []string) []Measure {
	var all []Measure
	for _, name := range names {
		for _, m := range measure.All(measure.Host) {
			if m.Column != measure.EachHost {
				continue
			}
			one := newServerMeasure(strings.TrimSpace(name+" "+m.Name()), m.Unit, table.UnitOf(m), func(r *Row) float64 {
				i := slices.IndexFunc(r.Machines, func(one Machine) bool { return one.Host == name })
				if i < 0 {
					return series.Unknown()
				}
				return r.Machines[i].Value(m)
			})
			one.Figure, one.Line, one.Of = m.Name(), name, m
			all = append(all, one)
		}
	}
	return all
}
