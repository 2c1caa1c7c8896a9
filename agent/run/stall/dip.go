package stall

import (
	"fmt"
	"math"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// dip describes the dip in progress.
func (d *Detector) dip() Dip { return d.describe(d.ends()) }

// ends returns the first and the last interval of the dip in progress. When what stopped the clients is over, a queue of
// the tool drains: its transactions took long, but as many end as before, or more. This backlog is not part of the dip.
func (d *Detector) ends() (first, last int) {
	first = -1
	lowest := -1
	for i := range d.open {
		o := &d.open[i]
		if !o.bad {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
		if o.isLow || o.gap > 0 {
			lowest = i
		}
	}
	for lowest >= 0 && last > lowest && (!d.open[last].bad || !d.isBelow(&d.open[last])) {
		last--
	}
	return first, last
}

// describe describes the dip from one interval to another.
func (d *Detector) describe(first, last int) Dip {
	u := &d.usual
	x := Dip{Usual: u.rate, Low: math.Inf(1), Latency: series.Unknown(), UsualLatency: series.Unknown(), Slow: true, Silent: true}
	for i := first; i <= last; i++ {
		o := &d.open[i]
		if !o.bad {
			continue
		}
		x.Low = min(x.Low, o.Rate)
		if o.isLow {
			x.Slow, x.Silent = false, false
		}
		if o.gap == 0 {
			x.Silent = false
		} else {
			x.Slow = false
		}
	}
	for i := first; i <= last; i++ {
		o := &d.open[i]
		if series.IsKnown(u.latency) && series.IsKnown(o.Latency) && !(o.Latency <= x.Latency) {
			x.Latency, x.UsualLatency = o.Latency, u.latency
		}
		x.Lost += max(0, u.rate-o.Rate) * o.seconds()
		if o.isLow {
			x.Lost += (u.rate - o.Rate) * o.gap // its rate covers the whole time since the previous report
		}
	}
	d.bound(&x, first, last)
	x.Seconds = x.To - x.From
	return x
}

// bound finds the begin and the end of a dip: the part of the first and the last interval, and of those beside them, for
// which their throughput is as low as between them.
func (d *Detector) bound(x *Dip, first, last int) {
	a, b := &d.open[first], &d.open[last]
	x.From, x.To = a.From-a.gap, b.To
	switch {
	case x.Silent:
		x.To = b.From
		return
	case x.Slow:
		return
	case a.gap > 0: // it ended just before the report
		x.From = b.To - (b.To-x.From)*d.part(a, 0)
		if first != last {
			x.From = a.From - a.gap
		}
		return
	}
	level := d.level(first, last)
	if a.isLow && first > 0 {
		x.From = a.To - a.seconds()*d.part(a, level)
		if before := &d.open[first-1]; d.part(a, level) > 0.9 && d.isBelow(before) {
			x.From -= before.seconds() * d.part(before, level)
			x.Lost += (d.usual.rate - before.Rate) * before.seconds()
		}
	}
	if !x.Slow && last > first && (b.isLow || d.isBelow(b)) {
		x.To = b.From + b.seconds()*d.part(b, level)
	}
	if last+1 == len(d.open) || !b.isLow || last > first && d.part(b, level) <= 0.9 {
		return
	}
	if after := &d.open[last+1]; d.isBelow(after) {
		x.To += after.seconds() * d.part(after, level)
		x.Lost += (d.usual.rate - after.Rate) * after.seconds()
	} else {
		x.To = max(x.To, d.released(x.From, last+1))
	}
}

// released is when a dip ended in an interval in which a queue drained, at least: what had waited since the begin of the
// dip took as long as the dip. Without latencies, the queue drains as fast as in the next interval.
func (d *Detector) released(from float64, i int) float64 {
	o, end := &d.open[i], 0.0
	switch {
	case series.IsKnown(o.Latency):
		end = from + o.Latency
	case i+1 < len(d.open):
		next := &d.open[i+1]
		if more := (next.Rate - d.usual.rate) * next.seconds(); next.Rate > o.Rate && more > outlier*math.Sqrt(d.usual.rate*next.seconds()) {
			end = o.To - o.seconds()*o.Rate/next.Rate
		}
	}
	return min(max(end, o.From), o.To)
}

// level is the throughput between the first and the last interval of a dip.
func (d *Detector) level(first, last int) float64 {
	if last-first < 2 {
		return 0
	}
	sum, n := 0.0, 0.0
	for i := first + 1; i < last; i++ {
		if d.open[i].isLow {
			sum, n = sum+d.open[i].Rate, n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

// part is the part of an interval that belongs to a dip at a level.
func (d *Detector) part(o *reading, level float64) float64 {
	return max(0, min(1, (d.usual.rate-o.Rate)/max(d.usual.rate-level, 1e-9)))
}

// isBelow reports whether an interval beside a dip is lower than its noise explains.
func (d *Detector) isBelow(o *reading) bool {
	noise := max(d.usual.deviation, math.Sqrt(d.usual.rate/max(o.seconds(), 1e-9)))
	return d.usual.rate-o.Rate > 2*noise
}

// String describes a dip in progress by its throughput.
func (d *Dip) String() string {
	switch {
	case d.Silent:
		return "no report was printed"
	case d.Slow:
		return fmt.Sprintf("latency %.3g s, usually %.3g s", d.Latency, d.UsualLatency)
	}
	return fmt.Sprintf("throughput %.4g/s, usually %.4g/s", d.Low, d.Usual)
}
