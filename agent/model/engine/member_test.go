package engine

import (
	"testing"
	"time"
)

func TestRestarts(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type step struct {
		after, uptime time.Duration
		want          uint64
	}
	tests := map[string][]step{
		"steady":                {{0, 100 * time.Second, 0}, {time.Second, 101 * time.Second, 0}, {time.Second, 101 * time.Second, 0}, {time.Second, 103 * time.Second, 0}},
		"late answer":           {{0, 100 * time.Second, 0}, {1900 * time.Millisecond, 101 * time.Second, 0}},
		"restart":               {{0, 100 * time.Second, 0}, {5 * time.Second, time.Second, 1}, {time.Second, 2 * time.Second, 1}},
		"uptime past the old":   {{0, 10 * time.Second, 0}, {30 * time.Second, 17 * time.Second, 1}},
		"twice":                 {{0, time.Hour, 0}, {9 * time.Second, time.Second, 1}, {20 * time.Second, 3 * time.Second, 2}},
		"unknown in between":    {{0, 100 * time.Second, 0}, {time.Second, 0, 0}, {time.Second, 102 * time.Second, 0}},
		"server's clock ahead":  {{0, 100 * time.Second, 0}, {time.Second, 4000 * time.Second, 0}},
		"stopped and continued": {{0, 100 * time.Second, 0}, {12 * time.Second, 112 * time.Second, 0}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			var r restartCounter
			now := at
			for i, s := range steps {
				now = now.Add(s.after)
				if r.observe(now, s.uptime); r.n != s.want {
					t.Errorf("step %d: %d restarts, want %d", i, r.n, s.want)
				}
			}
		})
	}
}
