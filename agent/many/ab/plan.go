// Package ab decides which of two or more arms is faster, from short runs that alternate: the order
// of the blocks, the interval of the ratio, and when it is narrow enough.
//
// A [Plan] has the arms. It is the course of a [sweep.Sweep] whose steps are blocks, so it is run, stored and resumed
// like a sweep. [Plan.Compare] estimates the ratios from the blocks so far.
package ab

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/review"
)

// Control is the name of the arm that repeats the first arm.
const Control = "control"

// BlocksOfRound is the number of blocks in a round: two of the first arm and two of another.
const BlocksOfRound = 4

// Arm is one of the things that are compared.
type Arm struct {
	// Name is a, b, c …
	Name string `json:"name"`
	// Values replace {name} in the command and the hooks.
	Values map[string]string `json:"values,omitempty"`
}

// Title returns the arm with its values: "a (host=db1)".
func (a *Arm) Title() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(a.Values)) {
		words = append(words, name+"="+a.Values[name])
	}
	if len(words) == 0 {
		return a.Name
	}
	return a.Name + " (" + strings.Join(words, " ") + ")"
}

// Plan is what is compared, and when it is decided.
type Plan struct {
	// Arms are compared with the first arm.
	Arms []Arm `json:"arms"`
	// Seed decides the order of the blocks.
	Seed uint64 `json:"seed"`
	// Measure is the name of the measure, as in conditions.
	Measure string `json:"measure"`
	// Limit is the difference that matters, as a share.
	Limit float64 `json:"limit"`
	// FailIf are conditions, as [review.ParseRelative] reads them.
	FailIf []string `json:"fail_if,omitempty"`
	// NoControl: the first arm is not compared with itself.
	NoControl bool `json:"no_control,omitempty"`
	// CutSeconds at the beginning of each block do not count.
	CutSeconds float64 `json:"cut_seconds"`
	// MaxSeconds limits the time of all blocks together.
	MaxSeconds float64 `json:"max_seconds"`
	// Toggle is set if the arms are values of a setting that is switched within one run.
	Toggle *Toggle `json:"toggle,omitempty"`
}

// alpha is the probability that the interval of any comparison, at any time, misses the true ratio.
const alpha = 0.05

// Check returns an error for a plan that can't be carried out.
func (p *Plan) Check() error {
	switch {
	case len(p.Arms) < 2:
		return errors.New("two arms are needed: --a and --b")
	case !(p.Limit > 0) || p.Limit >= 1:
		return fmt.Errorf("--limit %g %%: a difference between 0 and 100 %% is expected", 100*p.Limit)
	case p.CutSeconds < 0:
		return fmt.Errorf("--cut %gs is negative", p.CutSeconds)
	case p.MaxSeconds <= 0:
		return errors.New("--max-time: a time above 0 is expected")
	}
	if _, err := review.ParseName(p.Measure); err != nil {
		return fmt.Errorf("--measure %w", err)
	}
	for _, text := range p.FailIf {
		if _, err := review.ParseRelative(text); err != nil {
			return fmt.Errorf("--fail-if %w", err)
		}
	}
	return nil
}

// Conditions returns the conditions of FailIf; Check has read them before.
func (p *Plan) Conditions() []*review.Condition {
	var all []*review.Condition
	for _, text := range p.FailIf {
		if c, err := review.ParseRelative(text); err == nil {
			all = append(all, c)
		}
	}
	return all
}

// measures returns the names of the measures that the plan needs: its own, then the measures of
// relative conditions.
func (p *Plan) measures() []string {
	names := []string{p.Measure}
	for _, c := range p.Conditions() {
		if c.Relative && !slices.Contains(names, c.Name()) {
			names = append(names, c.Name())
		}
	}
	return names
}

// cycle returns the arms that are compared in the rounds of a cycle: each arm twice, and the control once.
func (p *Plan) cycle() []string {
	var arms []string
	for _, b := range p.Arms[1:] {
		arms = append(arms, b.Name, b.Name)
	}
	if !p.NoControl {
		arms = append(arms, Control)
	}
	return arms
}

// ControlShare returns the share of the rounds that compare the first arm with itself.
func (p *Plan) ControlShare() float64 {
	if p.NoControl {
		return 0
	}
	return 1 / float64(len(p.cycle()))
}

// Round returns the arms of the blocks of a round, counted from 0. The seed shuffles each cycle, and decides for each
// round alone which of the two arms begins. Before each round, its first arm has a block that does not count: both
// blocks of each pair then follow a block of the same arm, so what an arm leaves behind affects both alike. The block
// also runs where the arm would continue, since the time of a round must not depend on the order: a neighbour with a
// period would otherwise always meet the same arm.
func (p *Plan) Round(n int) [BlocksOfRound]string {
	cycle := p.cycle()
	random := rand.New(rand.NewPCG(p.Seed, uint64(n/len(cycle))))
	random.Shuffle(len(cycle), func(i, j int) { cycle[i], cycle[j] = cycle[j], cycle[i] })
	x, y := p.Arms[0].Name, cycle[n%len(cycle)]
	isReversed := false
	for range n%len(cycle) + 1 {
		isReversed = random.IntN(2) == 1
	}
	if isReversed {
		x, y = y, x
	}
	return [BlocksOfRound]string{x, y, y, x}
}

// alias returns the first arm's name for the control.
func (p *Plan) alias(arm string) string {
	if arm == Control {
		return p.Arms[0].Name
	}
	return arm
}

// Block is what is known about one block.
type Block struct {
	Arm string
	// Round counts from 0. A block that leads in has none, -1.
	Round int
	// Run is the id of its run; empty in a toggled run.
	Run   string
	Began time.Time
	// Measured are values by the name of the measure; none if the block has no result.
	Measured map[string]float64
	// Problem is why a block that has ended has no result.
	Problem string
	// Seconds is how long it took, with hooks and drain; 0 if it has not ended.
	Seconds float64
}

func (b *Block) isOver() bool { return b.Measured != nil || b.Problem != "" }
