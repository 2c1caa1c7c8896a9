package report

import (
	"io"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/measure"
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

	// Plots are over a parameter, Charts over elapsed seconds.
	Plots  []*Plot `json:"-"`
	Charts []Chart `json:"-"`
}

// JSON writes the comparison for a program.
func (p *ComparisonPage) JSON(w io.Writer) error {
	p.Sections = p.Layout()
	return table.JSON(w, p)
}

// Page returns the comparison as a page.
func (p *ComparisonPage) Page() *document.Page {
	d := document.Document{Title: strings.Join(p.Headings, " against "), Sections: p.Layout()}
	return &document.Page{Title: "Comparison of " + strings.Join(p.Headings, ", "), Documents: []document.Document{d}}
}

// Layout returns the sections of a comparison. Over a parameter, a table over it replaces the table of measures.
func (p *ComparisonPage) Layout() []document.Section {
	c := &p.Comparison
	var d document.Document
	d.Add("summary", "What differs", append(p.differing(), document.Prose(c.Summary...))...)
	d.Add("limits", "Limits", document.Table(c.ConditionTable()))
	if c.Arranged == nil && len(c.Groups) > 1 {
		more, folded, details := document.Table(c.MoreTable()), document.Table(c.FoldedTable()), document.Table(c.DetailTable())
		more.Fold = table.Plural(len(more.Rows), "more row")
		details.Fold = table.Plural(len(details.Rows), "row") + " about the cost per transaction, and each server"
		folded.Fold = c.FoldedLine()
		more.Long, details.Long, folded.Long = true, true, true
		d.Add("measures", "Measures", document.Table(c.Table()), more, details, folded)
		d.Add(document.Time, "Over elapsed seconds", document.Block{Drawings: chartDrawings(p.Charts)})
		d.Add("statements", "Statements by the difference of their time", document.Table(c.StatementTable()))
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
	notes := c.Notes
	if len(c.Groups) > 1 {
		notes = append([]string{"the baseline is " + c.Groups[0]}, notes...)
	}
	if len(p.Runs) > 0 {
		notes = append([]string{"runs: " + runNames(c.Groups, p.Runs)}, notes...)
	}
	d.Add("notes", "How to read this", document.List(notes...))
	return d.Sections
}

// runNames returns which run each group is.
func runNames(groups, runs []string) string {
	names := make([]string, len(groups))
	for i := range groups {
		names[i] = groups[i] + " is " + runs[i]
	}
	return table.Join(names)
}

// firstDifferences is how many of the facts and settings that differ are shown before the others are folded.
const firstDifferences = 4

// differing returns how the groups were made differently.
func (p *ComparisonPage) differing() []document.Block {
	all := p.Comparison.All()
	first := document.Block{}
	for _, d := range all[:min(len(all), firstDifferences)] {
		between := " → "
		if len(d.Values) > 2 {
			between = ", "
		}
		first.Facts = append(first.Facts,
			document.Term{Name: d.Name, Value: table.Clip(strings.Join(dashed(d.Values), between), longestDifference)})
	}
	rest := document.Table(p.DifferenceTable(all[len(first.Facts):]))
	rest = rest.Folded(len(rest.Rows), "more difference")
	rest.Long = true
	return []document.Block{first, rest}
}

// longestDifference bounds the values of a fact in one line.
const longestDifference = 90

func dashed(values []string) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = table.Dash(v)
	}
	return all
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

// ComparedCharts are the charts over time of a comparison, empty: throughput, latency, what differs of
// servers and machines, and errors.
func ComparedCharts(c *compare.Comparison) []Chart {
	charts := []Chart{newChart(tool.Throughput), newChart(tool.HeadlineLatency)}
	for _, m := range c.Charted() {
		one := newChart(m)
		one.Unit += ", of the worst"
		charts = append(charts, one)
	}
	return append(charts, newChart(tool.ErrorRate))
}

// CompareCharts returns the charts of each combination, with the runs over the same elapsed seconds.
// histories are in the order of the groups' runs.
func CompareCharts(c *compare.Comparison, groups []compare.Group, histories [][]*record.History) []Chart {
	var charts []Chart
	for _, x := range c.Combinations {
		all := ComparedCharts(c)
		for i := range all {
			for j, name := range c.Varied {
				all[i].Title += ", " + name + " " + x.Values[j]
			}
			for j := range groups {
				for _, k := range x.Runs[j] {
					name := groups[j].Name
					if len(groups[j].Runs) > 1 {
						name += " " + groups[j].Runs[k].ID
					}
					all[i].addRun(name, histories[j][k])
				}
				all[i].group(j + 1)
			}
			if !all[i].Empty() {
				all[i].fit()
				charts = append(charts, all[i])
			}
		}
	}
	return charts
}

// addRun adds the line of a run. For servers and machines, it has the largest value of all.
func (c *Chart) addRun(name string, h *record.History) {
	v := &h.Intervals
	c.To = max(c.To, v.Last)
	switch c.Measure {
	case tool.Throughput:
		rate := ingest.RateOf(tool.Transaction)
		c.add(name, v.Elapsed, v.Values(rate), v.Tally(rate))
	case tool.HeadlineLatency:
		if l := review.HeadlineOf(v); l.Known {
			column := ingest.LatencyOf(l.Value.Operation, l.Value.Stat)
			c.add(name+" "+review.LatencyName(column.Operation, column.Stat), v.Elapsed, v.Values(column), v.Tally(column))
		}
	case tool.ErrorRate:
		rate := ingest.Column{Measure: tool.ErrorRate}
		if t := v.Tally(rate); t.Max > 0 {
			c.add(name, v.Elapsed, v.Values(rate), t)
		}
	default:
		samples := &h.Samples
		if c.Measure.Scope == measure.Host {
			samples = &h.HostSamples
		}
		begin, _ := slices.BinarySearch(samples.Elapsed, 0)
		end, _ := slices.BinarySearch(samples.Elapsed, max(v.Last, 0))
		axis, worst := samples.Elapsed[begin:end], slices.Repeat([]float64{series.Unknown()}, end-begin)
		for _, k := range samples.Keys() {
			if k.Measure != c.Measure {
				continue
			}
			for i, value := range samples.Values(k)[begin:end] {
				if series.IsKnown(value) && !(value <= worst[i]) {
					worst[i] = value
				}
			}
		}
		c.add(name, axis, worst, series.TallyOf(axis, worst, v.Last))
	}
}

// group sets the group of the lines without one.
func (c *Chart) group(n int) {
	for i := range c.Lines {
		if c.Lines[i].Group == 0 {
			c.Lines[i].Group = n
		}
	}
}
