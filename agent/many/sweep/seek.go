package sweep

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Seek makes a sweep the search for the highest value of its only set at which conditions
// hold. Its steps are made one after the other, by what the steps before showed, so
// that a resumed search decides as one that was not interrupted.
type Seek struct {
	// From and To bound the values, whole numbers; To is 0 if there is no bound.
	From int `json:"from"`
	To   int `json:"to,omitempty"`
	// Precision is the ratio between the highest value within the conditions and the
	// lowest one beyond them, minus 1, at which the search ends.
	Precision float64 `json:"precision"`
	// SubjectTo are the conditions.
	SubjectTo []string `json:"subject_to"`
}

// Judgement of a step of a Seek.
type Judgement string

const (
	// Within: all conditions held.
	Within Judgement = "within"
	// Beyond: one of them did not, the run failed, or it did not reach the rate that it
	// was to generate.
	Beyond Judgement = "beyond"
)

// ParseSubjectTo reads conditions separated by commas, such as
// p99 < 20ms, lag < 5s, errors < 0.1%.
func ParseSubjectTo(text string) ([]string, error) {
	var all []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if _, err := review.ParseCondition(part); err != nil {
			return nil, err
		}
		all = append(all, part)
	}
	if len(all) == 0 {
		return nil, errors.New("no condition is given")
	}
	return all, nil
}

// Check returns an error for bounds that make no search.
func (k *Seek) Check() error {
	switch {
	case k.From < 1:
		return fmt.Errorf("--from %d: at least 1", k.From)
	case k.To != 0 && k.To <= k.From:
		return fmt.Errorf("--to %d is not above --from %d", k.To, k.From)
	case !(k.Precision > 0) || k.Precision > 1:
		return fmt.Errorf("--precision %g: a share between 0 and 1 is expected", k.Precision)
	}
	return nil
}

// judge sets what a run's values show. The error is for a value that is unknown, with
// which no search could continue. requested is the rate that the tool was to generate, 0 if
// it had none.
func (k *Seek) judge(step *Step, row *review.Row, requested int) error {
	var words []string
	step.Judgement = Within
	for _, text := range k.SubjectTo {
		c, err := review.ParseCondition(text)
		if err != nil {
			return err
		}
		value, met := c.Met(row)
		if value == "" {
			return fmt.Errorf("%s: the run has no such value", text)
		}
		if !met {
			step.Judgement = Beyond
		}
		words = append(words, value)
	}
	if tps := row.Values.Of(tool.Throughput); requested > 0 && tps.Known {
		if made, _ := row.MadeRate(float64(requested)); !made {
			step.Judgement = Beyond
			words = append(words, fmt.Sprintf("%.2f of %d tps reached", tps.Value, requested))
		}
	}
	step.Reason = strings.Join(words, ", ")
	return nil
}

// verdict of a value: what more than half of its trials show; empty while that is open.
func (s *Sweep) verdict(value int) Judgement {
	within, beyond := 0, 0
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Values[s.Sets[0].Name] != strconv.Itoa(value) || !step.Over() {
			continue
		}
		if step.State == Done && step.Judgement == Within {
			within++
		} else {
			beyond++
		}
	}
	switch {
	case 2*within > s.Repeat:
		return Within
	case beyond > 0 && 2*beyond >= s.Repeat:
		return Beyond
	}
	return ""
}

// bracket returns the highest value that is within the conditions and the lowest above it
// that is beyond them; 0 if there is none. undecided is a value with trials whose
// verdict is open.
func (s *Sweep) bracket() (within, beyond, undecided int) {
	for _, text := range s.Sets[0].Values {
		v, err := strconv.Atoi(text)
		if err != nil {
			continue
		}
		switch s.verdict(v) {
		case Within:
			within = max(within, v)
		case Beyond:
			if beyond == 0 || v < beyond {
				beyond = v
			}
		default:
			undecided = v
		}
	}
	if beyond != 0 && within > beyond { // noise: a higher value was within
		within = 0
		for _, text := range s.Sets[0].Values {
			if v, _ := strconv.Atoi(text); v < beyond && s.verdict(v) == Within {
				within = max(within, v)
			}
		}
	}
	return within, beyond, undecided
}

// Extend adds the next step of a Seek; false if the search is over. First the value
// doubles until one is beyond the conditions, then the gap is halved.
func (s *Sweep) Extend() bool {
	k := s.Seek
	if k == nil || len(s.Steps) >= maxSteps {
		return false
	}
	within, beyond, next := s.bracket()
	switch {
	case next != 0:
	case within == 0 && beyond == 0:
		next = k.From
	case within == 0:
		return false // not even From
	case beyond == 0:
		if next = 2 * within; k.To != 0 {
			next = min(next, k.To)
		}
		if next == within || next > 1<<30 {
			return false
		}
	case beyond-within <= 1 || float64(beyond) <= float64(within)*(1+k.Precision):
		return false
	default:
		// The middle of the ratio: rates span orders of magnitude.
		next = int(math.Round(math.Sqrt(float64(within) * float64(beyond))))
		next = min(max(next, within+1), beyond-1)
	}
	text := strconv.Itoa(next)
	set := &s.Sets[0]
	if !slices.Contains(set.Values, text) {
		set.Values = append(set.Values, text)
	}
	repeat := 1
	for i := range s.Steps {
		if s.Steps[i].Values[set.Name] == text {
			repeat++
		}
	}
	s.Steps = append(s.Steps, Step{Number: len(s.Steps) + 1, Values: map[string]string{set.Name: text}, Repeat: repeat, State: Pending})
	return true
}

// Found is the result of a Seek.
type Found struct {
	Name string `json:"name"`
	// Value is the highest one within the conditions, 0 if not even the first was.
	Value int `json:"value"`
	// Beyond is the lowest one above it that is not; 0 if none was tried.
	Beyond    int      `json:"beyond,omitempty"`
	SubjectTo []string `json:"subject_to"`
	// Lines are the same as text.
	Lines []string `json:"lines"`
}

// found sums a Seek up.
func (s *Sweep) found() *Found {
	if s.Seek == nil {
		return nil
	}
	within, beyond, open := s.bracket()
	f := &Found{Name: s.Sets[0].Name, Value: within, Beyond: beyond, SubjectTo: s.Seek.SubjectTo}
	reason := func(value int, of Judgement) string {
		for i := range s.Steps {
			step := &s.Steps[i]
			if step.Values[f.Name] == strconv.Itoa(value) && (step.Judgement == of || of == Beyond && step.State == Failed) {
				return table.Clip(step.Reason, 200)
			}
		}
		return ""
	}
	add := func(format string, args ...any) { f.Lines = append(f.Lines, fmt.Sprintf(format, args...)) }
	limits := strings.Join(s.Seek.SubjectTo, ", ")
	if within == 0 {
		add("no %s of at least %d is within %s", f.Name, s.Seek.From, limits)
	} else {
		add("highest %s within %s: %d (%s)", f.Name, limits, within, reason(within, Within))
	}
	switch {
	case beyond != 0:
		add("%s %d is beyond it: %s", f.Name, beyond, reason(beyond, Beyond))
	case within != 0 && within == s.Seek.To:
		add("that is the largest value allowed by --to: the limit is higher")
	}
	if open != 0 || s.Next() != nil {
		add("the search was interrupted")
	}
	if s.Repeat == 1 {
		add("one run for each value: near the limit chance decides (--repeat 3)")
	}
	return f
}

// sortValues orders the values that were tried by size.
func sortValues(values []string) []string {
	values = slices.Clone(values)
	slices.SortFunc(values, rundir.CompareValues)
	return values
}
