package review

import (
	"math"
	"path/filepath"

	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Generator is a generator of a group, and how its part of the load ended.
type Generator struct {
	// Name is the id of its own run, or the name of the file that it was imported from.
	Name string `json:"name"`
	rundir.Member
}

// generators returns the generators of a group in the order of their numbers.
func generators(m *rundir.Meta) []Generator {
	if !m.IsGroup() {
		return nil
	}
	var all []Generator
	for i, o := range m.Group.Members {
		g := Generator{Name: rundir.GeneratorID(m.Group.Name, i+1), Member: o}
		if o.Log != "" {
			g.Name = filepath.Base(o.Log)
		}
		all = append(all, g)
	}
	return all
}

// GeneratorTable returns a line for each generator of a group. They start after the first one.
func GeneratorTable(all []Generator) *table.Table {
	t := table.New(table.Named("generator", "machine", "result", "started", "clock")...)
	first := math.Inf(1)
	for i := range all {
		if s := all[i].StartSeconds; s != nil {
			first = min(first, *s)
		}
	}
	for i := range all {
		g := &all[i]
		result := string(g.Outcome)
		switch {
		case g.Absent:
			result = "never started"
		case g.Reason != "":
			result += ": " + g.Reason
		}
		t.Add(table.Text(g.Name), table.Text(g.Host), table.Text(result), offset(g.StartSeconds, first), offset(g.ClockOffsetSeconds, 0))
	}
	t.DropUnknown()
	return t
}

// offset is by how much seconds are after others, unknown if they are.
func offset(seconds *float64, from float64) table.Cell {
	if seconds == nil {
		return table.Cell{}
	}
	return table.Number(*seconds-from, table.Milliseconds).Signed()
}
