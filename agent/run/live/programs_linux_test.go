package live

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

// burner starts a process that uses the CPU, in its own session.
func burner(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
	})
	return cmd
}

// TestProgramsAreRecorded guards that the CPU of the tool's session and that of another program
// are recorded with the machine on which the tool runs, also if a node_exporter reads that.
func TestProgramsAreRecorded(t *testing.T) {
	tool, other := burner(t), burner(t)
	ticks, alive := rundir.StartTicks(tool.Process.Pid)
	if !alive {
		t.Fatal("the process has no start")
	}
	data, began := t.TempDir(), time.Now().Add(-10*time.Minute).UTC()
	dir, claim, err := rundir.Create(data, rundir.Meta{
		ID:        "one",
		Benchmark: rundir.Benchmark{Tool: "sysbench"},
		Timing:    rundir.Timing{StartedAt: began},
		Process:   rundir.Process{PID: tool.Process.Pid, PIDStartTicks: ticks, BootID: clock.BootID(), Generator: "load1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claim.Release)
	places := &topology.Topology{Hosts: []topology.Host{{Name: "exporter"}}}
	w := watch(t, Options{DataDir: data, Topology: func() *topology.Topology { return places }})
	w.until("one", "followed", func(ingest.Snapshot) bool { return true })
	machine := &engine.Target{Name: "exporter", Engine: host.NodeExporter}
	// All processes are read at each of these ticks, on a machine with up to 3000. What a process
	// uses before a tick is read counts to it, so each share begins after the tick before.
	const interval = time.Minute
	usedByTool, usedByOther := 0, 0
	for tick := range 4 {
		waitForCPU(t, tool.Process.Pid, usedByTool+20)
		waitForCPU(t, other.Process.Pid, usedByOther+1)
		at := began.Add(time.Duration(tick+1) * interval)
		w.HostFrame(engine.Frame{Tick: at, Interval: interval, Samples: []engine.Sample{{Target: machine, Tick: at, Asked: at, Answered: at, Status: &engine.Status{Nodename: "load1"}}}})
		usedByTool, usedByOther = cpuTicks(t, tool.Process.Pid), cpuTicks(t, other.Process.Pid)
	}
	w.stop()
	h := readHistory(t, dir)
	if len(h.Hosts) != 1 {
		t.Fatalf("%d machines", len(h.Hosts))
	}
	one := h.Hosts[0]
	if tool, others := one.Increase(host.ToolCPU), one.Increase(host.OthersCPU); !(tool >= 0.6) || !(others > 0) {
		t.Errorf("the tool used %v s of CPU, other programs %v s", tool, others)
	}
	running, waiting := one.Tally(host.ToolRunning), one.Tally(host.ToolWaiting)
	if !(running.Mean() > 0) || !(waiting.Mean() >= 0) {
		t.Errorf("%v threads of the tool ran and %v waited for a core", running.Mean(), waiting.Mean())
	}
}

// cpuTicks is the CPU that a process used, in hundredths of a second.
func cpuTicks(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	used := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		used += n
	}
	return used
}

// waitForCPU waits until a process has used some CPU.
func waitForCPU(t *testing.T, pid, least int) {
	t.Helper()
	deadline := time.After(60 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for cpuTicks(t, pid) < least {
		select {
		case <-deadline:
			t.Fatal("the process gets no CPU")
		case <-tick.C:
		}
	}
}
