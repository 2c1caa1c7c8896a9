package abort

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/promql"
)

const (
	// queryEvery is the interval for evaluating an expression. A slow answer delays the next query.
	queryEvery = time.Second
	// queryTimeout limits the time for an answer.
	queryTimeout = 5 * time.Second
)

// Prometheus evaluates conditions.
type Prometheus struct{ server promql.Server }

// NewPrometheus returns a Prometheus with an http:// or https:// address.
func NewPrometheus(address string) *Prometheus {
	return &Prometheus{promql.Server{URL: address, Timeout: queryTimeout}}
}

// Check evaluates a condition once if it is a query. The error comes from Prometheus, for example
// about the expression.
func (p *Prometheus) Check(ctx context.Context, c *Condition) error {
	_, _, err := p.holds(ctx, c.query)
	return err
}

// holds evaluates an expression.
func (p *Prometheus) holds(ctx context.Context, expression string) (holds bool, value string, err error) {
	result, err := p.server.At(ctx, expression, time.Time{})
	if err == nil {
		holds, value, err = evaluate(result)
	}
	if err != nil {
		return false, "", fmt.Errorf("evaluate by Prometheus: %w", err)
	}
	return holds, value, nil
}

// evaluate interprets a result like the expression of an alert: it holds if the result has a sample
// or is a scalar other than 0. value is one of the values with its labels.
func evaluate(result model.Value) (holds bool, value string, err error) {
	switch v := result.(type) {
	case model.Vector:
		// Unlike in an alert, 0 divided by 0 is not a value.
		v = slices.DeleteFunc(v, func(s *model.Sample) bool { return math.IsNaN(float64(s.Value)) })
		if len(v) == 0 {
			return false, "", nil
		}
		text := number(v[0].Value)
		if len(v[0].Metric) > 0 {
			text += " of " + v[0].Metric.String()
		}
		if n := len(v) - 1; n > 0 {
			text += " and " + table.Plural(n, "other")
		}
		return true, table.Clip(table.Plain(text), 200), nil
	case *model.Scalar:
		return v.Value != 0 && !math.IsNaN(float64(v.Value)), number(v.Value), nil
	}
	return false, "", errors.New("the expression returns neither an instant vector nor a scalar")
}

func number(v model.SampleValue) string { return strconv.FormatFloat(float64(v), 'g', 6, 64) }

// answer is the result of a query.
type answer struct {
	condition int
	holds     bool
	text      string
	err       error
}

// ask evaluates a query once per second until ctx is done.
func (w *Watch) ask(ctx context.Context, i int, answers chan<- answer) {
	tick := time.NewTicker(queryEvery)
	defer tick.Stop()
	for {
		a := answer{condition: i}
		a.holds, a.text, a.err = w.Prometheus.holds(ctx, w.Conditions[i].query)
		select {
		case answers <- a:
		case <-ctx.Done():
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
