package report

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// Chart is lines over elapsed seconds, drawn as SVG: it needs no script, opens
// from disk and prints.
type Chart struct {
	Title string
	// Unit of the values, behind the title.
	Unit  string
	Lines []Line
	// From and To are the ends of the axis in seconds.
	From, To float64
	Bands    []Band
	Marks    []Mark
	// Spikes: a line may have values far above its typical ones; the axis is
	// logarithmic then.
	Spikes bool
}

// Line is one line of a chart.
type Line struct {
	Name string
	Points
}

// Band is a part of the axis that is shaded: warmup or drain.
type Band struct {
	Kind     string
	From, To float64
}

// Mark is a number on the axis; the text is in a list beside the charts.
type Mark struct {
	At     float64
	Number int
}

// The drawing's size in its own units; it fills the width of the page.
const (
	chartWidth  = 900.0
	chartHeight = 240.0
	marginLeft  = 58.0
	marginRight = 12.0
	marginTop   = 14.0
	marginFoot  = 24.0
	colours     = 8
	// logSpread is by how much a line's largest value must exceed its typical
	// one for a logarithmic axis.
	logSpread = 50
)

// Empty reports whether there is nothing to draw.
func (c *Chart) Empty() bool {
	for i := range c.Lines {
		if some(c.Lines[i].Y) {
			return false
		}
	}
	return true
}

// LegendEntry is a line's name with its mean and extremes over the axis.
type LegendEntry struct {
	Class          string
	Name           string
	Mean, Min, Max string
}

// Legend describes the lines.
func (c *Chart) Legend() []LegendEntry {
	var all []LegendEntry
	for i := range c.Lines {
		l := &c.Lines[i]
		v := finite(l.Y)
		if len(v) == 0 {
			continue
		}
		low, high := v[0], v[0]
		for _, x := range v {
			low, high = min(low, x), max(high, x)
		}
		all = append(all, LegendEntry{lineClass(i), l.Name, number(mean(v)), number(low), number(high)})
	}
	return all
}

func lineClass(i int) string { return "c" + strconv.Itoa(i%colours) + " d" + strconv.Itoa(i/colours%3) }

// scale turns values into heights.
type scale struct {
	low, high float64
	log       bool
	ticks     []float64
}

func (c *Chart) scale() scale {
	var all []float64
	for i := range c.Lines {
		all = append(all, finite(c.Lines[i].Y)...)
	}
	s := scale{}
	smallest := math.Inf(1)
	for _, v := range all {
		s.high = max(s.high, v)
		s.low = min(s.low, v)
		if v > 0 {
			smallest = min(smallest, v)
		}
	}
	if c.Spikes && c.spiky() && c.positive() {
		s.log = true
		s.low = math.Pow(10, math.Floor(math.Log10(smallest)))
		s.high = math.Pow(10, math.Ceil(math.Log10(s.high)))
		for t := s.low; t <= s.high*1.001; t *= 10 {
			s.ticks = append(s.ticks, t)
		}
		return s
	}
	if s.high == s.low {
		s.high = s.low + 1
	}
	step := niceStep((s.high - s.low) / 4)
	s.high = math.Ceil(s.high/step-1e-9) * step
	s.low = math.Floor(s.low/step+1e-9) * step
	for i := range int(math.Round((s.high-s.low)/step)) + 1 {
		s.ticks = append(s.ticks, s.low+float64(i)*step)
	}
	return s
}

// spiky reports whether any line's largest value hides the rest of it.
func (c *Chart) spiky() bool {
	for i := range c.Lines {
		y := c.Lines[i].Y
		if at, ok := largest(y); ok && y[at] > logSpread*median(y) {
			return true
		}
	}
	return false
}

// positive reports whether no value is 0 or below it.
func (c *Chart) positive() bool {
	for i := range c.Lines {
		for _, v := range c.Lines[i].Y {
			if v <= 0 {
				return false
			}
		}
	}
	return true
}

func (s *scale) height(v float64) float64 {
	share := 0.0
	if s.log {
		share = math.Log(v/s.low) / math.Log(s.high/s.low)
	} else {
		share = (v - s.low) / (s.high - s.low)
	}
	return chartHeight - marginFoot - share*(chartHeight-marginFoot-marginTop)
}

// SVG draws the chart. All text in it is escaped.
func (c *Chart) SVG() template.HTML {
	var b strings.Builder
	from, to := c.From, c.To
	if !(to > from) {
		to = from + 1
	}
	x := func(v float64) float64 {
		return marginLeft + (v-from)/(to-from)*(chartWidth-marginLeft-marginRight)
	}
	s := c.scale()
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, chartWidth, chartHeight, template.HTMLEscapeString(c.Title))
	for _, band := range c.Bands {
		left, right := x(max(band.From, from)), x(min(band.To, to))
		if right > left {
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%g" width="%.1f" height="%g"/>`,
				template.HTMLEscapeString(band.Kind), left, marginTop, right-left, chartHeight-marginFoot-marginTop)
		}
	}
	for _, t := range s.ticks {
		y := s.height(t)
		fmt.Fprintf(&b, `<path class="grid" d="M%g %.1fH%g"/><text class="y" x="%g" y="%.1f">%s</text>`,
			marginLeft, y, chartWidth-marginRight, marginLeft-6, y+4, tickText(t))
	}
	step := niceTime((to - from) / 9)
	for t := math.Ceil(from/step) * step; t <= to+step/1e6; t += step {
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %gV%g"/><text class="x" x="%.1f" y="%g">%s</text>`,
			x(t), marginTop, chartHeight-marginFoot, x(t), chartHeight-8, clockText(t))
	}
	for _, m := range c.Marks {
		if m.At >= from && m.At <= to {
			fmt.Fprintf(&b, `<path class="mark" d="M%.1f %gV%g"/><text class="m" x="%.1f" y="%g">%d</text>`,
				x(m.At), marginTop, chartHeight-marginFoot, x(m.At), marginTop-3, m.Number)
		}
	}
	for i := range c.Lines {
		if d := path(c.Lines[i].thin(from, to, buckets), x, s.height); d != "" {
			fmt.Fprintf(&b, `<path class="line %s" d="%s"/>`, lineClass(i), d)
		}
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // built above, every text escaped
}

// path draws points as lines with gaps; a point alone becomes a dot.
func path(p Points, x, y func(float64) float64) string {
	var b strings.Builder
	pen := false
	for i := range p.X {
		if math.IsNaN(p.Y[i]) || math.IsInf(p.Y[i], 0) {
			pen = false
			continue
		}
		px, py := x(p.X[i]), y(p.Y[i])
		if pen {
			fmt.Fprintf(&b, "L%.1f %.1f", px, py)
			continue
		}
		fmt.Fprintf(&b, "M%.1f %.1f", px, py)
		if i+1 == len(p.X) || math.IsNaN(p.Y[i+1]) {
			b.WriteString("h.1")
		}
		pen = true
	}
	return b.String()
}

// niceStep is the next 1, 2 or 5 times a power of ten from v on.
func niceStep(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if f*power >= v*0.999 {
			return f * power
		}
	}
	return 10 * power
}

// niceTime is a step of seconds that people read well.
func niceTime(v float64) float64 {
	for _, s := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 4 * 3600, 6 * 3600, 12 * 3600} {
		if s >= v {
			return s
		}
	}
	return math.Ceil(v/86400) * 86400
}

// clockText prints seconds on the axis.
func clockText(seconds float64) string {
	sign := ""
	if seconds < 0 {
		sign, seconds = "−", -seconds
	}
	s := int(math.Round(seconds))
	switch {
	case s < 60:
		return sign + strconv.Itoa(s) + "s"
	case s < 3600:
		return fmt.Sprintf("%s%d:%02d", sign, s/60, s%60)
	default:
		return fmt.Sprintf("%s%d:%02d:%02d", sign, s/3600, s/60%60, s%60)
	}
}

// tickText prints a value on the axis.
func tickText(v float64) string {
	for _, unit := range []struct {
		from float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= unit.from {
			return strconv.FormatFloat(v/unit.from, 'g', 4, 64) + unit.name
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
