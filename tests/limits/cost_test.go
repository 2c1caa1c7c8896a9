//go:build limits

package limits

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
)

// reading has the kernel's counts at a moment.
type reading struct {
	at                                 time.Time
	cpu, server                        float64 // seconds
	switches, writes, written, flushes float64
}

func read(t *testing.T, pid int) reading {
	t.Helper()
	r := reading{at: time.Now(), server: cpuOf(t, pid)}
	r.cpu, _ = busy(t)
	stat, err := os.ReadFile("/proc/stat")
	must(t, err)
	for line := range strings.Lines(string(stat)) {
		if v, ok := strings.CutPrefix(line, "ctxt "); ok {
			r.switches, err = strconv.ParseFloat(strings.TrimSpace(v), 64)
			must(t, err)
		}
	}
	disks, err := os.ReadFile("/proc/diskstats")
	must(t, err)
	for line := range strings.Lines(string(disks)) {
		f := strings.Fields(line)
		whole, err := os.Stat("/sys/block/" + f[2])
		if len(f) < 20 || err != nil || !whole.IsDir() || strings.HasPrefix(f[2], "zram") || strings.HasPrefix(f[2], "loop") || strings.HasPrefix(f[2], "ram") {
			continue
		}
		for column, to := range map[int]*float64{7: &r.writes, 9: &r.written, 18: &r.flushes} {
			v, err := strconv.ParseFloat(f[column], 64)
			must(t, err)
			*to += v
		}
	}
	return r
}

// TestCost guards that the reported cost of a transaction on the machine equals the kernel's counts
// between the first and the last sample of the run. On a busy machine samples are taken tens of
// milliseconds after their ticks: less than 1 % of 20 seconds.
func TestCost(t *testing.T) {
	const id, tolerance = "cost", 0.01
	set(t, "innodb_flush_log_at_trx_commit", "1")
	l := onShared(nil)(t)
	ctx, stop := context.WithCancel(t.Context())
	pid := env.server.PID(1)
	var all []reading
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			all = append(all, read(t, pid))
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	wrapper := agents.StartCommand(t, l.Command([]string{"--run-id=" + id}, append(sysbench("oltp_update_non_index", "--threads=4", "--time=20"), "run")...))
	t.Cleanup(func() { l.EndTool(id) })
	status := wrapper.Status(t, time.Minute)
	stop()
	<-done
	if status != 0 {
		t.Fatalf("benchwatch run exited with %d:\n%s", status, wrapper.Output(t))
	}
	l.Closed(t, id, 30*time.Second)
	out, err := exec.Command(env.binary, "report", id, "--config.file="+l.Config, "--format=json").Output()
	must(t, err)
	var report struct {
		Runs []struct {
			TPS   float64 `json:"transactions_per_second"`
			Costs []struct {
				Name, Of, Unit string
				Value          float64
			}
		}
	}
	must(t, json.Unmarshal(out, &report))
	h, err := record.Read(t.Context(), rundir.At(l.DataDir, id), registry.Tools)
	must(t, err)
	if len(h.Hosts) != 1 || len(report.Runs) != 1 {
		t.Fatalf("%d machines, %d runs", len(h.Hosts), len(report.Runs))
	}
	window := h.Hosts[0].Sampled
	first, last := near(all, h.At(window.From)), near(all, h.At(window.To))
	transactions := report.Runs[0].TPS * (window.To - window.From)
	seen := 0
	for name, counted := range map[string]float64{
		"CPU": last.cpu - first.cpu, "Context switches": last.switches - first.switches,
		"Disk writes": last.writes - first.writes, "Disk writes, bytes": 512 * (last.written - first.written), "Disk flushes": last.flushes - first.flushes,
	} {
		for _, c := range report.Runs[0].Costs {
			if c.Name != name || c.Of == "servers" {
				continue
			}
			seen++
			want := counted / transactions
			t.Logf("%s: %.6g, the kernel's count is %.6g (%+.2f %%)", name, c.Value, want, (c.Value/want-1)*100)
			if want > 0 && math.Abs(c.Value/want-1) > tolerance {
				t.Errorf("%s for each transaction is %.6g, the kernel's count %.6g", name, c.Value, want)
			}
		}
	}
	if seen < 5 {
		t.Errorf("%d of 5 costs: %+v", seen, report.Runs[0].Costs)
	}
	// The machine's CPU time includes all programs; the server has a part of it.
	server, machine := last.server-first.server, last.cpu-first.cpu
	t.Logf("the server took %.0f %% of the CPU in use: %.1f µs for each transaction", 100*server/machine, server/transactions*1e6)
	if server > machine*(1+tolerance) {
		t.Errorf("the server took %.1f s of %.1f s", server, machine)
	}
}

// near returns the reading that is nearest to a moment.
func near(all []reading, at time.Time) reading {
	best := all[0]
	for _, r := range all {
		if r.at.Sub(at).Abs() < best.at.Sub(at).Abs() {
			best = r
		}
	}
	return best
}
