package host

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestThrottling guards both versions of control groups, and that the quota that throttles counts, also in a parent
// group.
func TestThrottling(t *testing.T) {
	root := t.TempDir()
	for file, stat := range map[string]string{
		"cpu/a/b/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
		"cpu/a/cpu.stat":   "nr_periods 50\nnr_throttled 40\nthrottled_time 9000000000\n",
		"c/cpu.stat":       "usage_usec 100\nnr_periods 30\nnr_throttled 3\nthrottled_usec 250000\n",
		"d/cpu.stat":       "usage_usec 100\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(stat), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for groups, want := range map[string]struct {
		throttling
		ok bool
	}{
		"5:memory:/x\n4:cpu,cpuacct:/a/b\n": {throttling{50, 40, 9}, true},
		"0::/c\n":                           {throttling{30, 3, 0.25}, true},
		"0::/d\n":                           {throttling{}, true},
		"0::/gone\n":                        {throttling{}, true},
		"":                                  {throttling{}, false},
		"nonsense":                          {throttling{}, false},
	} {
		got, ok := new(openFiles).throttling(groups, root)
		if got != want.throttling || ok != want.ok {
			t.Errorf("%q: %+v, %t", groups, got, ok)
		}
	}
}

// TestQuotaHeld guards that the share is of the time: a quota that ends each period for a short while
// holds for that while, and one that holds two cores at once does not hold for longer than the time.
func TestQuotaHeld(t *testing.T) {
	begin := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
	q := quota{at: begin, last: throttling{100, 10, 2}}
	for _, c := range []struct {
		now  throttling
		want float64
	}{
		{throttling{110, 20, 2.05}, 0.05},
		{throttling{120, 30, 3.85}, 1},
		{throttling{120, 30, 3.85}, 0},
		{throttling{130, 33, 4.45}, 0.3},
	} {
		begin = begin.Add(time.Second)
		if held, ok := q.since(c.now, begin); !ok || math.Abs(held-c.want) > 1e-9 {
			t.Errorf("%+v: %v, %t", c.now, held, ok)
		}
	}
	if _, ok := q.since(throttling{1, 0, 0}, begin.Add(time.Second)); ok {
		t.Error("a share after the process has moved to another group")
	}
	if _, ok := (&quotas{files: &openFiles{}, proc: t.TempDir()}).of(1); ok {
		t.Error("a quota of a process that has ended")
	}
}
