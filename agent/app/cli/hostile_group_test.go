package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// mostMemory is the most memory that a command may need, whatever others send, in bytes.
	mostMemory = 150 << 20
	// patience is how long a test waits for something that takes two seconds on an idle machine.
	patience = time.Minute
)

// child is a command that the test started.
type child struct {
	*exec.Cmd
	t     *testing.T
	out   bytes.Buffer
	ended chan error
	most  atomic.Int64 // resident memory, in bytes
}

// watch waits for the end of the process and observes its peak of memory. The peak of getrusage would include the test
// process, from which it was forked.
func (c *child) watch() {
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
		_, peak, _ := strings.Cut(string(text), "VmHWM:")
		var kib int64
		if _, err := fmt.Sscan(peak, &kib); err == nil {
			c.most.Store(kib << 10)
		}
		select {
		case err := <-done:
			c.ended <- err
			return
		case <-tick.C:
		}
	}
}

// startChild starts benchwatch in a folder. The test ends it.
func startChild(t *testing.T, folder string, args ...string) *child {
	t.Helper()
	return startChildWith(t, folder, nil, args...)
}

func startChildWith(t *testing.T, folder string, env []string, args ...string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command("benchwatch", args...), t: t, ended: make(chan error, 1)}
	c.Dir = folder
	c.Env = append(os.Environ(), "BENCHWATCH_DATA_DIR="+filepath.Join(folder, "data"), "HOME="+folder, "XDG_CACHE_HOME="+filepath.Join(folder, "cache"))
	c.Env = append(c.Env, env...)
	c.Stdout, c.Stderr = &c.out, &c.out
	c.WaitDelay = time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	go c.watch()
	return c
}

// end waits for the end and checks how much memory the command needed.
func (c *child) end() string {
	c.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(patience):
		_ = c.Process.Signal(syscall.SIGQUIT)
		<-c.ended
		c.t.Fatalf("%q has not ended:\n%.5000s", c.Args, c.out.String())
	}
	if used := c.most.Load(); used > mostMemory {
		c.t.Errorf("%q used %d MiB", c.Args, used>>20)
	}
	return c.out.String()
}

// terminate sends SIGTERM and waits for the end.
func (c *child) terminate() string {
	c.t.Helper()
	begun := time.Now()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.t.Fatal(err)
	}
	text := c.end()
	c.t.Logf("%s: ended %.1f s after SIGTERM", c.Args[1], time.Since(begun).Seconds())
	return text
}

// await waits for a condition while the command runs.
func (c *child) await(what string, is func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !is(); {
		select {
		case err := <-c.ended:
			c.ended <- err
			c.t.Fatalf("%q ended before: %s: %v\n%s", c.Args, what, err, c.out.String())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%q: not in time: %s\n%s", c.Args, what, c.out.String())
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// writeScript writes a program that replaces another one.
func writeScript(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// honest is an ssh that reaches this machine, with its own data directory. The command is the last argument.
const honest = "for last; do :; done\nBENCHWATCH_DATA_DIR=$PWD/there exec sh -c \"$last\"\n"

// silentAfter is an ssh that prints n right answers, then the output of then. The pipe stays open; otherwise chance
// would decide whether the script continues. A second connection gets no answer, so the generator can't have ended.
func silentAfter(n int, then string) string {
	loop, _, _ := strings.Cut(honest, "BENCHWATCH")
	return "[ ! -e waits ] || exec sleep 1000\n" + loop + fmt.Sprintf("BENCHWATCH_DATA_DIR=$PWD/there sh -c \"$last\" | { sed -u %dq; touch waits; exec %s; }\n", n, then)
}

// TestHostileGenerators: garbage from a generator's machine instead of answers ends `run --on` with an error, in
// bounded memory, and missing answers do not delay its end.
func TestHostileGenerators(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ssh   string
		waits bool // it does not end by itself
		says  string
	}{
		"line without end":             {ssh: "exec cat /dev/zero\n", says: "a line of more than 8 MiB"},
		"300 MB without a line's end":  {ssh: "exec head -c 300000000 /dev/zero\n", says: "a line of more than 8 MiB"},
		"lines without end":            {ssh: "exec yes banner\n", says: "something else than the answers"},
		"answers without end":          {ssh: "exec yes '{}'\n", says: "of an unknown version"},
		"answer of empty files":        {ssh: `printf '{"version":"x","files":['; yes '{},' | head -n 2500000 | tr -d '\n'; echo '{}]}'; sleep 1000` + "\n", says: "something else than the answers"},
		"line without end after hello": {ssh: silentAfter(1, "cat /dev/zero"), says: "a line of more than 8 MiB"},
		"line without end in a run":    {ssh: silentAfter(14, "cat /dev/zero"), waits: true},
		"silence":                      {ssh: "touch waits\nexec sleep 1000\n", waits: true},
		"silence of its children":      {ssh: "setsid sleep 61 &\ntouch waits\nsleep 1000\n", waits: true},
		"silence that ignores signals": {ssh: "trap '' TERM INT HUP PIPE\ntouch waits\nwhile :; do sleep 1; done\n", waits: true},
		"silence after hello":          {ssh: silentAfter(2, "sleep 1000"), waits: true},
		"silence in a run":             {ssh: silentAfter(14, "sleep 1000"), waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			writeScript(t, filepath.Join(folder, "ssh"), c.ssh)
			run := startChild(t, folder, "run", "--on=gen1", "--ssh="+filepath.Join(folder, "ssh"), "--group=g", "--linger=0s", "--drain-timeout=1s", "--", "sleep", "1000")
			var text string
			if c.waits {
				run.await("nothing more comes", func() bool { return exists(filepath.Join(folder, "waits")) })
				text = run.terminate()
			} else if text = run.end(); !strings.Contains(text, c.says) {
				t.Errorf("got %.2000s", text)
			}
			if run.ProcessState.ExitCode() != exitOwnFailure {
				t.Errorf("exit status %d:\n%.2000s", run.ProcessState.ExitCode(), text)
			}
			endGenerators(t, folder)
		})
	}
}

// TestInterruptBeforeTheStart: a generator that is interrupted while it waits for the common
// start ends as interrupted on its machine and in the group; it is not removed or lost.
func TestInterruptBeforeTheStart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ssh := filepath.Join(folder, "ssh")
	data, there := filepath.Join(folder, "data"), filepath.Join(folder, "there")
	// Slow answers while the clock is measured postpone the start.
	writeScript(t, ssh, strings.TrimSpace(strings.Replace(honest, "exec sh", "sh", 1))+
		" | { n=0; while read -r line; do n=$((n+1)); [ $n -gt 10 ] || sleep 0.5; printf '%s\\n' \"$line\"; done; }\n")
	run := startChild(t, folder, "run", "--on=gen1", "--ssh="+ssh, "--group=g", "--linger=0s", "--", "touch", "started")
	run.await("the generator is copied", func() bool { return exists(filepath.Join(data, "runs/g-g1", rundir.MetaFile)) })
	if err := run.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	text := run.end()
	if exists(filepath.Join(folder, "started")) {
		t.Skip("the machine is too slow: the tool had started")
	}
	if run.ProcessState.ExitCode() != 1 || strings.Contains(text, "removed") || strings.Contains(text, "lost") {
		t.Errorf("exit status %d:\n%s", run.ProcessState.ExitCode(), text)
	}
	for _, dir := range []rundir.Directory{rundir.At(there, "g-g1"), rundir.At(data, "g-g1"), rundir.At(data, "g")} {
		meta, err := dir.Load()
		if err != nil || meta.Outcome != rundir.Interrupted || !meta.Closed() {
			t.Errorf("%s: %v, %s: %s\n%s", dir, err, meta.Outcome, meta.Reason, text)
		}
	}
}

// endGenerators ends what a test started on the other machine.
func endGenerators(t *testing.T, folder string) {
	t.Helper()
	there := filepath.Join(folder, "there")
	ids, err := rundir.List(there)
	if err != nil {
		t.Error(err)
	}
	for _, id := range ids {
		meta, err := rundir.At(there, id).Load()
		if err != nil {
			continue
		}
		if w := meta.Group.Wrapper; w.Alive() {
			_ = syscall.Kill(w.PID, syscall.SIGTERM)
			for deadline := time.Now().Add(patience); w.Alive() && time.Now().Before(deadline); {
				<-time.After(10 * time.Millisecond)
			}
		}
	}
}

// TestAttachRequires: `group attach` applies the requirements of the run that it follows.
func TestAttachRequires(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ssh := filepath.Join(folder, "ssh")
	writeScript(t, ssh, honest)
	run := []string{"run", "--on=gen1", "--ssh=" + ssh, "--group=g", "--linger=0s", "--require=tps>5", "--", "sh", "-c", "echo begun"}
	for _, args := range [][]string{run, {"group", "attach", "g"}} {
		c := startChild(t, folder, args...)
		text := c.end()
		if status := c.ProcessState.ExitCode(); status != exitUnclear || !strings.Contains(text, "--require: tps>5 is not known") {
			t.Errorf("%s: exit status %d\n%s", args[0], status, text)
		}
	}
}

// TestAttachUsesOwnConnection: `group attach` reaches the generators as the user's own `run --on` did, and nothing in
// run.json, in a copy of the directory or in a file that others may write changes that. It obeys SIGTERM even if a
// command never answers.
func TestAttachUsesOwnConnection(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ssh := filepath.Join(folder, "ssh")
	writeScript(t, ssh, honest)
	data := filepath.Join(folder, "data")
	run := startChild(t, folder, "run", "--on=gen1", "--ssh="+ssh, "--group=g", "--linger=0s", "--", "sh", "-c", "echo begun; exec sleep 1000")
	run.await("the generator runs", func() bool {
		text, _ := os.ReadFile(filepath.Join(data, "runs/g-g1", rundir.StdoutFile))
		return bytes.Contains(text, []byte("begun"))
	})
	_ = run.Process.Kill()
	<-run.ended
	group := rundir.At(data, "g")
	t.Cleanup(func() { endGenerators(t, folder) })

	text, err := os.ReadFile(group.Path(rundir.MetaFile))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(ssh)) {
		t.Errorf("run.json names the command:\n%s", text)
	}
	writeScript(t, ssh, "touch $(dirname $0)/attached\nexec sleep 1000\n")
	attach := startChild(t, folder, "group", "attach", "g")
	attach.await("the recorded command runs", func() bool { return exists(filepath.Join(folder, "attached")) })
	attach.terminate()

	writeScript(t, ssh, "touch $(dirname $0)/PWNED\n")
	connection := group.Path(".connection.json")
	for _, c := range []struct {
		name   string
		change func() error
	}{
		{"another may write it", func() error { return os.Chmod(connection, 0o620) }},
		{"another may write the folder", func() error {
			return errors.Join(os.Chmod(connection, 0o600), os.Chmod(string(group), 0o777))
		}},
		{"a link", func() error {
			return errors.Join(os.Chmod(string(group), 0o755), os.Rename(connection, folder+"/elsewhere"), os.Symlink(folder+"/elsewhere", connection))
		}},
		{"a copy", func() error {
			return errors.Join(os.Remove(connection), os.Rename(folder+"/elsewhere", connection), os.Rename(string(group), folder+"/old"), exec.Command("cp", "-r", folder+"/old", string(group)).Run())
		}},
		{"a file of its name with another group", func() error {
			return os.WriteFile(connection, []byte(`{"ssh":["`+ssh+`"],"benchwatch":"b","hosts":["gen1"],"group":"h","inode":0}`), 0o600)
		}},
		{"run.json alone", func() error {
			var meta map[string]any
			if err := json.Unmarshal(text, &meta); err != nil {
				return err
			}
			meta["group"].(map[string]any)["connection"] = map[string]any{"ssh": []string{ssh}, "benchwatch": "b"}
			changed, err := json.Marshal(meta)
			return errors.Join(err, os.Remove(connection), os.WriteFile(group.Path(rundir.MetaFile), changed, 0o644))
		}},
	} {
		if err := c.change(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		attach := startChild(t, folder, "group", "attach", "g")
		out := attach.end()
		if exists(filepath.Join(folder, "PWNED")) || !strings.Contains(out, "was started by another user or on another machine") {
			t.Fatalf("%s: the command was run, or no error:\n%s", c.name, out)
		}
	}
}
