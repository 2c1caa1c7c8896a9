package host

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestAllowedCores guards that the cores of a program are the union of the cores of its processes that use CPU.
func TestAllowedCores(t *testing.T) {
	for name, c := range map[string]struct {
		lists []string // of processes, each using ten times as much as the next one
		want  int
	}{
		"all":                    {[]string{"0-7"}, 8},
		"pinned":                 {[]string{"2,4-6"}, 4},
		"each to its own":        {[]string{"0", "1"}, 2},
		"a shell that is not":    {[]string{"3", "3", "0-7"}, 1},
		"unreadable":             {[]string{"x-y,-1"}, 0},
		"ended":                  {nil, 0},
		"one of them has no end": {[]string{"0-3,9-"}, 4},
	} {
		p, all, pids := Programs{root: t.TempDir()}, map[int]process{50: {own: 1}}, []int{50}
		used := 1000.0
		for i, list := range c.lists {
			pid := 100 + i
			all[pid], pids, used = process{own: used}, append(pids, pid), used/10
			dir := filepath.Join(p.root, fmt.Sprint(pid))
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			status := "Name:\tsysbench\nCpus_allowed:\tff\nCpus_allowed_list:\t" + list + "\nMems_allowed:\t1\n"
			if err := os.WriteFile(filepath.Join(dir, "status"), []byte(status), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := p.allowed(all, pids); got != c.want {
			t.Errorf("%s: %d cores, want %d", name, got, c.want)
		}
	}
}
