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
	"github.com/benchwatch/benchwatch/agent/show/document"
)

// ComparisonPage is a comparison with drawings of its runs.
type ComparisonPage struct {
	compare.Comparison
	// Sections are what the other formats show, in human-readable form.
	Sections []document.Section `json:"sections"`

	Made    time.Time `json:"-"`
	Version string    `json:"-"`
	// Plots are over a parameter, Charts over elapsed seconds.
	Plots  []*Plot `json:"-"`
	Charts []Chart `json:"-"`
}

// Text writes the comparison for a terminal.
func (p *ComparisonPage) Text(w io.Writer, t terminal.Terminal) error { return p.page().Text(w, t) }

// Markdown writes the comparison as Markdown.
func (p *ComparisonPage) Markdown(w io.Writer) error { return p.page().Markdown(w) }

// HTML writes one file that needs nothing else.
func (p *ComparisonPage) HTML(w io.Writer) error { return p.page().HTML(w) }

// JSON writes the comparison for a program.
func (p *ComparisonPage) JSON(w io.Writer) error {
	p.Sections = p.Layout()
	return table.JSON(w, p)
}

func (p *ComparisonPage) page() *document.Page {
	d := document.Document{Title: strings.Join(p.Groups, " against "), Sections: p.Layout()}
	if len(p.Groups) > 1 {
		d.Note.Text = "Ratios and differences are to " + p.Groups[0]
	}
	return &document.Page{Title: "Comparison of " + strings.Join(p.Groups, ", "), Made: p.Made, Version: p.Version, Documents: []document.Document{d}}
}

// Layout returns what is shown of a comparison. Over a parameter, a table of that takes the place of
// the measures.
func (p *ComparisonPage) Layout() []document.Section {
	c := &p.Comparison
	var d document.Document
	d.Add("summary", "Summary", document.Prose(c.Summary...))
	d.Add("limits", "Limits", document.Table(c.LimitTable()))
	if c.Arranged == nil && len(c.Groups) > 1 {
		folded, details := document.Table(c.FoldedTable()), document.Table(c.DetailTable())
		folded.Fold, folded.Long = c.FoldedLine(), true
		d.Add("measures", "Measures", document.Table(c.Table()), folded)
		d.Add("details", "Cost per transaction, and each server", details.Folded(len(details.Rows), "row"))
		d.Add("statements", "Statements by the difference of their time", document.Table(c.StatementTable()))
		d.Add("differs", "What differs", document.Table(c.DifferenceTable(c.Differs)))
		d.Add("settings", "Settings of the servers that differ", document.Table(c.DifferenceTable(c.ServerSettings)))
	}
	figures := []document.Block{{Drawings: plotDrawings(p.Plots)}}
	title := "Figures"
	if s := c.Arranged; s != nil {
		title = "Over " + s.X
		if len(s.Named) == 1 {
			title = s.Named[0].Head() + " by " + s.X
		}
		figures = append(figures, document.Table(s.Table()), proseOf(s.Note()))
	}
	d.Add("figures", title, figures...)
	d.Add(document.Time, "Over elapsed seconds", document.Block{Drawings: chartDrawings(p.Charts)})
	d.Add("notes", "How to read this", document.List(c.Notes...))
	return d.Sections
}

// proseOf returns a paragraph, nothing if it is empty.
func proseOf(text string) document.Block {
	if text == "" {
		return document.Block{}
	}
	return document.Prose(text)
}

// AddScaling adds the figure of the throughput over the number of threads, if at least three differ.
// Runs that were not grouped make one line.
func (p *ComparisonPage) AddScaling(groups []compare.Group) error {
	threads := map[int]bool{}
	all := compare.Group{}
	for _, g := range groups {
		all.Runs = append(all.Runs, g.Runs...)
	}
	for i := range all.Runs {
		threads[all.Runs[i].Threads] = true
	}
	if len(threads) < 3 {
		return nil
	}
	if len(all.Runs) == len(groups) {
		groups = []compare.Group{all}
	}
	set, err := compare.NewFigureSet(&p.Comparison, groups, compare.FigureOptions{X: "threads", Measures: []string{"tps"}})
	if err == nil {
		p.Plots = FigurePlots(set)
	}
	return err
}

// ComparedCharts are the charts over time of a comparison, empty.
func ComparedCharts() []Chart {
	return []Chart{newChart(tool.Throughput), newChart(tool.HeadlineLatency)}
}

// CompareCharts returns two charts for each combination, throughput and headline
// latency, with the runs over the same elapsed seconds. histories are in the order
// of the groups' runs.
func CompareCharts(c *compare.Comparison, groups []compare.Group, histories [][]*record.History) []Chart {
	var charts []Chart
	for _, x := range c.Combinations {
		both := ComparedCharts()
		throughput, latency := both[0], both[1]
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
