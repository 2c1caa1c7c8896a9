package ab

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// failuresInRow of one arm end a comparison.
const failuresInRow = 2

// PlanOf returns the plan of a sweep; nil if it has none.
func PlanOf(s *sweep.Sweep) (*Plan, error) {
	if s.Plan == nil {
		return nil, nil
	}
	p := &Plan{}
	if err := json.Unmarshal(s.Plan, p); err != nil {
		return nil, fmt.Errorf("read the plan of %s: %w", s.ID, err)
	}
	return p, p.Check()
}

// Store writes the plan into a sweep, with the sets of its arms.
func (p *Plan) Store(s *sweep.Sweep) error {
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("store the plan: %w", err)
	}
	s.Plan, s.Sets, s.Repeat, s.Order = data, p.Sets(), 1, sweep.Random
	return nil
}

// Sets returns the arms as sets: their names, and the values of each parameter.
func (p *Plan) Sets() []sweep.Set {
	sets := []sweep.Set{{Name: sweep.ArmSet}}
	for _, a := range p.Arms {
		sets[0].Values = append(sets[0].Values, a.Name)
		for _, name := range slices.Sorted(maps.Keys(a.Values)) {
			i := slices.IndexFunc(sets, func(s sweep.Set) bool { return s.Name == name })
			if i < 0 {
				i = len(sets)
				sets = append(sets, sweep.Set{Name: name})
			}
			sets[i].Values = append(sets[i].Values, a.Values[name])
		}
	}
	return sets
}

// values returns the values of a block of this arm.
func (p *Plan) values(arm string) map[string]string {
	i := slices.IndexFunc(p.Arms, func(a Arm) bool { return a.Name == p.alias(arm) })
	values := map[string]string{sweep.ArmSet: arm}
	maps.Copy(values, p.Arms[i].Values)
	return values
}

// Blocks returns the blocks of a sweep's steps, without those that were not needed any more.
func Blocks(s *sweep.Sweep) []Block {
	var blocks []Block
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.State == sweep.Skipped {
			continue
		}
		b := Block{Arm: step.Values[sweep.ArmSet], Round: step.Repeat - 1, Run: step.RunID,
			Began: step.Began, Measured: step.Measured, Seconds: step.Seconds}
		if step.Over() && step.Measured == nil {
			b.Problem = step.Reason
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// Announce implements [sweep.Course].
func (p *Plan) Announce(s *sweep.Sweep) string {
	var arms []string
	for i := range p.Arms {
		arms = append(arms, p.Arms[i].Title())
	}
	text := fmt.Sprintf("ab %s: %s by %s, until a difference of %s is decided, at most %s; seed %d",
		s.ID, strings.Join(arms, " against "), p.Measure,
		share(p.Limit), terminal.Short(p.maxTime()), p.Seed)
	if !p.NoControl {
		text += fmt.Sprintf("; %.0f %% of the blocks are the control, a against itself", 100*p.ControlShare())
	}
	return text
}

func (p *Plan) maxTime() time.Duration { return time.Duration(p.MaxSeconds * float64(time.Second)) }

func share(v float64) string { return fmt.Sprintf("%.3g %%", 100*v) }

// Judge implements [sweep.Course].
func (p *Plan) Judge(s *sweep.Sweep, step *sweep.Step, row *review.Row) []string {
	if row != nil {
		step.Measured = map[string]float64{}
		for _, name := range p.measures() {
			if v := p.value(row, name); series.IsKnown(v) {
				step.Measured[name] = v
			}
		}
		if len(step.Measured) == 0 && !step.Warmup {
			step.State, step.Measured, step.Reason = sweep.Failed, nil, "the run has no "+p.Measure
			return append([]string{step.Reason}, p.after(s, step)...)
		}
	}
	return p.after(s, step)
}

// after describes the comparison after a step and, if it is over, skips the pending steps.
func (p *Plan) after(s *sweep.Sweep, step *sweep.Step) []string {
	blocks := Blocks(s)
	var lines []string
	if !step.Warmup {
		lines = p.progress(blocks, step.Repeat-1)
	}
	if step.State == sweep.Failed && !step.Warmup {
		lines = append(lines, "lost: the pair of this block does not count")
	}
	if reason := p.Over(blocks); reason != "" {
		for i := range s.Steps {
			if other := &s.Steps[i]; other.State == sweep.Pending {
				other.State, other.Reason = sweep.Skipped, reason
			}
		}
		lines = append(lines, reason)
	}
	return lines
}

// value returns a measure of a block without its beginning, if its intervals show that; otherwise of
// the whole run.
func (p *Plan) value(row *review.Row, name string) float64 {
	c, err := review.ParseName(name)
	if err != nil {
		return series.Unknown()
	}
	m, ok := c.Measure([]review.Row{*row})
	if !ok {
		return series.Unknown()
	}
	const fewest = 3 // intervals
	w := row.IntervalValues[m.Field]
	if cut := int(math.Ceil(p.CutSeconds / w.Seconds)); w.Seconds > 0 && len(w.Values)-cut >= fewest {
		sum := 0.0
		for _, v := range w.Values[cut:] {
			sum += v / float64(len(w.Values)-cut)
		}
		return sum
	}
	return m.Value(row)
}

// Over returns why no more blocks are needed; empty if they are.
func (p *Plan) Over(blocks []Block) string {
	if text := p.failing(blocks); text != "" {
		return text
	}
	if p.decided(blocks) {
		return "decided"
	}
	if spent(blocks) >= p.maxTime() {
		return "the time of " + terminal.Short(p.maxTime()) + " is over"
	}
	return ""
}

// failing returns which arm failed several times in a row, and why; empty if none did.
func (p *Plan) failing(blocks []Block) string {
	failures := map[string]int{}
	for i := range blocks {
		b := &blocks[i]
		arm := p.alias(b.Arm)
		switch {
		case b.Problem != "":
			if failures[arm]++; failures[arm] >= failuresInRow {
				return fmt.Sprintf("%s failed %d times in a row: %s", arm, failuresInRow, table.Clip(b.Problem, 200))
			}
		case b.Measured != nil:
			failures[arm] = 0
		}
	}
	return ""
}

// Extend implements [sweep.Course]: it adds a round, with a block that leads in.
func (p *Plan) Extend(s *sweep.Sweep) bool {
	if p.Over(Blocks(s)) != "" {
		return false
	}
	round := 0
	for i := range s.Steps {
		if step := &s.Steps[i]; step.State != sweep.Skipped {
			round = max(round, step.Repeat)
		}
	}
	add := func(arm string, repeat int) {
		step := sweep.Step{Number: len(s.Steps) + 1, Values: p.values(arm), Repeat: repeat, Warmup: repeat == 0, State: sweep.Pending}
		if arm == Control {
			step.Arm = p.alias(arm)
		}
		s.Steps = append(s.Steps, step)
	}
	order := p.Round(round)
	add(p.alias(order[0]), 0)
	for _, arm := range order {
		add(arm, round+1)
	}
	return true
}

// progress describes the interval so far of the arm in this round, if a pair was completed. A control round changes the
// noise floor of all arms.
func (p *Plan) progress(blocks []Block, round int) []string {
	over := 0
	for i := range blocks {
		if b := &blocks[i]; b.Round == round && b.isOver() {
			over++
		}
	}
	if over%2 == 1 {
		return nil
	}
	var lines []string
	e := p.Compare(blocks, p.Measure)
	for i := range e.Arms {
		one := &e.Arms[i]
		if !p.compares(round, one.Arm) && !p.compares(round, Control) {
			continue
		}
		line := fmt.Sprintf("%s %s %s", one.Arm, p.bar(&one.Estimate, e.Floor), one.text())
		if len(one.pairs) > 0 {
			line += ", " + table.Plural(len(one.pairs), "pair")
		}
		lines = append(lines, line)
	}
	return lines
}

// barWidth is the number of places on each side of no difference, limitPlace the place of the limit.
const barWidth, limitPlace = 12, 3

// barLegend explains the bar.
const barLegend = "| no difference, : the limit, . the noise floor, o the difference, = its interval"

// bar draws the interval on a compressed scale: 3 limits are at twice the place of the limit, 15 at four times. An
// arrow marks values beyond.
func (p *Plan) bar(e *Estimate, floor series.Optional[float64]) string {
	all := []rune(strings.Repeat(" ", 2*barWidth+1))
	at := func(ratio float64) int {
		log := math.Log(ratio)
		x := math.Copysign(limitPlace*math.Log2(1+math.Abs(log)/math.Log1p(p.Limit)), log)
		return barWidth + int(math.Round(min(max(x, -barWidth), barWidth)))
	}
	fill := func(low, high float64, mark rune) {
		for i := at(low); i <= at(high); i++ {
			all[i] = mark
		}
	}
	if floor.Known {
		fill(1/(1+floor.Value), 1+floor.Value, '.')
	}
	if e.Low.Known {
		fill(e.Low.Value, e.High.Value, '=')
	}
	for _, ratio := range []float64{1 / (1 + p.Limit), 1 + p.Limit} {
		all[at(ratio)] = ':'
	}
	all[at(1)] = '|'
	if e.Low.Known && at(e.Low.Value) == 0 {
		all[0] = '<'
	}
	if e.Low.Known && at(e.High.Value) == 2*barWidth {
		all[2*barWidth] = '>'
	}
	if e.Ratio.Known {
		all[at(e.Ratio.Value)] = 'o'
	}
	return "[" + string(all) + "]"
}
