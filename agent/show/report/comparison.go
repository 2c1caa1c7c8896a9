package report

import (
	"io"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// comparisonDocument has the summary, the limits, the tables, then what differs and the notes. What is
// wider than width, if that is not 0, is made narrower.
func comparisonDocument(c *compare.Comparison, width int) *table.Document {
	doc := &table.Document{}
	doc.List(c.Summary...)
	doc.Table(c.LimitTable())
	if len(c.Limits) > 0 {
		doc.Fold("The comparison", func() { addComparison(c, doc, width) })
	} else {
		addComparison(c, doc, width)
	}
	return doc
}

func addComparison(c *compare.Comparison, doc *table.Document, width int) {
	if c.Arranged != nil {
		addFigures(c.Arranged, doc)
		return
	}
	doc.Table(narrowed(c.Table(), width))
	if text := c.FoldedLine(); text != "" {
		doc.Paragraph(table.Line{Text: text})
	}
	if details := c.DetailTable(); len(details.Rows) > 0 {
		doc.Section(3, compare.DetailTitle, func() {
			doc.Fold(table.Plural(len(details.Rows), "row"), func() { doc.Table(narrowed(details, width)) })
		})
	}
	var items []string
	add := func(prefix string, all []compare.Difference) {
		for _, d := range all {
			words := make([]string, len(d.Values))
			for i, v := range d.Values {
				words[i] = c.Groups[i] + " " + table.Dash(v)
			}
			items = append(items, prefix+d.Name+": "+strings.Join(words, "; "))
		}
	}
	add("", c.Differs)
	add("server setting ", c.ServerSettings)
	doc.List(append(items, c.Notes...)...)
	if len(c.Statements) > 0 {
		doc.Section(3, "Statements by the difference of their time", func() { doc.Table(c.ClippedStatements()) })
	}
}

// narrowed leaves out the ratios of a table that is too wide: the differences have the same.
func narrowed(t *table.Table, width int) *table.Table {
	if width > 0 && t.Width() > width {
		for _, head := range t.Head() {
			if strings.HasPrefix(head, compare.RatioHead) {
				t.Drop(head)
			}
		}
	}
	return t
}

// Text writes the comparison for a terminal.
func (p *ComparisonPage) Text(w io.Writer, t terminal.Terminal) error {
	doc := comparisonDocument(&p.Comparison, t.Width)
	doc.Wrap = t.Wrap
	return doc.Text(w)
}

// Markdown writes the comparison as Markdown.
func (p *ComparisonPage) Markdown(w io.Writer) error {
	return comparisonDocument(&p.Comparison, 0).Markdown(w)
}

// ComparisonPage is a comparison with charts of its runs.
type ComparisonPage struct {
	compare.Comparison
	Made    time.Time
	Version string
	// Plots are over a parameter, Charts over elapsed seconds.
	Plots  []*Plot
	Charts []Chart
}

// HTML writes one file that needs nothing else.
func (p *ComparisonPage) HTML(w io.Writer) error {
	return page.ExecuteTemplate(table.PlainWriter{W: w}, "comparison", p)
}

// CompareCharts returns two charts for each combination, throughput and headline
// latency, with the runs over the same elapsed seconds. histories are in the order
// of the groups' runs.
func CompareCharts(c *compare.Comparison, groups []compare.Group, histories [][]*record.History) []Chart {
	var charts []Chart
	for _, x := range c.Combinations {
		throughput, latency := newChart(tool.Throughput), newChart(tool.HeadlineLatency)
		for i, name := range c.Varied {
			suffix := ", " + name + " " + x.Values[i]
			throughput.Title += suffix
			latency.Title += suffix
		}
		for i, g := range groups {
			for _, j := range x.Runs[i] {
				v := &histories[i][j].Intervals
				name := g.Name
				if len(g.Runs) > 1 {
					name += " " + g.Runs[j].ID
				}
				rate := ingest.RateOf(tool.Transaction)
				throughput.add(name, v.Elapsed, v.Values(rate), v.Tally(rate))
				if l := review.HeadlineOf(v); l.Known {
					column := ingest.LatencyOf(l.Value.Operation, l.Value.Stat)
					latency.add(name+" "+review.LatencyName(column.Operation, column.Stat), v.Elapsed, v.Values(column), v.Tally(column))
				}
				throughput.group(i + 1)
				latency.group(i + 1)
				throughput.To = max(throughput.To, v.Last)
				latency.To = throughput.To
			}
		}
		for _, chart := range []Chart{throughput, latency} {
			if !chart.Empty() {
				chart.fit()
				charts = append(charts, chart)
			}
		}
	}
	return charts
}

// group gives the lines without a group this one.
func (c *Chart) group(n int) {
	for i := range c.Lines {
		if c.Lines[i].Group == 0 {
			c.Lines[i].Group = n
		}
	}
}
