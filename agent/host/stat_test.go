package host

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"

	"github.com/benchwatch/benchwatch/agent/measure"
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
	f.Add([]byte(" 253 0 vda 100 2 3000 400 500 6 70000 800 9 1000 11000\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		newReading().setDisks(text)
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

// TestDisks guards that what is read of /proc/diskstats is what package procfs reads of it.
func TestDisks(t *testing.T) {
	const text = `   7       0 loop0 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0 0 0
 259       0 nvme0n1 47114 4 4643973 21650 1078320 43950 39451633 1011053 0 222766 1032546 3 1 9 8 5000 77
 253       0 vda 100 2 3000 400 500 6 70000 800 9 1000 11000
   8       1 sda1 1 2 3
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "diskstats"), []byte(text[:strings.LastIndex(text, "   8 ")]), 0o600); err != nil {
		t.Fatal(err)
	}
	fs, err := blockdevice.NewFS(dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := fs.ProcDiskstats()
	if err != nil {
		t.Fatal(err)
	}
	got, want := newReading(), newReading()
	got.setDisks([]byte(text))
	for _, d := range all {
		set := func(m *measure.Metric, v float64) { want.setDisk(d.DeviceName, m, v) }
		set(diskRead, float64(d.ReadSectors)*512)
		set(diskWritten, float64(d.WriteSectors)*512)
		set(diskReads, float64(d.ReadIOs))
		set(diskWrites, float64(d.WriteIOs))
		set(diskReadTime, float64(d.ReadTicks)*1e-3)
		set(diskWriteTime, float64(d.WriteTicks)*1e-3)
		set(diskBusyTime, float64(d.IOsTotalTicks)*1e-3)
		set(diskQueueTime, float64(d.WeightedIOTicks)*1e-3)
		if d.IoStatsCount >= 20 {
			set(diskFlushes, float64(d.FlushRequestsCompleted))
		}
	}
	if len(want.disks) < 2 || !reflect.DeepEqual(got.disks, want.disks) {
		t.Errorf("%v, want %v", got.disks, want.disks)
	}
}
