package sweep

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/report"
)

// Condition is a --stop-when: a value of a run, and a bound.
type Condition struct {
	text    string
	measure string
	compare string
	bound   float64 // seconds for latencies
}

var conditionText = regexp.MustCompile(`^\s*(tps|qps|tpmc|errors|min|avg|max|p\d+(?:\.\d+)?)\s*(<=|>=|<|>)\s*([0-9.]+(?:[eE][+-]?\d+)?)\s*(us|µs|ms|s)?\s*$`)

// ParseCondition reads tps<1000, p95>100ms and the like.
func ParseCondition(text string) (*Condition, error) {
	m := conditionText.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("--stop-when %q is not like p95>100ms, tps<1000 or errors>0", text)
	}
	c := &Condition{text: strings.TrimSpace(text), measure: m[1], compare: m[2]}
	bound, err := strconv.ParseFloat(m[3], 64)
	if err != nil {
		return nil, fmt.Errorf("--stop-when %q: %s is not a number", text, m[3])
	}
	switch c.measure {
	case "tps", "qps", "tpmc", "errors":
		if m[4] != "" {
			return nil, fmt.Errorf("--stop-when %q: %s has no unit", text, c.measure)
		}
	default:
		if m[4] == "" {
			return nil, fmt.Errorf("--stop-when %q: a latency needs its unit, as %s%s%sms", text, c.measure, c.compare, m[3])
		}
	}
	c.bound = bound / map[string]float64{"": 1, "s": 1, "ms": 1e3, "us": 1e6, "µs": 1e6}[m[4]]
	return c, nil
}

// Met reports whether a run meets the condition and says with what value. What
// a run did not say meets nothing.
func (c *Condition) Met(r *report.Row) (string, bool) {
	var v float64
	var known bool
	value := func(p *float64) {
		if p != nil {
			v, known = *p, true
		}
	}
	unit, scale := "", 1.0
	switch c.measure {
	case "tps":
		value(r.TPS)
	case "qps":
		value(r.QPS)
	case "tpmc":
		value(r.TpmC)
	case "errors":
		value(r.Errors)
	default:
		v, known = r.Latency[c.measure]
		unit, scale = " ms", 1000
	}
	if !known {
		return "", false
	}
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
	return fmt.Sprintf("%s: %.2f%s", c.text, v*scale, unit), met
}

// Skip marks the steps that have no point any more once a step has met the
// condition: those with more threads and else the same settings. Without a set
// named threads the first set counts. It returns how many.
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

// scale is the set that is scaled up.
func (s *Sweep) scale() *Set {
	for i := range s.Sets {
		if s.Sets[i].Name == ThreadsSet {
			return &s.Sets[i]
		}
	}
	return &s.Sets[0]
}

// position of a value: numbers by their size, others by their order.
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
