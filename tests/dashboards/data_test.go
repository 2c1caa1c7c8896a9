package dashboards

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// With PROMETHEUS_URL set every query is asked for the last PROMETHEUS_RANGE (15m
// by default) of that Prometheus, and the panels of PROMETHEUS_DASHBOARDS
// (comma-separated names) have to return data, unless may-be-empty.txt says why
// they need not.
func TestPanelsReturnData(t *testing.T) {
	base := os.Getenv("PROMETHEUS_URL")
	if base == "" {
		t.Skip("PROMETHEUS_URL is not set")
	}
	span := 15 * time.Minute
	if text := os.Getenv("PROMETHEUS_RANGE"); text != "" {
		var err error
		if span, err = time.ParseDuration(text); err != nil {
			t.Fatalf("PROMETHEUS_RANGE: %v", err)
		}
	}
	mustHaveData := map[string]bool{}
	for _, name := range strings.Split(os.Getenv("PROMETHEUS_DASHBOARDS"), ",") {
		mustHaveData[strings.TrimSpace(name)] = true
	}
	excused := readExcuses(t)
	asker := asker{base: strings.TrimSuffix(base, "/"), end: time.Now(), span: span}
	panels := 0
	for _, d := range dashboards(t) {
		for _, p := range d.Graphs() {
			panels++
			series := 0
			for _, target := range p.Targets {
				n, err := asker.ask(t.Context(), &target)
				if err != nil {
					t.Errorf("%s, panel %q, query %s: %v\n%s", d.Name, p.Title, target.RefID, err, target.Expr)
				}
				series += n
			}
			if series == 0 && mustHaveData[d.Name] && !excused[d.Name+": "+p.Title] {
				t.Errorf("%s, panel %q returns nothing", d.Name, p.Title)
			}
		}
	}
	t.Logf("%d panels asked", panels)
}

func readExcuses(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("may-be-empty.txt")
	if err != nil {
		t.Fatal(err)
	}
	excused := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		panel, reason, _ := strings.Cut(line, " # ")
		if strings.TrimSpace(reason) == "" {
			t.Errorf("may-be-empty.txt: no reason in %q", line)
		}
		excused[strings.TrimSpace(panel)] = true
	}
	return excused
}

// asker asks a Prometheus as Grafana would.
type asker struct {
	base string
	end  time.Time
	span time.Duration
}

// ask returns how many series a query has.
func (a *asker) ask(ctx context.Context, target *Target) (int, error) {
	expr := strings.NewReplacer(
		"$__rate_interval", "20s",
		"$__range", fmt.Sprintf("%ds", int(a.span.Seconds())),
		"${__from}", strconv.FormatInt(a.end.Add(-a.span).UnixMilli(), 10),
	).Replace(target.Expr)
	form := url.Values{"query": {Expand(expr)}}
	path := "/api/v1/query"
	if target.Range {
		path = "/api/v1/query_range"
		form.Set("start", seconds(a.end.Add(-a.span)))
		form.Set("end", seconds(a.end))
		form.Set("step", "5")
	} else {
		form.Set("time", seconds(a.end))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []json.RawMessage
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return 0, fmt.Errorf("status %s: %w", response.Status, err)
	}
	if answer.Status != "success" {
		return 0, fmt.Errorf("prometheus: %s", answer.Error)
	}
	return len(answer.Data.Result), nil
}

func seconds(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64)
}
