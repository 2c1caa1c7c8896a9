package imports

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
)

// machineRow is a status with the values of some metrics.
type machineRow struct {
	elapsed, interval float64
	status            *engine.Status
}

func readLogs(t *testing.T, duration float64, logs ...MachineLog) (rows []machineRow) {
	t.Helper()
	_, err := readMachine(t.Context(), logs, duration, func(elapsed, interval float64, s *engine.Status) error {
		rows = append(rows, machineRow{elapsed, interval, s})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func captured(program, file string) MachineLog {
	return MachineLog{program, filepath.Join("testdata", "monitor", file)}
}

// The values of the second and third report, in the captures of one machine: shares of CPU
// time, and what was written in a second.
func TestMachineLogs(t *testing.T) {
	for _, tt := range []struct {
		program, file  string
		interval       float64
		rows           int
		user           float64 // of the first row, as a share of all cores; without cores of all in use
		metric         *measure.Metric
		device         string
		first, between float64 // the metric in the first row, and what the second one adds
		cores          float64
	}{
		{"vmstat", "vmstat.txt", 1, 4, 33.0 / 101, host.Switches, "", 14193, 13816, 0},
		{"vmstat", "vmstat-t.txt", 1, 4, 33.0 / 101, host.DiskWritten, "all", 128 << 10, 61784 << 10, 0},
		{"iostat", "iostat.txt", 1, 4, 0.2764, host.DiskWritten, "vda", 128 << 10, 61784 << 10, 2},
		{"iostat", "iostat-t.txt", 1, 4, 0.2764, host.DiskReads, "vda", 12, 2, 2},
		{"iostat", "iostat-plain.txt", 1, 3, 0.2764, host.DiskWritten, "vda", 128 << 10, 61784 << 10, 2},
		{"mpstat", "mpstat.txt", 1, 4, 0.2714, host.CPUTimes[1], "", 2 * 0.0402, 2 * 0.0594, 2},
		{"mpstat", "mpstat-all.txt", 1, 4, 0.2714, host.CPUTimes[1], "", 2 * 0.0402, 2 * 0.0591, 2},
		{"dstat", "dstat.txt", 1, 3, 29.0 / 101, host.Switches, "", 14 << 10, 13 << 10, 0},
		{"dstat", "dstat-t.txt", 1, 3, 30.0 / 99, host.DiskWritten, "all", 60 << 20, 344 << 10, 0},
	} {
		t.Run(tt.file, func(t *testing.T) {
			rows := readLogs(t, 4, captured(tt.program, tt.file))
			if len(rows) != tt.rows {
				t.Fatalf("%d rows, want %d", len(rows), tt.rows)
			}
			for i, r := range rows {
				if r.elapsed != float64(i+1) || r.interval != tt.interval {
					t.Errorf("row %d: at %v, %v long", i, r.elapsed, r.interval)
				}
			}
			of := host.CPUTimes[0]
			if tt.cores == 0 { // CPU time can't be known
				of = host.BusyShare
				if v, ok := rows[0].status.Get(host.CPUTimes[0]); ok {
					t.Errorf("%v s of CPU of an unknown number of cores", v)
				}
			}
			user, _ := rows[0].status.Get(of)
			if want := tt.user * max(tt.cores, 1); math.Abs(user-want) > 1e-9 {
				t.Errorf("user %v, want %v", user, want)
			}
			var labels []string
			if tt.device != "" {
				labels = []string{tt.device}
			}
			first, _ := rows[0].status.Get(tt.metric, labels...)
			second, _ := rows[1].status.Get(tt.metric, labels...)
			if math.Abs(first-tt.first) > 1e-6*tt.first || math.Abs(second-first-tt.between) > 1e-6*tt.between {
				t.Errorf("%s: %v and %v more, want %v and %v", tt.metric.Name, first, second-first, tt.first, tt.between)
			}
			if n, _ := rows[0].status.Get(host.CoreCount); n != tt.cores {
				t.Errorf("%v cores, want %v", n, tt.cores)
			}
		})
	}
}

// Values that several programs print count once.
func TestMachineLogsTogether(t *testing.T) {
	rows := readLogs(t, 3, captured("mpstat", "mpstat.txt"), captured("iostat", "iostat.txt"), captured("vmstat", "vmstat.txt"), captured("dstat", "dstat.txt"))
	if len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	s := rows[0].status
	if s.Nodename != "vm" || s.Version != "mpstat, iostat, vmstat, dstat" {
		t.Errorf("%q %q", s.Nodename, s.Version)
	}
	seen := map[string]int{}
	for _, v := range s.Values {
		seen[v.Metric.Name]++
	}
	want := map[string]int{}
	for name := range seen {
		want[name] = 1
	}
	if d := cmp.Diff(want, seen); d != "" {
		t.Errorf("values of several programs:\n%s", d)
	}
	if v, _ := s.Get(host.BusiestCoreShare); math.Abs(v-0.33) > 1e-9 {
		t.Errorf("busiest core %v", v)
	}
	if v, _ := s.Get(host.CPUTimes[0]); math.Abs(v-2*0.2714) > 1e-9 {
		t.Errorf("user %v is not that of mpstat", v)
	}
}

// A log of a program that printed each ten seconds, without times.
func TestMachineLogWithoutTimes(t *testing.T) {
	rows := readLogs(t, 41, captured("vmstat", "vmstat.txt"))
	if len(rows) != 4 || rows[3].elapsed != 40 || rows[3].interval != 10 {
		t.Errorf("%+v", rows)
	}
}

// The name of a log of any tool differs from that of its machine's log by the tool's name.
func TestMachineLogsBeside(t *testing.T) {
	dir := t.TempDir()
	names := []string{
		"run-8.sysbench.txt", "run-8.vmstat.txt", "run-8.iostat.log", "run-16.vmstat.txt", "mpstat-run-8.txt", "dstat.txt", "other.log",
		"mysql-8.vmstat.txt",
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := List(dir, registry.Tools)
	if err != nil {
		t.Fatal(err)
	}
	type test struct {
		log   string
		alone bool
		want  []string
	}
	ofRun8 := []string{"mpstat-run-8.txt", "run-8.iostat.log", "run-8.vmstat.txt"}
	tests := []test{
		{"run-8.log", false, ofRun8}, {"run-8.gotpc.txt", false, ofRun8}, {"run-8.tpcc.out", false, ofRun8}, {"mysqlslap_run-8", false, ofRun8},
		{"other.log", false, nil}, {"other.log", true, []string{"dstat.txt"}}, {"mysql-8.sysbench.txt", false, []string{"mysql-8.vmstat.txt"}},
	}
	for _, tool := range registry.Tools {
		tests = append(tests, test{"run-8." + tool.Name + ".txt", false, ofRun8})
	}
	for _, tt := range tests {
		var names []string
		for _, l := range folder.MachineLogs(tt.log, tt.alone) {
			names = append(names, filepath.Base(l.Path))
		}
		if !slices.Equal(names, tt.want) {
			t.Errorf("%s: %q, want %q", tt.log, names, tt.want)
		}
	}
}

func TestMachineLogStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := readMachine(ctx, []MachineLog{captured("vmstat", "vmstat.txt")}, 4, func(float64, float64, *engine.Status) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func FuzzMachineLog(f *testing.F) {
	for _, p := range programs {
		files, err := filepath.Glob(filepath.Join("testdata", "monitor", p.name+"*.txt"))
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(p.name, text)
		}
	}
	f.Fuzz(func(t *testing.T, program string, text []byte) {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		last := 0.0
		_, _ = readMachine(t.Context(), []MachineLog{{program, path}}, 1e6, func(elapsed, interval float64, s *engine.Status) error {
			if elapsed < last || !(interval > 0) {
				t.Fatalf("row at %v after %v, %v long", elapsed, last, interval)
			}
			last = elapsed
			for _, v := range s.Values {
				if math.IsNaN(v.V) || math.IsInf(v.V, 0) || v.V < 0 {
					t.Fatalf("%s is %v", v.Metric.Name, v.V)
				}
			}
			return nil
		})
	})
}
