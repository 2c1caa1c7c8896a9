package host

import (
	"os"
	"path/filepath"
	"testing"
)

// TestThrottling guards both versions of control groups, and that the quota that holds
// counts, also if a group around the process's own has it.
func TestThrottling(t *testing.T) {
	root := t.TempDir()
	for file, stat := range map[string]string{
		"cpu/a/b/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
		"cpu/a/cpu.stat":   "nr_periods 50\nnr_throttled 40\nthrottled_time 9\n",
		"c/cpu.stat":       "usage_usec 100\nnr_periods 30\nnr_throttled 3\n",
		"d/cpu.stat":       "usage_usec 100\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(stat), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for groups, want := range map[string][3]float64{
		"5:memory:/x\n4:cpu,cpuacct:/a/b\n": {50, 40, 1},
		"0::/c\n":                           {30, 3, 1},
		"0::/d\n":                           {0, 0, 1},
		"0::/gone\n":                        {0, 0, 1},
		"":                                  {0, 0, 0},
		"nonsense":                          {0, 0, 0},
	} {
		periods, throttled, ok := new(files).throttling(groups, root)
		if periods != want[0] || throttled != want[1] || ok != (want[2] == 1) {
			t.Errorf("%q: %v of %v periods, %t", groups, throttled, periods, ok)
		}
	}
}
