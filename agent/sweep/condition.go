package sweep

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/benchwatch/benchwatch/agent/measure"
	"github.com/benchwatch/benchwatch/agent/report"
	"github.com/benchwatch/benchwatch/agent/table"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// Condition is a --stop-when: a measure of a run, and a bound.
type Condition struct {
	text    string
	measure string
	compare string
	bound   float64 // seconds for latencies
}

// measures returns the names that a condition may have beside statistics of
// latency: the tool's measures that tables show.
func measures() []string {
	var names []string
	for _, m := range measure.All(measure.Run) {
		if m.Short != "" && m != tool.HeadlineLatency {
			names = append(names, strings.ToLower(m.Short))
		}
	}
	return names
}

// conditionText is compiled late: tools declare their measures when the program
// starts.
var conditionText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(` + strings.Join(measures(), "|") + `|min|avg|max|p\d+(?:\.\d+)?)\s*(<=|>=|<|>)\s*([0-9.]+(?:[eE][+-]?\d+)?)\s*(us|µs|ms|s)?\s*$`)
})

// ParseCondition reads tps<1000, p95>100ms and the like.
func ParseCondition(text string) (*Condition, error) {
	m := conditionText().FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("--stop-when %q is not like p95>100ms, tps<1000 or errors>0", text)
	}
	c := &Condition{text: strings.TrimSpace(text), measure: m[1], compare: m[2]}
	bound, err := strconv.ParseFloat(m[3], 64)
	if err != nil {
		return nil, fmt.Errorf("--stop-when %q: %s is not a number", text, m[3])
	}
	switch isLatency := !slices.Contains(measures(), c.measure); {
	case !isLatency && m[4] != "":
		return nil, fmt.Errorf("--stop-when %q: %s has no unit", text, c.measure)
	case isLatency && m[4] == "":
		return nil, fmt.Errorf("--stop-when %q: a latency needs its unit, as %s%s%sms", text, c.measure, c.compare, m[3])
	}
	c.bound = bound / map[string]float64{"": 1, "s": 1, "ms": 1e3, "us": 1e6, "µs": 1e6}[m[4]]
	return c, nil
}

// Met reports whether a run meets the condition, and returns the value in words.
// Latencies are those of the headline's operation. An unknown value meets nothing;
// the words are then empty.
func (c *Condition) Met(r *report.Row) (string, bool) {
	name := c.measure
	if r.LatencyOperation != "" && !slices.Contains(measures(), name) {
		name = r.LatencyOperation + " " + name
	}
	all := report.Measures([]report.Row{*r})
	i := slices.IndexFunc(all, func(m report.Measure) bool { return !m.Server && strings.EqualFold(m.Name, name) })
	if i < 0 {
		return "", false
	}
	v := all[i].Value(r)
	met := false
	switch c.compare {
	case ">":
		met = v > c.bound
	case ">=":
		met = v >= c.bound
	case "<":
		met = v < c.bound
	case "<=":
		met = v <= c.bound
	}
	value := all[i].Unit.Format(v)
	if all[i].Unit.Sign == table.Milliseconds.Sign {
		value = all[i].Unit.Signed(v)
	}
	if r.LatencyOperation != "" && name != c.measure {
		value += " (" + r.LatencyOperation + ")"
	}
	return c.text + ": " + value, met
}

// Skip marks the steps that are pointless once a step has met the condition: those
// with more threads and otherwise the same values. Without a set named threads the
// first set counts. It returns how many they are.
func (s *Sweep) Skip(met *Step, reason string) int {
	scale := s.scale()
	reached := scale.position(met.Values[scale.Name])
	n := 0
next:
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.State != Pending || step.Warmup || scale.position(step.Values[scale.Name]) <= reached {
			continue
		}
		for name, v := range met.Values {
			if name != scale.Name && step.Values[name] != v {
				continue next
			}
		}
		step.State, step.Reason = Skipped, reason
		n++
	}
	return n
}

// Scale returns the name of the set that is scaled up: threads, else the first one.
func (s *Sweep) Scale() string { return s.scale().Name }

// scale returns the set that is scaled up.
func (s *Sweep) scale() *Set {
	for i := range s.Sets {
		if s.Sets[i].Name == ThreadsSet {
			return &s.Sets[i]
		}
	}
	return &s.Sets[0]
}

// position returns a value's place: numbers go by size, others by order.
func (s *Set) position(value string) float64 {
	at, numbers := 0.0, true
	for i, v := range s.Values {
		if _, err := strconv.ParseFloat(v, 64); err != nil {
			numbers = false
		}
		if v == value {
			at = float64(i)
		}
	}
	if numbers {
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			return v
		}
	}
	return at
}
