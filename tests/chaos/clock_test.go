//go:build chaos

package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
)

// steppable builds a binary whose wall clock is ahead by the seconds in the file that
// CHAOS_CLOCK names: the machine's own is not for us to set. Only the wall clock of
// package time is changed; the clock since boot and the kernel's file times are not.
func steppable(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(env.dir, "steppable")
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	// In a permanent folder, so that compiled packages, which are nearly everything, are cached. No ./... includes it.
	dir := filepath.Join(repository(t), "build", "_chaos")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time", "time.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Skipf("no source of package time: %v", err)
	}
	const reading = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if !strings.Contains(string(text), reading) {
		t.Skip("package time reads the clock in another way: adapt this test")
	}
	patched := strings.ReplaceAll(string(text), reading, reading+"\tsec += ChaosSeconds\n")
	patched += "\n// ChaosSeconds is by how much the wall clock is ahead.\nvar ChaosSeconds int64\n"
	setter := `package main

import ("os"; "strconv"; "strings"; "time")

func init() {
	read := func() {
		text, _ := os.ReadFile(os.Getenv("CHAOS_CLOCK"))
		n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		time.ChaosSeconds = n
	}
	read()
	go func() {
		for range time.Tick(5 * time.Millisecond) { read() }
	}()
}
`
	root := repository(t)
	overlay := map[string]map[string]string{"Replace": {source: filepath.Join(dir, "time.go"), filepath.Join(root, "chaos_clock.go"): filepath.Join(dir, "main.go")}}
	config, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"time.go": patched, "main.go": setter, "overlay.json": string(config)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := agents.Build(binary, ".", "-overlay", filepath.Join(dir, "overlay.json")); err != nil {
		t.Fatal(err)
	}
	return binary
}

// clockSteps: the wall clock is set again and again, and the agent moves to a machine
// that has been up for another time.
func clockSteps(l *lab) {
	file := filepath.Join(l.dir, "clock")
	ahead := 0
	step := func(seconds int) {
		ahead += seconds
		l.must(os.WriteFile(file+".new", []byte(strconv.Itoa(ahead)), 0o600))
		l.must(os.Rename(file+".new", file))
		total.add("clock steps", 1)
	}
	step(0)
	l.paced = nil
	began := time.Now()
	binary := steppable(l.t)
	l.deadline = l.deadline.Add(time.Since(began)) // other builds may hold up this one
	l.start(options{binary: binary, env: []string{"CHAOS_CLOCK=" + file}})
	// The ages of samples are by the clock that is set.
	l.watch.Stop()
	l.watch = agents.NewWatch(l.t, l.agent, 100*time.Millisecond)
	takes := l.between(6*time.Second, 9*time.Second)
	began = time.Now()
	r := l.run(takes, nil)
	steps := []int{-3600, 3600, 1, -1, -40, 40, -864000, 864000, 7, -90}
	for !l.printed(r) {
		l.pause(300*time.Millisecond, time.Second)
		step(steps[l.rand.IntN(len(steps))])
		if l.chance(0.2) {
			l.kill()
		}
	}
	if _, err := exec.LookPath("unshare"); err == nil && os.Geteuid() == 0 && l.chance(0.5) {
		l.elsewhere(r.id, time.Duration(ahead)*time.Second)
	}
	l.counted(r)
	l.release(r)
	r.wrapper.Status(l.t, l.limit(60*time.Second))
	ran := time.Since(began)
	step(steps[l.rand.IntN(len(steps))]) // while it drains
	meta := l.agent.Closed(l.t, r.id, l.limit(20*time.Second))
	if length := meta.EndedAt.Sub(meta.StartedAt); length < takes-time.Second || length > ran+time.Second {
		l.t.Errorf("a run of %v to %v took %v", takes, ran, length)
	}
	if wait := meta.ClosedAt.Sub(*meta.EndedAt); wait < 0 || wait > 30*time.Second {
		l.t.Errorf("it was closed %v after its end", wait)
	}
	l.monotonic(r.id)
	l.check()
}

// elsewhere runs the agent for a while in a time namespace, with another time since boot,
// as after a move to another machine. The wall clock is ahead of the run's axis.
func (l *lab) elsewhere(id string, ahead time.Duration) {
	within := []string{"unshare", "--time", "--boottime", "100000", "--monotonic", "100000", "--kill-child"}
	if exec.Command(within[0], append(within[1:], "true")...).Run() != nil {
		return
	}
	l.watch.Disturb(true, func() {
		// Another machine knows no step that was not recorded here.
		l.until(10*time.Second, "the steps are recorded", func() error {
			meta, err := rundir.At(l.agent.DataDir, id).Load()
			if recorded := meta.Clock.Ahead(); err == nil && (recorded-ahead).Abs() > time.Second/2 {
				err = fmt.Errorf("%v of %v", recorded, ahead)
			}
			return err
		})
		l.agent.Kill(l.t)
		l.agent.Within = within
		l.agent.Again(l.t)
		l.pause(time.Second, 3*time.Second)
		l.agent.Kill(l.t)
		l.agent.Within = nil
		l.until(10*time.Second, "the agent in the namespace ended", func() error {
			if _, runs := rundir.Agent(l.agent.DataDir); runs {
				return fmt.Errorf("it runs")
			}
			return nil
		})
		l.agent.Again(l.t)
	})
	total.add("time namespaces", 1)
}

// monotonic: the record of each server is in the order of time.
func (l *lab) monotonic(id string) {
	l.t.Helper()
	text, err := os.ReadFile(rundir.At(l.agent.DataDir, id).Path(rundir.StatusFile))
	l.must(err)
	last := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		var row []any
		if json.Unmarshal([]byte(line), &row) != nil || len(row) < 2 {
			continue // a head, or what a kill cut
		}
		target, tick := fmt.Sprint(row[0]), row[1].(float64)
		if tick <= last[target] {
			l.t.Errorf("%s: %f was recorded after %f", target, tick, last[target])
		}
		last[target] = tick
	}
	if len(last) == 0 {
		l.t.Error("no server was recorded")
	}
}
