package report

import (
	"testing"

	"github.com/benchwatch/benchwatch/internal/recorded"
)

// TestPercentilesHaveNoMean: a legend shows the median of the intervals' percentiles.
func TestPercentilesHaveNoMean(t *testing.T) {
	h := recorded.Read(t, recorded.Sysbench(t, []float64{1000, 2000, 3000, 6000}))
	for _, c := range Charts(h) {
		for _, e := range c.Legend() {
			want := map[string]string{"transaction": "mean 3000", "transaction p95": "median of the intervals 2.50"}[e.Name]
			if want != "" && e.Typical != want {
				t.Errorf("%s of %s: %q, want %q", e.Name, c.Title, e.Typical, want)
			}
		}
	}
}
