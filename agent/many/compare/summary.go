package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// summarize writes the sentences that introduce a comparison: what differs, what limited the runs, and what the
// difference cost.
func (c *Comparison) summarize(groups []Group) {
	if len(groups) < 2 {
		return
	}
	if text := sameRun(groups); text != "" {
		c.Summary = []string{text + "."}
		return
	}
	var differs, price []string
	for i := 1; i < len(groups); i++ {
		differs = append(differs, fmt.Sprintf("From %s to %s%s: %s",
			c.Groups[0], c.Groups[i], c.madeBy(i), joined(c.statements(groups, i))))
		if text := c.price(i, groups); text != "" {
			price = append(price, text)
		}
	}
	price = append(price, c.paidNotes()...)
	caution := cautionOf(groups)
	if caution != differentTransactions {
		c.Division = c.divided(groups)
	}
	for _, text := range []string{
		caution, strings.Join(differs, ". "), c.Division, c.limited(groups), c.stalled(groups), strings.Join(price, ". "),
	} {
		if text != "" {
			c.Summary = append(c.Summary, text+".")
		}
	}
}

// statements returns what differs in group i: the headlines, then the rest of what the tool reports, errors, and what
// would prove it.
func (c *Comparison) statements(groups []Group, i int) []statement {
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
	return append(headlines, others...)
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
		if before, s := &c.Lines[j].Samples[0], &c.Lines[j].Samples[i]; c.Lines[j].isHeadline && !c.Lines[j].isIncomparable && before.N > 0 && s.N > 0 {
			fewest, most = min(fewest, before.N, s.N), max(most, before.N, s.N)
		}
	}
	switch {
	case most == 0: // nothing to prove
	case most == 1:
		return "one run each: repeat them, at least 4 for each group"
	case fewest < 4:
		return "too few runs: make at least 4 for each group"
	}
	return ""
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
