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

// Seek turns a sweep into a search for the highest value of its only set at which conditions hold.
// Each step follows from the results of earlier steps, so a resumed search makes the same decisions
// as an uninterrupted one.
type Seek struct {
	// From and To are the bounds, whole numbers; To is 0 if there is no upper bound.
	From int `json:"from"`
	To   int `json:"to,omitempty"`
	// Precision ends the search: the ratio between the lowest value beyond the conditions and the
	// highest one within them, minus 1.
	Precision float64 `json:"precision"`
	// SubjectTo are the conditions.
	SubjectTo []string `json:"subject_to"`
}

// Judgement is the result of a step of a Seek.
type Judgement string

const (
	// Within: all conditions held.
	Within Judgement = "within"
	// Beyond: a condition did not hold, the run failed, or the tool did not reach its requested
	// rate.
	Beyond Judgement = "beyond"
)

// ParseSubjectTo reads conditions separated by commas, such as p99 < 20ms, lag < 5s, errors < 0.1%.
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

// Check returns an error for bounds that allow no search.
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

// setJudgement sets the judgement of a step from its run. It returns an error if a required value is
// unknown, since the search could not continue. requested is the tool's requested rate, 0 if it has
// none.
func (k *Seek) setJudgement(step *Step, row *review.Row, requested int) error {
	var words []string
	step.Judgement = Within
	for _, one := range review.Requirements(k.SubjectTo, row) {
		if !one.IsMet.Known {
			return fmt.Errorf("%s: the run has no such value", one.Condition)
		}
		if !one.IsMet.Value {
			step.Judgement = Beyond
		}
		words = append(words, one.Condition+": "+one.Value)
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

// verdict returns the judgement of a value by more than half of its trials; empty while it is open.
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

// bracket returns the highest value within the conditions and the lowest value above it that is
// beyond them; 0 if there is no such value. undecided is a value with trials and an open verdict.
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

// Extend adds the next step of a Seek; false if the search is over. First the value doubles until
// one is beyond the conditions, then the gap is halved.
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
		return false // even From is beyond
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
		// The geometric mean, since rates span orders of magnitude.
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
	s.Steps = append(s.Steps, Step{
		Number: len(s.Steps) + 1, Values: map[string]string{set.Name: text}, Repeat: repeat, State: Pending,
	})
	return true
}

// Found is the result of a Seek.
type Found struct {
	Name string `json:"name"`
	// Value is the highest value within the conditions, 0 if even the first one was beyond.
	Value int `json:"value"`
	// Beyond is the lowest value above Value that is beyond the conditions; 0 if there is none.
	Beyond    int      `json:"beyond,omitempty"`
	SubjectTo []string `json:"subject_to"`
	// Lines are the same in words.
	Lines []string `json:"lines"`
}

// seekResult sums up a Seek.
func (s *Sweep) seekResult() *Found {
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

// sortValues sorts the tried values by size.
func sortValues(values []string) []string {
	values = slices.Clone(values)
	slices.SortFunc(values, rundir.CompareValues)
	return values
}

// seeking is the course of a Seek.
type seeking struct{ rate func(*Step) int }

func (seeking) Announce(s *Sweep) string {
	return fmt.Sprintf("seek %s: the highest %s with %s", s.ID, s.Sets[0].Name, strings.Join(s.Seek.SubjectTo, ", "))
}

func (c seeking) Judge(s *Sweep, step *Step, row *review.Row) []string {
	if row == nil {
		return nil
	}
	if err := s.Seek.setJudgement(step, row, c.rate(step)); err != nil {
		step.State, step.Reason = Failed, err.Error()
		return []string{err.Error()}
	}
	return []string{fmt.Sprintf("%s: %s", step.Judgement, step.Reason)}
}

func (seeking) Extend(s *Sweep) bool { return s.Extend() }
