package rundir

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFacts(t *testing.T) {
	m := Meta{
		Benchmark: Benchmark{Tool: "sysbench", ToolVersion: "1.0.20", Verb: "run", Workload: "oltp_read_write", Threads: 16, Target: "db:3306", Database: "sbtest"},
		Process:   Process{Generator: "load1"},
		Labels:    map[string]string{"via": "direct", "az": "b", "verb": "of an old run.json", "not-a-label": "x"},
	}
	want := []Fact{
		{"tool", "sysbench"}, {"tool_version", "1.0.20"}, {"verb", "run"}, {"workload", "oltp_read_write"}, {"threads", "16"},
		{"target", "db:3306"}, {"database", "sbtest"}, {"generator", "load1"}, {"group", ""}, {"az", "b"}, {"via", "direct"},
	}
	if d := cmp.Diff(want, m.Facts()); d != "" {
		t.Error(d)
	}
	if m.Fact("via") != "direct" || m.Fact("threads") != "16" || m.Fact("none") != "" {
		t.Error("a fact is not found by its name")
	}
	if got := new(Meta).Facts(); len(got) != len(FactNames()) || got[4].Value != "" {
		t.Errorf("a run of which nothing is known has the facts %v", got)
	}
}

// A label with the name of a fact would appear twice on benchwatch_run_info,
// which Prometheus' client refuses.
func TestNoFactIsALabel(t *testing.T) {
	for _, name := range append(FactNames(), "run", "title", "op", "result") {
		if err := CheckLabels(map[string]string{name: "x"}); !errors.Is(err, ErrReservedLabel) {
			t.Errorf("label %s: %v", name, err)
		}
	}
	for _, name := range []string{"", "1st", "a-b", "__name__", "ä"} {
		if err := CheckLabel(name); err == nil || errors.Is(err, ErrReservedLabel) {
			t.Errorf("label %q: %v", name, err)
		}
	}
	if err := CheckLabels(map[string]string{"via": "x", "team": ""}); err != nil {
		t.Error(err)
	}
}
