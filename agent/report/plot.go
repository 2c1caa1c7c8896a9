package report

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/table"
)

// Plot is lines over a quantity that is not time: the number of threads, another
// parameter, a percentile, a latency. Like a Chart it is drawn as SVG.
type Plot struct {
	Title string
	// Unit is what the values are, shown after the title.
	Unit string
	X, Y Axis
	// Lines are drawn in the order of their colours.
	Lines []PlotLine
	// Marks are points of interest, numbered in the drawing.
	Marks []PlotMark
	// Notes are shown below the legend.
	Notes []string
}

// Axis of a plot. Its ends are those of the values.
type Axis struct {
	// Title is shown at the axis; the y axis has the plot's unit.
	Title string
	Log   bool
	// Ticks are places with texts; nil: numbers at round places.
	Ticks []Tick
}

// Tick is a place on an axis.
type Tick struct {
	At   float64
	Text string
}

// PlotLine is a line with its points.
type PlotLine struct {
	Name   string
	Points []Point
	// Bars: each point is a bar as wide as its Width.
	Bars bool
	// Fit: a curve that was computed, without points.
	Fit bool
	// Colour is that of another line, from 1 on; 0: its own.
	Colour int
}

// Point is a value with its spread: Low and High are the extremes, equal to Y if there is one
// value.
type Point struct {
	X, Y, Low, High float64
	// Width is where a bar ends.
	Width float64
}

// PlotMark is a point of interest.
type PlotMark struct {
	X, Y float64
	Text string
	Line int // whose colour it has
}

// Empty reports whether nothing is drawn.
func (p *Plot) Empty() bool {
	return !slices.ContainsFunc(p.Lines, func(l PlotLine) bool { return len(l.Points) > 0 })
}

// plotScale turns values into places between two ends of the drawing.
type plotScale struct {
	low, high  float64
	log        bool
	begin, end float64
	ticks      []Tick
}

func (s *plotScale) at(v float64) float64 {
	share := (v - s.low) / (s.high - s.low)
	if s.log {
		share = math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	return s.begin + share*(s.end-s.begin)
}

// newScale fits a scale to values. toZero: a linear one begins at 0 if no value is below it.
func newScale(a *Axis, values []float64, begin, end float64, toZero bool) plotScale {
	s := plotScale{low: math.Inf(1), high: math.Inf(-1), begin: begin, end: end, log: a.Log}
	for _, v := range values {
		if series.IsKnown(v) && !math.IsInf(v, 0) && (!a.Log || v > 0) {
			s.low, s.high = min(s.low, v), max(s.high, v)
		}
	}
	if math.IsInf(s.low, 1) {
		s.low, s.high = 1, 10
	}
	if s.log && s.high/s.low < 1.0001 {
		s.low, s.high = s.low/2, s.high*2
	}
	if !s.log && toZero {
		s.low, s.high = min(s.low, 0), max(s.high, 0)
	}
	if s.high == s.low {
		s.low, s.high = s.low-1, s.high+1
	}
	switch {
	case a.Ticks != nil:
		for _, t := range a.Ticks {
			if t.At >= s.low && t.At <= s.high {
				s.ticks = append(s.ticks, t)
			}
		}
	case s.log:
		digits := []float64{1}
		if s.high/s.low < 100 {
			digits = []float64{1, 2, 5}
		}
		for e := math.Floor(math.Log10(s.low)); e <= math.Ceil(math.Log10(s.high)); e++ {
			for _, d := range digits {
				if v := d * math.Pow(10, e); v >= s.low*0.999 && v <= s.high*1.001 {
					s.ticks = append(s.ticks, Tick{v, tickText(v)})
				}
			}
		}
	default:
		step := niceStep((s.high - s.low) / 4)
		if toZero {
			s.high = math.Ceil(s.high/step-1e-9) * step
			s.low = math.Floor(s.low/step+1e-9) * step
		}
		for v := math.Ceil(s.low/step-1e-9) * step; v <= s.high+step/1e6; v += step {
			s.ticks = append(s.ticks, Tick{v, tickText(v + 0)}) // not -0
		}
	}
	return s
}

const plotHeight = 230.0

// textWidth is about that of a digit.
const textWidth = 6.7

// SVG draws the plot. All text in it is escaped.
func (p *Plot) SVG() template.HTML {
	var b strings.Builder
	p.draw(&b, "")
	return template.HTML(b.String()) //nolint:gosec // built from numbers and escaped texts
}

// WriteSVG writes the plot as a file of its own.
func (p *Plot) WriteSVG(w io.Writer) error {
	var b, style strings.Builder
	if err := page.ExecuteTemplate(&style, "style", nil); err != nil {
		return err
	}
	p.draw(&b, `<style>svg { background: var(--back); font: 11px system-ui, sans-serif; } .title { font-weight: 600; fill: var(--text) !important; font-size: 13px !important; }`+
		template.HTMLEscapeString(style.String())+`</style>`)
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

// draw writes the drawing. With a style it stands alone and has its title and legend in it.
func (p *Plot) draw(b *strings.Builder, style string) {
	top, height := marginTop, plotHeight
	alone := style != ""
	if alone {
		top += 34
		height += 34 + 15*float64(len(p.Legend())+len(p.notes()))
	}
	foot := plotHeight + top - marginTop - marginFoot - 12
	var xs, ys []float64
	bars := false
	for _, l := range p.Lines {
		bars = bars || l.Bars
		for _, q := range l.Points {
			xs, ys = append(xs, q.X), append(ys, q.Y, q.Low, q.High)
			if l.Bars {
				xs = append(xs, q.Width)
			}
		}
	}
	inset := 8.0
	if bars {
		inset = 0
	}
	x := newScale(&p.X, xs, marginLeft+inset, chartWidth-marginRight-inset, false)
	y := newScale(&p.Y, ys, foot, top, true)
	escape := template.HTMLEscapeString
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-label="%s">%s`, chartWidth, height, escape(p.Title), style)
	if alone {
		fmt.Fprintf(b, `<text class="title" x="%g" y="16">%s</text><text x="%g" y="31">%s</text>`, marginLeft, escape(p.Title), marginLeft, escape(p.Unit))
	}
	for _, t := range y.ticks {
		at := y.at(t.At)
		fmt.Fprintf(b, `<path class="grid" d="M%g %.1fH%g"/><text class="y" x="%g" y="%.1f">%s</text>`, marginLeft, at, chartWidth-marginRight, marginLeft-6, at+4, escape(t.Text))
	}
	free := math.Inf(-1) // where the text before ends
	for _, t := range x.ticks {
		at := x.at(t.At)
		fmt.Fprintf(b, `<path class="grid" d="M%.1f %gV%g"/>`, at, top, foot)
		if half := textWidth * float64(len([]rune(t.Text))) / 2; at-half > free { // no text over another
			fmt.Fprintf(b, `<text class="x" x="%.1f" y="%g">%s</text>`, at, foot+14, escape(t.Text))
			free = at + half + textWidth
		}
	}
	fmt.Fprintf(b, `<text class="x" x="%.1f" y="%g">%s</text>`, (marginLeft+chartWidth-marginRight)/2, foot+28, escape(p.X.Title))
	for i := range p.Lines {
		p.drawLine(b, i, &x, &y, foot)
	}
	var numbers [][2]float64
	for i, m := range p.Marks {
		mx, my := x.at(m.X), y.at(m.Y)
		taken := numbers
		for j, other := range p.Marks {
			if j != i {
				taken = append(slices.Clip(taken), [2]float64{x.at(other.X), y.at(other.Y) + 4})
			}
		}
		at := numberPlace(mx, my, taken)
		numbers = append(numbers, at)
		fmt.Fprintf(b, `<circle class="line c%d" cx="%.1f" cy="%.1f" r="7"/><text class="m" x="%.1f" y="%.1f">%d</text>`, m.Line%colours, mx, my, at[0], at[1], i+1)
	}
	if alone {
		at := foot + 44
		for _, l := range p.Legend() {
			fmt.Fprintf(b, `<path class="line %s" d="M%g %gh24"/><text x="%g" y="%g">%s</text>`, l.Class, marginLeft, at-4, marginLeft+30, at, escape(l.Name))
			at += 15
		}
		for _, n := range p.notes() {
			fmt.Fprintf(b, `<text x="%g" y="%g">%s</text>`, marginLeft, at, escape(n))
			at += 15
		}
	}
	b.WriteString(`</svg>`)
}

// numberPlace returns where the number of a mark is written: above it or, if that is taken,
// beside or below it.
func numberPlace(x, y float64, taken [][2]float64) [2]float64 {
	places := [][2]float64{{x, max(y-10, 10)}, {x - 14, y + 4}, {x + 14, y + 4}, {x, y + 18}, {x - 14, y - 8}, {x + 14, y - 8}, {x - 28, y + 4}}
	for _, at := range places {
		if !slices.ContainsFunc(taken, func(t [2]float64) bool { return math.Abs(t[0]-at[0]) < 12 && math.Abs(t[1]-at[1]) < 11 }) {
			return at
		}
	}
	return places[0]
}

func (p *Plot) drawLine(b *strings.Builder, i int, x, y *plotScale, foot float64) {
	l := &p.Lines[i]
	class := p.class(i)
	if l.Bars {
		for _, q := range l.Points {
			left, right, up := x.at(q.X), x.at(q.Width), y.at(q.Y)
			fmt.Fprintf(b, `<rect class="bar %s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, class, left, up, max(right-left, 0.5), max(foot-up, 0))
		}
		return
	}
	var line strings.Builder
	pen := "M"
	for _, q := range l.Points {
		if !series.IsKnown(q.Y) || math.IsInf(q.Y, 0) || y.log && q.Y <= 0 {
			pen = "M"
			continue
		}
		fmt.Fprintf(&line, "%s%.1f %.1f", pen, x.at(q.X), y.at(q.Y))
		pen = "L"
	}
	if line.Len() == 0 {
		return
	}
	fmt.Fprintf(b, `<path class="line %s" d="%s"/>`, class, line.String())
	if l.Fit {
		return
	}
	if len(l.Points) <= 100 {
		for _, q := range l.Points {
			if !series.IsKnown(q.Y) || y.log && (q.Y <= 0 || q.Low <= 0) {
				continue
			}
			px := x.at(q.X)
			if q.Low < q.High {
				fmt.Fprintf(b, `<path class="line %s" d="M%.1f %.1fh6m-3 0V%.1fm-3 0h6"/>`, class, px-3, y.at(q.Low), y.at(q.High))
			}
			fmt.Fprintf(b, `<circle class="dot %s" cx="%.1f" cy="%.1f" r="2.6"/>`, class, px, y.at(q.Y))
		}
	}
}

func (p *Plot) class(i int) string {
	l := &p.Lines[i]
	colour := i
	if l.Colour > 0 {
		colour = l.Colour - 1
	}
	class := "c" + strconv.Itoa(colour%colours)
	switch {
	case l.Fit:
		class += " d2"
	case l.Colour == 0:
		class += " d" + strconv.Itoa(i/colours%3)
	}
	return class
}

// Legend returns an entry for each line.
func (p *Plot) Legend() []LegendEntry {
	var all []LegendEntry
	for i := range p.Lines {
		if p.Lines[i].Name != "" && len(p.Lines[i].Points) > 0 {
			all = append(all, LegendEntry{Class: p.class(i), Name: p.Lines[i].Name})
		}
	}
	return all
}

// notes are the texts of the marks, then the notes.
func (p *Plot) notes() []string {
	var all []string
	for i, m := range p.Marks {
		all = append(all, strconv.Itoa(i+1)+": "+m.Text)
	}
	return append(all, p.Notes...)
}

// Footnotes are the texts below the drawing.
func (p *Plot) Footnotes() []string { return p.notes() }

// ratioText prints a width as a share of a value.
func ratioText(width, of float64) string { return table.Digits.Format(100*width/of) + " %" }

func sortPoints(points []Point) {
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
}
