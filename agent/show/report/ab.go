package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/many/ab"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/show/document"
)

// ABPage is the result of an A/B comparison with its charts.
type ABPage struct {
	ab.Result
	// Sections are what the other formats show, in human-readable form.
	Sections []document.Section `json:"sections"`
}

// JSON writes the result for a program.
func (p *ABPage) JSON(w io.Writer) error {
	p.Sections = p.Layout()
	return table.JSON(w, p)
}

// Page returns the result as a page.
func (p *ABPage) Page() *document.Page {
	d := document.Document{Title: "A/B comparison " + p.ID, Sections: p.Layout()}
	d.Note.Text = "Ratios and differences are to " + p.Arms[0].Title()
	return &document.Page{Title: d.Title, Documents: []document.Document{d}}
}

// Layout returns the sections of an A/B comparison: the verdict, what supports it, and what the difference cost.
func (p *ABPage) Layout() []document.Section {
	r := &p.Result
	var d document.Document
	d.Add("verdict", "Verdict", p.verdict(), document.Block{Code: r.Bars(), Unprinted: true})
	if r.Comparison != nil {
		d.Add("limits", "Limits", document.Table(r.Comparison.ConditionTable()))
	}
	d.Add("trust", "How far to trust it", document.List(r.Trust...))
	d.Add("figures", "Blocks and interval", document.Block{Drawings: plotDrawings(p.plots())})
	d.Add("failed", "Blocks without a result", document.List(r.Failures()...))
	if c := r.Comparison; c != nil && len(c.Lines) > 0 {
		pooled := ComparisonPage{Comparison: *c}
		pooled.Conditions = nil // shown above
		pooled.Summary = slices.DeleteFunc(slices.Clone(pooled.Summary), func(text string) bool { return text == c.Division+"." })
		for _, s := range pooled.Layout() {
			if s.ID == "summary" {
				s.Title = "What paid for it"
				s.Blocks = append([]document.Block{document.Prose("All blocks of each arm, compared as independent runs. The verdict above is from pairs, which see smaller differences.")}, s.Blocks...)
			}
			d.Sections = append(d.Sections, s)
		}
	}
	return d.Sections
}

// Progress returns the block of a comparison that is shown with each of its runs: its progress, and what supports it.
func (p *ABPage) Progress(isOver bool) document.Section {
	title := "A/B comparison so far"
	if isOver {
		title = "A/B comparison"
	}
	trust := document.List(p.Trust...)
	trust.Fold = "How far to trust it"
	failed := document.List(p.Failures()...)
	failed.Title = "Blocks without a result"
	var arms []string
	for i := range p.Arms {
		arms = append(arms, p.Arms[i].Title())
	}
	of := document.Prose(fmt.Sprintf("%s by %s; a difference of %.3g %% matters",
		strings.Join(arms, " against "), p.Measure, 100*p.Limit))
	var d document.Document
	d.Add("comparison", title, p.verdict(), of, document.Block{Drawings: plotDrawings(p.plots())}, failed, trust)
	return d.Sections[0]
}

// verdict returns the verdict on each arm.
func (p *ABPage) verdict() document.Block {
	r := &p.Result
	var verdicts []document.Sentence
	for i, text := range r.Summary {
		line := document.Sentence{Strong: text}
		if r.Breaks(&r.Arms[i+1]) {
			line.Level = document.Warning
		}
		verdicts = append(verdicts, line)
	}
	if c := r.Comparison; c != nil && c.Division != "" {
		verdicts = append(verdicts, document.Sentence{Text: c.Division})
	}
	if r.Stopped != "" {
		verdicts = append(verdicts, document.Sentence{Level: document.Warning, Text: "ended: " + r.Stopped})
	}
	block := document.Lines(verdicts...)
	block.Marked = r.Verdict == ab.Undecided
	return block
}

// plots returns the blocks over time by arm, and the interval over pairs.
func (p *ABPage) plots() []*Plot {
	r := &p.Result
	unit := r.Unit
	blocks := &Plot{Title: r.Measure + " of the blocks", Unit: unit, X: Axis{Title: "minutes since the first block"}}
	names := []string{}
	for i := range r.Arms {
		names = append(names, r.Arms[i].Name)
	}
	if r.Control != nil {
		names = append(names, ab.Control)
	}
	for _, name := range names {
		line := PlotLine{Name: name}
		for i := range r.Runs {
			b := &r.Runs[i]
			if b.Arm != name || b.Round == 0 || !b.Value.Known {
				continue
			}
			v := b.Value.Value
			line.Points = append(line.Points, Point{X: b.StartSeconds / 60, Y: v, Low: v,
				High: v, Title: fmt.Sprintf("block %d, round %d: %s", i+1, b.Round, b.Run)})
		}
		blocks.Lines = append(blocks.Lines, line)
	}
	interval := &Plot{Title: "interval of the difference", Unit: "%", X: Axis{Title: "pairs of blocks"},
		Notes: []string{"a bar is the interval after so many pairs, with 95 % confidence at all of them together"}}
	last := 1.0
	widest := 1.0
	if r.Low.Known {
		widest = max(widest, 2*(r.High.Value-r.Low.Value))
	}
	for _, name := range names[1:] {
		line := PlotLine{Name: name}
		for i := range r.Intervals {
			one := &r.Intervals[i]
			if one.Arm != name || one.Low.Known && one.High.Value-one.Low.Value > widest {
				continue // too wide to show the later ones beside it
			}
			y := 100 * (one.Ratio - 1)
			point := Point{X: float64(one.Pairs), Y: y, Low: y, High: y}
			if one.Low.Known {
				point.Low, point.High = 100*(one.Low.Value-1), 100*(one.High.Value-1)
			}
			line.Points = append(line.Points, point)
			last = math.Max(last, float64(one.Pairs))
		}
		if len(line.Points) > 0 {
			interval.Lines = append(interval.Lines, line)
		}
	}
	if len(interval.Lines) > 0 {
		for _, at := range []float64{-100 * r.Limit, 0, 100 * r.Limit} {
			name := "no difference"
			if at != 0 {
				name = fmt.Sprintf("limit %+.3g %%", at)
			}
			first := interval.Lines[0].Points[0].X
			interval.Lines = append(interval.Lines, PlotLine{Name: name, Fit: true,
				Points: []Point{{X: first, Y: at, Low: at, High: at}, {X: last, Y: at, Low: at, High: at}}})
		}
	}
	return slices.DeleteFunc([]*Plot{blocks, interval}, func(p *Plot) bool { return p.Empty() })
}
