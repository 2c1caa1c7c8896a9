package abort

import (
	"math"
	"testing"

	"github.com/prometheus/common/model"
)

func TestEvaluate(t *testing.T) {
	sample := func(v float64, labels model.Metric) *model.Sample {
		return &model.Sample{Metric: labels, Value: model.SampleValue(v)}
	}
	for name, c := range map[string]struct {
		result model.Value
		holds  bool
		value  string
		err    string
	}{
		"a series":         {model.Vector{sample(1, model.Metric{"__name__": "up", "instance": "a:1", "job": "x"})}, true, `1 of up{instance="a:1", job="x"}`, ""},
		"no series":        {model.Vector{}, false, "", ""},
		"zero":             {model.Vector{sample(0, nil)}, true, "0", ""},
		"two series":       {model.Vector{sample(0.25, nil), sample(2, nil)}, true, "0.25 and 1 other", ""},
		"one value":        {model.Vector{sample(math.NaN(), nil), sample(0.25, nil)}, true, "0.25", ""},
		"no value":         {model.Vector{sample(math.NaN(), nil)}, false, "", ""},
		"scalar, no value": {&model.Scalar{Value: model.SampleValue(math.NaN())}, false, "NaN", ""},
		"scalar":           {&model.Scalar{Value: 2}, true, "2", ""},
		"scalar, zero":     {&model.Scalar{}, false, "0", ""},
		"a range":          {model.Matrix{}, false, "", "the expression returns neither an instant vector nor a scalar"},
		"a text":           {&model.String{Value: "text"}, false, "", "the expression returns neither an instant vector nor a scalar"},
	} {
		holds, value, err := evaluate(c.result)
		message := ""
		if err != nil {
			message = err.Error()
		}
		if holds != c.holds || value != c.value || message != c.err {
			t.Errorf("%s: %v, %q, %q", name, holds, value, message)
		}
	}
}
