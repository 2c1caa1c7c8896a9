package cli

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/sweep"
)

// reportingSysbench prints an interval a second, whose rate depends on the setting.
const reportingSysbench = `#!/bin/sh
printf 'sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 1\n\nThreads started!\n\n'
i=0
start=$(date +%s)
while [ $i -lt 120 ]; do
	sleep 1
	i=$(($(date +%s) - start))
	tps=$((1000 * $(cat "$SETTING") + i * 7919 % 17))
	printf '[ %ss ] thds: 1 tps: %s.00 qps: %s.00 (r/w/o: 0.00/%s.00/0.00) lat (ms,95%%): 1.00 err/s: 0.00 reconn/s: 0.00\n' "$i" "$tps" "$tps" "$tps"
done
`

// TestToggleSurvivesKills guards that the setting is restored by the next start of benchwatch, whenever
// a comparison is killed, and that a resumed one counts no block twice. BENCHWATCH_KILLS sets how
// often it is killed.
func TestToggleSurvivesKills(t *testing.T) {
	kills := 1
	if text := os.Getenv("BENCHWATCH_KILLS"); text != "" {
		kills, _ = strconv.Atoi(text)
	}
	s := newSweeping(t, "0")
	setting := filepath.Join(t.TempDir(), "setting")
	write := func(v string) {
		if err := os.WriteFile(setting, []byte(v+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		content, err := os.ReadFile(setting)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(content))
	}
	bin := filepath.Join(filepath.Dir(s.data), "bin", "sysbench")
	if err := os.WriteFile(bin, []byte(reportingSysbench), 0o755); err != nil {
		t.Fatal(err)
	}
	s.env = append(s.env, "SETTING="+setting)
	write("1")
	args := []string{"--toggle", `echo {v} >"$SETTING.new" && mv "$SETTING.new" "$SETTING"`, "--values=1,2", "--every=3s", "--control=false", "--max-time=60s", "--", "sysbench", "oltp_read_write", "run"}
	restored := 0
	for range kills {
		cmd, out := s.benchwatch("ab", args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Duration(500+rand.IntN(6000)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		left, _ := filepath.Glob(filepath.Join(s.data, "toggles", "*.json"))
		next, said := s.benchwatch("runs")
		if err := next.Run(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		if len(left) > 0 {
			restored++
			if !strings.Contains(said.String(), "restored a setting that a killed comparison left") {
				t.Errorf("the next start does not say what it restored:\n%s", said)
			}
		}
		if v := read(); v != "1" {
			t.Errorf("the setting is %s after a kill and the next start\n%s", v, out)
		}
		s.killRuns()
		if s.state() != nil {
			args = []string{"--resume=last"}
		}
	}
	cmd, out := s.benchwatch("ab", args...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if v := read(); v != "1" || !strings.Contains(out.String(), "b is faster than a by") {
		t.Errorf("the setting is %s at the end\n%s", v, out)
	}
	t.Logf("%d kills, of which %d left a setting", kills, restored)
	numbers := map[int]bool{}
	var end time.Time
	for _, step := range s.state().Steps {
		if step.State != sweep.Done {
			continue
		}
		if numbers[step.Number] || step.Began.Before(end) {
			t.Errorf("block %d counts twice, or overlaps with the one before", step.Number)
		}
		numbers[step.Number], end = true, step.Began.Add(time.Duration(step.Seconds*float64(time.Second)))
	}
	if out, err := exec.Command("pgrep", "-f", s.data).Output(); err == nil && len(out) > 0 {
		t.Logf("processes are left: %s", out)
	}
}
