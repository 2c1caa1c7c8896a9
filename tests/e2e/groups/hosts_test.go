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
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/need"
)

// A machine that ssh reads has the values that its node_exporter has, over half a minute of a load, for less
// than 0.3 % of a core there. Nothing remains there.
func TestHostBySSH(t *testing.T) {
	const seconds = 30
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
	c := benchwatch(t.Context(), append([]string{"run", "--config.file=" + l.config, "--run-id=hosts", "--linger=0s", "--drain-timeout=1s", "--web.listen-address=127.0.0.1:0", "--"}, load(seconds)...)...)
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

	h, err := record.Read(t.Context(), l.dir("hosts"), registry.Tools)
	if err != nil {
		t.Fatal(err)
	}
	_, machines, err := h.AllSamples(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var own, exported *record.ServerRows
	for _, rows := range machines {
		switch rows.Target {
		case "gen1":
			own = rows
		case "exporter":
			exported = rows
		}
	}
	if own == nil || exported == nil {
		t.Fatalf("%d machines", len(machines))
	}
	compared := 0
	for _, name := range exported.Keys() {
		if !strings.Contains(name, "_total") {
			continue
		}
		pairs := both(own, exported, name)
		if len(pairs) < seconds/2 {
			continue // of the tool and the servers, which one of both has
		}
		compared++
		slack := 1.0 // a second, or an operation
		if strings.Contains(name, "bytes") {
			slack = 64 << 10
		}
		equal, got, want := growEqually(pairs, slack)
		t.Logf("%s: %g by ssh, %g by node_exporter, per second", name, got, want)
		if !equal {
			t.Errorf("%s grows by %g/s by ssh, by %g/s by node_exporter", name, got, want)
		}
	}
	if compared < 20 {
		t.Errorf("%d counters were compared", compared)
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

// pair is a counter at one tick: its value, and when each of both sources had answered.
type pair struct{ value, answered [2]float64 }

// both returns a counter at the ticks at which both sources have it.
func both(a, b *record.ServerRows, name string) (all []pair) {
	at := map[float64]int{}
	for i, elapsed := range b.Elapsed {
		at[elapsed] = i
	}
	x, y := a.Values(name), b.Values(name)
	for i, elapsed := range a.Elapsed {
		j, there := at[elapsed]
		if x != nil && y != nil && there && a.Up(i) && b.Up(j) && series.IsKnown(x[i]) && series.IsKnown(y[j]) {
			all = append(all, pair{[2]float64{x[i], y[j]}, [2]float64{a.Answered[i], b.Answered[j]}})
		}
	}
	return all
}

// growEqually reports whether a counter grew by the same per second in both sources, within 1 %. A burst
// between the two answers to the first or last tick is in one of them only: then the ticks beside it count.
func growEqually(all []pair, slack float64) (equal bool, a, b float64) {
	const ends = 3
	for i := range ends {
		for j := range ends {
			first, last := all[i], all[len(all)-1-j]
			rate := func(of int) float64 {
				return (last.value[of] - first.value[of]) / (last.answered[of] - first.answered[of])
			}
			a, b = rate(0), rate(1)
			if math.Abs(a-b) <= 0.01*math.Abs(b)+slack/(last.answered[1]-first.answered[1]) {
				return true, a, b
			}
		}
	}
	return false, a, b
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
