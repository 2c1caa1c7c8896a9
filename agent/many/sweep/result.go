package sweep

import (
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/many/compare"
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
