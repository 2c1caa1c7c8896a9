package agents

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Get returns the body of an answer 200.
func Get(url string) (string, error) {
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

// Exposition is one scrape.
type Exposition map[string]*dto.MetricFamily

// Scrape returns what the agent exposes now.
func (a *Agent) Scrape(t testing.TB) Exposition {
	t.Helper()
	text, err := Get("http://" + a.Address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	e, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Parse reads the text of an Exposition.
func Parse(text string) (Exposition, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(strings.NewReader(text))
}

// Series returns the series of a family with these labels, given as name, value, name, value …
func (e Exposition) Series(name string, labels ...string) []*dto.Metric {
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

// Value returns the value of the only series with these labels.
func (e Exposition) Value(name string, labels ...string) (float64, error) {
	found := e.Series(name, labels...)
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

// Must returns the value of a series that has to exist.
func (e Exposition) Must(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	v, err := e.Value(name, labels...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Families returns the names of the families that have a series with a label.
func (e Exposition) Families(label, value string) []string {
	var names []string
	for name := range e {
		if len(e.Series(name, label, value)) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// Prometheus is a Prometheus server.
type Prometheus struct{ Address string }

// Query returns the values of an expression's series, in Prometheus' order.
func (p Prometheus) Query(expression string) ([]float64, error) {
	text, err := Get("http://" + p.Address + "/api/v1/query?query=" + url.QueryEscape(expression))
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

// StartPrometheus starts a Prometheus that scrapes the agent every second.
func StartPrometheus(t testing.TB, a *Agent) Prometheus {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 900ms}
scrape_configs:
  - job_name: benchwatch
    static_configs: [{targets: ["%s"]}]
`, a.Address)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p := Prometheus{Address: FreeAddress(t)}
	Start(t, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+p.Address, "--log.level=warn")
	Wait(t, 30*time.Second, "Prometheus scrapes the agent", func() error {
		up, err := p.Query("up")
		if err == nil && (len(up) != 1 || up[0] != 1) {
			err = fmt.Errorf("up is %v", up)
		}
		return err
	})
	return p
}
