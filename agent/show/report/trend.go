package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/history"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/show/document"
)

// TrendPage returns a trend as a page.
func TrendPage(t *history.Trend) *document.Page {
	d := document.Document{Title: t.Measure + " over time"}
	d.Note.Strong = t.Verdict()
	var single []string
	for i := range t.Series {
		s := &t.Series[i]
		if len(s.Runs) == 1 && t.Measure != history.Ratio {
			single = append(single, s.Title()+": "+t.LevelText(s))
			continue
		}
		drawn := document.Block{}
		if len(s.Runs) > 1 {
			drawn.Drawings = []document.Drawing{DrawTrend(t, s)}
			drawn.Drawings[0].Title, drawn.Drawings[0].Unit = t.Head(), "" // the section has the title of the series
		}
		d.Add("series-"+strconv.Itoa(i+1), s.Title(), document.Prose(t.LevelText(s)),
			drawn, document.Table(t.ChangeTable(s)), document.Table(t.RatioTable(s)))
	}
	all := document.List(single...)
	if len(single) < len(t.Series) {
		all.Fold, all.Long = fmt.Sprintf("%d series of one run", len(single)), true
	}
	d.Add("single", "One run", all)
	d.Add("notes", "How to read this", document.List(append([]string{"dashed lines are levels; a number marks a change"}, t.Notes...)...))
	return &document.Page{Title: d.Title, Documents: []document.Document{d}}
}

// DrawTrend returns the drawing of a series.
func DrawTrend(t *history.Trend, s *history.TrendSeries) document.Drawing {
	return plotDrawings([]*Plot{PlotTrend(t, s)})[0]
}

// PlotTrend draws a series over time with its levels and changes.
func PlotTrend(t *history.Trend, s *history.TrendSeries) *Plot {
	p := &Plot{Title: s.Title(), Unit: t.Head(), X: Axis{Title: "start of the run, UTC"}}
	day := func(at time.Time) float64 { return float64(at.Unix()) / 86400 }
	values := PlotLine{Name: "runs"}
	for _, r := range s.Runs {
		q := Point{X: day(r.StartedAt), Y: r.Value, Low: r.Value, High: r.Value, Title: fmt.Sprintf("%s, %s: %s",
			table.Instant(r.StartedAt), r.ID, strings.TrimSpace(table.Digits.Format(r.Value)+" "+t.Unit))}
		if r.Low.Known {
			q.Low, q.High = r.Low.Value, r.High.Value
		}
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

// dateTicks are up to five places between two times, at whole days, hours, minutes or seconds, each with a different
// text.
func dateTicks(from, to time.Time) []Tick {
	steps := []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute,
		15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour}
	step := steps[0]
	for i := 0; to.Sub(from) > mostTicks*step; i++ {
		if step *= 2; i+1 < len(steps) {
			step = steps[i+1]
		}
	}
	var format string
	switch days := to.Sub(from) >= 24*time.Hour; {
	case step%(24*time.Hour) == 0:
		format = time.DateOnly
	case days:
		format = "01-02 15:04"
	case step%time.Minute == 0:
		format = "15:04"
	default:
		format = time.TimeOnly
	}
	var ticks []Tick
	for at := from.UTC().Truncate(step); !at.After(to); at = at.Add(step) {
		if !at.Before(from) {
			ticks = append(ticks, Tick{float64(at.Unix()) / 86400, at.Format(format)})
		}
	}
	if len(ticks) == 0 {
		ticks = append(ticks, Tick{float64(from.Unix()) / 86400, from.UTC().Format(time.DateTime)})
	}
	return ticks
}

// mostTicks is how many places of an axis of dates have a text.
const mostTicks = 5
