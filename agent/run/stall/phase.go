package stall

import (
	"math"
	"slices"
)

// A standstill often ends in a time in which less is done than before, or begins in one: they have different reasons, so
// they are dips of their own.

// shortest is the number of intervals that a phase beside a standstill has at least. A standstill has at least as many,
// or one report that came late.
const shortest = 2

// phase is a stretch of intervals of a dip. first and last are intervals; still: it is a standstill.
type phase struct {
	first, last int
	still       bool
}

// phases returns the dip in progress, divided where a standstill begins or ends.
func (d *Detector) phases() []Dip {
	first, last := d.ends()
	all := d.divide(first, last)
	if len(all) < 2 {
		return []Dip{d.describe(first, last)}
	}
	whole := d.describe(first, last)
	dips := make([]Dip, len(all))
	for i, p := range all {
		dips[i] = d.describe(p.first, p.last)
		if i > 0 {
			at := d.boundary(all[i-1], p)
			dips[i-1].To, dips[i].From = at, at
		}
	}
	dips[0].From, dips[len(dips)-1].To = whole.From, whole.To
	for i := range dips {
		dips[i].Seconds = dips[i].To - dips[i].From
	}
	return dips
}

// divide finds the phases of a dip. Those that are too short belong to the one before.
func (d *Detector) divide(first, last int) (all []phase) {
	for i := first; i <= last; i++ {
		o := &d.open[i]
		is := o.Rate < still*d.usual.rate || o.gap > silence*d.usual.length
		if n := len(all); n > 0 && all[n-1].still == is {
			all[n-1].last = i
			continue
		}
		all = append(all, phase{i, i, is})
	}
	for len(all) > 1 {
		i := slices.IndexFunc(all, func(p phase) bool { return p.still && !d.isPhase(p) })
		if i < 0 {
			i = slices.IndexFunc(all, func(p phase) bool { return !d.isPhase(p) })
		}
		if i < 0 {
			break
		}
		into := max(i-1, 0)
		if i == 0 {
			all[1].first = all[0].first
		} else {
			all[into].last = all[i].last
		}
		all = slices.Delete(all, i, i+1)
		for j := 1; j < len(all); j++ { // neighbours that are alike now
			if all[j].still == all[j-1].still {
				all[j-1].last = all[j].last
				all = slices.Delete(all, j, j+1)
				j--
			}
		}
	}
	return all
}

// isPhase reports whether a phase is long enough, and has fewer transactions than chance explains; if it is no standstill,
// far more than one.
func (d *Detector) isPhase(p phase) bool {
	if p.last-p.first+1 < shortest {
		return p.still && d.open[p.first].gap > silence*d.usual.length
	}
	expected, done := 0.0, 0.0
	for i := p.first; i <= p.last; i++ {
		o := &d.open[i]
		expected, done = expected+d.usual.rate*o.seconds(), done+o.Rate*o.seconds()
	}
	return p.still || done > less*expected && expected-done > outlier*math.Sqrt(expected)
}

// boundary is when one phase ended and the next one began. In the interval of the other phase beside a standstill, it is
// computed from its throughput.
func (d *Detector) boundary(before, after phase) float64 {
	if before.still {
		o := &d.open[after.first]
		return o.From - o.gap + (o.seconds()+o.gap)*d.missing(after, after.first)
	}
	o := &d.open[before.last]
	return o.To - o.seconds()*d.missing(before, before.last)
}

// missing is the part of an interval in which nothing was done, by the other intervals of its phase.
func (d *Detector) missing(p phase, i int) float64 {
	sum, n := 0.0, 0.0
	for j := p.first; j <= p.last; j++ {
		if j != i {
			sum, n = sum+d.open[j].Rate, n+1
		}
	}
	if !(sum > 0) {
		return 0
	}
	return max(0, min(1, 1-d.open[i].Rate/(sum/n)))
}
