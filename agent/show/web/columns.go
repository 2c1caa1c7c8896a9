package web

import (
	"slices"
	"sync"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// name identifies a column: a measure, its operation or target (else empty) and, for latencies, the statistic.
type name struct{ measure, of, stat string }

// table has the values of one scope over a run's axis, a row for each instant. It is thinned to limit its memory.
type table = series.Thinned[name]

// cell is one value of a row.
type cell struct {
	name
	value float64
}

// addRow appends a row unless its instant is not after the last one. If more than
// one and a half steps lie between the two, there is a gap, as in a history that is
// read; a step of 0 is unknown.
func addRow(t *table, elapsed, step float64, cells []cell) {
	if !t.IsNext(elapsed) {
		return
	}
	if n := len(t.Elapsed); n > 0 {
		for _, missed := range series.Breaks([]float64{t.Elapsed[n-1], elapsed}, step) {
			t.Row(missed)
		}
	}
	t.Row(elapsed)
	for _, c := range cells {
		t.Set(c.name, c.value)
	}
	t.Settle()
}

// chartView is one chart of the page: the measures that it draws, and the catalogue's entry of the first one.
type chartView struct {
	ID    string        `json:"id"`
	Title string        `json:"title"`
	Note  string        `json:"note"`
	Unit  measure.Unit  `json:"unit"`
	Scope measure.Scope `json:"scope"`
	// Summary is the number that sums up a line of an ended run.
	Summary measure.Summary `json:"summary"`
	// OnlyChanges: the chart is hidden while no value changes, EvenZero: it is shown even if all are 0.
	OnlyChanges bool `json:"only_changes,omitempty"`
	EvenZero    bool `json:"even_zero,omitempty"`
	// Stacked: the lines add up to a whole.
	Stacked  bool            `json:"stacked,omitempty"`
	Measures []chartLineView `json:"measures"`
}

// chartLineView is a measure within a chart.
type chartLineView struct {
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
			v := chartView{ID: m.ID, Title: m.Title, Note: m.Note, Unit: m.Unit, Scope: scope, Summary: m.Summary,
				OnlyChanges: m.OnlyChanges, EvenZero: m.EvenZero, Stacked: m.Stacked}
			for _, line := range lines {
				if line == tool.QueryRate {
					continue // throughput has a line for each operation
				}
				v.Measures = append(v.Measures, chartLineView{line.ID, line.Label()})
			}
			views = append(views, v)
		}
	}
	return views
}

// drawnOfServers are the measures of servers whose values the page gets.
func drawnOfServers() []*measure.Measure { return drawn(measure.Server) }

// drawn are the measures of servers or machines whose values the page gets.
func drawn(scope measure.Scope) []*measure.Measure {
	return slices.DeleteFunc(measure.All(scope), func(m *measure.Measure) bool {
		return (m.NoChart || m.Summary == measure.Cost) && m != engine.Answered
	})
}

// drawnMetrics are the metrics from which the drawn measures are computed.
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

// intervalTable has everything that the tool reported. If several reports end at the same instant, the first one
// counts.
func intervalTable(v *record.Intervals) *table {
	t := series.Rekey(&v.Thinned, func(c ingest.Column) (name, bool) {
		tally := v.Tally(c)
		return name{c.Measure.ID, c.Operation, c.Stat}, tally.Count > 0
	})
	t.Sorted = func(n name) bool { return hasMedian[n.measure] }
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
	for _, v := range r.Values {
		cells = append(cells, cell{name{v.Measure.ID, "", ""}, v.Value})
	}
	if r.Threads.Known {
		cells = append(cells, cell{name{tool.Threads.ID, "", ""}, float64(r.Threads.Value)})
	}
	return cells
}

// serverTable is the values of all servers over the ticks of all of them.
func serverTable(h *record.History) *table {
	drawn := drawnOfServers()
	return series.Rekey(&h.Samples, func(k record.ServerMeasure) (name, bool) {
		t := h.Samples.Tally(k)
		return name{k.Measure.ID, k.Target, ""}, t.Count > 0 && slices.Contains(drawn, k.Measure)
	})
}

// serverCells is what all servers answered at one tick. previous is the frame of
// the previous tick, for rates.
func serverCells(previous, current *engine.Frame) []cell {
	return sampleCells(previous, current, drawnOfServers())
}

// sampleCells is the measures of all samples of a frame.
func sampleCells(previous, current *engine.Frame, measures []*measure.Measure) []cell {
	var cells []cell
	for i := range current.Samples {
		s := &current.Samples[i]
		window := engine.NewWindow(previous.Sample(s.Target.Name), s)
		for _, m := range measures {
			if v := window.Now(m); v.Known {
				cells = append(cells, cell{name{m.ID, s.Target.Name, ""}, v.Value})
			}
		}
	}
	return cells
}

// hostTable has the values of the machines during a run.
func hostTable(h *record.History) *table {
	measures := drawn(measure.Host)
	return series.Rekey(&h.HostSamples, func(k record.ServerMeasure) (name, bool) {
		return name{k.Measure.ID, k.Target, ""}, slices.Contains(measures, k.Measure)
	})
}
