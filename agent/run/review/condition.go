package review

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Condition is a bound of a measure of a run.
type Condition struct {
	text    string
	name    string
	Compare string
	// Bound is in the base unit. For a relative condition, it is the ratio to the baseline.
	Bound    float64
	Relative bool
	unit     string // as it was written
}

var conditionName = regexp.MustCompile(`^[a-z][a-z0-9_.]*$`)

var conditionText = regexp.MustCompile(`^\s*([a-z][a-z0-9_.]*)\s*(<=|>=|<|>)\s*([+-]?)([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?\d+)?)\s*(us|µs|ms|s|%|B|KiB|MiB|GiB)?\s*$`)

// ParseCondition reads tps<1000, p95>100ms, lag>10s, errors>1% and the like.
func ParseCondition(text string) (*Condition, error) {
	c, err := parse(text)
	if err == nil {
		err = c.checkUnit()
	}
	if err == nil && c.Relative {
		return nil, fmt.Errorf("%q: a change relative to a baseline can only be used to compare runs", c.text)
	}
	return c, err
}

// String returns the condition as it was written.
func (c *Condition) String() string { return c.text }

// Scope returns what the condition is about: the tool, servers or machines.
func (c *Condition) Scope() measure.Scope {
	for _, m := range conditionMeasures() {
		if m.Condition == c.name {
			return cmp.Or(m.scope, measure.Run)
		}
	}
	return measure.Run // a statistic of the latency
}

// Name returns the name of the measure.
func (c *Condition) Name() string { return c.name }

// IsStatistic reports whether it is a statistic of the latency.
func (c *Condition) IsStatistic() bool { return isStatistic(c.name) }

// AtEnd reports whether the value is known only at the end of a run.
func (c *Condition) AtEnd() bool {
	return slices.ContainsFunc(conditionMeasures(), func(m Measure) bool { return m.Condition == c.name && m.atEnd })
}

// IntervalRow returns what the tool printed of one interval as a row, with the interval's share
// of failures.
func IntervalRow(r *tool.Report, countsFailures bool) Row {
	row := Row{}
	row.setValues(r)
	failures, rate := r.Value(tool.ErrorRate), r.Rate(tool.Transaction)
	if !row.Values.Of(tool.Errors).Known && failures.Known && r.IntervalSeconds.Known {
		row.Values.Set(tool.Errors, series.Some(failures.Value*r.IntervalSeconds.Value))
	}
	row.FailedShare = tool.FailedShare(series.Number(failures), series.Number(rate), countsFailures)
	return row
}

// NewestRow returns the newest values of servers or machines as a row, nil if there are none. Servers and machines that
// did not answer have no values.
func NewestRow(scope measure.Scope, rows []*record.ServerRows) *Row {
	row := &Row{}
	for _, s := range rows {
		last := len(s.Elapsed) - 1
		if last < s.Begin {
			continue
		}
		var found []Value
		for _, m := range measure.All(scope) {
			if m.Summary == measure.Increase || m.Summary == measure.Cost {
				continue
			}
			if values := m.Values(s); values != nil && series.IsKnown(values[last]) {
				found = append(found, Value{Measure: m, Value: values[last]})
			}
		}
		if scope == measure.Host {
			row.Machines = append(row.Machines, Machine{Machine: rundir.Machine{Host: s.Target}, Values: found})
		} else {
			row.Servers = append(row.Servers, Server{Target: s.Target, Values: found})
		}
	}
	if len(row.Servers)+len(row.Machines) == 0 {
		return nil
	}
	return row
}

// ParseName returns a condition that only names a measure.
func ParseName(name string) (*Condition, error) {
	c := &Condition{text: name, name: name}
	if _, known := c.wanted(); !known {
		return nil, c.unknown()
	}
	return c, nil
}

// ParseRelative reads a condition that may be relative to a baseline: tps<-5% is met by
// a throughput that is more than 5 % lower, p99>+10% by a latency more than 10 %
// higher. A relative bound has a sign.
func ParseRelative(text string) (*Condition, error) {
	c, err := parse(text)
	if err != nil {
		return nil, err
	}
	if unit, known := c.wanted(); known && unit != "%" && c.unit == "%" && !c.Relative && c.name != "errors" {
		sign, side := "+", "above"
		if c.Compare[0] == '<' {
			sign, side = "-", "below"
		}
		percent := strconv.FormatFloat(c.Bound*100, 'g', 6, 64)
		return nil, fmt.Errorf("%q: a change needs a sign: %s%s%s%s%% (%s %% %s the baseline)",
			c.text, c.name, c.Compare, sign, percent, percent, side)
	}
	return c, c.checkUnit()
}

// parse reads a condition without looking at its measure.
func parse(text string) (*Condition, error) {
	m := conditionText.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("%q is not like p95>100ms, tps<1000, lag>10s or errors>0", text)
	}
	c := &Condition{text: strings.TrimSpace(text), name: m[1], Compare: m[2], unit: m[5]}
	bound, err := strconv.ParseFloat(m[4], 64)
	if err != nil {
		return nil, fmt.Errorf("%q: %s is not a number", c.text, m[4])
	}
	switch {
	case m[3] != "" && c.unit != "%":
		return nil, fmt.Errorf("%q: a change needs %%, as %s%s%s5%%", c.text, c.name, c.Compare, m[3])
	case m[3] == "-" && c.Compare[0] != '<', m[3] == "+" && c.Compare[0] != '>':
		return nil, fmt.Errorf("%q: write < with a decrease and > with an increase", c.text)
	case m[3] == "-" && bound >= 100:
		return nil, fmt.Errorf("%q: nothing decreases by 100 %% or more", c.text)
	}
	c.Relative = m[3] != ""
	c.Bound = bound / map[string]float64{"": 1, "s": 1, "ms": 1e3, "us": 1e6, "µs": 1e6, "%": 100,
		"B": 1, "KiB": 1.0 / (1 << 10), "MiB": 1.0 / (1 << 20), "GiB": 1.0 / (1 << 30)}[c.unit]
	if c.Relative {
		if m[3] == "-" {
			c.Bound = -c.Bound
		}
		c.Bound++
	}
	return c, nil
}

// checkUnit refuses names that no measure has, and units that do not fit the measure.
func (c *Condition) checkUnit() error {
	if c.Relative {
		if _, known := c.wanted(); !known {
			return c.unknown()
		}
		return nil
	}
	isTime := slices.Contains([]string{"s", "ms", "us", "µs"}, c.unit)
	isSize := slices.Contains([]string{"B", "KiB", "MiB", "GiB"}, c.unit)
	switch wanted, known := c.wanted(); {
	case !known:
		return c.unknown()
	case (wanted == "s" || wanted == "ms") && !isTime:
		return fmt.Errorf("%q: %s needs its unit, as %s%s5%s", c.text, c.name, c.name, c.Compare, wanted)
	case wanted == "%" && c.unit != "%":
		return fmt.Errorf("%q: %s is a share, as %s%s40%%", c.text, c.name, c.name, c.Compare)
	case wanted == "B" && !isSize:
		return fmt.Errorf("%q: %s needs its unit, as %s%s512MiB", c.text, c.name, c.name, c.Compare)
	case wanted == "" && c.unit != "" && (c.name != "errors" || c.unit != "%"):
		return fmt.Errorf("%q: %s has no unit", c.text, c.name)
	}
	return nil
}

func (c *Condition) unknown() error {
	var names []string
	for _, m := range slices.Concat(ToolMeasures(nil), ServerMeasures(nil)) {
		if m.Condition != "" {
			names = append(names, m.Condition)
		}
	}
	return fmt.Errorf(
		"%q: there is no measure %s: use %s, a statistic of the latency (avg, p95, p99 …) or the id of another "+
			"measure of servers or machines, such as threads_running or cpu_busy", c.text, c.name, strings.Join(names, ", "))
}

// wanted returns the unit that the measure needs, one of time as it is usual for the measure: s, ms, %, B or none.
func (c *Condition) wanted() (unit string, known bool) {
	if isStatistic(c.name) {
		return "ms", true
	}
	for _, m := range conditionMeasures() {
		if m.Condition != c.name {
			continue
		}
		switch m.Unit.Sign {
		case table.Seconds.Sign:
			return "s", true
		case table.Milliseconds.Sign:
			return "ms", true
		case table.Percent.Sign:
			return "%", true
		case table.Mebibytes.Sign:
			return "B", true
		}
		return "", true
	}
	return "", false
}

var statistic = regexp.MustCompile(`^(min|avg|max|p\d+(\.\d+)?)$`)

func isStatistic(name string) bool { return statistic.MatchString(name) }

// conditionMeasures are the measures that a condition can name besides statistics of the latency.
func conditionMeasures() []Measure {
	all := slices.Concat(ToolMeasures(nil), ServerMeasures(nil), largestMeasures())
	return slices.DeleteFunc(all, func(m Measure) bool { return m.Condition == "" })
}

// Measure returns the measure of these runs that the condition names. For a latency, it is the statistic of the
// headline's operation.
func (c *Condition) Measure(rows []Row) (Measure, bool) {
	if c.name == "errors" && c.unit == "%" && !c.Relative {
		return failedShare, true
	}
	all := Measures(rows)
	i := slices.IndexFunc(all, func(m Measure) bool { return m.Condition == c.name })
	if i < 0 && isStatistic(c.name) { // of groups
		i = slices.IndexFunc(all, func(m Measure) bool { return m.Condition == tool.Worst(c.name) })
	}
	if i >= 0 {
		return all[i], true
	}
	for _, m := range largestMeasures() {
		if m.Condition == c.name {
			return m, slices.ContainsFunc(rows, func(r Row) bool { return series.IsKnown(m.Value(&r)) })
		}
	}
	return Measure{}, false
}

// failedShare is the share of failed transactions, counting each attempt.
var failedShare = Measure{Name: "errors", Unit: table.Percent, Value: func(r *Row) float64 { return series.Number(r.FailedShare) }}

// Exceeds reports whether a value is beyond the bound.
func (c *Condition) Exceeds(v float64) bool {
	switch c.Compare {
	case ">":
		return v > c.Bound
	case ">=":
		return v >= c.Bound
	case "<":
		return v < c.Bound
	}
	return v <= c.Bound
}

// Met reports whether a run meets the condition, and returns the value as text. An unknown value meets
// nothing; the text is then empty.
func (c *Condition) Met(r *Row) (string, bool) {
	m, ok := c.Measure([]Row{*r})
	if !ok {
		return "", false
	}
	v := m.Value(r)
	if !series.IsKnown(v) {
		return "", false
	}
	value := m.Unit.Signed(v)
	if !m.Server && !isStatistic(c.name) && c.unit == "" { // a rate goes without saying
		value = m.Unit.Format(v)
	}
	switch {
	case !isStatistic(c.name):
	case m.Condition != c.name:
		value += " (" + m.Name + ")"
	case r.LatencyOperation != "":
		value += " (" + r.LatencyOperation + ")"
	}
	return value, c.Exceeds(v)
}
