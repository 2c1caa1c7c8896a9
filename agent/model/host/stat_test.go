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

	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// TestStat guards that the values from /proc/stat equal those of package procfs.
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
				want := cpuTime{inUser: c.User + c.Nice, inSystem: c.System, inIdle: c.Idle, inIOWait: c.Iowait, inIRQ: c.IRQ, inSoftIRQ: c.SoftIRQ, inSteal: c.Steal}
				for i, v := range want {
					if math.Abs(v-got[i]) > 1e-6 {
						t.Errorf("%s is %+v, want %+v", what, got, want)
						return
					}
				}
			}
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
		if err != nil {
			return
		}
		for name, core := range s.cores {
			if core.total() < 0 || math.IsNaN(core.total()) {
				t.Errorf("%s: %+v", name, core)
			}
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

// TestDisks guards that the values from /proc/diskstats equal those of package procfs.
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
		set(DiskRead, float64(d.ReadSectors)*512)
		set(DiskWritten, float64(d.WriteSectors)*512)
		set(DiskReads, float64(d.ReadIOs))
		set(DiskWrites, float64(d.WriteIOs))
		set(DiskReadTime, float64(d.ReadTicks)*1e-3)
		set(DiskWriteTime, float64(d.WriteTicks)*1e-3)
		set(DiskBusyTime, float64(d.IOsTotalTicks)*1e-3)
		set(DiskQueueTime, float64(d.WeightedIOTicks)*1e-3)
		if d.IoStatsCount >= 20 {
			set(DiskFlushes, float64(d.FlushRequestsCompleted))
		}
	}
	if len(want.disks) < 2 || !reflect.DeepEqual(got.disks, want.disks) {
		t.Errorf("%v, want %v", got.disks, want.disks)
	}
}

// TestNetworks guards that the values from /proc/net/dev equal those of package procfs.
func TestNetworks(t *testing.T) {
	const text = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 9 8 7 6 5 4 3 2 9 8 7 6 5 4 3 2
  eth0: 101 2 3 4 5 6 7 8 109 10 11 12 13 14 15 16
enp1s0f0:18446744073709551615 2 0 0 0 0 0 0 21 22 23 24 25 26 27 28
`
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "net"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "net", "dev"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	fs, err := procfs.NewFS(dir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := fs.NetDev()
	if err != nil {
		t.Fatal(err)
	}
	delete(all, "lo")
	got, want := newReading(), newReading()
	got.setNetworks([]byte(text))
	for name, d := range all {
		for m, v := range map[*measure.Metric]uint64{
			NetReceived: d.RxBytes, netReceivedPackets: d.RxPackets, NetSent: d.TxBytes, netSentPackets: d.TxPackets, netDrops: d.RxDropped + d.TxDropped,
		} {
			want.set(want.networks, name, m, float64(v))
		}
	}
	if len(want.networks) != 2 || !reflect.DeepEqual(got.networks, want.networks) {
		t.Errorf("%v, want %v", got.networks, want.networks)
	}
}

// TestProcfs guards that this machine's memory and pressure are what package procfs reads.
func TestProcfs(t *testing.T) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		t.Skip(err)
	}
	memory, err := fs.Meminfo()
	if err != nil {
		t.Fatal(err)
	}
	status, err := newProcfsProber().Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	values := map[*measure.Metric]float64{}
	for _, v := range status.Values {
		values[v.Metric] = v.V
	}
	if values[memoryTotal] != float64(*memory.MemTotalBytes) || !(values[memoryUsed] > 0) {
		t.Errorf("%v bytes of memory, %v used, want %d", values[memoryTotal], values[memoryUsed], *memory.MemTotalBytes)
	}
	for name, m := range map[string]*measure.Metric{"cpu": pressureCPU, "io": pressureIO, "memory": pressureMemory} {
		psi, err := fs.PSIStatsForResource(name)
		if err != nil {
			continue
		}
		now := float64(psi.Some.Total) / 1e6
		if v, ok := values[m]; !ok || v > now || v < now-60 {
			t.Errorf("the pressure of %s is %v s, want %v", name, v, now)
		}
	}
	for _, m := range []*measure.Metric{Swapped, retransmits, listenDrops} {
		if _, ok := values[m]; !ok {
			t.Errorf("no %s", m.Name)
		}
	}
}
