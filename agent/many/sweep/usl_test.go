package sweep

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func points(u USL, threads ...float64) []Point {
	var all []Point
	for _, n := range threads {
		all = append(all, Point{n, u.At(n)})
	}
	return all
}

// TestFitFindsTheLaw guards the fit for points that lie exactly on a law.
func TestFitFindsTheLaw(t *testing.T) {
	for _, want := range []USL{
		{Gamma: 995.6, Sigma: 0.02671, Kappa: 0.000769}, // Gunther's own example
		{Gamma: 40, Sigma: 0.2, Kappa: 1e-6},
		{Gamma: 1, Sigma: 0, Kappa: 0.001},
		{Gamma: 500, Sigma: 0.05, Kappa: 0},
		{Gamma: 12, Sigma: 0, Kappa: 0},
		{Gamma: 3000, Sigma: 0.9, Kappa: 0.02},
	} {
		got, err := Fit(points(want, 1, 2, 4, 8, 16, 32, 64, 128))
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Gamma/want.Gamma-1) > 1e-3 || math.Abs(got.Sigma-want.Sigma) > 1e-3*max(want.Sigma, 0.01) || math.Abs(got.Kappa-want.Kappa) > 1e-2*max(want.Kappa, 1e-5) || got.R2 < 0.99999 {
			t.Errorf("fit %+v, want %+v", got, want)
		}
	}
}

// TestFitOfNoise guards that measured points with noise give nearly the same law.
func TestFitOfNoise(t *testing.T) {
	law := USL{Gamma: 1000, Sigma: 0.03, Kappa: 0.0005}
	scatter := rand.New(rand.NewPCG(1, 2))
	all := points(law, 1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)
	for i := range all {
		all[i].Throughput *= 1 + 0.02*scatter.NormFloat64()
	}
	u, err := Fit(all)
	if err != nil {
		t.Fatal(err)
	}
	truth, _ := law.Peak()
	if peak, ok := u.Peak(); !ok || math.Abs(peak/truth-1) > 0.15 || u.R2 < 0.95 {
		t.Errorf("peak %v, want about %v; %+v", peak, truth, u)
	}
}

func TestFitRefuses(t *testing.T) {
	for want, all := range map[string][]Point{
		"3 different numbers of threads": {{1, 10}, {2, 20}, {4, 30}, {4, 31}},
		"the same at every":              {{1, 10}, {2, 10}, {4, 10}, {8, 10}},
		"no throughput":                  {{1, 10}, {2, 20}, {4, 0}, {8, 40}},
	} {
		if u, err := Fit(all); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %+v, %v", all, u, err)
		}
	}
	if u, err := Fit([]Point{{1, math.NaN()}, {2, 1}, {3, 2}, {4, math.Inf(1)}}); err == nil {
		t.Errorf("of NaN: %+v", u)
	}
}
