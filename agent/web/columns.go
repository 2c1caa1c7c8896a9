package web

import (
	"slices"
	"strings"
	"sync"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/host"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/measure"
	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// name identifies a column: a measure, what it is about (an operation or a
// target, else empty) and, for latencies, the statistic.
type name struct{ measure, of, stat string }

// table is the values of one scope over a run's axis, a row for each instant.
type table = series.Table[name]

// cell is one value of a row.
type cell struct {
	name
	value float64
}

// addRow appends a row unless its instant is not after the last one.
func addRow(t *table, elapsed float64, cells []cell) {
	if !t.IsNext(elapsed) || !t.Row(elapsed) {
		return
	}
	for _, c := range cells {
		t.Set(c.name, c.value)
	}
}

// chartView is one chart of the page: the measures that it draws, and what the
// catalogue says of the first one.
type chartView struct {
	ID       string        `json:"id"`
	Title    string        `json:"title"`
	Note     string        `json:"note"`
	Unit     measure.Unit  `json:"unit"`
	Scope    measure.Scope `json:"scope"`
	Measures []lineView    `json:"measures"`
}

// lineView is a measure within a chart.
type lineView struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// charts returns the page's charts in reading order: what the tool reports, the
// servers, the machine.
func charts() []chartView {
	views := []chartView{}
	for _, scope := range []measure.Scope{measure.Run, measure.Server, measure.Host} {
		for _, m := range measure.All(scope) {
			lines := m.Charted()
			if len(lines) == 0 {
				continue
			}
			v := chartView{ID: m.ID, Title: m.Title, Note: m.Note, Unit: m.Unit, Scope: scope}
			for _, line := range lines {
				if line == tool.QueryRate {
					continue // throughput has a line for each operation
				}
				label := line.Short
				if label == "" {
					label = strings.ToLower(line.Title)
				}
				v.Measures = append(v.Measures, lineView{line.ID, label})
			}
			views = append(views, v)
		}
	}
	return views
}

// drawnOfServers are the measures of servers whose values the page gets.
func drawnOfServers() []*measure.Measure {
	return slices.DeleteFunc(measure.All(measure.Server), func(m *measure.Measure) bool {
		return m.NoChart && m != engine.Answered
	})
}

// drawnMetrics are the metrics from which those are computed.
var drawnMetrics = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, m := range drawnOfServers() {
		for _, s := range m.Sources() {
			for _, metric := range s.Metrics() {
				names[metric.Name] = true
			}
		}
	}
	return names
})

// isDrawn reports whether the page needs a metric of the servers' record.
func isDrawn(metric string) bool { return drawnMetrics()[metric] }

// runMeasures are those of a run that have one value per interval: throughput
// and latency have one for each operation.
func runMeasures() []*measure.Measure {
	return []*measure.Measure{tool.ErrorRate, tool.ReconnectRate, tool.QueueLength, tool.Concurrency, tool.Threads}
}

// intervalTable is all that the tool reported. Of reports that end at the same
// instant the first counts.
func intervalTable(v *ingest.Intervals) *table {
	t := &table{Elapsed: v.Elapsed}
	for _, c := range v.Keys() {
		values := v.Values(c)
		if m := c.Kind.Measure(); m != nil && series.AnyKnown(values) {
			t.Add(name{m.ID, c.Operation, c.Stat}, values)
		}
	}
	return t
}

// intervalCells is one report as it is read.
func intervalCells(r *tool.Report) []cell {
	var cells []cell
	for _, v := range r.Rates {
		cells = append(cells, cell{name{tool.Throughput.ID, v.Operation, ""}, v.PerSecond})
	}
	for _, v := range r.Latencies {
		cells = append(cells, cell{name{tool.HeadlineLatency.ID, v.Operation, v.Stat}, v.Seconds})
	}
	for _, m := range runMeasures() {
		if v := series.Number(r.Value(m)); series.IsKnown(v) {
			cells = append(cells, cell{name{m.ID, "", ""}, v})
		}
	}
	return cells
}

// serverTable is the values of all servers over the ticks of all of them.
func serverTable(h *history.History) *table {
	t := &table{}
	for _, s := range h.Servers {
		t.Elapsed = series.Union(t.Elapsed, s.Elapsed)
	}
	for _, m := range drawnOfServers() {
		for _, s := range h.Servers {
			if values := m.Values(s); series.AnyKnown(values) {
				t.Add(name{m.ID, s.Target, ""}, series.Spread(t.Elapsed, s.Elapsed, values))
			}
		}
	}
	return t
}

// serverCells is what all servers answered at one tick. previous is the frame of
// the previous tick, for rates.
func serverCells(previous, current *engine.Frame) []cell {
	var cells []cell
	for i := range current.Samples {
		s := &current.Samples[i]
		window := engine.NewWindow(previous.Sample(s.Target.Name), s)
		for _, m := range drawnOfServers() {
			if v := window.Now(m); v.Known {
				cells = append(cells, cell{name{m.ID, s.Target.Name, ""}, v.Value})
			}
		}
	}
	return cells
}

// hostTable is what was recorded of a machine during a run.
func hostTable(h *host.History) *table {
	t := &table{Elapsed: h.Elapsed}
	for _, m := range measure.All(measure.Host) {
		if values := m.Values(h); values != nil {
			t.Add(name{m.ID, "", ""}, values)
		}
	}
	return t
}

// hostCells is one sample of the machine.
func hostCells(s *host.Sample) []cell {
	var one host.History
	one.Add(s, 0)
	t := hostTable(&one)
	var cells []cell
	for _, n := range t.Keys() {
		cells = append(cells, cell{n, t.At(n, 0)})
	}
	return cells
}
