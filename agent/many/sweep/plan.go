// Package sweep runs one benchmark with many combinations of parameters: it plans the steps, runs
// them one after the other, decides when to stop, and finds the best number of threads.
//
// A [Set] has a name and values. [Plan] makes a [Step] of each combination. A [Sweep] is the state
// on disk with which a sweep survives a crash. A [Runner] runs the steps, and [Sweep.Results] sums
// up the runs.
package sweep

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Set is a name and the values that replace {name}, in the order of the steps.
type Set struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// ThreadsSet is the set that scalability refers to.
const ThreadsSet = "threads"

// maxSteps limits a sweep. More steps are a typing error.
const maxSteps = 10_000

var setName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// ParseSet reads name=value,value…. A number of threads must be a whole number of at least 1.
func ParseSet(text string) (Set, error) {
	name, list, ok := strings.Cut(text, "=")
	if !ok || !setName.MatchString(name) {
		return Set{}, fmt.Errorf("--set %s is not name=value,value…", text)
	}
	if strings.TrimSpace(list) == "" {
		return Set{}, fmt.Errorf("--set %s has no values", name)
	}
	s := Set{Name: name}
	for v := range strings.SplitSeq(list, ",") {
		v = strings.TrimSpace(v)
		switch {
		case v == "":
			return Set{}, fmt.Errorf("--set %s has an empty value: %s", name, list)
		case slices.Contains(s.Values, v):
			return Set{}, fmt.Errorf("--set %s has %s twice: repeat steps with --repeat", name, v)
		}
		if n, err := strconv.Atoi(v); name == ThreadsSet && (err != nil || n < 1) {
			return Set{}, fmt.Errorf("--set threads: %s is not a number of threads", v)
		}
		s.Values = append(s.Values, v)
	}
	return s, nil
}

// placeholder matches {name} in a command.
var placeholder = regexp.MustCompile(`\{([a-zA-Z_][a-zA-Z0-9_]*)\}`)

// Check returns an error if sets and texts do not match: a set that no text uses, as a placeholder or as the
// variable of hooks, or a placeholder without a set.
func Check(sets []Set, texts []string) error {
	if len(sets) == 0 {
		return errors.New("nothing is varied: --set is missing")
	}
	for i, s := range sets {
		if slices.ContainsFunc(sets[:i], func(o Set) bool { return o.Name == s.Name }) {
			return fmt.Errorf("--set %s is given twice: put all values into one", s.Name)
		}
	}
	all := strings.Join(texts, "\n")
	isUsed := func(s Set) bool {
		return strings.Contains(all, "{"+s.Name+"}") || regexp.MustCompile(`\$\{?`+variable(s.Name)+`\b`).MatchString(all)
	}
	if !placeholder.MatchString(all) && !slices.ContainsFunc(sets, isUsed) {
		return fmt.Errorf("the command has no placeholder: put {%s} where its values belong", sets[0].Name)
	}
	for _, s := range sets {
		if !isUsed(s) {
			return fmt.Errorf("--set %s is used nowhere: put {%s} into the command or a hook", s.Name, s.Name)
		}
	}
	for _, m := range placeholder.FindAllStringSubmatch(all, -1) {
		if !slices.ContainsFunc(sets, func(s Set) bool { return s.Name == m[1] }) {
			return fmt.Errorf("the command has {%s}, but there is no --set %s", m[1], m[1])
		}
	}
	return nil
}

// Fill replaces the placeholders of a text by values.
func Fill(text string, values map[string]string) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		if v, ok := values[p[1:len(p)-1]]; ok {
			return v
		}
		return p
	})
}

// Order of the steps.
type Order string

const (
	Given  Order = "given"
	Random Order = "random"
)

// Plan returns the steps: all combinations once, then all again for each repeat, so that slow
// changes of the machine do not affect a single combination. In random order each round is shuffled
// separately.
func Plan(sets []Set, repeat int, order Order, warmup bool) ([]Step, error) {
	n := repeat
	for _, s := range sets {
		if n *= len(s.Values); n > maxSteps {
			return nil, fmt.Errorf("more than %d steps: fewer values or repeats", maxSteps)
		}
	}
	var steps []Step
	add := func(values map[string]string, repeat int) {
		steps = append(steps, Step{Number: len(steps) + 1, Values: values, Repeat: repeat, State: Pending})
	}
	all := combinations(sets)
	if warmup {
		add(all[0], 0)
		steps[0].Warmup = true
	}
	for i := range repeat {
		round := slices.Clone(all)
		if order == Random {
			rand.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		}
		for _, values := range round {
			add(values, i+1)
		}
	}
	return steps, nil
}

// combinations returns all combinations of the sets' values. The last set changes fastest.
func combinations(sets []Set) []map[string]string {
	all := []map[string]string{{}}
	for _, s := range sets {
		var next []map[string]string
		for _, before := range all {
			for _, v := range s.Values {
				values := map[string]string{s.Name: v}
				maps.Copy(values, before)
				next = append(next, values)
			}
		}
		all = next
	}
	return all
}

// Describe returns a step's values in the order of the sets.
func Describe(sets []Set, values map[string]string) string {
	words := make([]string, len(sets))
	for i, s := range sets {
		words[i] = s.Name + "=" + values[s.Name]
	}
	return strings.Join(words, " ")
}

// Skip marks the steps that are pointless after a step has met the condition: steps with more
// threads and otherwise equal values. If no set is named threads, the first set counts. It returns
// the number of marked steps.
func (s *Sweep) Skip(met *Step, reason string) int {
	scale := s.scale()
	reached := scale.position(met.Values[scale.Name])
	n := 0
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.State != Pending || step.Warmup || scale.position(step.Values[scale.Name]) <= reached {
			continue
		}
		if !sameBut(scale.Name, met.Values, step.Values) {
			continue
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
