package sweep

import (
	"fmt"
	"math"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// ranking is what the runs of a sweep allow to conclude about the order of its combinations.
type ranking struct {
	compare.Separation
	measured []Combination
	best     int
	// low and high are the shares of the CPU of a machine that other programs took, in the run with the least and in the
	// one with the most; unknown if that was not recorded.
	low, high float64
	machine   string
}

// disturbing is by how much the share of other programs must vary between the runs to disturb them.
const disturbing = 0.1

// newRanking compares the combinations; best is the place of the highest throughput.
func newRanking(measured []Combination, best int) *ranking {
	r := &ranking{measured: measured, best: best, low: series.Unknown(), high: series.Unknown()}
	groups := make([]compare.Spread, len(measured))
	for i := range measured {
		groups[i], _ = measured[i].tps()
		for j := range measured[i].rows {
			r.addMachine(&measured[i].rows[j])
		}
	}
	noise := 1.0
	if r.isDisturbed() { // at most, a run lost what other programs took
		noise = (1 - r.low) / math.Max(0.05, 1-r.high)
	}
	r.Separation = compare.Separate(groups, noise)
	return r
}

// addMachine adds what other programs took of the CPU in a run.
func (r *ranking) addMachine(row *review.Row) {
	share, machine := row.OtherPrograms()
	if series.IsKnown(share) && !(r.high >= share) {
		r.high, r.machine = share, machine
	}
	if series.IsKnown(share) && !(r.low <= share) {
		r.low = share
	}
}

func (r *ranking) isDisturbed() bool { return r.high-r.low >= disturbing }

// concludeNone completes the advice if no order stands out. among names what was compared.
func (r *ranking) concludeNone(a *Advice, among string) bool {
	if r.isDisturbed() {
		a.Disturbed = fmt.Sprintf("other programs took %s to %s of the CPU of %s",
			table.Percent.Format(r.low), table.Share(r.high), r.machine)
	}
	if r.HasOrder() {
		return false
	}
	var why, then []string
	if a.Disturbed != "" {
		why, then = append(why, a.Disturbed), append(then, "repeat on a quiet machine")
	}
	if r.IsRepeated() {
		why = append(why, fmt.Sprintf("repeats differ by a factor of %.2g", r.Factor))
		if n := r.Repeats(); n > 0 {
			then = append(then, fmt.Sprintf("--repeat %d", n))
		}
	} else {
		why, then = append(why, "there is one run each"), append(then, "--repeat 3")
	}
	text := fmt.Sprintf("no difference found among %s: %s", among, strings.Join(why, ", "))
	if len(then) > 0 {
		text += "; " + strings.Join(then, ", or ")
	}
	a.add("%s", text)
	return true
}

// alikeBefore returns the place of the first combination before another one that can't be distinguished from the best,
// -1 if there is none.
func (r *ranking) alikeBefore(place int) int {
	for i := range place {
		if !r.Apart(i, r.best) {
			return i
		}
	}
	return -1
}

// addAlike names the combinations that can't be distinguished from the best one. noun is for their number, if their
// names are numbers.
func (r *ranking) addAlike(a *Advice, name func(*Combination) string, noun string) {
	if !r.IsRepeated() {
		a.add("one run each: small differences may be noise (--repeat)")
	}
	var alike []string
	for i := range r.measured {
		if i != r.best && !r.Apart(i, r.best) {
			alike = append(alike, name(&r.measured[i]))
		}
	}
	if len(alike) == 0 {
		return
	}
	text := table.Join(alike)
	switch {
	case noun == "":
	case len(alike) == 1 && alike[0] == "1":
		text += " " + noun
	default:
		text += " " + noun + "s"
	}
	a.add("can't be distinguished from it: %s", text)
}
