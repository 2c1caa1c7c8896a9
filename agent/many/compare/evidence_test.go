package compare

import (
	"strings"
	"testing"
)

// TestCompareVerdicts guards that a difference is called one only if the runs can
// distinguish it from noise.
func TestCompareVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		a, b    []float64
		verdict Verdict
		text    string
	}{
		"one run each":    {[]float64{1000}, []float64{900}, Single, "-10.0 %, one run, may be noise"},
		"one against ten": {[]float64{1000, 1001, 1002, 1003, 1004, 1005}, []float64{900}, Single, "one run"},
		"three each":      {[]float64{1000, 1001, 1002}, []float64{900, 901, 902}, TooFew, "-10.0 %, too few runs (p=0.100)"},
		"four each":       {[]float64{1000, 1001, 1002, 1003}, []float64{900, 901, 902, 903}, Different, "-10.0 % (p=0.029)"},
		"overlapping":     {[]float64{1000, 950, 1050, 990}, []float64{1010, 940, 1040, 980}, NotProven, ", not proven (p="},
		"all the same":    {[]float64{1000, 1000, 1000, 1000}, []float64{1000, 1000, 1000, 1000}, NotProven, "+0.0 %, not proven (p=1.000)"},
	} {
		got := Compare([]Group{repeats("direct", 16, c.a...), repeats("atlas", 16, c.b...)}, []string{"via"})
		s := got.Lines[0].Samples[1]
		if got.Lines[0].Measure != "tps" || s.Verdict != c.verdict || !strings.Contains(s.difference(), c.text) {
			t.Errorf("%s: %s %q %q", name, got.Lines[0].Measure, s.Verdict, s.difference())
		}
		if c.verdict == Single && !strings.Contains(strings.Join(got.Notes, "\n"), "one run says nothing about spread") {
			t.Errorf("%s: the note is missing: %q", name, got.Notes)
		}
	}
}

// TestSharedProof guards that a proof that several measures share is in the sentence once, and that
// the proof of runs that do not overlap counts as one.
func TestSharedProof(t *testing.T) {
	short := "not proven, too short to tell"
	got := joined([]statement{{"tps +1 %", short}, {"p95 +2 %", short}, {"errors 0 → 3", "proven (p=0.029)"}, {"p99 alike (2 ms)", ""}, {"max alike (3 ms)", ""}})
	if want := "tps +1 % and p95 +2 %, " + short + "; errors 0 → 3, proven (p=0.029); p99 alike (2 ms); max alike (3 ms)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for verdict, want := range map[Verdict]bool{Different: true, RunsDiffer: true, RunsApart: true, RunsStall: false, RunsUnclear: false, TooShort: false, Single: false} {
		if s := (Sample{Verdict: verdict, Shape: &Shape{}}); s.Verdict.isProven() != want || strings.HasPrefix(s.proof(), "proven") != want {
			t.Errorf("%s: %v, %q", verdict, s.Verdict.isProven(), s.proof())
		}
	}
}

func TestBestAndKnee(t *testing.T) {
	for name, c := range map[string]struct {
		values     []float64
		best, knee int
	}{
		"one value":          {[]float64{3}, 0, 0},
		"grows to the end":   {[]float64{1, 2, 4, 8}, 3, 3},
		"flat after a knee":  {[]float64{10, 50, 96, 100, 99}, 3, 2},
		"falls":              {[]float64{9, 8, 7}, 0, 0},
		"first of two equal": {[]float64{1, 5, 5}, 1, 1},
		"nothing done":       {[]float64{0, 0}, 0, 0},
	} {
		best, knee := BestAndKnee(len(c.values), func(i int) float64 { return c.values[i] })
		if best != c.best || knee != c.knee {
			t.Errorf("%s: best %d, knee %d, want %d and %d", name, best, knee, c.best, c.knee)
		}
	}
}
