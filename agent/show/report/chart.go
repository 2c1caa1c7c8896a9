package report

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/show/document"
)

// Chart is lines over elapsed seconds, drawn as SVG. The page has charts with a
// script; a report has none, so that it opens from disk and from an attachment,
// prints, and needs no permission to run anything.
type Chart struct {
	// Measure gives the page's chart of the same values its name; nil: the page has none.
	Measure *measure.Measure
	Scope   measure.Scope
	Title   string
	// Unit is what the values are, shown after the title.
	Unit  string
	Lines []Line
	// From and To are the ends of the axis in seconds.
	From, To float64
	Bands    []Band
	Markers  []review.Marker
	// Spikes: a line may have values far above its typical ones; the axis is
	// logarithmic then.
	Spikes bool

	// Stacked: the lines add up, each drawn from the one below it.
	Stacked bool

	base    measure.Unit // of the values, until fit
	medians bool         // the values are percentiles, which have no mean
}

// Line is one line of a chart. Unknown values are gaps.
type Line struct {
	Name string
	X, Y []float64
	// Group is the lines' common colour from 1 on, such as a server's place in the run; 0: the line has its own.
	Group int
	// Measure is what an area of a stacked chart shows, in the colour that the palette has for it; nil in other charts.
	Measure *measure.Measure

	tally  series.Tally // of all values, also where X and Y are thinned
	factor float64      // of Y to the values of the tally
}

// Band is a shaded part of the axis: warmup or drain.
type Band struct {
	Kind     string
	From, To float64
}

// axis is what all charts of a run share.
type axis struct {
	from, to float64
	bands    []Band
	markers  []review.Marker
}

func newAxis(h *record.History) axis {
	a := axis{}
	include := func(values []float64) {
		if n := len(values); n > 0 {
			a.from, a.to = min(a.from, values[0]), max(a.to, values[n-1])
		}
	}
	include(h.Intervals.Elapsed)
	include(h.Samples.Elapsed)
	include(h.HostSamples.Elapsed)
	m := &h.Snapshot.Meta
	if m.EndedAt != nil {
		a.to = max(a.to, h.Elapsed(*m.EndedAt))
	}
	if h.Intervals.QuietWarmup {
		a.from = min(a.from, h.Elapsed(m.StartedAt))
		a.bands = append(a.bands, Band{"warmup", a.from, 0})
	}
	for _, s := range h.Intervals.Warmup {
		a.bands = append(a.bands, Band{"warmup", s.From, s.To})
	}
	a.bands = append(a.bands, drainBand(h)...)
	a.markers = review.MarkersOf(h)
	return a
}

// drainBand lasts from the tool's end until the last replica has caught up.
func drainBand(h *record.History) []Band {
	m := &h.Snapshot.Meta
	if m.EndedAt == nil || len(m.Drain) == 0 {
		return nil
	}
	from := h.Elapsed(*m.EndedAt)
	to := from
	for _, d := range m.Drain {
		switch {
		case d.Seconds != nil:
			to = max(to, from+*d.Seconds)
		case m.ClosedAt != nil:
			to = max(to, h.Elapsed(*m.ClosedAt))
		}
	}
	return []Band{{"drain", from, to}}
}

// Charts returns the charts of a run: throughput, and what the tool reported and
// every measure of its servers that is not always 0, then the generator.
func Charts(h *record.History) []Chart {
	charts := toolCharts(&h.Intervals)
	servers := make([]string, len(h.Servers))
	for i, s := range h.Servers {
		servers[i] = s.Target
	}
	charts = append(charts, sampledCharts(measure.Server, servers, &h.Samples)...)
	hosts := make([]string, len(h.Hosts))
	for i, one := range h.Hosts {
		hosts[i] = one.Target
	}
	charts = append(charts, sampledCharts(measure.Host, hosts, &h.HostSamples)...)
	charts = slices.DeleteFunc(charts, func(c Chart) bool { return c.Empty() })
	a := newAxis(h)
	for i := range charts {
		charts[i].fit()
		charts[i].From, charts[i].To, charts[i].Bands, charts[i].Markers = a.from, a.to, a.bands, a.markers
	}
	return charts
}

// sampledCharts returns the charts of servers or machines: every measure that is not
// always 0, with a line for each of them.
func sampledCharts(scope measure.Scope, targets []string, samples *series.Thinned[record.ServerMeasure]) []Chart {
	var charts []Chart
	for _, m := range measure.All(scope) {
		c := newChart(m)
		for _, line := range m.Charted() {
			for place, target := range targets {
				name := target
				switch {
				case m.Stacked:
					name += " " + line.Label()
				case line != m:
					name += " " + line.Label()
				}
				key := record.ServerMeasure{Target: target, Measure: line}
				if t := samples.Tally(key); line == m || scope == measure.Server || t.Min != 0 || t.Max != 0 {
					added := c.add(name, samples.Elapsed, samples.Values(key), t)
					if added != nil && scope == measure.Server {
						added.Group = place + 1
					}
					if added != nil && m.Stacked {
						added.Measure = line
					}
				}
			}
		}
		if m.Stacked {
			c.stack()
		}
		if (!c.zero() || m.EvenZero) && !(m.OnlyChanges && c.constant()) {
			charts = append(charts, c)
		}
	}
	return charts
}

// stack puts each line on the one below it, without those that are always 0.
func (c *Chart) stack() {
	c.Stacked = true
	c.Lines = slices.DeleteFunc(c.Lines, func(l Line) bool { return l.tally.Min == 0 && l.tally.Max == 0 })
	for i := 1; i < len(c.Lines); i++ {
		below, on := c.Lines[i-1].Y, slices.Clone(c.Lines[i].Y)
		for row := range on {
			switch {
			case !series.IsKnown(on[row]):
				on[row] = below[row]
			case series.IsKnown(below[row]):
				on[row] += below[row]
			}
		}
		c.Lines[i].Y = on
	}
}

// newChart returns an empty chart of a measure.
func newChart(m *measure.Measure) Chart {
	return Chart{Measure: m, Scope: m.Scope, Title: m.Title, Unit: m.Note, base: m.Unit,
		Spikes: m == tool.HeadlineLatency, medians: m.Summary == measure.Median}
}

// toolCharts has a line for each operation and statistic, transactions first. The throughput of
// transactions has a chart without what they consist of.
func toolCharts(v *record.Intervals) []Chart {
	var charts []Chart
	for _, m := range measure.All(measure.Run) {
		c, parts := newChart(m), Chart{Scope: m.Scope, Title: m.Title + " by operation", Unit: m.Note, base: m.Unit}
		for _, line := range m.Charted() {
			columns := v.Of(line)
			if h := review.HeadlineOf(v); line == tool.HeadlineLatency && len(columns) > colours && h.Known {
				// YCSB has seven statistics for each operation: one line per operation is readable.
				columns = slices.DeleteFunc(columns, func(c ingest.Column) bool { return c.Stat != h.Value.Stat })
			}
			slices.SortStableFunc(columns, func(a, b ingest.Column) int { return operationRank(a) - operationRank(b) })
			for _, column := range columns {
				name, to := strings.TrimSpace(column.Operation+" "+tool.StatName(column.Stat)), &c
				if name == "" {
					name = line.Label()
				}
				if m == tool.Throughput && operationRank(column) > 0 && !c.Empty() {
					to = &parts
				}
				// An operation that the tool never executed needs no line.
				if t := v.Tally(column); column.Operation == tool.Transaction || t.Min != 0 || t.Max != 0 {
					to.add(name, v.Elapsed, v.Values(column), t)
				}
			}
		}
		if m.EvenZero || !c.zero() {
			charts = append(charts, c, parts)
		}
	}
	return charts
}

func operationRank(c ingest.Column) int {
	if c.Operation == tool.Transaction {
		return 0
	}
	return 1
}

// fit brings the values from base units into the human-readable ones.
func (c *Chart) fit() {
	factor, unit := 1.0, ""
	switch c.base {
	case measure.Seconds:
		if unit = "s"; c.Spikes || c.largest() < 1 {
			factor, unit = 1000, "ms"
		}
	case measure.Ratio:
		factor, unit = 100, "%"
	case measure.Bytes:
		factor, unit = 1.0/(1<<20), "MiB"
	default:
		return
	}
	c.Unit = unit + ", " + c.Unit
	for i := range c.Lines {
		c.Lines[i].Y, c.Lines[i].factor = series.Scaled(c.Lines[i].Y, factor), factor
	}
}

// maxLines bounds the lines of one chart: the names of operations are the tool's.
const maxLines = 24

// add returns the added line, nil if it has no values or the chart is full.
func (c *Chart) add(name string, x, y []float64, t series.Tally) *Line {
	if !series.AnyKnown(y) || len(c.Lines) >= maxLines {
		return nil
	}
	c.Lines = append(c.Lines, Line{Name: name, X: x, Y: y, tally: t, factor: 1})
	return &c.Lines[len(c.Lines)-1]
}

// any reports whether a line with values has a property.
func (c *Chart) any(has func(*series.Tally) bool) bool {
	return slices.ContainsFunc(c.Lines, func(l Line) bool { return l.tally.Count > 0 && has(&l.tally) })
}

// zero reports whether all values are 0.
func (c *Chart) zero() bool {
	return !c.any(func(t *series.Tally) bool { return t.Min != 0 || t.Max != 0 })
}

// constant reports whether each line has one value.
func (c *Chart) constant() bool { return !c.any(func(t *series.Tally) bool { return t.Min != t.Max }) }

func (c *Chart) largest() float64 {
	most := 0.0
	for i := range c.Lines {
		if t := &c.Lines[i].tally; t.Count > 0 {
			most = max(most, t.Max)
		}
	}
	return most
}

// Empty reports whether no value is known.
func (c *Chart) Empty() bool { return len(c.Lines) == 0 }

// buckets is the number of pieces into which a line is cut for drawing: about one for two pixels.
const buckets = 240

// thin returns the smallest and the largest value of each of n pieces of the axis:
// a second that stands out in a run of hours remains visible.
func (l *Line) thin(from, to float64, n int) Line {
	if len(l.X) <= 2*n {
		return *l
	}
	out := Line{Name: l.Name, Group: l.Group, Measure: l.Measure}
	add := func(x, y float64) { out.X, out.Y = append(out.X, x), append(out.Y, y) }
	for _, b := range series.Buckets(l.X, from, (to-from)/float64(n)) {
		switch first, second := series.Extremes(l.Y, b); {
		case first < 0:
			add(l.X[b.Begin], series.Unknown())
		case first == second:
			add(l.X[first], l.Y[first])
		default:
			add(l.X[first], l.Y[first])
			add(l.X[second], l.Y[second])
		}
	}
	return out
}

// The drawing's size in its own units; it fills half the width of the page.
const (
	chartWidth  = 520.0
	chartHeight = 180.0
	// smallHeight is the height of a chart narrower than chartWidth.
	smallHeight = 116.0
	marginLeft  = 52.0
	marginRight = 24.0 // half of a label of the time axis
	marginTop   = 14.0
	marginFoot  = 24.0
	colours     = 8
	// logSpread is by how much a line's largest value must exceed its typical
	// one for a logarithmic axis.
	logSpread = 50
)

// Legend returns an entry for each line, with the mean, or the median where the values have no mean, and the extremes.
// A server that was hardly sampled has neither.
func (c *Chart) Legend() []document.Entry {
	var all []document.Entry
	for i := range c.Lines {
		l := &c.Lines[i]
		t := &l.tally
		if t.Count == 0 {
			continue
		}
		e := document.Entry{Class: c.lineClass(i), Name: l.Name}
		name, typical := "mean", t.Mean()
		if c.medians {
			name, typical = "median of the intervals", t.Median()
		}
		if c.medians || series.IsKnown(typical) {
			format := func(v float64) string { return table.Digits.Format(v * l.factor) }
			e.Values = fmt.Sprintf("%s %s, %s to %s", name, format(typical), format(t.Min), format(t.Max))
		}
		all = append(all, e)
	}
	return all
}

// lineClass returns a line's colour and dashes, as classes of palette.css and document.css. The lines of a group have one
// colour; areas have their measure's, and a strength by their group.
func (c *Chart) lineClass(i int) string {
	group := c.Lines[i].Group
	if of := c.Lines[i].Measure; of != nil {
		return "m-" + of.ID + " d" + strconv.Itoa((group-1)%3)
	}
	if group > 0 {
		nth := 0
		for _, l := range c.Lines[:i] {
			if l.Group == group {
				nth++
			}
		}
		return "c" + strconv.Itoa((group-1)%colours) + " d" + strconv.Itoa(((group-1)/colours+nth)%3)
	}
	class := "c" + strconv.Itoa(i%colours) + " d" + strconv.Itoa(i/colours%3)
	if len(c.Lines) > 1 && c.Lines[i].Name == tool.Transaction {
		class += " main" // beside the statements that it consists of
	}
	return class
}

// scale turns values into heights, logarithmic ones between powers of ten.
func (c *Chart) scale(foot float64) plotScale {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range c.Lines {
		for _, v := range c.Lines[i].Y {
			if series.IsKnown(v) && !math.IsInf(v, 0) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	isLog := c.Spikes && c.spiky() && low > 0
	if isLog {
		low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	}
	return newScale(&Axis{Log: isLog}, []float64{low, high}, foot, marginTop, true)
}

// spiky reports whether any line's largest value hides the rest of it.
func (c *Chart) spiky() bool {
	return c.any(func(t *series.Tally) bool { return t.Max > logSpread*t.Median() })
}

// SVG draws the chart with the given width, 0 for the usual width. All text in it is escaped.
func (c *Chart) SVG(width float64) document.Markup {
	var b strings.Builder
	width, height := cmp.Or(width, chartWidth), chartHeight
	if width < chartWidth {
		height = smallHeight
	}
	from, to := c.From, c.To
	if !(to > from) {
		to = from + 1
	}
	right, foot := width-marginRight, height-marginFoot
	x := func(v float64) float64 { return marginLeft + (v-from)/(to-from)*(right-marginLeft) }
	s := c.scale(foot)
	y := s.at
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, width, height, html.EscapeString(c.Title))
	for _, band := range c.Bands {
		left, right := x(max(band.From, from)), x(min(band.To, to))
		if right > left {
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%g" width="%.1f" height="%g"/>`,
				html.EscapeString(band.Kind), left, marginTop, right-left, foot-marginTop)
		}
	}
	for _, t := range s.ticks {
		fmt.Fprintf(&b, `<path class="grid" d="M%g %.1fH%g"/><text class="y" x="%g" y="%.1f">%s</text>`,
			marginLeft, y(t.At), right, marginLeft-6, y(t.At)+4, t.Text)
	}
	step := niceTime((to - from) / math.Floor(width/70))
	for t := math.Ceil(from/step) * step; t <= to+step/1e6; t += step {
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %gV%g"/><text class="x" x="%.1f" y="%g">%s</text>`,
			x(t), marginTop, foot, x(t), height-8, table.Clock(t))
	}
	c.drawMarkers(&b, x, right, foot)
	if c.Stacked {
		// Each area covers the foot of the area above it.
		for i := range slices.Backward(c.Lines) {
			if d := area(c.Lines[i].thin(from, to, buckets), x, y); d != "" {
				fmt.Fprintf(&b, `<path class="area %s" d="%s"/>`, c.lineClass(i), d)
			}
		}
	}
	for i := range c.Lines {
		if d := path(c.Lines[i].thin(from, to, buckets), x, y); d != "" {
			fmt.Fprintf(&b, `<path class="line %s" d="%s"/>`, c.lineClass(i), d)
		}
	}
	b.WriteString(`</svg>`)
	return document.Markup(b.String())
}

// drawMarkers draws a line for each marker with its number and as much of its text as there is room for
// before the next one.
func (c *Chart) drawMarkers(b *strings.Builder, x func(float64) float64, right, foot float64) {
	for _, m := range c.Markers {
		if m.ElapsedSeconds < c.From || m.ElapsedSeconds > c.To {
			continue
		}
		at, end := x(m.ElapsedSeconds), right+marginRight
		for _, other := range c.Markers {
			if next := x(other.ElapsedSeconds); next > at {
				end = min(end, next-textWidth)
			}
		}
		number := strconv.Itoa(m.Number)
		fmt.Fprintf(b, `<path class="mark" d="M%.1f %gV%g"/><text class="m" x="%.1f" y="%g">%s</text>`,
			at, marginTop, foot, at, marginTop-3, number)
		first, _, _ := strings.Cut(m.Text, "\n")
		begin := at + textWidth*(float64(len(number))/2+0.5)
		if end-begin > 6*textWidth {
			fmt.Fprintf(b, `<text x="%.1f" y="%g">%s</text>`, begin, marginTop-3, html.EscapeString(clip(first, end-begin)))
		}
	}
}

// pieces returns the places of a line's values, in pieces between its gaps.
func (l *Line) pieces(x, y func(float64) float64) [][]point {
	return pieces(len(l.X), func(i int) (point, bool) {
		return point{x(l.X[i]), y(l.Y[i])}, series.IsKnown(l.Y[i]) && !math.IsInf(l.Y[i], 0)
	})
}

// path draws points as lines with gaps; a point alone becomes a dot.
func path(p Line, x, y func(float64) float64) string {
	var b strings.Builder
	for _, piece := range p.pieces(x, y) {
		writePath(&b, piece)
		if len(piece) == 1 {
			b.WriteString("h.1")
		}
	}
	return b.String()
}

// area closes the path of a line down to 0, with gaps.
func area(p Line, x, y func(float64) float64) string {
	var b strings.Builder
	for _, piece := range p.pieces(x, y) {
		if n := len(piece); n > 1 {
			writePath(&b, slices.Concat([]point{{piece[0].x, y(0)}}, piece, []point{{piece[n-1].x, y(0)}}))
			b.WriteString("Z")
		}
	}
	return b.String()
}

// niceStep is the smallest 1, 2 or 5 times a power of ten that is at least v.
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

// niceTime is a readable step of seconds.
func niceTime(v float64) float64 {
	for _, s := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 4 * 3600, 6 * 3600, 12 * 3600} {
		if s >= v {
			return s
		}
	}
	return math.Ceil(v/86400) * 86400
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
