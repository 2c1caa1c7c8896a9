package host

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/prometheus/procfs"
)

// TestStat guards that what is read of /proc/stat is what package procfs reads of it.
func TestStat(t *testing.T) {
	own, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Skip(err)
	}
	for name, text := range map[string]string{
		"own": string(own),
		"cores": "cpu  10132153 290696 3084719 46828483 16683 25195 130031 7 175628 1\ncpu0 1393280 32966 572056 13343292 6130 3 17875 4 23933 1\ncpu12 1393281 0 1 2 3 4 5 6 7 8\n" +
			"intr 199292 0 0 22 3\nctxt 22848221062\nbtime 1605316999\nprocesses 5213997\nprocs_running 3\nprocs_blocked 0\nsoftirq 52191 1 2 3 4 5 6 7 8 9 10\n",
		"old kernel": "cpu 1 2 3 4\ncpu0 1 2 3 4\nctxt 7\nbtime 8\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			fs, err := procfs.NewFS(dir)
			if err != nil {
				t.Fatal(err)
			}
			want, err := fs.Stat()
			if err != nil {
				t.Fatal(err)
			}
			got, err := parseStat([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			same := func(what string, c procfs.CPUStat, got cpuTime) {
				t.Helper()
				want := cpuTime{user: c.User + c.Nice, system: c.System, idle: c.Idle, iowait: c.Iowait, irq: c.IRQ, softirq: c.SoftIRQ, steal: c.Steal}
				for i, v := range want.each() {
					if math.Abs(v-got.each()[i]) > 1e-6 {
						t.Errorf("%s is %+v, want %+v", what, got, want)
						return
					}
				}
			}
			same("all", want.CPUTotal, got.all)
			for i, c := range want.CPU {
				same("core", c, got.cores[strconv.FormatInt(i, 10)])
			}
			if len(got.cores) != len(want.CPU) || got.switches != float64(want.ContextSwitches) || got.booted != float64(want.BootTime) {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
	for _, text := range []string{"", "cpu 1 2 3\n", "intr 1\n"} {
		if _, err := parseStat([]byte(text)); err == nil {
			t.Errorf("%q has no cores, and no error", text)
		}
	}
}

func FuzzStat(f *testing.F) {
	f.Add([]byte("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 x\nctxt 5"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseStat(text)
		if err == nil && (s.all.total() < 0 || math.IsNaN(s.all.total())) {
			t.Errorf("%+v", s)
		}
	})
}

// BenchmarkStat is of this machine's /proc/stat.
func BenchmarkStat(b *testing.B) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		b.Skip(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseStat(text); err != nil {
			b.Fatal(err)
		}
	}
}
