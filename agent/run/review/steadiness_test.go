package review

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

func point(text string, second float64) marker.Marker {
	return marker.Marker{Kind: marker.Point, Text: text, Start: recorded.Start.Add(time.Duration(second * float64(time.Second)))}
}

func TestSteadiness(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	levels := func(n int, level func(second int) float64) []float64 {
		rates := make([]float64, n)
		for i := range rates {
			rates[i] = level(i) * (1 + 0.04*random.NormFloat64())
		}
		return rates
	}
	drop := levels(60, func(s int) float64 {
		if s < 15 {
			return 1700
		}
		return 650
	})
	slow := levels(60, func(s int) float64 {
		if s < 8 {
			return 400
		}
		return 1700
	})
	steady := levels(120, func(int) float64 { return 1000 })
	noisy := make([]float64, 120)
	for i := range noisy {
		noisy[i] = 1000 + 430*float64(i*7919%100-50)/50
	}
	stalled := levels(120, func(s int) float64 {
		if s == 50 || s == 90 {
			return 10
		}
		return 1000
	})
	for _, c := range []struct {
		name    string
		rates   []float64
		markers []marker.Marker
		level   Level
		want    string
		not     []string
	}{
		{"a drop", drop, nil, Warning, "throughput dropped from 17", []string{"warm up", "steady"}},
		{"its time and size", drop, nil, Warning, " transactions/s at 0:15, -6", nil},
		{"a drop at a marker", drop, []marker.Marker{point("old", 2), point("n3 slow", 14.2)}, Note, `marker "n3 slow" at 0:14`, []string{"warm up", `"old"`}},
		{"an alert is no cause", drop, []marker.Marker{{Kind: marker.Alert, Text: "TooSlow", Start: recorded.Start.Add(15 * time.Second)}}, Warning, "at 0:15", []string{"TooSlow"}},
		{"a slow start", slow, nil, Warning, "at 0:08, +3", nil},
		{"its advice", slow, nil, Warning, "the slow start is in the summary; warm up first", nil},
		{"a slow start that a marker explains", slow, []marker.Marker{point("cache filled", 7.5)}, Note, `"cache filled"`, []string{"warm up"}},
		{"steady", steady, nil, Good, "throughput was steady", []string{"dropped", "rose", "warm up"}},
		{"noisy", noisy, nil, Note, "throughput varied from interval to interval (coefficient of variation 25 %)", []string{"was steady", "dropped", "rose"}},
		{"stalls", stalled, nil, Note, "in 2 of 120 intervals throughput was less than half of the mean", []string{"dropped", "rose", "was steady"}},
		{"a stall after a drop", append(slices.Clone(drop), 1), nil, Note, "intervals throughput was less than half of the mean between two changes", []string{"was steady"}},
		{"five against five", []float64{4740, 4700, 4655, 4630, 4611, 2091, 2060, 2000, 1990, 1951}, nil, Warning, "dropped from 4667 to 2018 transactions/s at 0:05, -57 %", []string{"too few"}},
		{"five against four", []float64{4740, 4700, 4655, 4630, 4611, 2091, 2060, 2000, 1990}, nil, Note, "9 intervals: too few", []string{"dropped"}},
		{"few intervals", steady[:10], nil, Note, "10 intervals: too few", []string{"throughput was"}},
	} {
		h := recorded.Read(t, recorded.Sysbench(t, c.rates, c.markers...))
		found := false
		for _, f := range NewRun(h).Trust {
			found = found || f.Level == c.level && strings.Contains(f.Text, c.want)
			for _, bad := range c.not {
				if strings.Contains(f.Text, bad) {
					t.Errorf("%s: %q", c.name, f.Text)
				}
			}
		}
		if !found {
			t.Errorf("%s: no %s with %q in %v", c.name, c.level, c.want, NewRun(h).Trust)
		}
	}
}
