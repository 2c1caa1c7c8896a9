package host

import (
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	_ "github.com/benchwatch/benchwatch/agent/model/engine/registry" // declares the names of their programs
)

// stat is a process as /proc shows it, its times in hundredths of a second.
type stat struct {
	pid, parent, session int
	name                 string
	own, children, start int
}

// procOf writes the files of processes that are read.
func procOf(t *testing.T, all ...stat) string {
	t.Helper()
	root := t.TempDir()
	for _, s := range all {
		dir := filepath.Join(root, strconv.Itoa(s.pid))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%d (%s) S %d %d %d 0 -1 4194304 101 0 0 0 %d %d %d %d 20 0 1 0 %d 3133440 414\n",
			s.pid, s.name, s.parent, s.session, s.session, s.own-s.own/4, s.own/4, s.children, 0, s.start)
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestPrograms guards to whom CPU time is attributed: the tool's session and processes that left it, servers, and
// others, of which the busiest are named. The agent and the kernel's threads do not count, and the earlier CPU time of
// an ended process is not counted again.
func TestPrograms(t *testing.T) {
	self := os.Getpid()
	const tool = 1000000
	rest := []stat{
		{1, 0, 1, "systemd", 100, 9000, 1}, {2, 0, 0, "kthreadd", 0, 0, 1}, {3, 2, 0, "kworker/0:1", 700, 0, 1},
		{self, 1, self, "host.test", 50, 0, 5},
	}
	p := Programs{root: procOf(t, append(rest,
		stat{tool, self, tool, "bash", 10, 0, 50}, stat{tool + 1, tool, tool, "sysbench", 300, 0, 51},
		stat{2000, 1, 2000, "mariadbd", 5000, 0, 9}, stat{3000, 1, 3000, "make) (x", 20, 40, 9}, stat{3001, 3000, 3000, "cc1", 600, 0, 10},
		stat{4000, 1, 4000, "prometheus", 900, 0, 9},
	)...)}
	begin := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
	read := func(after time.Duration) map[string]float64 {
		var status engine.Status
		p.Read(tool, nil, begin.Add(after), &status)
		got := map[string]float64{}
		for _, v := range status.Values {
			name := v.Metric.Name
			for _, label := range v.Labels {
				name += " " + label
			}
			got[name] = math.Round(v.V*100) / 100
		}
		return got
	}
	expect := func(got, want map[string]float64) {
		t.Helper()
		for name, v := range want {
			if has, ok := got["host_"+name]; !ok || has != v {
				t.Errorf("%s is %v, want %v", name, has, v)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%v", got)
		}
	}
	expect(read(0), map[string]float64{"tool_cpu_seconds_total": 0, "servers_cpu_seconds_total": 0, "other_programs_cpu_seconds_total others": 0})
	rest[0].children += 100000 // of orphans
	rest[2].own += 300
	rest[3].own += 200
	p.root = procOf(t, append(rest,
		stat{tool, self, tool, "bash", 10, 400, 50},                                              // its sysbench used 1 s more and ended
		stat{tool + 2, tool, tool + 2, "java", 150, 0, 500},                                      // a session of its own
		stat{2000, 1, 2000, "mariadbd", 5400, 0, 9}, stat{3000, 1, 3000, "make) (x", 20, 790, 9}, // cc1 used 1 s more, another one 0.5 s
		stat{4000, 1, 4000, "prometheus", 910, 0, 9}, stat{5000, 1, 5000, "burn\x1b[31m", 200, 0, 510}, // 2 s, new
	)...)
	if got := read(900 * time.Millisecond); len(got) > 0 {
		t.Errorf("too early: %v", got)
	}
	expect(read(time.Second), map[string]float64{
		"tool_cpu_seconds_total": 1 + 1.5, "servers_cpu_seconds_total": 4,
		"other_programs_cpu_seconds_total others": 1.5 + 0.1 + 2, "other_programs_cpu_seconds_total make) (x": 0, "other_programs_cpu_seconds_total burn?[31m": 0,
	})
	p.root = procOf(t, append(rest,
		stat{tool, self, tool, "bash", 10, 400, 50}, stat{tool + 2, tool, tool + 2, "java", 450, 0, 500},
		stat{2000, 1, 2000, "mariadbd", 5500, 0, 9}, stat{3000, 1, 3000, "make) (x", 20, 790, 9},
		stat{4000, 1, 4000, "prometheus", 930, 0, 900}, // another process with the same number
		stat{5000, 1, 5000, "burn\x1b[31m", 650, 0, 510},
	)...)
	if got := read(5 * time.Second); len(got) > 0 {
		t.Errorf("too early: %v", got)
	}
	expect(read(6*time.Second), map[string]float64{
		"tool_cpu_seconds_total": 2.5 + 3, "servers_cpu_seconds_total": 5, "other_programs_cpu_seconds_total make) (x": 0,
		"other_programs_cpu_seconds_total others": 3.6 + 9.3, "other_programs_cpu_seconds_total burn?[31m": 4.5, "other_programs_cpu_seconds_total prometheus": 0,
	})
}

// BenchmarkPrograms reads the processes of this machine.
func BenchmarkPrograms(b *testing.B) {
	var p Programs
	at := time.Now()
	for b.Loop() {
		at = at.Add(programsEvery)
		p.Read(1, nil, at, &engine.Status{})
	}
	b.ReportMetric(float64(len(p.processes)), "processes")
}

// TestThreads guards that the time for which threads ran and waited is added up between readings, including new
// threads, and that a sample represents many threads.
func TestThreads(t *testing.T) {
	root, f := t.TempDir(), &openFiles{}
	defer f.Close()
	set := func(pid, tid, ran, waited int) {
		t.Helper()
		dir := filepath.Join(root, strconv.Itoa(pid), "task", strconv.Itoa(tid))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "schedstat"), fmt.Appendf(nil, "%d %d %d\n", ran*1e6, waited*1e6, ran), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(all *threads, ran, waited, within float64) {
		t.Helper()
		if math.Abs(all.running-ran) > within*ran+1e-9 || math.Abs(all.waited-waited) > within*waited+1e-9 {
			t.Errorf("ran for %v s and waited for %v s, want %v and %v", all.running, all.waited, ran, waited)
		}
	}
	var all threads
	if all.read(f, root, []int{100}) {
		t.Error("statistics of a process that has ended")
	}
	set(100, 100, 0, 0)
	if new(threads).read(f, root, []int{100}) {
		t.Error("statistics of a kernel that has none")
	}
	set(100, 100, 5000, 700)
	all.read(f, root, []int{100})
	expect(&all, 0, 0, 0)
	set(100, 100, 5100, 750)
	set(100, 101, 30, 10)
	set(200, 200, 40, 20)
	all.read(f, root, []int{100, 200})
	expect(&all, 0.17, 0.08, 0)
	// One thread ends and another one begins: there are as many as before. The file of an ended thread can't be
	// read in /proc, so here it must not stay open.
	if err := os.RemoveAll(filepath.Join(root, "100/task/101")); err != nil {
		t.Fatal(err)
	}
	f.Close()
	set(100, 102, 50, 30)
	all.read(f, root, []int{100, 200})
	expect(&all, 0.22, 0.11, 0)
	for tid := range 1000 {
		set(300, 1000+tid, 1000, 9000)
	}
	all.read(f, root, []int{300})
	began := all
	for tid := range 1000 {
		set(300, 1000+tid, 1010, 9090)
	}
	all.read(f, root, []int{300})
	if len(all.known) > mostThreads || len(all.known) < mostThreads/4 {
		t.Errorf("%d threads were read", len(all.known))
	}
	all.running, all.waited = all.running-began.running, all.waited-began.waited
	expect(&all, 10, 90, 0.25)
}

// BenchmarkThreads reads what a thread did, for as many threads as are read at most.
func BenchmarkThreads(b *testing.B) {
	stop := make(chan struct{})
	defer close(stop)
	for range 500 {
		go func() { runtime.LockOSThread(); <-stop }()
	}
	var all threads
	for b.Loop() {
		if !all.read(&openFiles{}, "/proc", []int{os.Getpid()}) {
			b.Skip("the kernel has no statistics of the scheduler")
		}
	}
	b.ReportMetric(float64(len(all.known)), "threads")
}

// TestListeners guards that the servers that listen on a run's ports are found among several.
func TestListeners(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port, self := listener.Addr().(*net.TCPAddr).Port, os.Getpid()
	f := &files{}
	if own := f.listeners("/proc", []int{1, self}, []int{1, port}); !slices.Equal(own, []int{self}) {
		t.Errorf("%v listen on port %d", own, port)
	}
	if own := f.listeners("/proc", []int{1, self}, []int{1}); own != nil {
		t.Errorf("%v listen on port 1", own)
	}
}
