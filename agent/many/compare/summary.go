package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/analysis"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/host"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// place is the sentence of a comparison's summary that has a measure.
type place int

const (
	inNone    place = iota
	inDiffers       // what differs: what the tool reports
	inLimits        // what limited the runs
	inPrice         // what paid for it
)

// placeOf returns the sentence of a measure, and the smallest change of its value in human-readable
// units that is worth being part of it: users do not feel a smaller one.
func placeOf(m *review.Measure) (in place, least float64) {
	switch {
	case m.IsHeadline:
		return inDiffers, 0
	case m.Field == tool.Errors.Field():
		return inDiffers, 1
	case m.Of == engine.FlowControl:
		return inLimits, 2
	case m.Of == engine.LagSeconds, m.Condition == review.DrainCondition:
		return inPrice, 0.5
	case m.IsCost && m.Of == host.CPUCost:
		return inPrice, 0
	}
	return inNone, 0
}

// leastCostChange is the share by which the CPU of a transaction must differ to be a price: it
// varies by a few percent from run to run.
const leastCostChange = 0.1

// change is how a group differs from the baseline in a measure and a combination.
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

// relative is the change as a share of the baseline, unknown if that is 0.
func (c change) relative() float64 { return series.Number(c.sample.Ratio) - 1 }

// isNotable reports whether the change is worth a place in its sentence.
func (c change) isNotable() bool {
	if c.line.isCost {
		return math.Abs(c.relative()) >= leastCostChange
	}
	return math.Abs(c.difference()) >= c.line.least
}

// values returns "0.6 → 3.3 s", or one of them if they are printed alike.
func (c change) values() string {
	if brief(c.before) == brief(c.sample.Median) {
		return strings.TrimSpace(brief(c.before) + " " + c.line.Unit)
	}
	return strings.TrimSpace(brief(c.before) + " → " + brief(c.sample.Median) + " " + c.line.Unit)
}

// brief prints a number of a sentence: two digits or more, without zeros at the end.
func brief(v float64) string {
	switch abs := math.Abs(v); {
	case abs >= 10 || abs == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs >= 1:
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// percentChange prints a relative change: "-45 %", "+2.5 %".
func percentChange(share float64) string {
	sign := "+"
	if share < 0 {
		sign = "-"
	}
	return sign + brief(math.Abs(share)*100) + " %"
}

// alikeChange is the relative change below which values are called alike unless it is proven that
// they differ.
const alikeChange = 0.01

// statement is a part of a sentence about a measure, such as "p95 -34 % (55 → 36 ms)", and how far it
// is proven, such as "proven (p=0.029)"; empty if the change is too small for that.
type statement struct{ change, proof string }

func (c change) statement() statement {
	name := c.line.Measure
	switch {
	case !c.sample.Ratio.Known:
		return statement{name + " " + c.values(), c.sample.proof()}
	case math.Abs(c.relative()) < alikeChange && !c.sample.Verdict.isProven():
		return statement{fmt.Sprintf("%s alike (%s)", name, c.values()), c.sample.shapeText()}
	}
	return statement{fmt.Sprintf("%s %s (%s)", name, percentChange(c.relative()), c.values()), c.sample.proof()}
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

// merged returns the statement about a measure in several combinations: the range of its changes.
func merged(all []change) statement {
	if len(all) == 1 {
		return all[0].statement()
	}
	low, high, proven := math.Inf(1), math.Inf(-1), 0
	for _, c := range all {
		if v := c.relative(); series.IsKnown(v) {
			low, high = min(low, v), max(high, v)
		}
		if c.sample.Verdict.isProven() {
			proven++
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
	return statement{all[0].line.Measure + " " + between, fmt.Sprintf("proven in %d of %d combinations", proven, len(all))}
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

// summarize writes the sentences that a comparison begins with: what differs, what limited the
// runs, what paid for it.
func (c *Comparison) summarize(groups []Group) {
	if len(groups) < 2 {
		return
	}
	baseline := c.Groups[0]
	var differs, price []string
	for i := 1; i < len(groups); i++ {
		var parts []statement
		for _, m := range byMeasure(c.changes(inDiffers, i)) {
			if m[0].line.isHeadline || slices.ContainsFunc(m, change.isNotable) {
				parts = append(parts, merged(m))
			}
		}
		if len(parts) == 0 {
			parts = []statement{{change: "the tools reported no values for both"}}
			if len(c.Varied) > 0 {
				parts = []statement{{change: "no combination of " + table.Join(c.Varied) + " is in both"}}
			}
		}
		differs = append(differs, fmt.Sprintf("%s against %s%s: %s", c.Groups[i], baseline, c.madeBy(i), joined(parts)))
		price = append(price, c.price(i, isShared(groups[0].Runs) || isShared(groups[i].Runs)))
	}
	price = append(price, c.paidNotes()...)
	c.Summary = append(c.Summary, strings.Join(differs, ". ")+".", c.limited(groups)+".", strings.Join(price, ". ")+".")
}

// mostFacts is how many facts the first sentence has that differ between the groups, longestFact
// bounds the value of each.
const mostFacts, longestFact = 3, 20

// madeBy is how group i was made in another way than the baseline, in parentheses: " (threads 8
// against 1)". What the groups are named by is left out.
func (c *Comparison) madeBy(i int) string {
	var facts []string
	for _, d := range c.Differs {
		is, was := d.Values[i], d.Values[0]
		if is != was && !strings.Contains(c.Groups[i], d.Name+"="+is) && len(facts) < mostFacts {
			facts = append(facts, fmt.Sprintf("%s %s against %s", d.Name, table.Clip(table.Dash(is), longestFact), table.Clip(table.Dash(was), longestFact)))
		}
	}
	if len(facts) == 0 {
		return ""
	}
	return " (" + strings.Join(facts, ", ") + ")"
}

// limited names what limited each group, and how far the pressure that servers put on each other
// differs.
func (c *Comparison) limited(groups []Group) string {
	var parts []string
	known := false
	first := map[string]bool{}
	for i := range groups {
		first[limitOfRuns(groups[i].Runs, 0).name] = true
	}
	for i := range groups {
		l := limitOfRuns(groups[i].Runs, 0)
		text := l.String()
		if second := limitOfRuns(groups[i].Runs, 1); len(first) == 1 && second.share >= leastSecond {
			text += " and " + second.String()
		}
		known = known || text != review.NotKnown
		switch text {
		case review.NotKnown:
			parts = append(parts, c.Groups[i]+" is not known")
		case review.NoLimit:
			parts = append(parts, c.Groups[i]+" by nothing, it did all that it was asked to")
		default:
			parts = append(parts, c.Groups[i]+" by "+text)
		}
	}
	text := "What limited them: " + strings.Join(parts, ", ")
	if !known {
		text = "What limited them is not known"
	}
	for i := 1; i < len(groups); i++ {
		for _, m := range byMeasure(c.changes(inLimits, i)) {
			if most := largestChange(m); most.isNotable() {
				text += fmt.Sprintf("; %s %s", most.line.Measure, most.values())
				if len(groups) > 2 {
					text += " in " + c.Groups[i]
				}
			}
		}
	}
	return text
}

// leastSecond is the share of the clients' time that a second limit must explain to be named, where
// the first one is the same in all groups.
const leastSecond = 0.15

// commonLimit is what limited most runs of a group, with the mean share of the clients' time that it
// explains.
type commonLimit struct {
	name     string
	share    float64
	runs, of int
}

func (l commonLimit) String() string {
	text := l.name
	if l.share > 0 {
		text += " (" + analysis.Percent(l.share) + " of the clients' time)"
	}
	if l.runs < l.of {
		text += fmt.Sprintf(" in %d of %d runs", l.runs, l.of)
	}
	return text
}

// limitOfRuns returns the limit with a rank that most runs have.
func limitOfRuns(runs []review.Row, rank int) commonLimit {
	var all []commonLimit
	for i := range runs {
		name, share := review.NotKnown, 0.0
		switch v := runs[i].Limits; {
		case v != nil && len(v.Findings) > rank:
			name, share = string(v.Findings[rank].Limit), v.Findings[rank].Share
		case rank == 0 && review.LimitText(v) != "":
			name = review.LimitText(v)
		}
		j := slices.IndexFunc(all, func(l commonLimit) bool { return l.name == name })
		if j < 0 {
			j, all = len(all), append(all, commonLimit{name: name, of: len(runs)})
		}
		all[j].share += share
		all[j].runs++
	}
	if len(all) == 0 {
		return commonLimit{name: review.NotKnown}
	}
	most := slices.MaxFunc(all, func(a, b commonLimit) int { return a.runs - b.runs })
	most.share /= float64(most.runs)
	return most
}

// foreignCPU is the share of the CPU used on a machine from which on other programs than
// the tool and the servers distort the CPU of a transaction.
const foreignCPU = 0.1

// isShared reports whether other programs used a part of the CPU of the runs' machines.
func isShared(runs []review.Row) bool {
	for i := range runs {
		for j := range runs[i].Machines {
			m := &runs[i].Machines[j]
			others := m.Value(host.OthersCPU)
			if others >= foreignCPU*(others+m.Value(host.ToolCPU)+m.Value(host.ServersCPU)) {
				return true
			}
		}
	}
	return false
}

// price names what became worse in group i where it is better, and what it got in return where it is
// worse.
func (c *Comparison) price(i int, shared bool) string {
	name := c.Groups[i]
	var worse, better, alike []string
	for _, m := range byMeasure(c.changes(inPrice, i)) {
		most := largestChange(m)
		if most.line.isCost && shared {
			continue
		}
		text := most.line.Measure + " " + most.values()
		if len(m) > 1 && len(most.line.Combination) > 0 {
			text += " at " + strings.Join(most.line.Combination, ", ")
		}
		switch {
		case !most.isNotable() || most.sample.N > 1 && most.line.Samples[0].N > 1 && !most.sample.Verdict.isProven():
			alike = append(alike, most.line.Measure)
		case most.difference() > 0:
			worse = append(worse, text)
		default:
			better = append(better, text)
		}
	}
	gain := c.gain(i)
	switch {
	case len(worse)+len(better)+len(alike) == 0 && shared:
		return "What paid for it is not known: other programs used the CPU, too, and no lag was recorded on both sides"
	case len(worse)+len(better)+len(alike) == 0:
		return "What paid for it is not known: neither lag nor CPU was recorded on both sides"
	case len(worse)+len(better) == 0:
		return fmt.Sprintf("No price was found in %s: %s hardly differ", name, table.Join(alike))
	case gain >= 0 && len(worse) > 0 && len(better) > 0:
		return fmt.Sprintf("%s pays with %s, and saves %s", name, table.Join(worse), table.Join(better))
	case gain >= 0 && len(worse) > 0:
		return fmt.Sprintf("%s pays with %s", name, table.Join(worse))
	case gain >= 0:
		return fmt.Sprintf("%s pays with nothing that was measured, and saves %s", name, table.Join(better))
	case len(worse) > 0 && len(better) > 0:
		return fmt.Sprintf("%s also takes %s; in return it saves %s", name, table.Join(worse), table.Join(better))
	case len(worse) > 0:
		return fmt.Sprintf("%s also takes %s, and gets nothing in return that was measured", name, table.Join(worse))
	}
	return fmt.Sprintf("In return %s saves %s", name, table.Join(better))
}

// gain is by how much the clients of group i are better off: by their throughput or, if that is
// alike, by their latency.
func (c *Comparison) gain(i int) float64 {
	for _, change := range c.changes(inDiffers, i) {
		v := change.relative()
		if !change.line.isHeadline || !(math.Abs(v) >= alikeChange) {
			continue
		}
		if !change.line.isThroughput {
			return -v
		}
		return v
	}
	return 0
}

// isFolded reports whether the line is 0 or alike in all groups, which is worth a name and no row.
// What the tool's users look at first always has one.
func (l *Line) isFolded() bool {
	if l.isHeadline {
		return false
	}
	low, high := math.Inf(1), math.Inf(-1)
	for i := range l.Samples {
		s := &l.Samples[i]
		if s.N == 0 || s.Verdict.isProven() {
			return false
		}
		low, high = min(low, s.Min), max(high, s.Max)
	}
	return high-low <= alikeChange*math.Abs(high)
}

// FoldedLine names the measures whose rows the tables leave out; empty if there are none.
func (c *Comparison) FoldedLine() string {
	var names []string
	for i := range c.Lines {
		if l := &c.Lines[i]; c.isFolded(l) && !slices.Contains(names, l.Measure) {
			names = append(names, l.Measure)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "0 or alike on all sides: " + strings.Join(names, ", ")
}

// isFolded reports whether all lines of a measure are folded.
func (c *Comparison) isFolded(l *Line) bool {
	for i := range c.Lines {
		if c.Lines[i].Measure == l.Measure && !c.Lines[i].isFolded() {
			return false
		}
	}
	return true
}

// sampledNotes names the servers and machines that were sampled too little to have values.
func sampledNotes(groups []Group) []string {
	var notes []string
	for _, g := range groups {
		for i := range g.Runs {
			r := &g.Runs[i]
			for j := range r.Servers {
				if s := &r.Servers[j]; !s.Coverage.Represents() {
					notes = append(notes, fmt.Sprintf("%s was sampled for %s of run %s: its values are left out", s.Target, s.Coverage, r.ID))
				}
			}
			for j := range r.Machines {
				if m := &r.Machines[j]; !m.Coverage.Represents() {
					notes = append(notes, fmt.Sprintf("%s was sampled for %s of run %s: its values are left out", m.Host, m.Coverage, r.ID))
				}
			}
		}
	}
	return notes
}
