package web

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/many/history"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	documents "github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/document"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// trendView is a measure of runs over months.
type trendView struct {
	// Measure is shown; Measures can be chosen.
	Measure  string   `json:"measure"`
	Measures []string `json:"measures"`
	// Names are the labels and facts that distinguish runs.
	Names  []string          `json:"names"`
	Series []trendSeriesView `json:"series"`
	Notes  []string          `json:"notes"`
}

// trendSeriesView is the runs of one kind.
type trendSeriesView struct {
	Title string `json:"title"`
	// Text describes the current level.
	Text string `json:"text"`
	// Run is the only one of the series, which then has no drawing.
	Run  string           `json:"run,omitempty"`
	Plot document.Drawing `json:"plot,omitzero"`
	// Changes are numbered in the drawing.
	Changes []changeView `json:"changes"`
}

// changeView is where a level changed: between the runs Before and After.
type changeView struct {
	Before string `json:"before"`
	After  string `json:"after"`
	// Level is the size of the change, Text what differs between the runs.
	Level string `json:"level"`
	Text  string `json:"text"`
}

// The width of a drawing in CSS pixels.
const defaultWidth, minWidth, maxWidth = 520, 280, 1600

// plotWidth returns the width that a request asks for.
func plotWidth(q url.Values) (float64, error) {
	text := q.Get("width")
	if text == "" {
		return defaultWidth, nil
	}
	w, err := strconv.Atoi(text)
	if err != nil {
		return 0, errors.New("width is not a whole number")
	}
	return float64(min(maxWidth, max(minWidth, w))), nil
}

const (
	// defaultRuns is how many runs a history has by default. Most of them are read from memory.
	defaultRuns = 2000
	// maxTrends is how many series are drawn.
	maxTrends = 50
)

// serveTrend answers with a measure over all runs: measure=p95, where=name=value of labels
// and facts, by=name,name, runs=N newest ones.
func (p *Page) serveTrend(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	name := q.Get("measure")
	if name == "" {
		name = "tps"
	}
	condition, err := review.ParseName(name)
	width, err2 := plotWidth(q)
	where, err3 := conditionsOf(q["where"])
	newest := defaultRuns
	var err4 error
	if text := q.Get("runs"); text != "" {
		if newest, err4 = strconv.Atoi(text); err4 != nil || newest < 1 {
			err4 = errors.New("runs is not a number of runs")
		}
	}
	if err := errors.Join(err, err2, err3, err4); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	select { // as in readAll
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-r.Context().Done():
		return
	}
	names := map[string]bool{}
	rows, older, err := p.opts.Trends.Rows(r.Context(),
		history.Query{Observed: condition.Scope() != measure.Run, Newest: newest, Wanted: func(m *rundir.Meta) bool {
			for _, f := range m.Facts() {
				if f.Value != "" {
					names[f.Name] = true
				}
			}
			return where(m)
		}})
	if err != nil {
		if r.Context().Err() == nil {
			p.log.Debug("history not served", "err", err)
			refuse(w, http.StatusInternalServerError, "the runs can't be read")
		}
		return
	}
	view := trendView{Measure: name, Measures: history.TrendMeasures(rows),
		Names: slices.Sorted(maps.Keys(names)), Series: []trendSeriesView{}, Notes: []string{}}
	if len(rows) > 0 {
		by := strings.FieldsFunc(q.Get("by"), func(c rune) bool { return c == ',' })
		t, err := history.NewTrend(rows, history.TrendOptions{Measure: name, By: history.KindOf(by), Settings: p.opts.Trends.Settings})
		if err != nil {
			view.Notes = append(view.Notes, err.Error())
		} else {
			view.add(t, width)
		}
	}
	if older > 0 {
		view.Notes = append(view.Notes, fmt.Sprintf("of the newest %s; %s left out: benchwatch history has all",
			documents.Plural(len(rows), "run"), documents.Plural(older, "older run")))
	}
	answer(w, r, encode(view))
}

// add adds the series of a trend.
func (v *trendView) add(t *history.Trend, width float64) {
	t.Link = func(id string) string { return "#/runs/" + url.PathEscape(id) }
	for i := range t.Series[:min(len(t.Series), maxTrends)] {
		s := &t.Series[i]
		one := trendSeriesView{Title: s.Title(), Text: t.LevelText(s), Changes: []changeView{}}
		if len(s.Runs) == 1 {
			one.Run = s.Runs[0].ID
		} else {
			one.Plot = report.DrawTrend(t, s)
			one.Plot.SVG, one.Plot.Notes = string(one.Plot.Draw(width)), nil // the changes
		}
		for j := range s.Changes {
			c := &s.Changes[j]
			one.Changes = append(one.Changes, changeView{c.Before, c.After, t.ChangeText(s, j), c.Text()})
		}
		v.Series = append(v.Series, one)
	}
	if verdict := t.Verdict(); verdict != "" {
		v.Notes = append(v.Notes, verdict)
	}
	v.Notes = append(v.Notes, t.Notes...)
	if n := len(t.Series) - maxTrends; n > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("%d more series are not shown: choose runs", n))
	}
}

// conditionsOf returns a function that selects the runs with these labels and facts.
func conditionsOf(all []string) (func(*rundir.Meta) bool, error) {
	type condition struct{ name, value string }
	var wanted []condition
	for _, text := range all {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not like name=value", text)
		}
		wanted = append(wanted, condition{name, value})
	}
	return func(m *rundir.Meta) bool {
		return !slices.ContainsFunc(wanted, func(c condition) bool { return m.Fact(c.name) != c.value })
	}, nil
}
