package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// fakeSysbench prints what sysbench does after SECONDS_EACH, and logs its start and
// its regular end.
const fakeSysbench = `#!/bin/sh
for a; do case $a in --threads=*) n=${a#--threads=} ;; --fail-at=*) f=${a#--fail-at=} ;; esac; done
echo "begin $n" >>"$LOG"
printf 'sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: %s\n\nThreads started!\n\n' "$n"
sleep "${SECONDS_EACH:-0.05}"
[ "$n" != "$f" ] || { echo 'FATAL: it broke' >&2; exit 1; }
tps=$((100 * n * 1000 / (1000 + 50 * n)))
printf '[ 1s ] thds: %s tps: %s.00 qps: %s.00 (r/w/o: 0.00/%s.00/0.00) lat (ms,95%%): %s.00 err/s: 0.00 reconn/s: 0.00\n' "$n" "$tps" "$tps" "$tps" "$n"
cat <<END
SQL statistics:
    queries performed:
        read:                            0
        write:                           $tps
        other:                           0
        total:                           $tps
    transactions:                        $tps   ($tps.00 per sec.)
    queries:                             $tps ($tps.00 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          1.0000s
    total number of events:              $tps

Latency (ms):
         min:                                    0.50
         avg:                                    1.00
         max:                                    9.00
         95th percentile:                        $n.00
         sum:                                    $tps.00

Threads fairness:
    events (avg/stddev):           1885.0000/8.89
    execution time (avg/stddev):   9.9962/0.00

END
echo "end $n" >>"$LOG"
`

// sweeping is an environment in which sweeps are started as separate processes.
type sweeping struct {
	t    *testing.T
	data string
	log  string
	env  []string
}

func newSweeping(t *testing.T, seconds string) *sweeping {
	t.Helper()
	dir := t.TempDir()
	s := &sweeping{t: t, data: filepath.Join(dir, "data"), log: filepath.Join(dir, "log")}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "sysbench"), []byte(fakeSysbench), 0o755); err != nil {
		t.Fatal(err)
	}
	s.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "LOG="+s.log, "SECONDS_EACH="+seconds, "XDG_DATA_HOME="+dir)
	return s
}

// command is `benchwatch sweep` in its own process group.
func (s *sweeping) command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	return s.benchwatch("sweep", args...)
}

func (s *sweeping) benchwatch(name string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := &exec.Cmd{Path: self, Args: append([]string{"benchwatch", name, "--data-dir=" + s.data}, args...), Env: s.env, Stdout: &out, Stderr: &out}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, &out
}

func (s *sweeping) state() *sweep.Sweep {
	ids, err := sweep.List(s.data)
	if err != nil || len(ids) != 1 {
		return nil
	}
	sw, err := sweep.Load(s.data, ids[0])
	if err != nil {
		s.t.Fatalf("a kill left the sweep unreadable: %v", err)
	}
	return sw
}

// killRuns kills the tool and the wrapper of the active run, as a power
// cut would.
func (s *sweeping) killRuns() {
	ids, err := rundir.Active(s.data)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, id := range ids {
		out, err := exec.Command("pgrep", "-f", "run-id="+id).Output()
		if err != nil {
			continue
		}
		for pid := range strings.FieldsSeq(string(out)) {
			var n int
			if _, err := fmt.Sscan(pid, &n); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
		if meta, err := rundir.At(s.data, id).Load(); err == nil && meta.PID > 0 {
			_ = syscall.Kill(-meta.PID, syscall.SIGKILL)
		}
	}
}

// TestSweepSurvivesKills guards that a sweep killed at any point, with or
// without the active run, is finished by resuming it: each step is done
// once, none is lost.
func TestSweepSurvivesKills(t *testing.T) {
	if _, err := exec.LookPath("pgrep"); err != nil {
		t.Skip("pgrep is not installed (Debian package procps)")
	}
	s := newSweeping(t, "0.2")
	args := []string{"--set=threads=1,2,4,8", "--repeat=2", "--order=random", "--", "sysbench", "oltp_read_write", "--threads={threads}", "run"}
	kills, crashes := 0, 0
	deadline := time.Now().Add(3 * time.Minute)
	for {
		cmd, out := s.command(args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		after := time.Duration(20+rand.IntN(700)) * time.Millisecond
		if kills >= 10 || time.Now().After(deadline) {
			after = time.Minute
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("sweep: %v\n%s", err, out)
			}
		case <-time.After(after):
			kills++
			_ = cmd.Process.Kill()
			<-done
			if kills%2 == 0 {
				crashes++
				s.killRuns()
			}
			if s.state() != nil {
				args = []string{"--resume=last"}
			}
			continue
		}
		break
	}
	t.Logf("%d kills, %d of them with the run", kills, crashes)
	sw := s.state()
	for _, step := range sw.Steps {
		if step.State != sweep.Done {
			t.Errorf("step %d is %s: %s", step.Number, step.State, step.Reason)
		}
	}
	// Exactly one run of each step ended by itself, and this run counts. The fake prints its summary in one write, so
	// it is complete or missing.
	ended, whole := map[string]int{}, 0
	ids, err := rundir.List(s.data)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		meta, err := rundir.At(s.data, id).Load()
		if err != nil {
			t.Fatal(err)
		}
		if meta.Outcome == rundir.Succeeded {
			step, _, _ := strings.Cut(strings.TrimPrefix(id, sw.ID+"-"), "-")
			ended[step]++
		}
		out, err := os.ReadFile(rundir.At(s.data, id).Path(rundir.StdoutFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if bytes.Contains(out, []byte("execution time (avg/stddev)")) {
			whole++
		}
	}
	if len(ended) != 8 || whole != 8 {
		t.Errorf("%d steps have a run, the tool ended by itself %d times, after %d kills and %d crashes", len(ended), whole, kills, crashes)
	}
	for step, n := range ended {
		if n != 1 {
			t.Errorf("step %s was done %d times", step, n)
		}
	}
}

// TestSweepInterrupted guards that Ctrl-C ends the run with a hint how to resume, and
// that the step is then done whole.
func TestSweepInterrupted(t *testing.T) {
	s := newSweeping(t, "30")
	cmd, out := s.command("--set=threads=1,2", "--", "sysbench", "--threads={threads}", "run")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for began := false; !began; {
		select {
		case <-deadline:
			t.Fatalf("the tool never began\n%s", out)
		case <-tick.C:
			log, _ := os.ReadFile(s.log)
			began = bytes.Contains(log, []byte("begin 1"))
		}
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	err := cmd.Wait()
	if cmd.ProcessState.ExitCode() != 130 || !strings.Contains(out.String(), "hint: resume it with benchwatch sweep --resume ") {
		t.Fatalf("%v\n%s", err, out)
	}
	if active, err := rundir.Active(s.data); err != nil || len(active) != 0 {
		t.Errorf("still running: %v, %v", active, err)
	}
	s.env = append(s.env, "SECONDS_EACH=0.05")
	cmd, out = s.command("--resume=last", "--format=json")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sw := s.state()
	if first := sw.Steps[0]; first.State != sweep.Done || first.Attempt != 2 || sw.Steps[1].State != sweep.Done {
		t.Errorf("steps %+v", sw.Steps)
	}
	var result sweep.Result
	text := out.String()
	if err := json.Unmarshal([]byte(text[strings.Index(text, "{\n"):strings.LastIndex(text, "}")+1]), &result); err != nil || len(result.Combinations) != 2 {
		t.Errorf("%v\n%s", err, text)
	}
}
