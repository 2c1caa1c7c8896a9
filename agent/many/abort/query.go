package abort

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/benchwatch/benchwatch/agent/model/table"
)

const (
	// queryEvery is the interval for evaluating an expression. A slow answer delays the next query.
	queryEvery = time.Second
	// queryTimeout limits the time for an answer.
	queryTimeout = 5 * time.Second
	// maxAnswer is larger than the answer to any reasonable condition, in bytes.
	maxAnswer = 4 << 20
)

// Prometheus evaluates conditions. It does not use client_golang's API client, which needs a JSON
// library that is no longer maintained.
type Prometheus struct {
	address string // without a trailing slash
	client  *http.Client
}

// NewPrometheus returns a Prometheus with an http:// or https:// address.
func NewPrometheus(address string) *Prometheus {
	return &Prometheus{address: strings.TrimRight(address, "/"), client: &http.Client{Timeout: queryTimeout}}
}

// Check evaluates a condition once if it is a query. The error comes from Prometheus, for example
// about the expression.
func (p *Prometheus) Check(ctx context.Context, c *Condition) error {
	_, _, err := p.holds(ctx, c.query)
	return err
}

// holds evaluates an expression.
func (p *Prometheus) holds(ctx context.Context, expression string) (bool, string, error) {
	text, err := p.query(ctx, expression)
	if err != nil {
		return false, "", fmt.Errorf("evaluate by Prometheus: %w", err)
	}
	holds, value, err := evaluate(text)
	if err != nil {
		return false, "", fmt.Errorf("evaluate by Prometheus: %w", err)
	}
	return holds, value, nil
}

// query returns Prometheus's answer to an expression.
func (p *Prometheus) query(ctx context.Context, expression string) ([]byte, error) {
	form := url.Values{"query": {expression}, "timeout": {queryTimeout.String()}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address+"/api/v1/query", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err == nil && response.StatusCode != http.StatusOK && !json.Valid(text) { // otherwise text contains the reason
		err = fmt.Errorf("%s answers %s", p.address, response.Status)
	}
	return text, err
}

// evaluate interprets an answer like the expression of an alert: it holds if the result has a sample
// or is a scalar other than 0. value is one of the values with its labels.
func evaluate(answer []byte) (holds bool, value string, err error) {
	var a struct {
		Status, Error string
		Data          struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return false, "", err
	}
	if a.Status != "success" {
		return false, "", errors.New(table.Clip(table.Plain(cmp.Or(a.Error, "not an answer of Prometheus")), 300))
	}
	switch a.Data.ResultType {
	case model.ValVector.String():
		var v model.Vector
		if err := json.Unmarshal(a.Data.Result, &v); err != nil {
			return false, "", err
		}
		// Unlike in an alert, 0 divided by 0 is not a value.
		v = slices.DeleteFunc(v, func(s *model.Sample) bool { return s == nil || math.IsNaN(float64(s.Value)) })
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
	case model.ValScalar.String():
		var v model.Scalar
		err := json.Unmarshal(a.Data.Result, &v)
		if err != nil {
			return false, "", err
		}
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
