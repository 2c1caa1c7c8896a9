package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// user is an account by its number; it need not have a name.
type user uint32

const (
	agentUser user = 47600 + iota
	alice
	bob
	carol
)

// machine has a runs folder that an agent shares with all users, as the packaged
// agent does.
type machine struct {
	t          *testing.T
	root, data string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to start processes of several users")
	}
	// Not t.TempDir, which other users can't enter.
	root, err := os.MkdirTemp("", "benchwatch-shared-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	m := &machine{t, root, filepath.Join(root, "data")}
	m.must(os.Chmod(root, 0o755))
	for path, mode := range map[string]os.FileMode{m.data: 0o755, rundir.Root(m.data): 0o777 | os.ModeSetgid | os.ModeSticky} {
		m.must(os.MkdirAll(path, 0o755))
		m.must(os.Chown(path, int(agentUser), int(agentUser)))
		m.must(os.Chmod(path, mode))
	}
	self, err := os.ReadFile("/proc/self/exe")
	m.must(err)
	m.must(os.WriteFile(filepath.Join(root, "benchwatch"), self, 0o755))
	m.must(os.WriteFile(filepath.Join(root, "sysbench"), []byte(sysbench), 0o755))
	for _, name := range []string{"benchwatch", "sysbench"} {
		m.must(os.Chmod(filepath.Join(root, name), 0o755))
	}
	return m
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// command is a shell command of a user with the strictest usual umask.
func (m *machine) command(u user, script string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", "umask 077; "+script)
	cmd.Dir = m.root
	cmd.Env = []string{"PATH=" + m.root + ":" + os.Getenv("PATH"), "HOME=/nonexistent", "BENCHWATCH_DATA_DIR=" + m.data}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(u), Gid: uint32(u)}}
	return cmd
}

func (m *machine) run(u user, script string) (string, error) {
	out, err := m.command(u, script).CombinedOutput()
	return string(out), err
}

// agent starts an agent of its own user and returns its address and a function that ends it.
func (m *machine) agent(flags ...string) (address string, stop func()) {
	return m.agentOf(agentUser, flags...)
}

func (m *machine) agentOf(u user, flags ...string) (address string, stop func()) {
	m.t.Helper()
	var log bytes.Buffer
	cmd := m.command(u, "exec benchwatch agent --web.listen-address=127.0.0.1:0 "+strings.Join(flags, " "))
	cmd.Stdout, cmd.Stderr = &log, &log
	m.must(cmd.Start())
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if m.t.Failed() {
			m.t.Logf("agent:\n%s", log.String())
		}
	}
	m.t.Cleanup(stop)
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		if info, ok := rundir.Agent(m.data); ok && info.Address != "" {
			return info.Address, stop
		}
		<-time.After(10 * time.Millisecond)
	}
	m.t.Fatal("the agent did not start")
	return "", nil
}

func (m *machine) get(address, path string) string {
	m.t.Helper()
	res, err := http.Get("http://" + address + path)
	m.must(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	m.must(err)
	return string(text)
}

// sysbench is a program that prints a secret.
const sysbench = `#!/bin/sh
cat <<END
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 4

Threads started!

the password is s3cret
[ 1s ] thds: 4 tps: 10.00 qps: 10.00 (r/w/o: 0.00/10.00/0.00) lat (ms,95%): 1.04 err/s: 0.00 reconn/s: 0.00
END
`

// TestSharedRunsFolder guards that any user of a machine can run a benchmark next to
// an agent of another user, with whatever umask: the agent follows and closes the
// run, and no third user can read its output or remove it.
func TestSharedRunsFolder(t *testing.T) {
	m := newMachine(t)
	address, stop := m.agent()
	out, err := m.run(alice, "benchwatch run --run-id=first -- sysbench run")
	if err != nil {
		t.Fatalf("alice's run: %v\n%s", err, out)
	}
	dir := rundir.At(m.data, "first")
	meta, err := dir.Load()
	if err != nil || meta.Outcome != rundir.Succeeded || !meta.Closed() {
		t.Errorf("run.json: %+v, %v", meta, err)
	}
	if want := `benchwatch_run_summary_`; !strings.Contains(m.get(address, "/metrics"), want) {
		t.Errorf("the agent has not read alice's output: no %s", want)
	}
	for name, want := range map[string]string{
		".":               "drwxrwsr-x 47601 47600",
		rundir.StdoutFile: "-rw-r----- 47601 47600",
		rundir.StderrFile: "-rw-r----- 47601 47600",
	} {
		info, err := os.Stat(dir.Path(name))
		m.must(err)
		st := info.Sys().(*syscall.Stat_t)
		mode := strings.Replace(info.Mode().String(), "dgrwxrwxr-x", "drwxrwsr-x", 1)
		if got := fmt.Sprintf("%s %d %d", mode, st.Uid, st.Gid); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}

	if out, err := m.run(bob, "benchwatch runs"); !strings.Contains(out, "first") {
		t.Errorf("bob does not see the run: %v\n%s", err, out)
	}
	if out, _ := m.run(bob, "cat data/runs/first/std*.log; benchwatch report first"); strings.Contains(out, "s3cret") {
		t.Errorf("bob reads alice's output:\n%s", out)
	}
	if out, err := m.run(bob, "benchwatch runs rm --yes first"); err == nil {
		t.Errorf("bob removes alice's run:\n%s", out)
	}
	// An agent does not read files for bob that he can't read.
	if out, err := m.run(bob, `benchwatch run --run-id=theft --tool=sysbench --drain-timeout=1s -- sh -c '
		rm data/runs/theft/stdout.log; ln -s ../first/stdout.log data/runs/theft/stdout.log'`); err != nil {
		t.Errorf("bob's run: %v\n%s", err, out)
	}
	if want := `benchwatch_run_summary_operations_total{op="transaction",run="theft"`; strings.Contains(m.get(address, "/metrics"), want) {
		t.Errorf("the agent read alice's output as bob's")
	}
	if out, err := m.run(alice, "benchwatch report first && benchwatch mark --run=first 'a note'; benchwatch runs rm --yes first"); err != nil {
		t.Errorf("alice's own run: %v\n%s", err, out)
	}
	if _, err := dir.Load(); err == nil {
		t.Error("alice could not remove her run")
	}

	// Each user can mark their own runs, and everyone can mark the time axis.
	m.must(m.command(alice, "exec benchwatch run --run-id=alices -- sleep 30").Start())
	m.must(m.command(bob, "exec benchwatch run --run-id=bobs -- sleep 30").Start())
	var pids []int
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(10 * time.Millisecond) {
		a, errA := rundir.At(m.data, "alices").Load()
		b, errB := rundir.At(m.data, "bobs").Load()
		if errA == nil && errB == nil && a.PID > 0 && b.PID > 0 {
			pids = []int{a.PID, b.PID}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the runs did not start")
		}
	}
	out, err = m.run(bob, "benchwatch mark 'a change'")
	if err != nil || !strings.Contains(out, "marked run bobs") || !strings.Contains(out, "1 active run of other users: not marked") {
		t.Errorf("bob marks: %v\n%s", err, out)
	}
	for _, pid := range pids {
		m.must(syscall.Kill(-pid, syscall.SIGKILL))
	}
	// Until the agent has closed them it writes run.json.
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(10 * time.Millisecond) {
		a, errA := rundir.At(m.data, "alices").Load()
		b, errB := rundir.At(m.data, "bobs").Load()
		if errA == nil && errB == nil && a.Closed() && b.Closed() {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the agent did not close the runs")
		}
	}
	if out, err := m.run(carol, "benchwatch mark 'a change'"); err != nil || !strings.Contains(out, "marked the time axis") {
		t.Errorf("carol marks: %v\n%s", err, out)
	}
	if out, err := m.run(carol, "benchwatch report bobs -o report.html"); err == nil || !strings.Contains(out, "not readable") || strings.Contains(out, "s3cret") {
		t.Errorf("carol reports on bob's run: %v\n%s", err, out)
	}
	if out, err := m.run(carol, "benchwatch runs"); err != nil || strings.Count(out, "can't be read") != 1 || !strings.Contains(out, "the output of 3 runs") {
		t.Errorf("carol lists runs: %v\n%s", err, out)
	}
	m.must(os.WriteFile(rundir.At(m.data, "bobs").Path(rundir.MetaFile), []byte("{"), 0o644))
	if out, err := m.run(carol, "benchwatch runs"); err != nil || !strings.Contains(out, "damaged run.json") || !strings.Contains(out, "alices") {
		t.Errorf("carol lists runs, one of which is broken: %v\n%s", err, out)
	}

	stop()
	if out, err := m.run(alice, "benchwatch run --run-id=alone --linger=0s --web.listen-address=127.0.0.1:0 -- sysbench run"); err != nil {
		t.Errorf("without an agent: %v\n%s", err, out)
	}
	if meta, err := rundir.At(m.data, "alone").Load(); err != nil || !meta.Closed() {
		t.Errorf("without an agent: %+v, %v", meta, err)
	}
}

// TestRunsFolderOfAnotherUser guards the hint for a runs folder of another user.
func TestRunsFolderOfAnotherUser(t *testing.T) {
	m := newMachine(t)
	m.must(os.Chmod(rundir.Root(m.data), 0o755))
	if out, err := m.run(alice, "benchwatch run -- true"); err == nil || !strings.Contains(out, "permission denied") || !strings.Contains(out, "choose another place") {
		t.Errorf("without an agent: %v\n%s", err, out)
	}
	m.agent()
	if out, err := m.run(alice, "benchwatch run -- true"); err == nil || !strings.Contains(out, "an agent follows the runs in "+m.data) {
		t.Errorf("with an agent: %v\n%s", err, out)
	}
}
