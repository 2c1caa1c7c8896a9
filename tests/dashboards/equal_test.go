package dashboards

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// With PROMETHEUS_EQUAL_URL set, every query of every dashboard has the same series and values on
// that Prometheus as on PROMETHEUS_URL, in all PROMETHEUS_WINDOWS. tests/fleet sets them.
func TestTwoServersAreEqual(t *testing.T) {
	other := Prometheus{URL: os.Getenv("PROMETHEUS_EQUAL_URL")}
	if other.URL == "" {
		t.Skip("PROMETHEUS_EQUAL_URL is not set; tests/fleet sets it")
	}
	p := askedPrometheus(t)
	for _, w := range askedWindows(t) {
		asked := map[string]bool{}
		queries, series, values := 0, 0, 0
		check := func(place string, target *Target) {
			key := fmt.Sprint(target.Expr, target.Range, target.Interval)
			if asked[key] {
				return
			}
			asked[key] = true
			got, err := p.results(t.Context(), target, w)
			if err != nil {
				t.Errorf("%s of %s: %v\n%s", place, w.Name, err, target.Expr)
				return
			}
			want, err := other.results(t.Context(), target, w)
			if err != nil {
				t.Errorf("%s of %s, on the other: %v\n%s", place, w.Name, err, target.Expr)
				return
			}
			queries++
			for _, name := range slices.Sorted(maps.Keys(want)) {
				series, values = series+1, values+len(want[name])
				if one, ok := got[name]; !ok {
					t.Errorf("%s of %s lacks %s\n%s", place, w.Name, name, target.Expr)
				} else if different := differ(one, want[name]); different != "" {
					t.Errorf("%s of %s: %s %s\n%s", place, w.Name, name, different, target.Expr)
				}
			}
			for name := range got {
				if want[name] == nil {
					t.Errorf("%s of %s has %s too many\n%s", place, w.Name, name, target.Expr)
				}
			}
		}
		for _, d := range dashboards(t) {
			for _, panel := range d.Graphs() {
				for _, target := range panel.Targets {
					check(d.Name+": "+panel.Title+", query "+target.RefID, &target)
				}
			}
			for _, a := range d.Annotations.List {
				if a.Expr != "" {
					check(d.Name+": annotation "+a.Name, &Target{Expr: a.Expr, Interval: "5s", Range: true})
				}
			}
			for _, v := range d.Templating.List {
				if v.Type != "query" {
					continue
				}
				if m := ofVariable.FindStringSubmatch(v.Text()); m == nil {
					check(d.Name+": variable "+v.Name, &Target{Expr: v.expr(), Interval: "1s"})
				} else {
					got, err := p.LabelValues(t.Context(), m[1], m[2], w)
					if err != nil {
						t.Errorf("%s, variable %s: %v", d.Name, v.Name, err)
					}
					want, err := other.LabelValues(t.Context(), m[1], m[2], w)
					if err != nil {
						t.Errorf("%s, variable %s: %v", d.Name, v.Name, err)
					}
					queries++
					if !slices.Equal(got, want) {
						t.Errorf("%s of %s, variable %s: %d values, the other has %d", d.Name, w.Name, v.Name, len(got), len(want))
					}
				}
			}
		}
		t.Logf("%s: %d queries, %d series with %d values", w.Name, queries, series, values)
		if series < 50 {
			t.Errorf("%s: %d series: that shows little", w.Name, series)
		}
	}
}

// instantOf is a time with its value.
type instantOf struct{ at, value float64 }

// differ describes the first difference, allowing for sums in another order.
func differ(got, want []instantOf) string {
	for i, w := range want {
		if i >= len(got) {
			return fmt.Sprintf("ends at %.3f, the other has %d values more", got[i-1].at, len(want)-i)
		}
		g := got[i]
		same := g.value == w.value || math.IsNaN(g.value) && math.IsNaN(w.value) || math.Abs(g.value-w.value) <= 1e-9*max(math.Abs(g.value), math.Abs(w.value))
		if g.at != w.at || !same {
			return fmt.Sprintf("is %g at %.3f, the other has %g at %.3f", g.value, g.at, w.value, w.at)
		}
	}
	if len(got) > len(want) {
		return fmt.Sprintf("has %d values more", len(got)-len(want))
	}
	return ""
}

// results returns the values of each series of a panel's query.
func (p Prometheus) results(ctx context.Context, target *Target, w Window) (map[string][]instantOf, error) {
	interval, err := time.ParseDuration(target.Interval)
	if err != nil {
		return nil, fmt.Errorf("interval of query %s: %w", target.RefID, err)
	}
	path, form := "/api/v1/query", url.Values{"query": {w.expand(target.Expr, interval)}, "time": {seconds(w.To)}}
	if target.Range {
		path = "/api/v1/query_range"
		form.Set("start", seconds(w.From))
		form.Set("end", seconds(w.To))
		form.Set("step", strconv.FormatFloat(w.step(interval).Seconds(), 'f', -1, 64))
	}
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  *[2]any
			Values [][2]any
		}
	}
	if err := p.get(ctx, "POST", path, form, &data); err != nil {
		return nil, err
	}
	found := map[string][]instantOf{}
	for _, s := range data.Result {
		name, err := json.Marshal(s.Metric)
		if err != nil {
			return nil, err
		}
		if s.Value != nil {
			s.Values = append(s.Values, *s.Value)
		}
		for _, one := range s.Values {
			at, _ := one[0].(float64)
			v, err := strconv.ParseFloat(fmt.Sprint(one[1]), 64)
			if err != nil {
				return nil, err
			}
			found[string(name)] = append(found[string(name)], instantOf{at, v})
		}
	}
	return found, nil
}
