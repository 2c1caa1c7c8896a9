package ab

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/analysis"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// Result is the result of a comparison. Its verdict is the verdict of the second arm or, if that is equivalent, of the
// first later arm that is not.
type Result struct {
	ID string `json:"id"`
	Estimate
	// Measure is the name of the measure, Value its geometric mean by arm in Unit.
	Measure string             `json:"measure"`
	Unit    string             `json:"unit,omitempty"`
	Value   map[string]float64 `json:"value"`
	// Limit is the difference that matters, NoiseFloor the difference that the first arm shows against
	// itself, with twice its standard error. Both are shares.
	Limit      float64                  `json:"limit"`
	NoiseFloor series.Optional[float64] `json:"noise_floor,omitzero"`
	// Control is the first arm against itself, in ControlShare of the rounds.
	Control      *Estimate `json:"control,omitempty"`
	ControlShare float64   `json:"control_share"`
	// Stopped is why a comparison ended before its time, such as failing blocks.
	Stopped string `json:"stopped,omitempty"`
	// Summary is the verdict on each arm in words, Trust what supports or weakens it.
	Summary []string `json:"summary"`
	Trust   []string `json:"trust"`
	// Arms are compared with the first arm, which has no estimate.
	Arms []ArmResult `json:"arms"`
	// Seconds is the time of all blocks, MoreSeconds how many more would decide.
	Seconds     float64                  `json:"seconds"`
	MoreSeconds series.Optional[float64] `json:"more_seconds,omitzero"`
	Seed        uint64                   `json:"seed"`
	// Runs are the blocks in their order, Intervals has the interval after each pair.
	Runs      []BlockResult    `json:"runs"`
	Intervals []IntervalResult `json:"intervals"`
	// Comparison has everything else of both arms, from pooled blocks.
	Comparison *compare.Comparison `json:"comparison,omitempty"`

	// Groups are the arms' runs, Of the measure.
	Groups []compare.Group `json:"-"`
	Of     review.Measure  `json:"-"`
	plan   *Plan
}

// ArmResult is one arm.
type ArmResult struct {
	Arm
	// Estimate is its ratio to the first arm; absent for the first arm.
	Estimate *Estimate `json:"estimate,omitempty"`
	// Failed is the number of its blocks without a result.
	Failed int `json:"failed,omitempty"`
}

// BlockResult is one block.
type BlockResult struct {
	Run string `json:"run,omitempty"`
	Arm string `json:"arm"`
	// Round counts from 1; absent for a block that leads in, whose value does not count.
	Round int `json:"round,omitempty"`
	// StartSeconds counts from the start of the first block.
	StartSeconds float64 `json:"start_seconds"`
	// Value is in the unit of the result.
	Value  series.Optional[float64] `json:"value,omitzero"`
	Reason string                   `json:"reason,omitempty"`
}

// IntervalResult is the interval of an arm after some pairs.
type IntervalResult struct {
	Arm   string                   `json:"arm"`
	Pairs int                      `json:"pairs"`
	Ratio float64                  `json:"ratio"`
	Low   series.Optional[float64] `json:"low,omitzero"`
	High  series.Optional[float64] `json:"high,omitzero"`
}

// Result sums up the blocks. rows are their runs, as [Plan.Rows] returns them.
func (p *Plan) Result(id string, blocks []Block, rows map[int]review.Row) *Result {
	e := p.Compare(blocks, p.Measure)
	r := &Result{
		ID: id, Measure: p.Measure, Limit: p.Limit, NoiseFloor: e.Floor, Control: e.Control, ControlShare: p.ControlShare(),
		Value: map[string]float64{}, Seconds: spent(blocks).Seconds(), Seed: p.Seed, plan: p,
		Arms: []ArmResult{{Arm: p.Arms[0]}}, Runs: []BlockResult{}, Intervals: []IntervalResult{},
	}
	leading := &e.Arms[0]
	for i := range e.Arms {
		one := &e.Arms[i]
		if one.Verdict != Equivalent && leading.Verdict == Equivalent {
			leading = one
		}
		r.Arms = append(r.Arms, ArmResult{Arm: p.Arms[i+1], Estimate: &one.Estimate})
	}
	r.Estimate = leading.Estimate
	r.pool(blocks, rows)
	r.addBlocks(blocks)
	for i := range e.Arms {
		r.addIntervals(&e.Arms[i])
	}
	for i := range e.Arms {
		r.Summary = append(r.Summary, r.sentence(&e.Arms[i], p.Arms[i+1].Title(), e.Floor, blocks))
	}
	r.Trust, r.Stopped = r.trust(blocks), p.failing(blocks)
	return r
}

// pool groups the runs by arm and compares them.
func (r *Result) pool(blocks []Block, rows map[int]review.Row) {
	var all []review.Row
	for i := range r.plan.Arms {
		g := compare.Group{Name: r.plan.Arms[i].Title()}
		for j := range blocks {
			b := &blocks[j]
			if row, ok := rows[j]; ok && b.Arm == r.plan.Arms[i].Name {
				g.Runs = append(g.Runs, row)
			}
		}
		r.Groups = append(r.Groups, g)
		all = append(all, g.Runs...)
	}
	if c, err := review.ParseName(r.Measure); err == nil {
		if c.IsStatistic() { // if no row could be read
			r.Of.Unit, r.Unit = table.Milliseconds, table.Milliseconds.Sign
		} else if len(all) == 0 && CanToggle(r.Measure) == nil {
			r.Of.Unit, r.Unit = table.PerSecond, table.PerSecond.Sign
		}
		if m, ok := c.Measure(all); ok {
			r.Of = m
			r.Unit = m.Unit.Sign
		}
	}
	if slices.ContainsFunc(r.Groups, func(g compare.Group) bool { return len(g.Runs) == 0 }) {
		return
	}
	c := compare.Compare(r.Groups, []string{"arm"})
	r.Comparison = &c
}

// factor turns a value in the base unit into one in the unit of the result.
func (r *Result) factor() float64 { return cmp.Or(r.Of.Unit.Factor, 1) }

func (r *Result) addBlocks(blocks []Block) {
	logs := map[string][]float64{}
	failed := map[string]int{}
	for i := range blocks {
		b := &blocks[i]
		if !b.isOver() {
			continue
		}
		one := BlockResult{Run: b.Run, Arm: b.Arm, Round: max(0, b.Round+1),
			StartSeconds: b.Began.Sub(blocks[0].Began).Seconds(), Reason: b.Problem}
		if v, ok := b.Measured[r.Measure]; ok {
			one.Value = series.Some(v * r.factor())
			if b.Round >= 0 && v > 0 {
				logs[b.Arm] = append(logs[b.Arm], math.Log(v*r.factor()))
			}
		}
		if b.Problem != "" {
			failed[r.plan.alias(b.Arm)]++
		}
		r.Runs = append(r.Runs, one)
	}
	for arm, values := range logs {
		r.Value[arm] = math.Exp(compare.NewSpread(values).Mean)
	}
	for i := range r.Arms {
		r.Arms[i].Failed = failed[r.Arms[i].Name]
	}
}

func (r *Result) addIntervals(c *Comparison) {
	for n := 1; n <= len(c.pairs); n++ {
		b := c.boundsAfter(n)
		one := IntervalResult{Arm: c.Arm, Pairs: n, Ratio: math.Exp(b.Mean)}
		if !math.IsInf(b.High, 1) {
			one.Low, one.High = series.Some(math.Exp(b.Low)), series.Some(math.Exp(b.High))
		}
		r.Intervals = append(r.Intervals, one)
	}
}

// sentence is the verdict on an arm in words.
func (r *Result) sentence(c *Comparison, arm string, floor series.Optional[float64], blocks []Block) string {
	if !c.Ratio.Known {
		return fmt.Sprintf("undecided: %s has no pair of blocks with a value of %s", arm, r.Measure)
	}
	interval := ""
	if c.Low.Known {
		interval = fmt.Sprintf(" (%s to %s)", percent(c.Low.Value), percent(c.High.Value))
	}
	values := ""
	if a, ok := r.Value[r.Arms[0].Name]; ok {
		values = fmt.Sprintf(": %s %s → %s %s", r.Measure, table.Digits.Format(a), table.Digits.Format(a*c.Ratio.Value), r.Unit)
	}
	switch c.Verdict {
	case Different:
		word := "higher"
		if c.Ratio.Value < 1 {
			word = "lower"
		}
		name := r.Measure + " of " + arm
		if r.Measure == "tps" {
			name, word = arm, map[string]string{"higher": "faster", "lower": "slower"}[word]
		}
		low, high := 100*(c.Low.Value-1), 100*(c.High.Value-1)
		if word == "slower" || word == "lower" {
			low, high = -high, -low
		}
		return strings.TrimSpace(fmt.Sprintf("%s is %s than %s by %.1f %% (%.1f to %.1f)%s",
			name, word, r.Arms[0].Title(), 100*math.Abs(c.Ratio.Value-1), low, high, values))
	case Equivalent:
		return fmt.Sprintf("no difference larger than %s: %s is at %s %%%s", share(r.Limit), arm, percent(c.Ratio.Value), interval)
	}
	text := fmt.Sprintf("undecided after %s: %s is at %s %%%s", terminal.Short(spent(blocks)), arm, percent(c.Ratio.Value), interval)
	switch {
	case len(c.pairs) < analysis.FewestPairs:
		text += fmt.Sprintf("; %d of the %d pairs that a verdict needs", len(c.pairs), analysis.FewestPairs)
		if spent(blocks) >= r.plan.maxTime() {
			text += ": make --max-time longer or the blocks shorter"
		}
		return text
	case r.plan.NoControl || !c.Low.Known || c.Low.Value <= 1 && c.High.Value >= 1:
	case !floor.Known:
		return text + ", but the noise floor is not known yet"
	case math.Abs(math.Log(c.Ratio.Value)) <= math.Log1p(floor.Value):
		return text + ", within the noise floor of " + floorText(floor.Value)
	}
	if n, ok := c.wanted(r.Limit); ok {
		times := 1 + float64(n)/float64(len(c.pairs))
		if floor.Known { // it shrinks with the root of the time
			times = max(times, math.Pow(math.Log1p(floor.Value)/max(math.Abs(math.Log(c.Ratio.Value)), math.Log1p(r.Limit)), 2))
		}
		more := (times - 1) * spent(blocks).Seconds()
		r.MoreSeconds = series.Some(max(r.MoreSeconds.Value, more))
		text += fmt.Sprintf("; about %.0f more minutes would decide %s", math.Ceil(more/60), share(r.Limit))
	}
	return text
}

// floorText returns the noise floor in both directions. They differ since the floor is a ratio: -33 % undoes +50 %.
func floorText(floor float64) string {
	return fmt.Sprintf("%s to %s %%", percent(1/(1+floor)), percent(1+floor))
}

// Bars draws the intervals, a line for each arm after the first, and explains them.
func (r *Result) Bars() string {
	text := ""
	for i := range r.Arms {
		if e := r.Arms[i].Estimate; e != nil && e.Ratio.Known {
			text += r.Arms[i].Name + " " + r.plan.bar(e, r.NoiseFloor) + "\n"
		}
	}
	if text != "" {
		text += barLegend + "\n"
	}
	return text
}

// trust lists what a reader needs to judge the verdict.
func (r *Result) trust(blocks []Block) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if c := r.Control; c != nil {
		text := fmt.Sprintf("control: a against itself %s, %s, %.0f %% of the blocks",
			c.text(), table.Plural(len(c.pairs), "pair"), 100*r.ControlShare)
		switch {
		case !r.NoiseFloor.Known:
			text += "; too few pairs for a noise floor"
		case c.Verdict == Different:
			text += ": something on this machine keeps time with the blocks, so smaller differences than this prove nothing"
		}
		lines = append(lines, text)
		if r.NoiseFloor.Known {
			add("noise floor %s: this machine can't show a difference within it now", floorText(r.NoiseFloor.Value))
		}
	} else {
		add("no control: the noise floor of this machine is unknown")
	}
	leads := 0
	for i := range blocks {
		if blocks[i].Round < 0 && blocks[i].isOver() {
			leads++
		}
	}
	add("%s in %s, of which %d lead in, so that both blocks of a pair follow the same arm; order from seed %d",
		table.Plural(len(r.Runs), "block"), terminal.Short(spent(blocks)), leads, r.Seed)
	if t := r.plan.Toggle; t != nil {
		text := "carry-over: the first second after a switch does not count"
		if n := int(t.CarryOverSeconds); n > 1 {
			text = fmt.Sprintf("carry-over: the first %d seconds after a switch do not count", n)
		}
		if t.CarryOverShare != 0 {
			text += fmt.Sprintf(", in which %s is off by up to %+.0f %%", r.Measure, 100*t.CarryOverShare)
		}
		if t.CarryOverShare != 0 && t.CarryOverSeconds >= t.EverySeconds/2-1 {
			text += "; they may be more than half of a block: choose a longer --every"
		}
		lines = append(lines, text)
		if len(r.Runs) > 0 {
			add("switched within one run by %s: benchwatch report %s has all of it, and the statements, which are counted from its start to its end", t.Text, r.Runs[len(r.Runs)-1].Run)
		}
	}
	lost := 0
	if r.Control != nil {
		lost = r.Control.Lost
	}
	for i := range r.Arms {
		if r.Arms[i].Estimate != nil {
			lost += r.Arms[i].Estimate.Lost
		}
		if n := r.Arms[i].Failed; n > 0 {
			add("%s of %s had no result: see the reasons below", table.Plural(n, "block"), r.Arms[i].Name)
		}
	}
	if lost > 0 {
		add("%s lost: without both of its blocks a pair does not count", table.Plural(lost, "pair"))
	}
	return append(lines, r.incidents()...)
}

// incidents are what happened to some blocks and may explain a difference: restarts, failures, a
// clock that was set.
func (r *Result) incidents() []string {
	var lines []string
	var failed []string
	unequal := false
	first := 0.0
	for i := range r.Groups {
		g := &r.Groups[i]
		restarted, sum := map[string]int{}, 0.0
		for j := range g.Runs {
			for _, step := range g.Runs[j].ClockSteps {
				lines = append(lines, fmt.Sprintf("the clock was set by %+.3g s during %s; what was measured does not depend on it", step.Seconds, g.Runs[j].ID))
			}
			sum += g.Runs[j].FailedShare.Value / float64(len(g.Runs))
			for k := range g.Runs[j].Servers {
				if s := &g.Runs[j].Servers[k]; s.Restarts > 0 {
					restarted[s.Target]++
				}
			}
		}
		for target, n := range restarted {
			lines = append(lines, fmt.Sprintf("%s restarted in %s of %s", target, table.Plural(n, "block"), r.Arms[i].Name))
		}
		failed = append(failed, fmt.Sprintf("%s %s", r.Arms[i].Name, table.Share(sum)))
		if i == 0 {
			first = sum
		}
		unequal = unequal || math.Abs(sum-first) > 0.001
	}
	slices.Sort(lines)
	if unequal {
		lines = append(lines, "the arms do not fail equally often, which is part of the result: "+strings.Join(failed, ", ")+" of the transactions")
	}
	return lines
}

// Check applies the conditions; absolute ones to the pooled blocks.
func (r *Result) Check(blocks []Block) []compare.ConditionResult {
	c := r.Comparison
	if c == nil {
		c = &compare.Comparison{}
		for i := range r.Groups {
			c.Groups = append(c.Groups, r.Groups[i].Name)
		}
		r.Comparison = c
	}
	for _, condition := range r.plan.Conditions() {
		if !condition.Relative {
			c.Check([]*review.Condition{condition}, r.Groups)
			continue
		}
		e := r.plan.Compare(blocks, condition.Name())
		for i := range e.Arms {
			result, reason := r.plan.check(condition, &e.Arms[i].Estimate, e.Floor)
			c.Conditions = append(c.Conditions, compare.ConditionResult{Limit: condition.String(),
				Group: r.plan.Arms[i+1].Title(), Result: result, Reason: condition.Name() + " " + reason})
		}
	}
	return c.Conditions
}

// Breaks reports whether an arm breaks a condition.
func (r *Result) Breaks(arm *ArmResult) bool {
	return r.Comparison != nil && slices.ContainsFunc(r.Comparison.Conditions, func(c compare.ConditionResult) bool {
		return c.Group == arm.Title() && c.Result == compare.Broken
	})
}

// Failures names the blocks without a result.
func (r *Result) Failures() []string {
	var all []string
	for i := range r.Runs {
		if b := &r.Runs[i]; b.Reason != "" {
			all = append(all, fmt.Sprintf("block %d of %s: %s", i+1, b.Arm, table.Clip(b.Reason, 200)))
		}
	}
	return all
}
