package sweep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Advice is about the number of threads, for one combination of the other sets.
type Advice struct {
	Others map[string]string `json:"others,omitempty"`
	// Best is absent if no order of the combinations stands out from the spread of their runs.
	Best *Point `json:"best,omitempty"`
	Knee *Point `json:"knee,omitempty"`
	USL  *USL   `json:"usl,omitempty"`
	// Disturbed is what disturbed the runs: other programs on the tool's machine.
	Disturbed string `json:"disturbed,omitempty"`
	// Lines are the same in words, the best first, with further notes.
	Lines []string `json:"lines"`
	// BestText is Best in words, the first of Lines without a heading.
	BestText string `json:"-"`
}

// advise gives advice for each combination of the other sets.
func (s *Sweep) advise(all []Combination, average compare.Average) []Advice {
	scale := s.scale()
	if scale.Name != ThreadsSet {
		return bestOf(all, s, average)
	}
	var others []Set
	for _, set := range s.Sets {
		if set.Name != scale.Name {
			others = append(others, set)
		}
	}
	var advices []Advice
	for _, fixed := range combinations(others) {
		var measured []Combination
		for _, x := range all {
			if _, ok := x.tps(); ok && Describe(others, x.Values) == Describe(others, fixed) {
				measured = append(measured, x)
			}
		}
		if len(measured) < 2 {
			continue
		}
		slices.SortFunc(measured, func(a, b Combination) int { return int(threadsOf(&a) - threadsOf(&b)) })
		a := advice(measured, average)
		if len(others) > 0 {
			a.Others = fixed
		}
		advices = append(advices, a)
	}
	return advices
}

// bestOf names the combination with the highest throughput of a sweep over anything but threads; nothing for a Seek,
// which has its own answer.
func bestOf(all []Combination, s *Sweep, average compare.Average) []Advice {
	var measured []Combination
	for _, x := range all {
		if _, ok := x.tps(); ok {
			measured = append(measured, x)
		}
	}
	if len(measured) < 2 || s.Seek != nil {
		return nil
	}
	tps := func(x *Combination) float64 { v, _ := x.tps(); return v.Average(average) }
	slices.SortStableFunc(measured, func(a, b Combination) int { return cmp.Compare(tps(&b), tps(&a)) })
	best, worst := &measured[0], &measured[len(measured)-1]
	name := func(x *Combination) string { return Describe(s.Sets, x.Values) }
	ranked := newRanking(measured, 0)
	var a Advice
	if ranked.concludeNone(&a, table.Plural(len(measured), "combination")) {
		return []Advice{a}
	}
	a.Best = &Point{Throughput: tps(best)}
	a.addBest("%s, %.2f tps%s", name(best), tps(best), best.headline())
	a.add("lowest: %s, %.2f tps%s", name(worst), tps(worst), worst.headline())
	ranked.addAlike(&a, name, "")
	return []Advice{a}
}

// advice finds the best number of threads and the knee, and fits the scalability law. measured is
// ordered by threads.
func advice(measured []Combination, average compare.Average) Advice {
	points := make([]Point, len(measured))
	for i := range measured {
		tps, _ := measured[i].tps()
		points[i] = Point{threadsOf(&measured[i]), tps.Average(average)}
	}
	top, knee := compare.BestAndKnee(len(points), func(i int) float64 { return points[i].Throughput })
	ranked := newRanking(measured, top)
	var a Advice
	if ranked.concludeNone(&a, fmt.Sprintf("%g to %s", points[0].Threads, threadsText(points[len(points)-1].Threads))) {
		return a
	}
	a.Best = &points[top]
	best := &measured[top]
	a.addBest("%s, %.2f tps%s", threadsText(a.Best.Threads), a.Best.Throughput, best.headline())
	ranked.addAlike(&a, func(x *Combination) string { return x.Values[ThreadsSet] }, "thread")
	switch p, smaller := points[knee], ranked.alikeBefore(knee); {
	case knee == len(points)-1:
		a.add("no knee: throughput still grows at the largest number of threads measured")
	case smaller >= 0:
		a.add("no knee found: %s can't be distinguished from the best", threadsText(points[smaller].Threads))
	case knee == top:
		a.Knee = &points[knee]
		a.add("knee: %s: every smaller number measured has less than %s of the best throughput, and larger ones bring no more",
			threadsText(p.Threads), table.Share(compare.KneeShare))
	default:
		a.Knee = &points[knee]
		a.add("knee: %s: %s of the best throughput with %s of its threads%s", threadsText(p.Threads),
			table.Share(p.Throughput/a.Best.Throughput), table.Share(p.Threads/a.Best.Threads), measured[knee].headline())
	}
	a.addLaw(points)
	return a
}

func threadsOf(x *Combination) float64 {
	n, _ := strconv.ParseFloat(x.Values[ThreadsSet], 64) // checked by ParseSet
	return n
}

func threadsText(n float64) string { return table.Plural(int(n), "thread") }

func (a *Advice) add(format string, args ...any) {
	a.Lines = append(a.Lines, fmt.Sprintf(format, args...))
}

func (a *Advice) addBest(format string, args ...any) {
	a.BestText = fmt.Sprintf(format, args...)
	a.add("best: %s", a.BestText)
}

// addLaw fits the Universal Scalability Law, and reports how reliable the fit is.
func (a *Advice) addLaw(points []Point) {
	u, err := Fit(points)
	if err != nil {
		a.add("no fit of the Universal Scalability Law: %v", err)
		return
	}
	a.USL = &u
	a.add("Universal Scalability Law: σ=%.4g (contention), κ=%.3g (crosstalk), γ=%.2f tps for one thread, R²=%.4f",
		u.Sigma, u.Kappa, u.Gamma, u.R2)
	if u.R2 < 0.9 {
		a.add("the law does not fit these points: its parameters mean nothing")
		return
	}
	largest := points[len(points)-1].Threads
	switch peak, ok := u.Peak(); {
	case u.Sigma >= 1 || ok && peak < 1.5:
		a.add("the model predicts that one thread is best: each further one costs more than it brings")
	case !ok && u.Sigma > 0:
		a.add("it has no peak: throughput grows towards %.0f tps", u.Gamma/u.Sigma)
	case !ok:
		a.add("it has no peak: throughput grows with the threads as far as was measured")
	case peak > 2*largest:
		a.add("its peak at %.0f threads lies far beyond what was measured: don't rely on it", peak)
	case peak > largest:
		a.add("it predicts a peak of %.0f tps at %.0f threads, beyond what was measured", u.At(peak), peak)
	default:
		a.add("it predicts a peak of %.0f tps at %.0f threads", u.At(peak), peak)
	}
	switch contention, crosstalk := u.Sigma*(largest-1), u.Kappa*largest*(largest-1); {
	case math.Max(contention, crosstalk) < 0.1:
		a.add("up to %g threads neither contention nor crosstalk limits it", largest)
	case contention >= crosstalk:
		a.add("at %g threads contention (queueing for what is serial) costs most", largest)
	default:
		a.add("at %g threads crosstalk (threads waiting for each other's data) costs most", largest)
	}
}

// Disturbed is what disturbed the runs: other programs on the tool's machine; empty if nothing did.
func (r *Result) Disturbed() string {
	for _, a := range r.Advice {
		if a.Disturbed != "" && a.Best != nil {
			return a.Disturbed
		}
	}
	return ""
}

// Conclusion names the best of all combinations, or says that there is none; empty without combinations to compare.
func (r *Result) Conclusion() string {
	if len(r.Advice) == 0 {
		return ""
	}
	tps := func(a *Advice) float64 {
		if a.Best == nil {
			return 0
		}
		return a.Best.Throughput
	}
	a := slices.MaxFunc(r.Advice, func(a, b Advice) int { return cmp.Compare(tps(&a), tps(&b)) })
	switch {
	case a.BestText != "":
	case len(r.Advice) > 1:
		return "no difference found in any of them"
	default:
		return a.Lines[0]
	}
	words := []string{a.BestText}
	if others := r.Describe(a.Others); others != "" {
		words = []string{others, a.BestText}
	}
	return "best: " + strings.Join(words, ", ")
}
