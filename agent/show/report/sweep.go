package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/show/document"
)

// SweepPage is the result of a sweep with its figures.
type SweepPage struct {
	*sweep.Result
	// Address is the address of the agent's page, to which the runs are linked; empty: there is none.
	Address string
}

// Figures returns a figure of each measure over the set that is scaled up, with a line for
// each combination of the others. The fits of the Universal Scalability Law are drawn in.
func (p *SweepPage) Figures(measures []review.Measure) []*Plot {
	r := p.Result
	var plots []*Plot
	for _, f := range compare.Figures(measures) {
		plot := PlotFigure(f, r.Scale, r.Average, r.Points)
		if r.Found != nil {
			plot.markFound(r.Found)
		} else if f[0].Field == tool.Throughput.Field() {
			addLaws(r, plot)
		}
		if !plot.Empty() {
			plots = append(plots, plot)
		}
	}
	return plots
}

// markFound marks the highest value within the conditions instead of the best point, which may be beyond them.
func (p *Plot) markFound(f *sweep.Found) {
	for i := range p.Marks {
		line := &p.Lines[p.Marks[i].Line]
		if j := slices.IndexFunc(line.Points, func(q Point) bool { return q.X == float64(f.Value) }); j >= 0 {
			p.Marks = []PlotMark{{line.Points[j].X, line.Points[j].Y, fmt.Sprintf("highest %s within %s: %d",
				f.Name, strings.Join(f.SubjectTo, ", "), f.Value), p.Marks[i].Line}}
			return
		}
	}
	p.Marks = nil
}

// isFlat reports whether the points of all lines are about equal.
func (p *Plot) isFlat() bool {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range p.Lines {
		for _, q := range p.Lines[i].Points {
			low, high = min(low, q.Low), max(high, q.High)
		}
	}
	return high-low <= flatSpread*math.Abs(high)
}

// fitPoints is how many points a curve has.
const fitPoints = 60

// addLaws draws the fits into the figure of the throughput.
func addLaws(r *sweep.Result, p *Plot) {
	for _, a := range r.Advice {
		i := slices.IndexFunc(p.Lines, func(l PlotLine) bool { return l.Name == r.Describe(a.Others) })
		if a.USL == nil || a.USL.R2 < 0.9 || i < 0 {
			continue
		}
		points := p.Lines[i].Points
		first, last := points[0].X, points[len(points)-1].X
		law := PlotLine{Name: fmt.Sprintf("Universal Scalability Law, R² %.3f", a.USL.R2), Fit: true, Colour: i + 1}
		for k := range fitPoints + 1 {
			n := first * math.Pow(last/first, float64(k)/fitPoints)
			v := a.USL.At(n)
			law.Points = append(law.Points, Point{X: n, Y: v, Low: v, High: v})
		}
		p.Lines = append(p.Lines, law)
	}
}

// Page returns the result as a page.
func (p *SweepPage) Page() *document.Page {
	r := p.Result
	plots := p.Figures(review.FigureMeasures(r.Runs))
	d := document.Document{ID: r.ID, Title: p.title()}
	switch {
	case r.Found != nil:
		d.Note.Strong = r.Found.Lines[0]
		d.Add("found", "Result", document.List(r.Found.Lines[1:]...))
	case len(r.Advice) > 0:
		d.Note.Strong = r.Conclusion()
		if disturbed := r.Disturbed(); disturbed != "" {
			d.Note.Text = disturbed + ", which differs between the runs; "
		}
		d.Add("best", "Result", adviceBlocks(r)...)
	}
	d.Add("failed", "Failed steps", document.List(r.Failures()...))
	first, all := document.Table(r.FirstTable()), document.Table(r.Table())
	all = all.Folded(len(all.Head), "column")
	all.Long = true
	if len(all.Head) == len(first.Head) {
		all = document.Block{}
	}
	d.Add("combinations", "Combinations", first, proseOf(r.Note()), all)
	flat := slices.DeleteFunc(slices.Clone(plots), func(p *Plot) bool { return !p.isFlat() })
	plots = slices.DeleteFunc(plots, (*Plot).isFlat)
	without := document.Block{Drawings: plotDrawings(flat), Unprinted: true}
	without.Fold = table.Plural(len(flat), "figure") + " without a change"
	d.Add("figures", "Figures", document.Block{Drawings: plotDrawings(plots)}, without)
	t, ids := r.RunTable()
	runs := document.Table(t)
	runs.Runs, runs.Long = ids, true
	d.Add("runs", "Runs", proseOf(p.note()), runs.Folded(len(ids), "run"))
	d.Add("command", "Command", document.Command(r.Of.Command), hooks(r.Of))
	return &document.Page{Title: d.Title, Address: p.Address, Documents: []document.Document{d}}
}

// title is the user's or what was varied.
func (p *SweepPage) title() string {
	s := p.Of
	var names []string
	for _, set := range s.Sets {
		names = append(names, set.Name)
	}
	switch {
	case s.Seek != nil:
		return fmt.Sprintf("Highest %s within %s", table.Join(names), strings.Join(s.Seek.SubjectTo, ", "))
	case s.Title != "" && !strings.Contains(s.Title, "{"):
		return s.Title
	}
	title := "Sweep over " + table.Join(names)
	if len(p.Runs) > 0 && p.Runs[0].Workload != "" {
		title = p.Runs[0].Workload + " over " + table.Join(names)
	}
	return title
}

// note describes the runs of the sweep: how many, when, and on which servers.
func (p *SweepPage) note() string {
	text := fmt.Sprintf("sweep %s, %s", p.ID, table.Plural(len(p.Runs), "run"))
	if p.Of.Seek != nil {
		text = fmt.Sprintf("seek %s, %s", p.ID, table.Plural(len(p.Runs), "run"))
	}
	var servers []string
	from, to := time.Time{}, time.Time{}
	for i := range p.Runs {
		r := &p.Runs[i]
		if from.IsZero() || r.StartedAt.Before(from) {
			from = r.StartedAt
		}
		if end := r.StartedAt.Add(time.Duration(r.DurationSeconds * float64(time.Second))); end.After(to) {
			to = end
		}
		for j := range r.Servers {
			servers = append(servers, r.Servers[j].Target)
		}
		if len(r.Servers) == 0 && r.Target != "" {
			servers = append(servers, r.Target)
		}
	}
	if !from.IsZero() {
		text += fmt.Sprintf(", from %s to %s", table.Moment(from), table.Moment(to))
	}
	slices.Sort(servers)
	if servers = slices.Compact(servers); len(servers) > 0 {
		text += ", on " + table.Join(servers)
	}
	return text
}

// hooks are the commands before and after each run.
func hooks(s *sweep.Sweep) document.Block {
	var b document.Block
	for _, hook := range []document.Term{{Name: "before each run", Value: s.Before}, {Name: "after each run", Value: s.After}} {
		if hook.Value != "" {
			b.Facts = append(b.Facts, hook)
		}
	}
	return b
}

// adviceBlocks has the advice about the number of threads for each combination of the other sets. Advice that is equal
// for all of them has its own block. The best of one combination is in the note.
func adviceBlocks(r *sweep.Result) []document.Block {
	if len(r.Advice) == 1 {
		said := r.Conclusion() // in the note
		return []document.Block{document.List(slices.DeleteFunc(slices.Clone(r.Advice[0].Lines), func(line string) bool { return line == said })...)}
	}
	shared := slices.DeleteFunc(slices.Clone(r.Advice[0].Lines), func(line string) bool {
		return slices.ContainsFunc(r.Advice[1:], func(a sweep.Advice) bool { return !slices.Contains(a.Lines, line) })
	})
	var blocks []document.Block
	for _, a := range r.Advice {
		b := document.List(slices.DeleteFunc(slices.Clone(a.Lines), func(line string) bool { return slices.Contains(shared, line) })...)
		b.Title = r.Describe(a.Others)
		blocks = append(blocks, b)
	}
	all := document.List(shared...)
	all.Title = "all combinations"
	return append(blocks, all)
}
