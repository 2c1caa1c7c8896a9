package ab

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/analysis"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// Verdict of a comparison.
type Verdict string

const (
	// Different: the interval of the ratio excludes 1, and the difference exceeds the noise floor.
	Different Verdict = "different"
	// Equivalent: the whole interval is within the limit.
	Equivalent Verdict = "equivalent"
	// Undecided: neither.
	Undecided Verdict = "undecided"
)

// Estimate is the ratio of an arm to the first one.
type Estimate struct {
	Verdict Verdict `json:"verdict"`
	// Ratio is the geometric mean of the ratios of the pairs. Low and High bound the true ratio with 95 %
	// confidence at all times together; absent while there are too few pairs.
	Ratio series.Optional[float64] `json:"ratio,omitzero"`
	Low   series.Optional[float64] `json:"low,omitzero"`
	High  series.Optional[float64] `json:"high,omitzero"`
	// Blocks is the number of blocks of both arms in the pairs.
	Blocks int `json:"blocks"`
	// Lost is the number of pairs that have no ratio, since a block failed or has no value.
	Lost int `json:"lost,omitempty"`

	pairs, control []Pair
	alpha          float64
}

// Pair is one pair of consecutive blocks.
type Pair struct {
	// Log is the logarithm of the ratio.
	Log float64
	// Blocks are the blocks of the first arm and of the other arm.
	Blocks [2]*Block
}

// Comparison is an arm against the first one.
type Comparison struct {
	Arm string `json:"arm"`
	Estimate
}

// Estimates are the comparisons of a measure with what the first arm shows against itself.
type Estimates struct {
	Arms []Comparison
	// Control is the first arm against itself; nil without control.
	Control *Estimate
	// Floor is the noise floor as a share: the difference that the first arm shows against itself and twice its
	// standard error by the noise of all pairs. It is unknown without control, and with fewer than two of its pairs.
	Floor series.Optional[float64]
}

// Compare estimates the ratios of a measure from the blocks, in their order.
func (p *Plan) Compare(blocks []Block, measure string) Estimates {
	var e Estimates
	if !p.NoControl {
		control := p.estimate(blocks, measure, Control, alpha)
		control.Verdict = p.conclude(&control, series.Some(0.0))
		e.Control = &control
	}
	noise := 0.0
	for _, a := range p.Arms[1:] {
		one := p.estimate(blocks, measure, a.Name, alpha/float64(len(p.Arms)-1))
		if e.Control != nil {
			one.control = e.Control.pairs
		}
		b := one.bounds()
		noise = max(noise, b.Noise)
		one.set(b)
		e.Arms = append(e.Arms, Comparison{a.Name, one})
	}
	floor := series.Some(0.0)
	if e.Control != nil {
		if n := len(e.Control.pairs); n >= 2 && series.IsKnown(noise) {
			e.Floor = series.Some(math.Expm1(math.Abs(e.Control.bounds().Mean) + 2*noise/math.Sqrt(float64(n))))
		}
		floor = e.Floor
	}
	for i := range e.Arms {
		e.Arms[i].Verdict = p.conclude(&e.Arms[i].Estimate, floor)
	}
	return e
}

// conclude returns the verdict. Without a noise floor there is none.
func (p *Plan) conclude(e *Estimate, floor series.Optional[float64]) Verdict {
	switch {
	case !e.Low.Known || !floor.Known:
	case (e.Low.Value > 1 || e.High.Value < 1) && math.Abs(math.Log(e.Ratio.Value)) > math.Log1p(floor.Value):
		return Different
	case e.Low.Value >= 1-p.Limit && e.High.Value <= 1+p.Limit && floor.Value <= p.Limit:
		return Equivalent
	}
	return Undecided
}

// estimate estimates the ratio of one arm.
func (p *Plan) estimate(blocks []Block, measure, arm string, level float64) Estimate {
	e := Estimate{Verdict: Undecided, alpha: level}
	for _, pair := range p.pairs(blocks, arm) {
		before, okBefore := pair[0].Measured[measure]
		after, okAfter := pair[1].Measured[measure]
		switch {
		case !pair[0].isOver() || !pair[1].isOver():
		case !okBefore || !okAfter || !(before > 0) || !(after > 0):
			e.Lost++
		default:
			e.pairs = append(e.pairs, Pair{math.Log(after / before), pair})
			e.Blocks += len(pair)
		}
	}
	e.set(e.bounds())
	return e
}

// set sets the ratio and its interval.
func (e *Estimate) set(b analysis.Bounds) {
	if b.N > 0 {
		e.Ratio = series.Some(math.Exp(b.Mean))
	}
	e.Low, e.High = series.Optional[float64]{}, series.Optional[float64]{}
	if b.N > 0 && !math.IsInf(b.High, 1) {
		e.Low, e.High = series.Some(math.Exp(b.Low)), series.Some(math.Exp(b.High))
	}
}

// pairs returns the pairs of an arm: the first two blocks of a round, and the last two.
func (p *Plan) pairs(blocks []Block, arm string) [][2]*Block {
	var all [][2]*Block
	var open *Block // the first block of a pair
	for i := range blocks {
		b := &blocks[i]
		switch {
		case b.Round < 0:
		case open == nil || open.Round != b.Round:
			open = b
		case open.Arm == arm:
			all, open = append(all, [2]*Block{b, open}), nil
		case b.Arm == arm:
			all, open = append(all, [2]*Block{open, b}), nil
		default: // a pair of another arm
			open = nil
		}
	}
	return all
}

// compares reports whether a round compares this arm.
func (p *Plan) compares(round int, arm string) bool {
	order := p.Round(round)
	return order[0] == arm || order[1] == arm
}

func (e *Estimate) bounds() analysis.Bounds {
	return analysis.PairBounds(logs(e.pairs), logs(e.control), e.alpha)
}

// boundsAfter returns the bounds as they were after the first n pairs.
func (e *Estimate) boundsAfter(n int) analysis.Bounds {
	last := e.pairs[n-1].Blocks[0].Round
	i := slices.IndexFunc(e.control, func(c Pair) bool { return c.Blocks[0].Round > last })
	if i < 0 {
		i = len(e.control)
	}
	return analysis.PairBounds(logs(e.pairs[:n]), logs(e.control[:i]), e.alpha)
}

// logs returns the logarithms of the ratios of pairs.
func logs(pairs []Pair) []float64 {
	all := make([]float64, len(pairs))
	for i := range all {
		all[i] = pairs[i].Log
	}
	return all
}

// wanted returns how many more pairs would decide by this limit if they are like the pairs so far; false if there are
// too few pairs to tell, or if a million more would not decide.
func (e *Estimate) wanted(limit float64) (int, bool) {
	if !e.Low.Known {
		return 0, false
	}
	b := e.bounds()
	difference := math.Abs(b.Mean)
	least := max(difference, math.Log1p(limit)-difference)
	for n := b.N + 1; n < 1_000_000; n += max(1, n/50) {
		if analysis.PairWidth(n, b.Independent*float64(n)/float64(b.N), b.Noise, e.alpha) < least {
			return n - b.N, true
		}
	}
	return 0, false
}

// check applies a relative condition to an arm.
func (p *Plan) check(condition *review.Condition, e *Estimate, floor series.Optional[float64]) (compare.Result, string) {
	switch {
	case !e.Ratio.Known:
		return compare.Unclear, "no pair of blocks has this value"
	case !e.Low.Known:
		return compare.Unclear, e.text() + ": too few pairs"
	case !p.NoControl && !floor.Known:
		return compare.Unclear, e.text() + ": the noise floor is not known yet"
	}
	isBelow := condition.Compare[0] == '<'
	beyond := isBelow && e.High.Value < condition.Bound || !isBelow && e.Low.Value > condition.Bound
	within := isBelow && e.Low.Value > condition.Bound || !isBelow && e.High.Value < condition.Bound
	isNoise := !p.NoControl && math.Abs(math.Log(e.Ratio.Value)) <= math.Log1p(floor.Value)
	switch {
	case beyond && isNoise:
		return compare.Unclear, e.text() + ": within the noise floor of " + floorText(floor.Value)
	case beyond:
		return compare.Broken, e.text()
	case within:
		return compare.Held, e.text()
	}
	return compare.Unclear, e.text()
}

// text returns the difference with its interval: "-4.1 % (-5.0 to -3.2)".
func (e *Estimate) text() string {
	if !e.Ratio.Known {
		return "no pair of blocks yet"
	}
	text := percent(e.Ratio.Value) + " %"
	if e.Low.Known {
		text += fmt.Sprintf(" (%s to %s)", percent(e.Low.Value), percent(e.High.Value))
	}
	return text
}

// percent formats a ratio as a difference in percent, without the sign.
func percent(ratio float64) string { return fmt.Sprintf("%+.1f", 100*(ratio-1)) }

// decided reports whether all conditions are decided or, without any, whether each arm has a verdict.
func (p *Plan) decided(blocks []Block) bool {
	conditions := 0
	for _, condition := range p.Conditions() {
		if !condition.Relative {
			continue
		}
		conditions++
		e := p.Compare(blocks, condition.Name())
		for i := range e.Arms {
			if result, _ := p.check(condition, &e.Arms[i].Estimate, e.Floor); result == compare.Unclear {
				return false
			}
		}
	}
	if conditions > 0 {
		return true
	}
	for _, one := range p.Compare(blocks, p.Measure).Arms {
		if one.Verdict == Undecided {
			return false
		}
	}
	return true
}

// spent returns how long the blocks took together.
func spent(blocks []Block) time.Duration {
	sum := 0.0
	for i := range blocks {
		sum += blocks[i].Seconds
	}
	return time.Duration(sum * float64(time.Second))
}
