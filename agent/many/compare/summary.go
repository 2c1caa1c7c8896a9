package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
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

// alikeChange is the relative change below which values are called alike, unless a difference is
// proven.
const alikeChange = 0.01

// statement is a part of a sentence about a measure, such as "p95 -34 % (55 → 36 ms)", and how far
// it is proven, such as "proven (p=0.029)". proof is empty if the change is too small.
type statement struct{ change, proof string }

func (c change) statement() statement {
	name := c.line.Measure
	switch {
	case !c.sample.Ratio.Known:
		return statement{name + " " + c.values(), c.sample.proof()}
	case c.isAlike():
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

// summarize writes the sentences that introduce a comparison: what differs, what limited the runs, and what the
// difference cost.
func (c *Comparison) summarize(groups []Group) {
	if len(groups) < 2 {
		return
	}
	var differs, price []string
	for i := 1; i < len(groups); i++ {
		var headlines, others []statement
		for _, m := range byMeasure(c.changes(inDiffers, i)) {
			switch {
			case m[0].line.isHeadline:
				headlines = append(headlines, merged(m))
			case !slices.ContainsFunc(m, change.isAlike): // the mean latency follows from the throughput
				others = append(others, statement{change: merged(m).change})
			}
		}
		if len(headlines)+len(others) == 0 {
			headlines = []statement{{change: "the tools reported no values for both"}}
			if len(c.Varied) > 0 {
				headlines = []statement{{change: "no combination of " + table.Join(c.Varied) + " is in both"}}
			}
		}
		for _, more := range []string{errorsOf(groups[0].Runs, groups[i].Runs), c.remedy(i)} {
			if more != "" {
				others = append(others, statement{change: more})
			}
		}
		differs = append(differs, fmt.Sprintf("From %s to %s%s: %s", c.Groups[0],
			c.Groups[i], c.madeBy(i), joined(append(headlines, others...))))
		if text := c.price(i, groups); text != "" {
			price = append(price, text)
		}
	}
	price = append(price, c.paidNotes()...)
	c.Summary = append(c.Summary, strings.Join(differs, ". ")+".")
	if text := c.divided(groups); text != "" {
		c.Summary = append(c.Summary, text)
	}
	c.Summary = append(c.Summary, c.limited(groups)+".")
	if text := c.stalled(groups); text != "" {
		c.Summary = append(c.Summary, text+".")
	}
	if len(price) > 0 {
		c.Summary = append(c.Summary, strings.Join(price, ". ")+".")
	}
}

// stalled describes which groups stalled, nothing if none did.
func (c *Comparison) stalled(groups []Group) string {
	never := review.StallsText(nil)
	var texts []string
	stalls := false
	for i := range groups {
		text := review.StallsText(groups[i].Runs)
		stalls = stalls || text != never
		texts = append(texts, c.Groups[i]+" "+text)
	}
	if !stalls {
		return ""
	}
	return strings.Join(texts, "; ")
}

// errorsOf describes the number of errors in the runs of two groups, the mean for several runs.
func errorsOf(before, after []review.Row) string {
	var text [2]string
	for i, runs := range [][]review.Row{before, after} {
		var values []float64
		for j := range runs {
			values = append(values, series.Number(runs[j].Values.Of(tool.Errors)))
		}
		s := NewSpread(values)
		if s.N == 0 {
			return ""
		}
		text[i] = table.Rounded(s.Mean)
	}
	switch {
	case text[0] == "0" && text[1] == "0":
		return "no errors"
	case text[0] == text[1]:
		return "errors " + text[0]
	}
	return "errors " + text[0] + " → " + text[1]
}

// remedy describes what would prove the differences of group i; empty if its runs suffice.
func (c *Comparison) remedy(i int) string {
	fewest, most := math.MaxInt, 0
	for j := range c.Lines {
		if before, s := &c.Lines[j].Samples[0], &c.Lines[j].Samples[i]; c.Lines[j].isHeadline && before.N > 0 && s.N > 0 {
			fewest, most = min(fewest, before.N, s.N), max(most, before.N, s.N)
		}
	}
	switch {
	case most == 1:
		return "one run each: repeat them, at least 4 for each group"
	case fewest < 4:
		return "too few runs: make at least 4 for each group"
	}
	return ""
}

// mostFacts is how many differing facts the first sentence lists; longestFact bounds their values.
const mostFacts, longestFact = 3, 20

// madeBy describes how group i was made differently from the baseline, in parentheses: " (threads 1
// → 8)". It omits facts in the groups' names.
func (c *Comparison) madeBy(i int) string {
	var facts []string
	for _, d := range c.Differs {
		is, was := d.Values[i], d.Values[0]
		if is != was && !slices.Contains(c.facts[i], rundir.Fact{Name: d.Name, Value: is}) && len(facts) < mostFacts {
			facts = append(facts, fmt.Sprintf("%s %s → %s", d.Name,
				table.Clip(table.Dash(was), longestFact), table.Clip(table.Dash(is), longestFact)))
		}
	}
	if len(facts) == 0 {
		return ""
	}
	return " (" + strings.Join(facts, ", ") + ")"
}

// limited describes what limited each group, which limits appeared or vanished, and how the
// servers' pressure on each other differs.
func (c *Comparison) limited(groups []Group) string {
	all := make([]groupLimits, len(groups))
	first, known, shares := map[cause.Limit]bool{}, false, 0
	for i := range groups {
		all[i] = limitsOf(groups[i].Runs)
		first[all[i].first] = true
		known = known || all[i].first != cause.Unknown
	}
	var parts []string
	named := map[cause.Limit]bool{}
	for i := range groups {
		text, l := c.Groups[i], &all[i]
		switch l.first {
		case cause.Unknown:
			text += " is not known"
		case cause.Unlimited:
			text += " by nothing: it reached the requested rate"
		default:
			text += " by " + l.text(l.first)
			shares++
		}
		if len(first) == 1 && l.second != "" {
			text += " and " + l.text(l.second)
			shares++
			named[l.second] = true
		}
		parts = append(parts, text)
	}
	text := "What limited them: " + strings.Join(parts, ", ")
	switch {
	case !known:
		text = "What limited them is not known"
	case shares > 0:
		text = "What limited them, in shares of the clients' time that may overlap: " + strings.Join(parts, ", ")
	}
	for i := 1; i < len(groups); i++ {
		in := ""
		if len(groups) > 2 {
			in = " in " + c.Groups[i]
		}
		for _, m := range byMeasure(c.changes(inLimits, i)) {
			if most := largestChange(m); most.isNotable() {
				text += fmt.Sprintf("; %s %s", most.line.Measure, most.values()) + in
				named[cause.FlowControl] = true
			}
		}
		for _, l := range cameOrVanished(&all[0], &all[i]) {
			if !named[l] && max(all[0].share[l], all[i].share[l]) >= limits.LeastShare { // another load may have the rest
				text += "; " + string(l) + " " + shareOf(&all[0], l) + " → " + shareOf(&all[i], l) + in
			}
		}
		for _, change := range []struct {
			verb          string
			before, after *groupLimits
		}{{"disappeared", &all[i], &all[0]}, {"appeared", &all[0], &all[i]}} {
			for _, name := range causesOnlyIn(change.after, change.before) {
				text += "; " + name + " " + change.verb + in
			}
		}
	}
	return text
}

// cameOrVanished returns the limits that most runs of one group and no run of the other have, in
// order. It omits the first limit of either group, which is named elsewhere, unless the other group
// has it too.
func cameOrVanished(before, after *groupLimits) []cause.Limit {
	var all []cause.Limit
	for _, pair := range [][2]*groupLimits{{before, after}, {after, before}} {
		is, other := pair[0], pair[1]
		for _, l := range is.order {
			if 2*is.runs[l] > is.of && other.of > 0 && other.runs[l] == 0 && l != is.first {
				all = append(all, l)
			}
		}
	}
	return all
}

// causesOnlyIn returns the causes that most runs of one group and no run of the other have, by name, with what they
// concern.
func causesOnlyIn(is, other *groupLimits) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(is.causes)) {
		if 2*is.causes[name].runs > is.of && other.of > 0 && other.causes[name].runs == 0 {
			if of := is.causes[name].of; of != "" {
				name += " (" + table.Clip(of, longestFact) + ")"
			}
			all = append(all, name)
		}
	}
	return all
}

func shareOf(g *groupLimits, l cause.Limit) string {
	if g.runs[l] == 0 {
		return "below " + table.Share(limits.LeastShare)
	}
	return table.Share(g.share[l])
}

// groupLimits are the limits that the runs of a group have.
type groupLimits struct {
	// first limited most runs; second is the next one in most of them; empty without one.
	first, second cause.Limit
	title         map[cause.Limit]string
	share         map[cause.Limit]float64 // mean of the runs that have it
	runs          map[cause.Limit]int
	order         []cause.Limit
	ranked        [2]map[cause.Limit]int // number of runs in which it is first, or second
	of            int                    // runs with a verdict
	causes        map[string]groupCause
}

// groupCause is in how many runs of a group a cause was found, and what it concerned in the first of them.
type groupCause struct {
	runs int
	of   string
}

// addCauses counts each cause of a run once.
func (g *groupLimits) addCauses(v *limits.Verdict) {
	found := map[string]string{}
	for i := range v.Findings {
		for _, c := range v.Findings[i].Causes {
			if _, known := found[c.Cause]; !known {
				found[c.Cause] = c.Of
			}
		}
	}
	for name, of := range found {
		one := g.causes[name]
		one.runs, one.of = one.runs+1, cmp.Or(one.of, of)
		g.causes[name] = one
	}
}

// text formats a limit with its share, and the number of runs in which it has its rank.
func (g *groupLimits) text(l cause.Limit) string {
	text := g.title[l]
	if g.share[l] > 0 {
		text += " (" + table.Share(g.share[l]) + ")"
	}
	rank := 0
	if l == g.second {
		rank = 1
	}
	if n := g.ranked[rank][l]; n < g.of {
		text += fmt.Sprintf(" in %d of %d runs", n, g.of)
	}
	return text
}

func limitsOf(runs []review.Row) groupLimits {
	g := groupLimits{first: cause.Unknown, title: map[cause.Limit]string{},
		share: map[cause.Limit]float64{}, runs: map[cause.Limit]int{}, of: len(runs), causes: map[string]groupCause{}}
	g.ranked[0], g.ranked[1] = map[cause.Limit]int{}, map[cause.Limit]int{}
	for i := range runs {
		v := runs[i].Limits
		g.ranked[0][v.First()]++
		if v == nil {
			continue
		}
		g.addCauses(v)
		for j := range v.Findings {
			f := &v.Findings[j]
			if g.runs[f.Limit] == 0 {
				g.order, g.title[f.Limit] = append(g.order, f.Limit), f.Title()
			} else if g.title[f.Limit] != f.Title() {
				g.title[f.Limit] = string(f.Limit)
			}
			g.runs[f.Limit]++
			g.share[f.Limit] += f.Share
			if j == 1 {
				g.ranked[1][f.Limit]++
			}
		}
	}
	for l := range g.share {
		g.share[l] /= float64(g.runs[l])
	}
	for _, l := range append([]cause.Limit{cause.Unknown, cause.Unlimited}, g.order...) {
		if g.ranked[0][l] > g.ranked[0][g.first] || g.ranked[0][g.first] == 0 {
			g.first = l
		}
		if l != g.first && g.ranked[1][l] > 0 && g.ranked[1][l] > g.ranked[1][g.second] {
			g.second = l
		}
	}
	if g.second == g.first {
		g.second = ""
	}
	return g
}

// foreignCPU is the share of a machine's CPU above which programs other than the tool and the servers distort the CPU
// time of a transaction.
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

// price describes what became worse in group i if it is better overall, and what it gained if it is
// worse.
func (c *Comparison) price(i int, groups []Group) string {
	name, shared := c.Groups[i], isShared(groups[0].Runs) || isShared(groups[i].Runs)
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
	case len(worse)+len(better)+len(alike) == 0 && gain <= 0:
		return "" // no gain to pay for
	case len(worse)+len(better)+len(alike) == 0:
		var missing []string
		if shared {
			missing = append(missing, "other programs used the CPU, too")
		} else {
			missing = append(missing, "the CPU of a transaction was not recorded")
		}
		if hasReplicas(groups[0].Runs) || hasReplicas(groups[i].Runs) {
			missing = append(missing, "lag was not recorded")
		}
		return "What paid for it is not known: " + table.Join(missing)
	case len(worse)+len(better) == 0:
		return fmt.Sprintf("No price was found in %s: %s hardly differ", name, table.Join(alike))
	case gain >= 0 && len(worse) > 0 && len(better) > 0:
		return fmt.Sprintf("%s pays with %s, and saves %s", name, table.Join(worse), table.Join(better))
	case gain >= 0 && len(worse) > 0:
		return fmt.Sprintf("%s pays with %s", name, table.Join(worse))
	case gain >= 0:
		return fmt.Sprintf("%s saves %s, at no measured cost", name, table.Join(better))
	case len(worse) > 0 && len(better) > 0:
		return fmt.Sprintf("%s also takes %s; in return it saves %s", name, table.Join(worse), table.Join(better))
	case len(worse) > 0:
		return fmt.Sprintf("%s also takes %s, and gets nothing in return that was measured", name, table.Join(worse))
	}
	return fmt.Sprintf("In return %s saves %s", name, table.Join(better))
}

// hasReplicas reports whether runs had several servers.
func hasReplicas(runs []review.Row) bool {
	return slices.ContainsFunc(runs, func(r review.Row) bool { return len(r.Servers) > 1 })
}

// gain is the improvement for the clients of group i: in throughput or, if that is alike, in latency.
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

// isFolded reports whether the line is 0 or alike in all groups, so that it is only named. The most important measures
// of the tool always have a row.
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
