package report

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/show/document"
)

// Plot has lines over a quantity other than time: the number of threads, another parameter, a percentile, a latency.
// Like a Chart it is drawn as SVG.
type Plot struct {
	Title string
	// Unit is what the values are, shown after the title.
	Unit string
	X, Y Axis
	// Lines are drawn in the order of their colours.
	Lines []PlotLine
	// Cells are areas of a heat map.
	Cells []PlotCell
	// Marks are points of interest, numbered in the drawing.
	Marks []PlotMark
	// Notes are shown below the legend.
	Notes []string
	// Width of the drawing in its own units, in which text is 11 high; 0:
	// as wide as a chart.
	Width float64
}

// Axis of a plot. It extends from the smallest to the largest value.
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
	// Colour of another line, from 1 on; 0: its own.
	Colour int
}

// Point is a value with its spread: Low and High are the extremes, equal to Y if there is one
// value.
type Point struct {
	X, Y, Low, High float64
	// Width is where a bar ends.
	Width float64
	// Title is the tooltip of the point, Link its destination; both may be empty.
	Title, Link string
}

// PlotCell is an area from one corner to the other, drawn the stronger the larger its
// Share, from 0 to 1, is.
type PlotCell struct{ X, Y, ToX, ToY, Share float64 }

// PlotMark is a point of interest.
type PlotMark struct {
	X, Y float64
	Text string
	Line int // whose colour it has
}

// Empty reports whether nothing is drawn.
func (p *Plot) Empty() bool {
	return len(p.Cells) == 0 && !slices.ContainsFunc(p.Lines, func(l PlotLine) bool { return len(l.Points) > 0 })
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
	switch {
	case s.high != s.low:
	case toZero: // all are 0
		s.high = 1
	default:
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
		first := math.Ceil(s.low/step-1e-9) * step
		// A step that is too small for the numbers does not change them.
		for i := 0.0; i < axisTicks && i*step <= s.high-first+step/1e6; i++ {
			v := first + i*step
			s.ticks = append(s.ticks, Tick{v, tickText(v + 0)}) // not -0
		}
	}
	return s
}

// axisTicks is more than a linear axis has between numbers that differ by more than their precision.
const axisTicks = 10

const plotHeight = 230.0

// textWidth is about the width of a digit.
const textWidth = 6.7

// SVG draws the plot. All text in it is escaped.
func (p *Plot) SVG() document.Markup {
	var b strings.Builder
	p.writeSVG(&b, "")
	return document.Markup(b.String())
}

// WriteSVG writes the plot as a standalone file.
func (p *Plot) WriteSVG(w io.Writer) error {
	var b strings.Builder
	p.writeSVG(&b, `<style>svg { background: var(--back); font: 11px system-ui, sans-serif; } .title { font-weight: 600; fill: var(--text) !important; font-size: 13px !important; }`+
		html.EscapeString(document.Style)+`</style>`)
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

// writeSVG writes the drawing, with the style sheet if it is standalone.
func (p *Plot) writeSVG(b *strings.Builder, style string) {
	role := "img"
	if slices.ContainsFunc(p.Lines, func(l PlotLine) bool { return len(l.Points) > 0 && l.Points[0].Link != "" }) {
		role = "group" // nothing in an image can be reached
	}
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="%s" aria-label="%s">%s`,
		p.width(), p.height(style != ""), role, html.EscapeString(p.Title), style)
	p.draw(canvas{b}, style != "")
	b.WriteString(`</svg>`)
}

// head is the height of the title of a standalone drawing, row the height of a line below it.
const head, row = 34.0, 15.0

// width of the drawing.
func (p *Plot) width() float64 { return cmp.Or(p.Width, chartWidth) }

// height of the drawing.
func (p *Plot) height(alone bool) float64 {
	if !alone {
		return plotHeight
	}
	return plotHeight + head + row*float64(len(p.Legend())+len(p.Footnotes()))
}

// draw draws the plot, alone with its title and legend.
func (p *Plot) draw(c canvas, alone bool) {
	top, width := marginTop, p.width()
	if alone {
		top += head
		c.text(titleText, point{marginLeft, 16}, clip(p.Title, width-marginLeft))
		c.text(plainText, point{marginLeft, 31}, clip(p.Unit, width-marginLeft))
	}
	foot := plotHeight + top - marginTop - marginFoot - 12
	xs, ys, inset := p.extent()
	x := newScale(&p.X, xs, marginLeft+inset, width-marginRight-inset, false)
	y := newScale(&p.Y, ys, foot, top, true)
	p.drawAxes(c, &x, &y, top, foot)
	for _, cell := range p.Cells {
		left, right, up, down := x.at(cell.X), x.at(cell.ToX), y.at(cell.ToY), y.at(cell.Y)
		c.cell(cell.Share, point{left, up}, right-left, down-up)
	}
	for i := range p.Lines {
		p.drawLine(c, i, &x, &y, foot)
	}
	p.drawMarks(c, &x, &y)
	if alone {
		p.drawLegend(c, foot+44)
	}
}

// extent returns the numbers along the axes, and the space at the ends of the horizontal axis.
func (p *Plot) extent() (xs, ys []float64, inset float64) {
	inset = 8
	for _, l := range p.Lines {
		for _, q := range l.Points {
			xs, ys = append(xs, q.X), append(ys, q.Y, q.Low, q.High)
			if l.Bars {
				xs = append(xs, q.Width)
			}
		}
		if l.Bars {
			inset = 0
		}
	}
	for _, c := range p.Cells {
		xs, ys, inset = append(xs, c.X, c.ToX), append(ys, c.Y, c.ToY), 0
	}
	return xs, ys, inset
}

func (p *Plot) drawAxes(c canvas, x, y *plotScale, top, foot float64) {
	width := p.width()
	for _, t := range y.ticks {
		at := y.at(t.At)
		c.grid(point{marginLeft, at}, point{width - marginRight, at})
		c.text(yText, point{marginLeft - 6, at + 4}, t.Text)
	}
	half := func(t Tick) float64 { return textWidth * float64(len([]rune(t.Text))) / 2 }
	free, rest := math.Inf(-1), math.Inf(1) // where the text before ends, and where the last one begins
	if n := len(x.ticks); n > 0 {
		rest = x.at(x.ticks[n-1].At) - half(x.ticks[n-1]) - textWidth
	}
	for i, t := range x.ticks {
		at := x.at(t.At)
		c.grid(point{at, top}, point{at, foot})
		if half := half(t); at-half > free && (at+half < rest || i == len(x.ticks)-1) { // no text over another
			c.text(xText, point{at, foot + 14}, t.Text)
			free = at + half + textWidth
		}
	}
	c.text(xText, point{(marginLeft + width - marginRight) / 2, foot + 28}, p.X.Title)
}

func (p *Plot) drawMarks(c canvas, x, y *plotScale) {
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
		c.ring(stroke{colour: m.Line % colours}, point{mx, my})
		c.text(markText, point{at[0], at[1]}, strconv.Itoa(i+1))
	}
}

// drawLegend draws the names of the lines and the notes below each other, from a height on.
func (p *Plot) drawLegend(c canvas, at float64) {
	width := p.width()
	for i := range p.Lines {
		if l := &p.Lines[i]; l.Name != "" && len(l.Points) > 0 {
			c.line(p.stroke(i), point{marginLeft, at - 4}, point{marginLeft + 24, at - 4})
			c.text(plainText, point{marginLeft + 30, at}, clip(l.Name, width-marginLeft-30))
			at += row
		}
	}
	for _, n := range p.Footnotes() {
		c.text(plainText, point{marginLeft, at}, clip(n, width-marginLeft))
		at += row
	}
}

// clip cuts a text that is wider than its space.
func clip(text string, room float64) string { return table.Clip(text, int(room/textWidth)) }

// numberPlace returns where the number of a mark is written: above it or, if that is taken,
// beside or below it.
func numberPlace(x, y float64, taken [][2]float64) [2]float64 {
	places := [][2]float64{{x, max(y-10, 10)}, {x - 14, y + 4}, {x + 14, y + 4},
		{x, y + 18}, {x - 14, y - 8}, {x + 14, y - 8}, {x - 28, y + 4}}
	for _, at := range places {
		if !slices.ContainsFunc(taken, func(t [2]float64) bool { return math.Abs(t[0]-at[0]) < 12 && math.Abs(t[1]-at[1]) < 11 }) {
			return at
		}
	}
	return places[0]
}

func (p *Plot) drawLine(c canvas, i int, x, y *plotScale, foot float64) {
	l := &p.Lines[i]
	s := p.stroke(i)
	if l.Bars {
		for _, q := range l.Points {
			left, right, up := x.at(q.X), x.at(q.Width), y.at(q.Y)
			c.bar(s, point{left, up}, max(right-left, 0.5), max(foot-up, 0))
		}
		return
	}
	for _, through := range pieces(len(l.Points), func(i int) (point, bool) {
		q := &l.Points[i]
		return point{x.at(q.X), y.at(q.Y)}, series.IsKnown(q.Y) && !math.IsInf(q.Y, 0) && !(y.log && q.Y <= 0)
	}) {
		if len(through) > 1 {
			c.line(s, through...)
		}
	}
	if l.Fit || len(l.Points) > 100 && l.Points[0].Title == "" {
		return
	}
	for _, q := range l.Points {
		if !series.IsKnown(q.Y) || y.log && (q.Y <= 0 || q.Low <= 0) {
			continue
		}
		px := x.at(q.X)
		if q.Low < q.High {
			low, high := y.at(q.Low), y.at(q.High)
			spread := stroke{colour: s.colour}
			c.line(spread, point{px - 3, low}, point{px + 3, low})
			c.line(spread, point{px, low}, point{px, high})
			c.line(spread, point{px - 3, high}, point{px + 3, high})
		}
		c.dot(stroke{colour: s.colour}, point{px, y.at(q.Y)}, &q)
	}
}

// stroke is how a line is drawn.
func (p *Plot) stroke(i int) stroke {
	l := &p.Lines[i]
	switch {
	case l.Colour > 0 && l.Fit:
		return stroke{(l.Colour - 1) % colours, 2}
	case l.Colour > 0:
		return stroke{(l.Colour - 1) % colours, 0}
	case l.Fit:
		return stroke{i % colours, 2}
	}
	return stroke{i % colours, i / colours % 3}
}

// Legend returns an entry for each line.
func (p *Plot) Legend() []document.Entry {
	var all []document.Entry
	for i := range p.Lines {
		if p.Lines[i].Name != "" && len(p.Lines[i].Points) > 0 {
			all = append(all, document.Entry{Class: p.stroke(i).String(), Name: p.Lines[i].Name})
		}
	}
	return all
}

// Footnotes are the texts of the marks, then the notes.
func (p *Plot) Footnotes() []string {
	var all []string
	for i, m := range p.Marks {
		all = append(all, strconv.Itoa(i+1)+": "+m.Text)
	}
	return append(all, p.Notes...)
}

func sortPoints(points []Point) {
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
}
