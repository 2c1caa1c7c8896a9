package sweep

import (
	"strconv"
)

// Skip marks the steps that are pointless after a step has met the condition: steps with more
// threads and otherwise equal values. If no set is named threads, the first set counts. It returns
// the number of marked steps.
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

// Scale returns the name of the set that is scaled up: threads, otherwise the first set.
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

// position returns the sort key of a value: the size of a number, the index of any other value.
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
