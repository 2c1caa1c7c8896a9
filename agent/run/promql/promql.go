// Package promql queries a Prometheus for the values of expressions. It does not use client_golang's API client, which
// needs a JSON library that is no longer maintained.
package promql

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Server is a Prometheus.
type Server struct {
	// URL is its http:// or https:// address. Errors never contain it, since it may hold a password.
	URL string
	// Timeout limits the time for an answer; 0: 10 seconds.
	Timeout time.Duration
}

// longestAnswer bounds what is read of an answer, in bytes.
const longestAnswer = 32 << 20

// client follows no redirect: the configuration names the address.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// At evaluates an expression at a time, now if it is zero. The value is a model.Vector, a model.Matrix, a
// *model.Scalar or a *model.String.
func (s Server) At(ctx context.Context, expression string, at time.Time) (model.Value, error) {
	form := url.Values{"query": {expression}}
	if !at.IsZero() {
		form.Set("time", seconds(at))
	}
	return s.ask(ctx, "query", form)
}

// Range evaluates an expression at each step between two times.
func (s Server) Range(ctx context.Context, expression string, from, to time.Time, step time.Duration) (model.Matrix, error) {
	value, err := s.ask(ctx, "query_range", url.Values{
		"query": {expression}, "start": {seconds(from)}, "end": {seconds(to)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	})
	if err != nil {
		return nil, err
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, errors.New("not an answer of Prometheus")
	}
	return matrix, nil
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1e3, 'f', 3, 64) }

func (s Server) ask(ctx context.Context, path string, form url.Values) (model.Value, error) {
	timeout := cmp.Or(s.Timeout, 10*time.Second)
	form.Set("timeout", timeout.String())
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		strings.TrimRight(s.URL, "/")+"/api/v1/"+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errors.New("the address of Prometheus is not valid")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK && !json.Valid(text) { // otherwise text contains the reason
		return nil, fmt.Errorf("it answers %s", response.Status)
	}
	return parse(text)
}

// parse returns the value of an answer, or Prometheus's reason as the error.
func parse(text []byte) (model.Value, error) {
	var answer struct {
		Status, Error string
		Data          struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	err := json.Unmarshal(text, &answer)
	if err != nil || answer.Status != "success" {
		return nil, errors.New(table.Clip(table.Plain(cmp.Or(answer.Error, "not an answer of Prometheus")), 300))
	}
	result := answer.Data.Result
	switch answer.Data.ResultType {
	case model.ValVector.String():
		var v model.Vector
		err := json.Unmarshal(result, &v)
		return slices.DeleteFunc(v, func(one *model.Sample) bool { return one == nil }), err
	case model.ValMatrix.String():
		var v model.Matrix
		err := json.Unmarshal(result, &v)
		return slices.DeleteFunc(v, func(one *model.SampleStream) bool { return one == nil }), err
	case model.ValScalar.String():
		var v model.Scalar
		return &v, json.Unmarshal(result, &v)
	case model.ValString.String():
		var v model.String
		return &v, json.Unmarshal(result, &v)
	}
	return nil, errors.New("not an answer of Prometheus")
}
