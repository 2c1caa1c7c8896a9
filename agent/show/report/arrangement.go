package report

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
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/show/document"
)

var (
	// troubles are added if the verdict names fewer than mostEvidence charts.
	troubles = []*measure.Measure{engine.FlowControl, engine.FlowControlSent, engine.LagSeconds, engine.RunningSessions, tool.ErrorRate, engine.RunningThreads, engine.QueryRate}
	// headlines follow the evidence.
	headlines = []*measure.Measure{tool.Throughput, tool.HeadlineLatency, host.Busy}
	// first are the leading charts of an active run, which has no verdict yet. The node that requests pauses is beside
	// the pauses.
	first = []*measure.Measure{tool.Throughput, tool.HeadlineLatency, host.Busy, engine.FlowControl, engine.FlowControlSent, engine.LagSeconds, engine.RunningSessions}
)

// mostEvidence is how many charts show what limited a run.
const mostEvidence = 3

// chartOf returns the measure whose chart shows m.
func chartOf(m *measure.Measure) *measure.Measure { return cmp.Or(m.ChartOf, m) }

// ChartID is the name of a measure's chart on the page.
func ChartID(m *measure.Measure) string { return string(m.Scope) + "-" + m.ID }

// chartBlocks arranges the charts of a run: the evidence of its verdict, throughput and latency, then
// the others folded by what they are about, and last those without information.
func chartBlocks(charts []Chart, v *limits.Verdict) []document.Block {
	var lead []*measure.Measure
	take := func(wanted []*measure.Measure, most int) {
		for _, m := range wanted {
			m = chartOf(m)
			i := slices.IndexFunc(charts, func(c Chart) bool { return c.Measure == m })
			if i >= 0 && len(lead) < most && !slices.Contains(lead, m) && (!charts[i].isFlat() || slices.Contains(headlines, m)) {
				lead = append(lead, m)
			}
		}
	}
	if v != nil {
		for i := range v.Findings {
			take(limits.Charts(v.Findings[i].Limit), mostEvidence)
		}
		if len(v.Behind) > 0 {
			take([]*measure.Measure{engine.LagSeconds, engine.LagTransactions}, mostEvidence)
		}
	}
	take(troubles, mostEvidence)
	take(headlines, mostEvidence+len(headlines))
	return arrange(charts, lead)
}

// part is the charts about one thing.
type part struct {
	about  string
	charts []Chart
}

// arrange returns a block with the lead charts and folded ones with the others.
func arrange(charts []Chart, lead []*measure.Measure) []document.Block {
	parts := map[measure.Scope]*part{measure.Run: {about: "of the tool"},
		measure.Server: {about: "of the servers"}, measure.Host: {about: "of the machines"}}
	leading, flat := make([]Chart, len(lead)), part{about: "that hardly change"}
	for _, c := range charts {
		switch i := slices.Index(lead, c.Measure); {
		case i >= 0:
			leading[i] = c
		case c.isFlat():
			flat.charts = append(flat.charts, c)
		default:
			parts[c.Scope].charts = append(parts[c.Scope].charts, c)
		}
	}
	if len(flat.charts) == 1 {
		flat.about = "that hardly changes"
	}
	blocks := []document.Block{{Drawings: chartDrawings(leading)}, parts[measure.Run].folded(),
		parts[measure.Server].folded(), parts[measure.Host].folded(), flat.folded()}
	blocks[len(blocks)-1].Unprinted = true
	return blocks
}

// folded returns the charts behind a line that names them.
func (p *part) folded() document.Block {
	names := make([]string, len(p.charts))
	for i := range p.charts {
		names[i] = p.charts[i].Title
	}
	return document.Block{
		Drawings: chartDrawings(p.charts),
		Fold:     fmt.Sprintf("%s %s: %s", table.Plural(len(p.charts), "chart"), p.about, strings.Join(names, ", ")),
	}
}

// LiveCharts arranges the charts of the catalogue for an active run.
func LiveCharts() []document.Block {
	var charts []Chart
	for _, scope := range []measure.Scope{measure.Run, measure.Server, measure.Host} {
		for _, m := range measure.All(scope) {
			if len(m.Charted()) > 0 {
				charts = append(charts, newChart(m))
			}
		}
	}
	blocks := arrange(charts, first)
	for i, name := range []string{"", "The tool", "Servers", "Machines"} { // which of them have values changes
		blocks[i].Fold = name
	}
	return blocks[:4]
}

const (
	// flatSpread is the share of a line's largest value within which its values are alike, littleShare
	// the share of a whole below which nothing happens.
	flatSpread  = 0.02
	littleShare = 0.01
)

// isFlat reports whether the chart has nothing to show: each line is about constant, or a share close
// to 0.
func (c *Chart) isFlat() bool {
	if len(c.Lines) == 0 || c.Measure == nil {
		return false
	}
	return !c.any(func(t *series.Tally) bool {
		isLittle := c.base == measure.Ratio && math.Abs(t.Max) < littleShare && t.Min >= 0
		return !isLittle && t.Max-t.Min > flatSpread*math.Abs(t.Max)
	})
}
