package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/ab"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// The page of each run of an A/B comparison has the interval so far, also between two runs, and in the end
// the verdict.
func TestComparison(t *testing.T) {
	s := newSite(t)
	plan := &ab.Plan{Arms: []ab.Arm{{Name: "a"}, {Name: "b"}}, Seed: 3, Measure: "tps", Limit: 0.05, MaxSeconds: 3600}
	c := &sweep.Sweep{CreatedAt: begin}
	if err := plan.Store(c); err != nil {
		t.Fatal(err)
	}
	plan.Extend(c)
	c.Command = []string{"sysbench"}
	if err := sweep.Create(s.dataDir, "ab", c); err != nil {
		t.Fatal(err)
	}
	s.ended(rundir.Meta{ID: "block", Labels: map[string]string{"ab": c.ID, "arm": "a"}}, "")
	s.ended(rundir.Meta{ID: "lead-in", Labels: map[string]string{"ab_warmup": c.ID}}, "")
	s.ended(rundir.Meta{ID: "alone"}, "")
	s.ended(rundir.Meta{ID: "elsewhere", Labels: map[string]string{"ab": "20261121T021403Z-ab-other"}}, "")
	s.ended(rundir.Meta{ID: "outside", Labels: map[string]string{"ab": "../runs/block"}}, "")
	shown := func() string {
		status, body := s.get("/api/runs/block/comparison?width=500")
		if _, other := s.get("/api/runs/lead-in/comparison?width=500"); status != http.StatusOK || string(other) != string(body) {
			t.Fatalf("%d %s\n%s", status, body, other)
		}
		return string(body)
	}
	if text := shown(); !strings.Contains(text, "A/B comparison so far") || !strings.Contains(text, "b has no pair of blocks") {
		t.Error(text)
	}
	for _, id := range []string{"alone", "elsewhere", "outside"} {
		if status, body := s.get("/api/runs/" + id + "/comparison"); status < 400 {
			t.Errorf("%s: %d %s", id, status, body)
		}
	}
	stream := s.stream()
	stream.next("comparison", has(c.ID)) // the state when the stream began
	at := begin
	over := func() bool {
		for step := c.Next(); step != nil; step = c.Next() {
			value := 1000 - float64(step.Number%3)
			if step.Values[sweep.ArmSet] == "b" {
				value *= 0.9
			}
			step.State, step.RunID, step.Began, step.Seconds = sweep.Done, "block", at, 10
			step.Measured = map[string]float64{"tps": value}
			at = at.Add(10 * time.Second)
		}
		if err := c.Save(); err != nil {
			t.Fatal(err)
		}
		stream.next("comparison", has(c.ID))
		return !plan.Extend(c)
	}
	for n := 0; !over(); n++ {
		if n == 0 && !strings.Contains(shown(), "undecided after ") {
			t.Error(shown())
		}
	}
	for _, want := range []string{`"title":"A/B comparison"`, "b is slower than a by 10.", "a against b by tps; a difference of 5 % matters", "interval of the difference", "control: a against itself"} {
		if text := shown(); !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}
