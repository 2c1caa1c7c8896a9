//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func get(url string) (string, error) {
	client := http.Client{Timeout: 10 * time.Second}
	res, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: %s", url, res.Status)
	}
	return string(body), nil
}

// exposition is one scrape.
type exposition map[string]*dto.MetricFamily

func (a *agent) scrape(t *testing.T) exposition {
	t.Helper()
	text, err := get("http://" + a.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// series returns the series of a family that have the given labels, as name,
// value, name, value …
func (e exposition) series(name string, labels ...string) []*dto.Metric {
	var found []*dto.Metric
	for _, m := range e[name].GetMetric() {
		have := map[string]string{}
		for _, l := range m.GetLabel() {
			have[l.GetName()] = l.GetValue()
		}
		match := true
		for i := 0; i < len(labels); i += 2 {
			match = match && have[labels[i]] == labels[i+1]
		}
		if match {
			found = append(found, m)
		}
	}
	return found
}

// value returns the value of the only such series.
func (e exposition) value(name string, labels ...string) (float64, error) {
	found := e.series(name, labels...)
	if len(found) != 1 {
		return 0, fmt.Errorf("%d series %s%v", len(found), name, labels)
	}
	m := found[0]
	switch {
	case m.Gauge != nil:
		return m.GetGauge().GetValue(), nil
	case m.Counter != nil:
		return m.GetCounter().GetValue(), nil
	default:
		return m.GetUntyped().GetValue(), nil
	}
}

// must returns the value of a series that has to exist.
func (e exposition) must(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	v, err := e.value(name, labels...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// families returns the names of the families that have a series with a label.
func (e exposition) families(label, value string) []string {
	var names []string
	for name := range e {
		if len(e.series(name, label, value)) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// prometheus is a Prometheus server that scrapes an agent every second.
type prometheus struct{ address string }

// query returns the values of an expression's series, in Prometheus' order.
func (p prometheus) query(expression string) ([]float64, error) {
	text, err := get("http://" + p.address + "/api/v1/query?query=" + url.QueryEscape(expression))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return nil, fmt.Errorf("decode Prometheus' answer: %w", err)
	}
	var values []float64
	for _, r := range answer.Data.Result {
		v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			return nil, fmt.Errorf("decode Prometheus' answer: %w", err)
		}
		values = append(values, v)
	}
	return values, nil
}
