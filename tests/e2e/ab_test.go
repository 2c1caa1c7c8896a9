//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// A comparison that switches a setting of two servers, which affects nothing, is killed at random moments,
// BENCHWATCH_KILLS times, sometimes with its run. The next command restores the servers' own setting; after --resume,
// the comparison continues and counts no block twice.
func TestToggleKilled(t *testing.T) {
	kills := 1
	if text := os.Getenv("BENCHWATCH_KILLS"); text != "" {
		kills, _ = strconv.Atoi(text)
	}
	waitSynced(t)
	sql(t, 1, "CREATE USER toggle@127.0.0.1 IDENTIFIED BY 'switch'")
	sql(t, 1, "GRANT SUPER, CONNECTION ADMIN, PROCESS ON *.* TO toggle@127.0.0.1")
	t.Cleanup(func() { sql(t, 1, "DROP USER toggle@127.0.0.1") })
	setting := func(node int) string { return sql(t, node, "SELECT @@GLOBAL.slow_launch_time")[0] }
	own := []string{setting(1), setting(2)}

	dir := t.TempDir()
	data, config := filepath.Join(dir, "data"), filepath.Join(dir, "benchwatch.yml")
	must(t, os.WriteFile(filepath.Join(dir, "password"), []byte("switch\n"), 0o600))
	text := fmt.Sprintf("data_dir: %s\nsample_interval: 1s\ntargets:\n", data)
	for n := 1; n <= 2; n++ {
		text += fmt.Sprintf("  - {name: n%d, engine: mysql, cluster: e2e, address: '%s', user: toggle, password_file: %s/password}\n", n, env.Cluster.Address(n), dir)
	}
	must(t, os.WriteFile(config, []byte(text), 0o600))
	first := append([]string{"--toggle=SET GLOBAL slow_launch_time={v}", "--values=3,4", "--toggle-on=n1,n2", "--every=3s", "--control=false",
		"--limit=0.1%", fmt.Sprintf("--max-time=%ds", 20+5*kills), "--"}, env.Load(600)...)
	command := func(args ...string) (*exec.Cmd, *strings.Builder) {
		out := &strings.Builder{}
		cmd := exec.Command(env.Binary, append(args[:1:1], append([]string{"--config.file=" + config}, args[1:]...)...)...)
		cmd.Stdout, cmd.Stderr = out, out
		return cmd, out
	}
	args := append([]string{"ab", "--format=json"}, first...)
	left := 0
	for i := range kills {
		cmd, out := command(args...)
		must(t, cmd.Start())
		<-time.After(time.Duration(200+rand.IntN(12000)) * time.Millisecond)
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		if i%3 == 2 {
			killRuns(t, data)
		}
		journals, err := filepath.Glob(filepath.Join(data, "sweeps", ".toggles-*", "*.json"))
		must(t, err)
		next, said := command("runs")
		if err := next.Run(); err != nil && !strings.Contains(said.String(), "does not exist") { // killed too early
			t.Fatalf("%v\n%s", err, said)
		}
		if len(journals) > 0 {
			left++
			if !strings.Contains(said.String(), "restored a setting that a killed comparison left: n1 SET GLOBAL slow_launch_time = "+own[0]) {
				t.Errorf("the next start does not say what it restored:\n%s", said)
			}
		}
		if now := []string{setting(1), setting(2)}; now[0] != own[0] || now[1] != own[1] {
			t.Errorf("after kill %d and the next start the servers have %v, their own is %v\n%s%s", i+1, now, own, out, said)
		}
		if ids, err := sweep.List(data); err == nil && len(ids) > 0 {
			args = []string{"ab", "--format=json", "--resume=last"}
		}
	}
	t.Logf("%d kills, of which %d left the setting switched", kills, left)

	cmd, said := command(args...)
	cmd.Stdout = nil
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if now := []string{setting(1), setting(2)}; now[0] != own[0] || now[1] != own[1] {
		t.Errorf("at the end the servers have %v, their own is %v\n%s", now, own, said)
	}
	var result struct {
		ID   string
		Runs []struct {
			Start float64 `json:"start_seconds"`
			Value float64
		}
		Comparison struct {
			Groups  []string
			Differs []struct{ Values []string }
			Lines   []struct {
				Measure string
				Samples []struct{ N int }
			}
		}
	}
	must(t, json.Unmarshal(out, &result))
	servers := 0
	for _, line := range result.Comparison.Lines {
		if strings.HasPrefix(line.Measure, "n1 ") && line.Samples[0].N > 1 && line.Samples[1].N > 1 {
			servers++
		}
	}
	if c := &result.Comparison; len(c.Groups) != 2 || c.Groups[1] != "b (v=4)" || len(c.Differs) != 1 || c.Differs[0].Values[1] != "4" || servers == 0 {
		t.Errorf("the arms are not compared by their own seconds:\n%s", out)
	}
	s, err := sweep.Load(data, result.ID)
	must(t, err)
	var end time.Time
	done := 0
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.State != sweep.Done {
			continue
		}
		done++
		if step.Number != i+1 || step.Began.Before(end) {
			t.Errorf("block %d counts twice, or overlaps with the one before", step.Number)
		}
		end = step.Began.Add(time.Duration(step.Seconds * float64(time.Second)))
	}
	if done != len(result.Runs) || done < 5 {
		t.Errorf("%d blocks are done, %d in the result:\n%s%s", done, len(result.Runs), said, out)
	}
}

// killRuns kills the tools and the wrappers of the active runs, as a power cut would.
func killRuns(t *testing.T, data string) {
	t.Helper()
	ids, err := rundir.Active(data)
	must(t, err)
	for _, id := range ids {
		meta, err := rundir.At(data, id).Load()
		if err == nil && meta.PID > 0 {
			_ = syscall.Kill(-meta.PID, syscall.SIGKILL) // it may have just ended
		}
	}
}
