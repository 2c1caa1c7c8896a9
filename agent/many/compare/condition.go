package compare

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// Result is the result of a condition.
type Result string

const (
	// Held: the group is on the right side of the bound by more than noise.
	Held Result = "held"
	// Broken: the group is on the wrong side by more than noise.
	Broken Result = "broken"
	// Unclear: the runs can't decide.
	Unclear Result = "unclear"
)

// ConditionResult is a condition, applied to a group and a combination.
type ConditionResult struct {
	Limit       string   `json:"limit"`
	Group       string   `json:"group"`
	Combination []string `json:"combination,omitempty"`
	Result      Result   `json:"result"`
	// Reason has the values and the evidence, for people.
	Reason string `json:"reason"`
}

// Check applies conditions to every group except the first, combination by combination. A relative
// condition is broken if the group is worse, by more than noise, than a baseline reduced by the whole
// bound; it is held if the group is better than that. An absolute condition is broken if all runs of the
// group exceed it, and held if none does. It is unclear if the group lacks the measure.
func (c *Comparison) Check(conditions []*review.Condition, groups []Group) {
	for _, condition := range conditions {
		for i := 1; i < len(groups); i++ {
			for _, x := range c.Combinations {
				r := ConditionResult{Limit: condition.String(), Group: groups[i].Name, Combination: x.Values}
				if condition.Relative {
					r.Result, r.Reason = checkChange(condition, groups, i, x)
				} else {
					r.Result, r.Reason = checkValues(condition, &groups[i], x.Runs[i])
				}
				c.Conditions = append(c.Conditions, r)
			}
		}
	}
}

// Verdict of all conditions: broken if one is broken, else unclear if one is unclear.
func (c *Comparison) Verdict() Result {
	worst := Held
	for i := range c.Conditions {
		switch c.Conditions[i].Result {
		case Broken:
			return Broken
		case Unclear:
			worst = Unclear
		}
	}
	return worst
}

func checkValues(condition *review.Condition, g *Group, runs []int) (Result, string) {
	rows := make([]review.Row, len(runs))
	for i, j := range runs {
		rows[i] = g.Runs[j]
	}
	m, ok := condition.Measure(rows)
	if !ok {
		return Unclear, "the runs have no such value"
	}
	exceeding, known := 0, 0
	var values []float64
	for i := range rows {
		v := m.Value(&rows[i])
		if !series.IsKnown(v) {
			continue
		}
		known++
		values = append(values, v)
		if condition.Exceeds(v) {
			exceeding++
		}
	}
	text := m.Name + " " + NewSpread(values).Text(m.Unit, ByMedian)
	if sign := m.Unit.Sign; sign != "" {
		text += " " + sign
	}
	switch {
	case known == 0:
		return Unclear, "the runs have no such value"
	case exceeding == known:
		return Broken, text
	case exceeding == 0:
		return Held, text
	}
	return Unclear, fmt.Sprintf("%s: %d of %s exceed it", text, exceeding, table.Plural(known, "run"))
}

func checkChange(condition *review.Condition, groups []Group, group int, x combination) (Result, string) {
	var rows []review.Row
	for i := range groups {
		rows = append(rows, groups[i].Runs...)
	}
	m, ok := condition.Measure(rows)
	if !ok {
		return Unclear, "the runs have no such value"
	}
	l := newLine(&m, groups, x)
	if l.Samples[0].N == 0 || l.Samples[group].N == 0 {
		return Unclear, "the baseline or the group has no such value"
	}
	s := &l.Samples[group]
	if s.Verdict == Incomparable {
		return Unclear, s.Reason
	}
	if !s.Ratio.Known {
		return Unclear, fmt.Sprintf("%s was 0 in the baseline: a change of it has no percentage", l.Measure)
	}
	text := fmt.Sprintf("%s %s to %s %s, %+.1f %%", l.Measure, table.Digits.Format(l.Samples[0].Median),
		table.Digits.Format(s.Median), l.Unit, (s.Ratio.Value-1)*100)
	text = strings.ReplaceAll(text, " ,", ",")
	if shape := s.shapeText(); shape != "" {
		text += ": " + shape
	}
	result, proof := decide(condition, &l, group)
	return result, text + "; " + proof
}

// decide applies a relative condition to a group with a one-sided test. A value beyond the bound is
// never held, and one within it never broken.
func decide(condition *review.Condition, l *Line, group int) (Result, string) {
	s, e := &l.Samples[group], l.evidence(group, condition.Bound)
	isBeyond := condition.Exceeds(s.Ratio.Value)
	p, side, result, toLower := e.sides.Lower, "lower", Held, (condition.Compare[0] == '<') == isBeyond
	if !toLower {
		p, side = e.sides.Higher, "higher"
	}
	if isBeyond {
		result = Broken
	}
	level, runs := alpha, fmt.Sprintf("%d and %d runs", e.n[0], e.n[1])
	if s.N == 1 {
		level, runs = alphaWithin, fmt.Sprintf("within these two runs, %d and %d intervals", e.n[0], e.n[1])
	}
	switch {
	case e.isTested() && p <= level:
		return result, fmt.Sprintf("%s than the limit: %s, %s", side, runs, probability(p))
	case e.verdict == RunsApart && e.isLower == toLower:
		return result, side + " than the limit: within these two runs, which do not overlap"
	case isBeyond && condition.Compare[0] == '<' && s.stalls() && s.Shape.Slow[1].Lost-s.Shape.Slow[0].Lost >= 1-condition.Bound:
		return Broken, fmt.Sprintf("the %s of this run alone lose %s, the %[1]s of the baseline %[3]s",
			s.Shape.Kind, table.Share(s.Shape.Slow[1].Lost), table.Share(s.Shape.Slow[0].Lost))
	case e.verdict == Single:
		return Unclear, "one run each without enough intervals does not prove it: repeat the runs"
	case !e.isTested():
		return Unclear, e.reason + ": repeat the runs"
	case s.N > 1 && fewest(e.n[0], e.n[1]) > level:
		return Unclear, "too few runs, at least 4 for each group are needed"
	}
	return Unclear, fmt.Sprintf("the noise is too large to say (%s)", probability(p))
}

// JUnit writes the conditions as XML for continuous integration systems, a test case for each. An
// unclear one is skipped, or fails if strict.
func (c *Comparison) JUnit(w io.Writer, strict bool) error {
	type message struct {
		Message string `xml:"message,attr"`
	}
	type testCase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *message `xml:"failure,omitempty"`
		Skipped *message `xml:"skipped,omitempty"`
		Output  string   `xml:"system-out,omitempty"`
	}
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Cases    []testCase `xml:"testcase"`
	}{Name: "benchwatch compare", Tests: len(c.Conditions)}
	for i := range c.Conditions {
		r := &c.Conditions[i]
		t := testCase{Class: "benchwatch." + r.Group, Name: strings.Join(append([]string{r.Limit}, c.named(r.Combination)...), " ")}
		switch {
		case r.Result == Broken || r.Result == Unclear && strict:
			t.Failure = &message{r.Reason}
			suite.Failures++
		case r.Result == Unclear:
			t.Skipped = &message{r.Reason}
			suite.Skipped++
		default:
			t.Output = r.Reason
		}
		suite.Cases = append(suite.Cases, t)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// named returns the values of a combination with their names.
func (c *Comparison) named(values []string) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = c.Varied[i] + "=" + v
	}
	return all
}

// ConditionTable has a row for each condition.
func (c *Comparison) ConditionTable() *table.Table {
	t := table.New(table.Named("limit", "group", "result", "reason")...)
	for i := range c.Conditions {
		r := &c.Conditions[i]
		t.Add(table.Text(strings.Join(append([]string{r.Limit}, c.named(r.Combination)...), " ")),
			table.Text(r.Group), table.Text(string(r.Result)), table.Text(r.Reason))
	}
	return t
}
