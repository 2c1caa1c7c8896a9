package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/history"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

func trendDocument(t *history.Trend) *table.Document {
	doc := &table.Document{}
	for i := range t.Series {
		s := &t.Series[i]
		doc.Heading(3, s.Title())
		doc.Paragraph(table.Line{Text: t.LevelText(s)})
		if len(s.Changes) > 0 {
			doc.Table(t.ChangeTable(s))
		}
	}
	doc.List(t.Notes...)
	return doc
}

// Text writes the trend for a terminal.
func (p *TrendPage) Text(w io.Writer) error { return trendDocument(p.Trend).Text(w) }

// Markdown writes the trend as Markdown.
func (p *TrendPage) Markdown(w io.Writer) error { return trendDocument(p.Trend).Markdown(w) }

// PlotTrend draws a series over time with its levels and changes.
func PlotTrend(t *history.Trend, s *history.TrendSeries) *Plot {
	p := &Plot{Title: s.Title(), Unit: t.Head(), X: Axis{Title: "start of the run"}}
	day := func(at time.Time) float64 { return float64(at.Unix()) / 86400 }
	values := PlotLine{Name: "runs"}
	for _, r := range s.Runs {
		q := Point{X: day(r.StartedAt), Y: r.Value, Low: r.Value, High: r.Value, Title: fmt.Sprintf("%s, %s: %s", table.Instant(r.StartedAt), r.ID, strings.TrimSpace(table.Digits.Format(r.Value)+" "+t.Unit))}
		if t.Link != nil {
			q.Link = t.Link(r.ID)
		}
		values.Points = append(values.Points, q)
	}
	levels := PlotLine{Name: "levels", Fit: true}
	for _, l := range s.Levels {
		for _, at := range []time.Time{s.Runs[l.Begin].StartedAt, s.Runs[l.End-1].StartedAt} {
			levels.Points = append(levels.Points, Point{X: day(at), Y: l.Mean, Low: l.Mean, High: l.Mean})
		}
	}
	p.Lines = []PlotLine{values, levels}
	for i := range s.Changes {
		c := &s.Changes[i]
		p.Marks = append(p.Marks, PlotMark{X: day(c.At), Y: s.Runs[c.Index].Value, Line: 1,
			Text: fmt.Sprintf("%s, %+.1f %%: %s", table.Instant(c.At), c.ChangePercent, c.Text())})
	}
	p.X.Ticks = dateTicks(s.Runs[0].StartedAt, s.Runs[len(s.Runs)-1].StartedAt)
	return p
}

// dateTicks are five places between two times, as dates or times of day.
func dateTicks(from, to time.Time) []Tick {
	format := "2006-01-02"
	if to.Sub(from) < 5*24*time.Hour {
		format = "01-02 15:04"
	}
	var ticks []Tick
	for i := range 5 {
		at := from.Add(to.Sub(from) * time.Duration(i) / 4)
		ticks = append(ticks, Tick{float64(at.Unix()) / 86400, at.UTC().Format(format)})
	}
	return ticks
}

// TrendPage is a trend as one file that needs nothing else.
type TrendPage struct {
	*history.Trend
	Made    time.Time
	Version string
}

// Plots are one for each series.
func (p *TrendPage) Plots() []*Plot {
	var all []*Plot
	for i := range p.Series {
		all = append(all, PlotTrend(p.Trend, &p.Series[i]))
	}
	return all
}

// Tables are those of the series with changes.
func (p *TrendPage) Tables() []TitledTable {
	var all []TitledTable
	for i := range p.Series {
		s := &p.Series[i]
		all = append(all, TitledTable{s.Title(), p.LevelText(s), p.ChangeTable(s)})
	}
	return all
}

// TitledTable is a table with its title and notes.
type TitledTable struct {
	Title, Text string
	Table       *table.Table
}

// HTML writes the page.
func (p *TrendPage) HTML(w io.Writer) error {
	return page.ExecuteTemplate(table.PlainWriter{W: w}, "trend", p)
}
