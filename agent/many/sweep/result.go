package sweep

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// Result is the result of a sweep.
type Result struct {
	ID string `json:"id"`
	// Average is what represents repeated runs: their median or, with --mean, their mean.
	Average      compare.Average `json:"average"`
	Combinations []Combination   `json:"combinations"`
	Advice       []Advice        `json:"advice,omitempty"`
	// Found is the result of a search.
	Found *Found `json:"found,omitempty"`
	// Failed are the steps without a result.
	Failed []Step `json:"failed,omitempty"`
	// Runs are the runs in the result. Scale is the set that is scaled up.
	Runs  []review.Row `json:"-"`
	Scale string       `json:"-"`
	// Of is the sweep itself.
	Of *Sweep `json:"-"`

	sets     []Set
	measures []review.Measure
}

// Combination is a combination of values with its runs. Its values are the measures of
// [review.Measures] summed up over the runs, and for the servers a list of medians or means.
type Combination struct {
	Values map[string]string `json:"values"`
	Runs   []string          `json:"runs"`
	// State is done, or skipped or pending if there is no run.
	State State `json:"state"`
	// Latency are medians or means in seconds by statistic, for LatencyOperation or, if that is
	// empty, for transactions.
	Latency          map[string]float64 `json:"latency_seconds,omitempty"`
	LatencyOperation string             `json:"latency_operation,omitempty"`

	// Servers are medians or means of measures of the servers.
	Servers []Observed `json:"servers,omitempty"`
	Reason  string     `json:"reason,omitempty"`

	rows []review.Row
	// spreads are the spreads of the tables' measures by field, in base units.
	spreads map[string]compare.Spread
	average compare.Average
}

// MarshalJSON returns the combination with a field for each measure of the tool: the spread of a
// rate, the median or mean of any other measure.
func (c Combination) MarshalJSON() ([]byte, error) {
	type plain Combination
	var fields []table.Field
	for _, m := range review.ToolMeasures(nil) {
		spread, ok := c.spreads[m.Field]
		switch {
		case !ok:
		case m.MoreIsBetter:
			fields = append(fields, table.Field{Name: m.Field, Value: spread})
		default:
			fields = append(fields, table.Field{Name: m.Field, Value: spread.Average(c.average)})
		}
	}
	return table.MarshalFields(plain(c), fields)
}

// Observed is the median or mean of a measure of the servers, in its base unit.
type Observed struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
}

// tps returns the throughput; false if it is unknown.
func (c *Combination) tps() (compare.Spread, bool) {
	s, ok := c.spreads[tool.Throughput.Field()]
	return s, ok
}

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

// Results sums up the sweep. rows are its runs by id.
func (s *Sweep) Results(rows map[string]review.Row, average compare.Average) Result {
	r := Result{ID: s.ID, Average: average, sets: s.Sets, Scale: s.Scale(), Found: s.seekResult(), Of: s}
	sets := s.Sets
	if s.Seek != nil {
		sets = []Set{{Name: s.Sets[0].Name, Values: sortValues(s.Sets[0].Values)}}
	}
	var all []review.Row
	for _, step := range s.Steps {
		if row, ok := rows[step.RunID]; ok && !step.Warmup {
			all = append(all, row)
		}
		if step.State == Failed {
			r.Failed = append(r.Failed, step)
		}
	}
	r.measures, r.Runs = review.Measures(all), all
	for _, values := range combinations(sets) {
		r.Combinations = append(r.Combinations, s.combination(values, rows, r.measures, average))
	}
	r.Advice = s.advise(r.Combinations, average)
	return r
}

func (s *Sweep) combination(values map[string]string, rows map[string]review.Row,
	measures []review.Measure, average compare.Average) Combination {
	out := Combination{Values: values, Runs: []string{}, State: Pending, average: average, spreads: map[string]compare.Spread{}}
	var done []review.Row
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
		if row, ok := rows[step.RunID]; ok { // otherwise it was removed
			out.Runs = append(out.Runs, step.RunID)
			done = append(done, row)
		}
	}
	out.rows = done
	for i := range done {
		for stat := range done[i].Latency {
			if out.Latency == nil {
				out.Latency = map[string]float64{}
			}
			out.Latency[stat], out.LatencyOperation = 0, done[i].LatencyOperation
		}
	}
	for _, m := range measures {
		spread := spreadOf(&m, done)
		if spread.N == 0 {
			continue
		}
		out.spreads[m.Field] = spread
		if m.Server {
			out.Servers = append(out.Servers, Observed{m.Name, string(m.Base), spread.Average(average)})
		}
	}
	for stat := range out.Latency {
		out.Latency[stat] = out.spreads[review.LatencyField(out.LatencyOperation, stat)].Average(average)
	}
	return out
}

// spreadOf sums up a measure over runs, in its base unit.
func spreadOf(m *review.Measure, rows []review.Row) compare.Spread {
	values := make([]float64, len(rows))
	for i := range rows {
		values[i] = m.Value(&rows[i])
	}
	return compare.NewSpread(values)
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
	o := newOrder(measured, 0)
	var a Advice
	if o.isNone(&a, table.Plural(len(measured), "combination")) {
		return []Advice{a}
	}
	a.Best = &Point{Throughput: tps(best)}
	a.addBest("%s, %.2f tps%s", name(best), tps(best), best.headline())
	a.add("lowest: %s, %.2f tps%s", name(worst), tps(worst), worst.headline())
	o.addAlike(&a, name, "")
	return []Advice{a}
}

func threadsOf(x *Combination) float64 {
	n, _ := strconv.ParseFloat(x.Values[ThreadsSet], 64) // checked by ParseSet
	return n
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
	o := newOrder(measured, top)
	var a Advice
	if o.isNone(&a, fmt.Sprintf("%g to %s", points[0].Threads, threadsText(points[len(points)-1].Threads))) {
		return a
	}
	a.Best = &points[top]
	best := &measured[top]
	a.addBest("%s, %.2f tps%s", threadsText(a.Best.Threads), a.Best.Throughput, best.headline())
	o.addAlike(&a, func(x *Combination) string { return x.Values[ThreadsSet] }, "thread")
	switch p, smaller := points[knee], o.alikeBefore(knee); {
	case knee == len(points)-1:
		a.add("no knee: throughput still grows at the largest number of threads measured")
	case smaller >= 0:
		a.add("no knee found: %s can't be distinguished from the best", threadsText(points[smaller].Threads))
	case knee == top:
		a.Knee = &points[knee]
		a.add("knee: %s: every smaller number measured has less than %s of the best throughput, and larger ones bring no more", threadsText(p.Threads), table.Share(compare.KneeShare))
	default:
		a.Knee = &points[knee]
		a.add("knee: %s: %s of the best throughput with %s of its threads%s", threadsText(p.Threads),
			table.Share(p.Throughput/a.Best.Throughput), table.Share(p.Threads/a.Best.Threads), measured[knee].headline())
	}
	a.addLaw(points)
	return a
}

func (a *Advice) add(format string, args ...any) {
	a.Lines = append(a.Lines, fmt.Sprintf(format, args...))
}

func (a *Advice) addBest(format string, args ...any) {
	a.BestText = fmt.Sprintf(format, args...)
	a.add("best: %s", a.BestText)
}

func threadsText(n float64) string { return table.Plural(int(n), "thread") }

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

// headline returns the median or mean of the headline latency, after a comma; empty if it is
// unknown.
func (c *Combination) headline() string {
	operation := c.LatencyOperation
	if operation == "" {
		operation = tool.Transaction
	}
	var all []tool.Latency
	for stat, v := range c.Latency {
		all = append(all, tool.Latency{Operation: operation, Stat: stat, Seconds: v})
	}
	row := review.Row{}
	row.SetLatencies(&tool.Report{Latencies: all})
	if text := row.Headline(); text != "" {
		return ", " + text
	}
	return ""
}

// Failures names the steps without a result.
func (r *Result) Failures() []string {
	var failed []string
	for _, s := range r.Failed {
		failed = append(failed, fmt.Sprintf("failed: step %d, %s: %s", s.Number, Describe(r.sets, s.Values), table.Clip(s.Reason, 200)))
	}
	return failed
}

// Describe returns the values of those sets that are in values.
func (r *Result) Describe(values map[string]string) string {
	var words []string
	for _, s := range r.sets {
		if v, ok := values[s.Name]; ok {
			words = append(words, s.Name+"="+v)
		}
	}
	return strings.Join(words, " ")
}

// Note explains the table's cells; empty if each cell is from one run.
func (r *Result) Note() string {
	if slices.ContainsFunc(r.Combinations, func(c Combination) bool { return len(c.Runs) > 1 }) {
		return r.Average.Note()
	}
	return ""
}

// Table returns a table with a row for each combination and a column for each measure.
func (r *Result) Table() *table.Table { return r.tableOf(r.measures) }

// FirstTable is like Table, but only with the most important measures: throughput and headline latency and, if they
// vary, errors, flow control, lag, drain and the CPU of machines. If the CPU of one machine varies, all machines have a
// column: they are compared with each other.
func (r *Result) FirstTable() *table.Table {
	busy := slices.ContainsFunc(r.measures, func(m review.Measure) bool { return m.Of == host.Busy && r.varies(&m) })
	return r.tableOf(slices.DeleteFunc(slices.Clone(r.measures), func(m review.Measure) bool {
		switch {
		case m.IsHeadline, m.MoreIsBetter && m.Field != tool.QueryRate.Field():
			return false
		case m.Of == host.Busy:
			return !busy
		case m.Field == tool.Errors.Field(), m.Condition == review.DrainCondition, m.Of == engine.FlowControl, m.Of == engine.LagSeconds:
			return !r.varies(&m)
		}
		return true
	}))
}

// varies reports whether a measure differs between combinations by more than alike of its largest value, or
// is unknown for one.
func (r *Result) varies(m *review.Measure) bool {
	const alike = 0.02
	low, high, known, done := math.Inf(1), math.Inf(-1), 0, 0
	for i := range r.Combinations {
		done += min(1, len(r.Combinations[i].rows))
		if s, ok := r.Combinations[i].spreads[m.Field]; ok {
			v := s.Average(r.Average)
			low, high, known = min(low, v), max(high, v), known+1
		}
	}
	return high-low > alike*math.Abs(high) || known < done
}

// RunTable returns a table with a row for each run, and the ids of these.
func (r *Result) RunTable() (*table.Table, []string) {
	t := r.combinationTable()
	t.Rows = nil
	t.Columns = append(table.Named("run"), append(t.Columns, table.Named("started", "result", "tps", "latency", "limited by")...)...)
	var ids []string
	for i := range r.Combinations {
		c := &r.Combinations[i]
		for j := range c.rows {
			run := &c.rows[j]
			cells := []table.Cell{table.Text(run.ID)}
			for _, s := range r.sets {
				cells = append(cells, table.Text(c.Values[s.Name]))
			}
			t.Add(append(cells, table.Text(table.Instant(run.StartedAt)), table.Text(run.ShortStatus()),
				table.Optional(run.Values.Of(tool.Throughput), table.PerSecond),
				table.Text(run.Headline()), table.Text(string(run.Limits.First())))...)
			ids = append(ids, run.ID)
		}
	}
	return t, ids
}

func (r *Result) tableOf(measures []review.Measure) *table.Table {
	t := r.combinationTable("runs")
	for _, m := range measures {
		t.Columns = append(t.Columns, m.Column())
	}
	for i := range r.Combinations {
		c := &r.Combinations[i]
		runs := table.Whole(len(c.Runs))
		switch {
		case len(c.Runs) > 0:
		case c.State == Done:
			runs = runs.As("removed")
		default:
			runs = runs.As(string(c.State))
		}
		row := append(t.Rows[i], runs)
		for _, m := range measures {
			s, ok := c.spreads[m.Field]
			cell := table.Number(s.Average(r.Average), m.Unit)
			switch {
			case !ok:
				cell = table.Cell{}
			case m.MoreIsBetter:
				cell = cell.As(s.Text(m.Unit, r.Average))
			}
			row = append(row, cell)
		}
		t.Rows[i] = row
	}
	return t
}

// CSV writes a line for each combination, in base units.
func (r *Result) CSV(w io.Writer) error {
	t := r.combinationTable("state", "runs")
	for _, m := range r.measures {
		t.Columns = append(t.Columns, m.Column())
		if m.MoreIsBetter {
			t.Columns = append(t.Columns, table.Named(m.Field+"_min", m.Field+"_max")...)
		}
	}
	for i := range r.Combinations {
		c := &r.Combinations[i]
		row := append(t.Rows[i], table.Text(string(c.State)), table.Whole(len(c.Runs)))
		for _, m := range r.measures {
			s, ok := c.spreads[m.Field]
			if !ok {
				s = compare.Spread{Median: series.Unknown(), Mean: series.Unknown(), Min: series.Unknown(), Max: series.Unknown()}
			}
			row = append(row, table.Number(s.Average(r.Average), m.Unit))
			if m.MoreIsBetter {
				row = append(row, table.Number(s.Min, m.Unit), table.Number(s.Max, m.Unit))
			}
		}
		t.Rows[i] = row
	}
	return t.CSV(w)
}

// combinationTable returns a table whose first columns are the values of a combination, with a row
// for each.
func (r *Result) combinationTable(more ...string) *table.Table {
	var names []string
	for _, s := range r.sets {
		names = append(names, s.Name)
	}
	t := table.New(table.Named(append(names, more...)...)...)
	for i := range r.Combinations {
		row := make([]table.Cell, len(names))
		for j, name := range names {
			row[j] = table.Text(r.Combinations[i].Values[name])
		}
		t.Add(row...)
	}
	return t
}

// Points returns a measure's points over the set that is scaled up.
func (r *Result) Points(m *review.Measure) []compare.FigurePoint {
	var points []compare.FigurePoint
	for i := range r.Combinations {
		c := &r.Combinations[i]
		others := map[string]string{}
		for set, v := range c.Values {
			if set != r.Scale {
				others[set] = v
			}
		}
		points = append(points, compare.FigurePoint{Line: r.Describe(others), X: c.Values[r.Scale], Spread: spreadOf(m, c.rows)})
	}
	return points
}
