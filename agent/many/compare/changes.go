package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// place is the sentence of a comparison's summary in which a measure belongs.
type place int

const (
	inNone    place = iota
	inDiffers       // what differs: what the tool reports
	inLimits        // what limited the runs
	inPrice         // what paid for it
)

// placeOf returns the sentence of a measure, and the smallest change in human-readable units that
// is worth mentioning: users do not notice a smaller one.
func placeOf(m *review.Measure) (in place, least float64) {
	switch {
	case m.IsHeadline || m.Condition == meanLatency:
		return inDiffers, 0
	case m.Of == engine.FlowControl:
		return inLimits, 2
	case m.Of == engine.LagSeconds, m.Condition == review.DrainCondition:
		return inPrice, 0.5
	case m.IsCost && m.Of == host.CPUCost:
		return inPrice, 0
	}
	return inNone, 0
}

// meanLatency is the mean latency's name in conditions.
const meanLatency = "avg"

// leastCostChange is the share by which the CPU time of a transaction must differ to count as a
// price: it varies by a few percent between runs.
const leastCostChange = 0.1

// alikeChange is the relative change below which values are called alike, unless a difference is
// proven.
const alikeChange = 0.01

// change is a group's difference from the baseline in one measure and combination.
type change struct {
	line   *Line
	before float64
	sample *Sample
}

// changes returns the changes of group i in the measures of a sentence, combination by combination.
func (c *Comparison) changes(in place, i int) []change {
	var all []change
	for j := range c.Lines {
		l := &c.Lines[j]
		if before, s := &l.Samples[0], &l.Samples[i]; l.place == in && before.N > 0 && s.N > 0 {
			all = append(all, change{l, before.Median, s})
		}
	}
	return all
}

func (c change) difference() float64 { return c.sample.Median - c.before }

// relative is the change as a share of the baseline; unknown if the baseline is 0.
func (c change) relative() float64 { return series.Number(c.sample.Ratio) - 1 }

// isAlike reports whether the change is too small to mention, and not proven.
func (c change) isAlike() bool {
	return math.Abs(c.relative()) < alikeChange && !c.sample.Verdict.isProven()
}

// isNotable reports whether the change is worth mentioning in its sentence.
func (c change) isNotable() bool {
	if c.line.isCost {
		return math.Abs(c.relative()) >= leastCostChange
	}
	return math.Abs(c.difference()) >= c.line.least
}

// values returns "0.6 → 3.3 s", or a single value if both are printed alike.
func (c change) values() string {
	if table.Rounded(c.before) == table.Rounded(c.sample.Median) {
		return strings.TrimSpace(table.Rounded(c.before) + " " + c.line.Unit)
	}
	return strings.TrimSpace(table.Rounded(c.before) + " → " + table.Rounded(c.sample.Median) + " " + c.line.Unit)
}

// percentChange prints a relative change: "-45 %", "+2.5 %".
func percentChange(share float64) string {
	sign := "+"
	if share < 0 {
		sign = "-"
	}
	return sign + table.Share(math.Abs(share))
}

func largestChange(all []change) change {
	return slices.MaxFunc(all, func(a, b change) int {
		return int(math.Copysign(1, math.Abs(a.difference())-math.Abs(b.difference())))
	})
}

// byMeasure groups changes by their measure, in order.
func byMeasure(all []change) [][]change {
	var groups [][]change
	for _, c := range all {
		i := slices.IndexFunc(groups, func(g []change) bool { return g[0].line.Measure == c.line.Measure })
		if i < 0 {
			groups = append(groups, []change{c})
		} else {
			groups[i] = append(groups[i], c)
		}
	}
	return groups
}

// statement is a part of a sentence about a measure, such as "p95 -34 % (55 → 36 ms)", and how far
// it is proven, such as "proven (p=0.029)". proof is empty if the change is too small.
type statement struct{ change, proof string }

func (c change) statement() statement {
	name := c.line.Measure
	switch {
	case c.sample.Verdict == Incomparable:
		return statement{change: fmt.Sprintf("%s %s and %s", name, table.Rounded(c.before),
			strings.TrimSpace(table.Rounded(c.sample.Median)+" "+c.line.Unit))}
	case !c.sample.Ratio.Known:
		return statement{name + " " + c.values(), c.sample.proof()}
	case c.isAlike():
		return statement{fmt.Sprintf("%s alike (%s)", name, c.values()), c.sample.shapeText()}
	}
	return statement{fmt.Sprintf("%s %s (%s)", name, percentChange(c.relative()), c.values()), c.sample.proof()}
}

// merged returns the statement about a measure in several combinations: the range of its changes, those that are proven
// if there are any.
func merged(all []change) statement {
	if len(all) == 1 {
		return all[0].statement()
	}
	low, high, proven := math.Inf(1), math.Inf(-1), 0
	for _, c := range all {
		if c.sample.Verdict.isProven() {
			proven++
		}
	}
	for _, c := range all {
		if v := c.relative(); series.IsKnown(v) && (proven == 0 || c.sample.Verdict.isProven()) {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high { // from 0
		most := largestChange(all)
		s := most.statement()
		s.change += " at " + strings.Join(most.line.Combination, ", ")
		return s
	}
	between := percentChange(low)
	if to := percentChange(high); to != between {
		between += " to " + to
	}
	if proven > 0 && proven < len(all) {
		return statement{change: fmt.Sprintf("%s proven in %d of %d combinations: %s", all[0].line.Measure, proven, len(all), between)}
	}
	return statement{all[0].line.Measure + " " + between, fmt.Sprintf("proven in %d of %d combinations", proven, len(all))}
}

// joined joins statements. Neighbours with the same proof share it.
func joined(all []statement) string {
	var text strings.Builder
	for i, s := range all {
		text.WriteString(s.change)
		switch {
		case i+1 < len(all) && s.proof == all[i+1].proof && s.proof != "":
			text.WriteString(" and ")
			continue
		case s.proof != "":
			text.WriteString(", " + s.proof)
		}
		if i+1 < len(all) {
			text.WriteString("; ")
		}
	}
	return text.String()
}
