package measure_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// columns are values by name, one row a second.
type columns map[string][]float64

func (c columns) Of(metric string) (columns []measure.Column) {
	for name := range c {
		if column, _ := measure.ParseColumn(name); column.Metric == metric {
			columns = append(columns, column)
		}
	}
	return columns
}

func (c columns) Values(name string) []float64 { return c[name] }

func (c columns) Rate(name string) []float64 {
	values := c[name]
	if values == nil {
		return nil
	}
	rate := []float64{series.Unknown()}
	for i := 1; i < len(values); i++ {
		rate = append(rate, series.PerSecond(values[i-1], values[i], 1))
	}
	return rate
}

var (
	hits   = &measure.Metric{Name: "hits_total", Kind: measure.Counter}
	misses = &measure.Metric{Name: "misses_total", Kind: measure.Counter}
	paused = &measure.Metric{Name: "paused_seconds_total", Kind: measure.Counter}
	queue  = &measure.Metric{Name: "queue", Labels: []string{"kind"}}
	size   = &measure.Metric{Name: "size"}
)

func TestValues(t *testing.T) {
	unknown := series.Unknown()
	c := columns{
		"hits_total":           {0, 30, 90, 90, 0},
		"misses_total":         {0, 10, 30, 30, 0},
		"paused_seconds_total": {0, 0.25, 1.5, unknown, 2},
		`queue{kind="reads"}`:  {1, 2, 3, unknown, unknown},
		`queue{kind="writes"}`: {unknown, 5, 5, 5, unknown},
		"queue_limit":          {9, 9, 9, 9, 9},
		"size":                 {2, 2, 0, 2, 2},
	}
	for _, test := range []struct {
		name   string
		source measure.Source
		want   []float64
	}{
		{"gauge", measure.ValueOf(size), []float64{2, 2, 0, 2, 2}},
		{"rate", measure.RateOf(hits), []float64{unknown, 30, 60, 0, unknown}},
		{"share of time, at most 1", measure.ShareOf(paused), []float64{unknown, 0.25, 1, unknown, unknown}},
		{"label sets are added up", measure.ValueOf(queue), []float64{1, 7, 8, 5, unknown}},
		{"one label value", measure.ValueOf(queue).On("kind", "reads"), []float64{1, 2, 3, unknown, unknown}},
		{"label values", measure.ValueOf(queue).On("kind", "reads", "none", "writes"), []float64{1, 7, 8, 5, unknown}},
		{"a label value of both", measure.ValueOf(queue).Over(queue).On("kind", "reads"), []float64{1, 1, 1, unknown, unknown}},
		{"a label value that is only part of another", measure.ValueOf(queue).On("kind", "read"), nil},
		{"a label value without labels", measure.ValueOf(size).On("kind", "reads"), []float64{2, 2, 0, 2, 2}},
		{"sum of metrics", measure.RateOf(hits).Plus(misses), []float64{unknown, 40, 80, 0, unknown}},
		{"counter over counters", measure.RateOf(hits).Over(hits, misses), []float64{unknown, 0.75, 0.75, unknown, unknown}},
		{"counter over gauge", measure.RateOf(hits).Over(size), []float64{unknown, 15, unknown, 0, unknown}},
		{"absent divisor", measure.RateOf(hits).Over(&measure.Metric{Name: "absent"}), nil},
		{"absent", measure.ValueOf(&measure.Metric{Name: "absent"}), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := (&measure.Measure{}).Or(test.source).Values(c)
			if !slices.EqualFunc(got, test.want, func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	if got := fmt.Sprint(c["paused_seconds_total"], c[`queue{kind="reads"}`]); got != "[0 0.25 1.5 NaN 2] [1 2 3 NaN NaN]" {
		t.Error("Values changed a column:", got)
	}
}

// Values uses the first source that the columns contain, and preferred sources before others.
func TestSources(t *testing.T) {
	m := (&measure.Measure{}).Or(measure.ValueOf(size)).Or(measure.RateOf(misses)).Prefer(measure.RateOf(hits))
	for _, test := range []struct {
		columns columns
		want    *measure.Metric
	}{
		{columns{"hits_total": {1, 2}, "size": {1, 1}}, hits},
		{columns{"size": {1, 1}, "misses_total": {1, 1}}, size},
		{columns{"misses_total": {1, 1}}, misses},
		{columns{}, nil},
	} {
		if used, ok := m.Used(test.columns); used.Metric != test.want || ok != (test.want != nil) {
			t.Errorf("of %v %v is used, want %v", test.columns, used.Metric, test.want)
		}
	}
}

func TestIsRate(t *testing.T) {
	for name, c := range map[string]struct {
		of   measure.Measure
		from measure.Source
		want bool
	}{
		"per second":       {measure.Measure{Unit: measure.PerSecond}, measure.RateOf(hits), true},
		"increase":         {measure.Measure{Unit: measure.PerSecond, Summary: measure.Increase}, measure.RateOf(hits), false},
		"bytes per second": {measure.Measure{Unit: measure.Bytes}, measure.RateOf(hits), true},
		"bytes in use":     {measure.Measure{Unit: measure.Bytes}, measure.ValueOf(size), false},
		"cost":             {measure.Measure{Unit: measure.Bytes, Summary: measure.Cost}, measure.RateOf(hits), false},
	} {
		if got := c.of.Or(c.from).IsRate(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestEvidence guards that evidence is a counter: nothing else has an increase.
func TestEvidence(t *testing.T) {
	for name, source := range map[string]measure.Source{"gauge": measure.ValueOf(size), "rate of a gauge": measure.RateOf(size), "value of a counter": measure.ValueOf(hits), "sum with a gauge": measure.RateOf(hits).Plus(size)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			measure.NewEvidence(measure.Server, source)
		}()
	}
	if m := measure.NewEvidence(measure.Server, measure.RateOf(hits).Plus(misses)); !slices.Contains(measure.Evidence(measure.Server), m) {
		t.Error("a counter is no evidence")
	}
}
