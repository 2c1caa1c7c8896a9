package dashboards

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Prometheus is a server that is queried as Grafana does it.
type Prometheus struct{ URL string }

// Window is the selection at the top of a dashboard.
type Window struct {
	Name string    `json:"name"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Variables are the values of the variables that are not All.
	Variables map[string]string `json:"variables"`
	// Partial means that not every panel needs to have data in this window.
	Partial bool `json:"partial"`
	// Foreign are servers and runs that the selected run has nothing to do with.
	Foreign []string `json:"foreign"`
}

// points is the maximum that a panel of a usual width requests.
const points = 1000

// Ask returns the number of series with a value that a panel's query has.
func (p Prometheus) Ask(ctx context.Context, target *Target, w Window) (int, error) {
	interval, err := time.ParseDuration(target.Interval)
	if err != nil {
		return 0, fmt.Errorf("interval of query %s: %w", target.RefID, err)
	}
	expr := w.expand(target.Expr, interval)
	if target.Range {
		return p.overTime(ctx, expr, w, w.step(interval))
	}
	return p.query(ctx, "/api/v1/query", url.Values{"query": {expr}, "time": {seconds(w.To)}})
}

// AskAnnotation returns the number of series with a value that an annotation's query has.
func (p Prometheus) AskAnnotation(ctx context.Context, a *Annotation, w Window) (int, error) {
	const step = 5 * time.Second
	return p.overTime(ctx, w.expand(a.Expr, step), w, step)
}

// AskVariable returns how many values a variable offers.
func (p Prometheus) AskVariable(ctx context.Context, v *Variable, w Window) (int, error) {
	if m := ofVariable.FindStringSubmatch(v.Text()); m != nil {
		values, err := p.LabelValues(ctx, m[1], m[2], w)
		return len(values), err
	}
	return p.query(ctx, "/api/v1/query", url.Values{"query": {w.expand(v.expr(), time.Second)}, "time": {seconds(w.To)}})
}

// LabelValues returns what a variable's label_values(selector, label) offers.
func (p Prometheus) LabelValues(ctx context.Context, selector, label string, w Window) ([]string, error) {
	form := url.Values{"start": {seconds(w.From)}, "end": {seconds(w.To)}}
	if selector != "" {
		form.Set("match[]", w.expand(selector, time.Second))
	}
	var values []string
	return values, p.get(ctx, http.MethodGet, "/api/v1/label/"+label+"/values", form, &values)
}

func (p Prometheus) overTime(ctx context.Context, expr string, w Window, step time.Duration) (int, error) {
	return p.query(ctx, "/api/v1/query_range", url.Values{
		"query": {expr}, "start": {seconds(w.From)}, "end": {seconds(w.To)},
		"step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	})
}

// query counts the series that have a value other than NaN.
func (p Prometheus) query(ctx context.Context, path string, form url.Values) (int, error) {
	var data struct {
		Result []struct {
			Value  [2]any
			Values [][2]any
		}
	}
	if err := p.get(ctx, http.MethodPost, path, form, &data); err != nil {
		return 0, err
	}
	found := 0
	for _, series := range data.Result {
		for _, sample := range append(series.Values, series.Value) {
			if text, ok := sample[1].(string); ok && text != "NaN" {
				found++
				break
			}
		}
	}
	return found, nil
}

func (p Prometheus) get(ctx context.Context, method, path string, form url.Values, data any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	address, body := strings.TrimSuffix(p.URL, "/")+path, ""
	if method == http.MethodGet {
		address += "?" + form.Encode()
	} else {
		body = form.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("query Prometheus: %w", err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("query Prometheus: %w", err)
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("decode answer with status %s: %w", response.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("prometheus: %s", answer.Error)
	}
	return nil
}

// step returns the distance of a panel's points, which is at least the scrape interval.
func (w Window) step(interval time.Duration) time.Duration {
	return max(interval, (w.To.Sub(w.From) / points).Truncate(time.Second))
}

// expand replaces variables, including Grafana's own, for data with a scrape interval.
func (w Window) expand(expr string, interval time.Duration) string {
	step := w.step(interval)
	length := w.To.Sub(w.From).Round(time.Second)
	own := strings.NewReplacer(
		"$__rate_interval", max(step+interval, 4*interval).String(),
		"$__interval", step.String(),
		"$__range", strconv.Itoa(int(length.Seconds()))+"s",
		"${__from}", strconv.FormatInt(w.From.UnixMilli(), 10),
		"${__to}", strconv.FormatInt(w.To.UnixMilli(), 10),
	)
	return ExpandWith(own.Replace(expr), w.Variables)
}

func seconds(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64)
}
