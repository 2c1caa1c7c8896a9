//go:build e2e

package groups

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/need"
)

// A machine that ssh reads has the values that its node_exporter has, over two minutes of a load, for less
// than 0.3 % of a core there. Nothing remains there.
func TestHostBySSH(t *testing.T) {
	const seconds = 120
	l := newLab(t)
	need.Program(t, "prometheus-node-exporter")
	exporter := agents.FreeAddress(t)
	agents.Start(t, "prometheus-node-exporter", "--web.listen-address="+exporter, "--no-collector.systemd")
	text, err := os.ReadFile(l.config)
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(text, "hosts:\n  - {ssh: gen1, ssh_command: 'ssh -F %s'}\n  - {name: exporter, node_exporter: 'http://%s/metrics'}\n", l.Config(), exporter)
	if err := os.WriteFile(l.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c := benchwatch(t.Context(), append([]string{"run", "--config.file=" + l.config, "--id=hosts", "--linger=0s", "--drain-timeout=1s", "--web.listen-address=127.0.0.1:0", "--"}, load(seconds)...)...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var shell int
	agents.Wait(t, 30*time.Second, "session", func() error {
		if shell = remoteShell(t); shell == 0 {
			return fmt.Errorf("no shell; %s", c.err.String())
		}
		return nil
	})
	begin, used := time.Now(), cpuOf(t, shell)
	var measured, took float64
	agents.Wait(t, (seconds+60)*time.Second, "end of the tool", func() error {
		if remoteShell(t) != shell { // it ends with the run
			return nil
		}
		measured, took = cpuOf(t, shell)-used, time.Since(begin).Seconds()
		return fmt.Errorf("the shell runs; %s", c.err.String())
	})
	if err := c.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, c.err.String())
	}
	share := measured / took
	t.Logf("%.2f %% of a core over %.0f s, the session's sshd included", share*100, took)
	if !(share > 0 && share < 0.003) {
		t.Errorf("the session took %.2f %% of a core there", share*100)
	}

	h, err := record.Read(t.Context(), l.dir("hosts"), registry.Tools.ByName("sysbench"))
	if err != nil {
		t.Fatal(err)
	}
	machines := map[string]*record.Host{}
	for _, one := range h.Hosts {
		machines[one.Host] = one
	}
	if machines["gen1"] == nil || machines["exporter"] == nil {
		t.Fatalf("%+v", h.Hosts)
	}
	compared := 0
	for _, m := range measure.All(measure.Host) {
		a, b := machines["gen1"].Tally(m), machines["exporter"].Tally(m)
		got, want := a.Mean(), b.Mean()
		if m.Summary == measure.Last {
			got, want = a.Last, b.Last
		}
		if !series.IsKnown(want) {
			continue
		}
		t.Logf("%s: %g by ssh, %g by node_exporter, %d and %d samples", m.ID, got, want, a.Count, b.Count)
		compared++
		if m.Unit == measure.Ratio && math.Abs(got-want) < 0.002 || math.Abs(got-want) <= 0.01*math.Abs(want) {
			continue
		}
		t.Errorf("%s is %g by ssh, %g by node_exporter", m.ID, got, want)
	}
	if compared < 20 {
		t.Errorf("%d measures were compared", compared)
	}
	facts := map[string]string{}
	for _, s := range h.Settings {
		if s.Target == record.MachineSettings+"gen1" {
			facts = s.Settings
		}
	}
	for _, name := range []string{"cpu_cores", "memory_bytes", "kernel", "os", "filesystem_/"} {
		if facts[name] == "" {
			t.Errorf("no fact %s in %v", name, facts)
		}
	}
}

// remoteShell returns the process of the script that a session runs, 0 if there is none.
func remoteShell(t *testing.T) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		command, _ := os.ReadFile(path) // it may have ended
		if bytes.HasPrefix(command, []byte("sh\x00-c\x00")) && bytes.Contains(command, []byte("echo benchwatch-ready;")) {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			return pid
		}
	}
	return 0
}

// cpuOf returns the CPU time in seconds of a shell with the programs that it ran, and of the sshd that it
// belongs to.
func cpuOf(t *testing.T, shell int) float64 {
	t.Helper()
	sum := 0.0
	for pid, n := shell, 0; n < 2; n++ {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return math.NaN()
		}
		_, after, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(after)
		last := 13 // utime and stime
		if pid == shell {
			last = 15 // and those of its children
		}
		for _, f := range fields[11:last] {
			ticks, err := strconv.ParseFloat(f, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += ticks / 100
		}
		if pid, err = strconv.Atoi(fields[1]); err != nil {
			t.Fatal(err)
		}
	}
	return sum
}
