package dashboards

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// With PROMETHEUS_URL set, every query runs on that Prometheus: for each of
// PROMETHEUS_WINDOWS (JSON, see Window), by default for the last PROMETHEUS_RANGE (15m). No
// query may fail. In the dashboards of PROMETHEUS_DASHBOARDS (comma-separated names) every
// panel and variable must have data in every window that is not partial, and every query
// and annotation in one of the windows, unless may-be-empty.txt has the reason.
func TestPanelsReturnData(t *testing.T) {
	p := askedPrometheus(t)
	windows := askedWindows(t)
	must := strings.Split(os.Getenv("PROMETHEUS_DASHBOARDS"), ",")
	excused := excuses(t)
	for _, d := range dashboards(t) {
		t.Run(d.Name, func(t *testing.T) {
			seen := &checker{p: p, windows: windows, excused: excused, must: slices.Contains(must, d.Name)}
			for _, panel := range d.Graphs() {
				seen.panel(t, &d, &panel)
			}
			for _, a := range d.Annotations.List {
				if a.Expr != "" {
					seen.annotation(t, &d, &a)
				}
			}
			for _, v := range d.Templating.List {
				if v.Type == "query" {
					seen.variable(t, &d, &v)
				}
			}
		})
	}
}

// checker runs the queries of dashboards in some windows.
type checker struct {
	p       Prometheus
	windows []Window
	excused map[string]string
	must    bool
}

// missing fails the test unless there is an excuse for that place.
func (s *checker) missing(t *testing.T, places ...string) {
	t.Helper()
	if !s.must {
		return
	}
	for _, place := range places {
		if _, ok := s.excused[place]; ok {
			return
		}
	}
	t.Errorf("%s returns nothing", places[len(places)-1])
}

const (
	reason   = "Reason" // the query that shows why a state timeline is empty
	emptyRow = "Empty"  // the query for a row that a trend panel removes again
)

func (s *checker) panel(t *testing.T, d *Dashboard, panel *Panel) {
	t.Helper()
	place := d.Name + ": " + panel.Title
	ofQuery := map[string]int{}
	for _, w := range s.windows {
		ofPanel, reasons := 0, 0
		for _, target := range panel.Targets {
			n, err := s.p.Ask(t.Context(), &target, w)
			if err != nil {
				t.Errorf("%s, query %s, window %q: %v\n%s", place, target.RefID, w.Name, err, target.Expr)
			}
			switch target.RefID {
			case reason:
				reasons += n
				continue
			case emptyRow:
				continue
			}
			ofPanel += n
			ofQuery[target.RefID] += n
		}
		if ofPanel > 0 && reasons > 0 {
			t.Errorf("%s has data in the window %q and a reason for having none", place, w.Name)
		}
		if ofPanel == 0 && !w.Partial {
			s.missing(t, place, fmt.Sprintf("%s (%s)", place, w.Name))
		}
	}
	for _, target := range panel.Targets {
		if ofQuery[target.RefID] == 0 && target.RefID != reason && target.RefID != emptyRow {
			s.missing(t, place, fmt.Sprintf("%s, query %s", place, target.RefID))
		}
	}
}

func (s *checker) annotation(t *testing.T, d *Dashboard, a *Annotation) {
	t.Helper()
	place := fmt.Sprintf("%s: annotation %s", d.Name, a.Name)
	found := 0
	for _, w := range s.windows {
		n, err := s.p.AskAnnotation(t.Context(), a, w)
		if err != nil {
			t.Errorf("%s, window %q: %v\n%s", place, w.Name, err, a.Expr)
		}
		found += n
	}
	if found == 0 {
		s.missing(t, place)
	}
}

func (s *checker) variable(t *testing.T, d *Dashboard, v *Variable) {
	t.Helper()
	place := fmt.Sprintf("%s: variable %s", d.Name, v.Name)
	for _, w := range s.windows {
		n, err := s.p.AskVariable(t.Context(), v, w)
		if err != nil {
			t.Errorf("%s, window %q: %v", place, w.Name, err)
		}
		if n == 0 && !w.Partial {
			s.missing(t, place)
		}
	}
}

// An excuse for a panel that was renamed would apply to no panel, or to the wrong one.
func TestExcusesAreForWhatIsThere(t *testing.T) {
	there := map[string]bool{}
	for _, d := range dashboards(t) {
		for _, panel := range d.Graphs() {
			place := d.Name + ": " + panel.Title
			there[place] = true
			for _, target := range panel.Targets {
				there[fmt.Sprintf("%s, query %s", place, target.RefID)] = true
			}
		}
	}
	for _, d := range dashboards(t) {
		for _, v := range d.Templating.List {
			there[fmt.Sprintf("%s: variable %s", d.Name, v.Name)] = true
		}
		for _, a := range d.Annotations.List {
			there[fmt.Sprintf("%s: annotation %s", d.Name, a.Name)] = true
		}
	}
	window := regexp.MustCompile(` \([a-z ]+\)$`)
	for place := range excuses(t) {
		if !there[window.ReplaceAllString(place, "")] {
			t.Errorf("may-be-empty.txt: there is no %s", place)
		}
	}
}

func askedPrometheus(t *testing.T) Prometheus {
	t.Helper()
	base := os.Getenv("PROMETHEUS_URL")
	if base == "" {
		t.Skip("PROMETHEUS_URL is not set; tests/e2e sets it")
	}
	return Prometheus{URL: base}
}

func askedWindows(t *testing.T) []Window {
	t.Helper()
	if text := os.Getenv("PROMETHEUS_WINDOWS"); text != "" {
		var windows []Window
		if err := json.Unmarshal([]byte(text), &windows); err != nil || len(windows) == 0 {
			t.Fatalf("PROMETHEUS_WINDOWS: %v in %s", err, text)
		}
		return windows
	}
	span := 15 * time.Minute
	if text := os.Getenv("PROMETHEUS_RANGE"); text != "" {
		var err error
		if span, err = time.ParseDuration(text); err != nil {
			t.Fatalf("PROMETHEUS_RANGE: %v", err)
		}
	}
	now := time.Now()
	return []Window{{Name: "last " + span.String(), From: now.Add(-span), To: now}}
}

// excuses are the places of may-be-empty.txt, with their reasons.
func excuses(t *testing.T) map[string]string {
	t.Helper()
	return reasons(t, "may-be-empty.txt")
}

// reasons reads lines "NAME # REASON".
func reasons(t *testing.T, file string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := eachLine(file, func(line string) {
		if line == "" || strings.HasPrefix(line, "#") {
			return
		}
		name, reason, _ := strings.Cut(line, " # ")
		if strings.TrimSpace(reason) == "" {
			t.Errorf("%s: no reason in %q", file, line)
		}
		found[strings.TrimSpace(name)] = strings.TrimSpace(reason)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
