package sweep

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/report"
)

// Result is what a sweep came to.
type Result struct {
	ID       string    `json:"id"`
	Settings []Setting `json:"settings"`
	Advice   []Advice  `json:"advice,omitempty"`
	// Failed are steps without a result.
	Failed []Step `json:"failed,omitempty"`

	sets []Set
}

// Setting is one combination of values with the runs made at it. Numbers are
// medians over them; what no run said is nil.
type Setting struct {
	Values map[string]string `json:"values"`
	Runs   []string          `json:"runs"`
	// State is done, or skipped or pending if there is no run.
	State State `json:"state"`

	TPS     *Spread            `json:"transactions_per_second,omitempty"`
	QPS     *Spread            `json:"queries_per_second,omitempty"`
	Latency map[string]float64 `json:"latency_seconds,omitempty"`
	Errors  *float64           `json:"errors,omitempty"`
	// Servers are the medians of what was seen of the servers.
	Servers []Seen `json:"servers,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// Seen is a measure of the servers, in base units: seconds, ratio, per_second.
type Seen struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`

	column string  // its head in tables
	shown  float64 // in the unit of tables
}

// Spread is the median, the smallest and the largest of repeats.
type Spread struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Advice is what the results say of the number of threads, for one combination
// of the other sets.
type Advice struct {
	Others map[string]string `json:"others,omitempty"`
	Best   Point             `json:"best"`
	Knee   *Point            `json:"knee,omitempty"`
	USL    *USL              `json:"usl,omitempty"`
	// Lines say it in words.
	Lines []string `json:"lines"`
}

// Results sums the sweep up. rows are its runs by id.
func (s *Sweep) Results(rows map[string]report.Row) Result {
	r := Result{ID: s.ID, sets: s.Sets}
	for _, values := range combinations(s.Sets) {
		r.Settings = append(r.Settings, s.setting(values, rows))
	}
	for _, step := range s.Steps {
		if step.State == Failed {
			r.Failed = append(r.Failed, step)
		}
	}
	r.Advice = s.advise(r.Settings)
	return r
}

func (s *Sweep) setting(values map[string]string, rows map[string]report.Row) Setting {
	out := Setting{Values: values, State: Pending}
	var tps, qps, errors []float64
	var done []report.Row
	latency := map[string][]float64{}
	collect := func(list *[]float64, v *float64) {
		if v != nil {
			*list = append(*list, *v)
		}
	}
	for _, step := range s.Steps {
		if step.Warmup || Describe(s.Sets, step.Values) != Describe(s.Sets, values) {
			continue
		}
		if step.State != Done {
			if out.State != Done && step.Over() {
				out.State, out.Reason = step.State, step.Reason
			}
			continue
		}
		out.State, out.Reason = Done, ""
		row, ok := rows[step.RunID]
		if !ok {
			continue // removed since
		}
		out.Runs = append(out.Runs, step.RunID)
		done = append(done, row)
		collect(&tps, row.TPS)
		collect(&qps, row.QPS)
		collect(&errors, row.Errors)
		for stat, v := range row.Latency {
			latency[stat] = append(latency[stat], v)
		}
	}
	out.TPS, out.QPS = spread(tps), spread(qps)
	if len(latency) > 0 {
		out.Latency = map[string]float64{}
	}
	for stat, all := range latency {
		out.Latency[stat] = spread(all).Median
	}
	if e := spread(errors); e != nil {
		out.Errors = &e.Median
	}
	out.Servers = seen(done)
	return out
}

func seen(rows []report.Row) []Seen {
	var all []Seen
	for _, m := range report.Measures(rows) {
		if !m.Server {
			continue
		}
		var values []float64
		for i := range rows {
			if v, ok := m.Value(&rows[i]); ok {
				values = append(values, v)
			}
		}
		middle := spread(values).Median
		base, unit := m.Base(middle)
		all = append(all, Seen{Name: m.Name, Unit: unit, Value: base, column: m.Name + " " + m.Unit, shown: middle})
	}
	return all
}

func spread(values []float64) *Spread {
	n := len(values)
	if n == 0 {
		return nil
	}
	values = slices.Sorted(slices.Values(values))
	middle := values[n/2]
	if n%2 == 0 {
		middle = (values[n/2-1] + values[n/2]) / 2
	}
	return &Spread{N: n, Median: middle, Min: values[0], Max: values[n-1]}
}

// advise looks at each combination of the other sets by itself.
func (s *Sweep) advise(settings []Setting) []Advice {
	scale := s.scale()
	if scale.Name != ThreadsSet {
		return nil
	}
	var others []Set
	for _, set := range s.Sets {
		if set.Name != scale.Name {
			others = append(others, set)
		}
	}
	var all []Advice
	for _, fixed := range combinations(others) {
		var measured []Setting
		for _, x := range settings {
			if x.TPS != nil && Describe(others, x.Values) == Describe(others, fixed) {
				measured = append(measured, x)
			}
		}
		if len(measured) < 2 {
			continue
		}
		slices.SortFunc(measured, func(a, b Setting) int { return int(threadsOf(&a) - threadsOf(&b)) })
		a := advice(measured)
		if len(others) > 0 {
			a.Others = fixed
		}
		all = append(all, a)
	}
	return all
}

func threadsOf(x *Setting) float64 {
	n, _ := strconv.ParseFloat(x.Values[ThreadsSet], 64) // ParseSet has checked it
	return n
}

// kneeShare is how much of the best throughput the knee reaches.
const kneeShare = 0.95

// advice says which number of threads is best, where the knee is and what the
// law says. measured are in the order of threads.
func advice(measured []Setting) Advice {
	points := make([]Point, len(measured))
	for i := range measured {
		points[i] = Point{threadsOf(&measured[i]), measured[i].TPS.Median}
	}
	a := Advice{Best: most(points)}
	say := func(format string, args ...any) { a.Lines = append(a.Lines, fmt.Sprintf(format, args...)) }
	best := &measured[slices.Index(points, a.Best)]
	say("best: %g threads, %.2f tps%s", a.Best.Threads, a.Best.Throughput, percentileText(best))
	a.noise(measured, best, say)
	for i, p := range points {
		if p.Throughput < kneeShare*a.Best.Throughput {
			continue
		}
		a.Knee = &points[i]
		switch {
		case p == a.Best && a.Best == points[len(points)-1]:
			a.Knee = nil
			say("no knee: throughput still grows at the largest number of threads measured")
		case p == a.Best:
			say("knee: %g threads: every smaller number measured has less than %.0f %% of the best throughput, and larger ones bring no more", p.Threads, kneeShare*100)
		default:
			say("knee: %g threads: %.1f %% of the best throughput with %.0f %% of its threads%s", p.Threads,
				p.Throughput/a.Best.Throughput*100, p.Threads/a.Best.Threads*100, percentileText(&measured[i]))
		}
		break
	}
	a.law(points, say)
	return a
}

// noise says which other numbers of threads can't be told from the best.
func (a *Advice) noise(measured []Setting, best *Setting, say func(string, ...any)) {
	if best.TPS.N < 2 {
		say("one run each: small differences between neighbours may be noise (--repeat)")
		return
	}
	var same []string
	for i := range measured {
		x := &measured[i]
		if x != best && x.TPS.N > 1 && x.TPS.Max >= best.TPS.Min {
			same = append(same, x.Values[ThreadsSet])
		}
	}
	if len(same) > 0 {
		say("its runs overlap with those at %s threads", strings.Join(same, ", "))
	}
}

// law fits the Universal Scalability Law and says how far to believe it.
func (a *Advice) law(points []Point, say func(string, ...any)) {
	u, err := Fit(points)
	if err != nil {
		say("no fit of the Universal Scalability Law: %v", err)
		return
	}
	a.USL = &u
	say("Universal Scalability Law: σ=%.4g (contention), κ=%.3g (crosstalk), γ=%.2f tps for one thread, R²=%.4f", u.Sigma, u.Kappa, u.Gamma, u.R2)
	if u.R2 < 0.9 {
		say("the law does not fit these points: don't read its parameters")
		return
	}
	largest := points[len(points)-1].Threads
	switch peak, ok := u.Peak(); {
	case u.Sigma >= 1 || ok && peak < 1.5:
		say("by it one thread is best: each further one costs more than it brings")
	case !ok && u.Sigma > 0:
		say("it has no peak: throughput grows towards %.0f tps", u.Gamma/u.Sigma)
	case !ok:
		say("it has no peak: throughput grows with the threads as far as was measured")
	case peak > 2*largest:
		say("its peak at %.0f threads lies far beyond what was measured: don't rely on it", peak)
	case peak > largest:
		say("it predicts a peak of %.0f tps at %.0f threads, beyond what was measured", u.At(peak), peak)
	default:
		say("it predicts a peak of %.0f tps at %.0f threads", u.At(peak), peak)
	}
	switch contention, crosstalk := u.Sigma*(largest-1), u.Kappa*largest*(largest-1); {
	case math.Max(contention, crosstalk) < 0.1:
		say("up to %g threads neither contention nor crosstalk limits it", largest)
	case contention >= crosstalk:
		say("at %g threads contention (queueing for what is serial) costs most", largest)
	default:
		say("at %g threads crosstalk (threads waiting for each other's data) costs most", largest)
	}
}

func percentileText(x *Setting) string {
	row := report.Row{Latency: x.Latency}
	stat, v, ok := row.Percentile()
	if !ok {
		return ""
	}
	return fmt.Sprintf(", %s %.2f ms", stat, v*1000)
}
