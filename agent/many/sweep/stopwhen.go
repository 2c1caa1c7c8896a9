package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// plateau is the condition of --stop-when that the throughput no longer grows.
type plateau struct {
	text string
	// less is the least gain over the best throughput with fewer threads, as a ratio; steps is how many numbers of
	// threads in a row must gain less.
	less  float64
	steps int
}

var plateauText = regexp.MustCompile(`^gain\s*<\s*(\d+(?:\.\d+)?)\s*%(?:\s+for\s+([1-9]\d?)\s+steps?)?$`)

// CheckStop returns an error unless text is a condition for --stop-when: a bound of a measure, or
// `gain<5% for 2 steps`.
func CheckStop(text string) error {
	_, err := parsePlateau(text)
	return err
}

// parsePlateau returns nil for a condition of another kind that is valid.
func parsePlateau(text string) (*plateau, error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "gain") {
		_, err := review.ParseCondition(text)
		return nil, err
	}
	m := plateauText.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("%q is not like gain<5%% or gain<5%% for 2 steps", text)
	}
	percent, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return nil, fmt.Errorf("%q: %s is not a number", text, m[1])
	}
	steps, _ := strconv.Atoi(cmp.Or(m[2], "1")) // the expression matches numbers only
	return &plateau{text: text, less: percent / 100, steps: steps}, nil
}

// reached reports whether the throughput no longer grows at the largest number of threads of a step's
// combinations that was run, after all smaller ones. It returns a step with that number, and the gains.
func (p *plateau) reached(s *Sweep, of *Step) (last *Step, gains string) {
	scale := s.scale()
	byValue := map[float64][]*Step{}
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Warmup || !sameBut(scale.Name, step.Values, of.Values) {
			continue
		}
		at := scale.position(step.Values[scale.Name])
		byValue[at] = append(byValue[at], step)
	}
	best, row := 0.0, []string{}
	for _, at := range slices.Sorted(maps.Keys(byValue)) {
		var done []float64
		waiting := false
		for _, step := range byValue[at] {
			waiting = waiting || !step.Over()
			if step.State == Done && step.Throughput.Known {
				done = append(done, step.Throughput.Value)
			}
		}
		if len(done) == 0 {
			if waiting {
				break
			}
			continue // all have failed
		}
		median := series.Median(done)
		gain := median/best - 1
		if best > 0 && gain < p.less {
			row = append(row, fmt.Sprintf("%+.1f %% at %s", gain*100, Describe(s.Sets, byValue[at][0].Values)))
		} else {
			row = nil
		}
		best, last = max(best, median), byValue[at][0]
	}
	if len(row) < p.steps {
		return nil, ""
	}
	return last, strings.Join(row[len(row)-p.steps:], ", ")
}

// sameBut reports whether values are equal, except for one name.
func sameBut(name string, a, b map[string]string) bool {
	for k, v := range a {
		if k != name && b[k] != v {
			return false
		}
	}
	return true
}

func (r *Runner) stopWhen(step *Step, row *review.Row) {
	if r.Sweep.StopWhen == "" || step.Warmup {
		return
	}
	step.Throughput = row.Values.Of(tool.Throughput)
	p, err := parsePlateau(r.Sweep.StopWhen)
	if err != nil {
		r.Notice("  %v", err)
		return
	}
	if p != nil {
		if last, gains := p.reached(r.Sweep, step); last != nil {
			r.skip(last, fmt.Sprintf("%s: %s", p.text, gains), "")
		}
		return
	}
	c, err := review.ParseCondition(r.Sweep.StopWhen)
	if err != nil {
		r.Notice("  %v", err)
		return
	}
	switch value, met := c.Met(row); {
	case value == "":
		r.Notice("  --stop-when %s can't apply: the run has no such value", r.Sweep.StopWhen)
	case met:
		r.skip(step, fmt.Sprintf("%s: %s", c, value), " at "+Describe(r.Sweep.Sets, step.Values))
	}
}

// skip leaves out the steps with more threads than met, for a reason. where is added to the reason of each step.
func (r *Runner) skip(met *Step, reason, where string) {
	n := r.Sweep.Skip(met, reason+where)
	r.Notice("  %s: skipped %s with more %s", reason, table.Plural(n, "step"), r.Sweep.Scale())
}
