package servers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/need"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("SERVERS_TEST_PARENT"); dir != "" {
		parent(dir)
	}
	os.Exit(m.Run())
}

// parent starts an attached process and one that is not attached, and dies by SIGKILL.
func parent(dir string) {
	for name, attached := range map[string]bool{"attached": true, "detached": false} {
		if err := process(filepath.Join(dir, name)).start(program{args: []string{"sleep", "60"}, attached: attached}); err != nil {
			fmt.Println(err)
		}
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func launch(t *testing.T, args ...string) process {
	t.Helper()
	p := process(filepath.Join(t.TempDir(), "pid"))
	if err := p.start(program{args: args, attached: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.signal(syscall.SIGKILL) })
	return p
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	if err := poll(deadline(t, 10*time.Second), check); err != nil {
		t.Fatalf("not within 10 s: %s", what)
	}
}

func TestStopEndsWhatStartStarted(t *testing.T) {
	p := launch(t, "sleep", "60")
	if p.pid() == 0 {
		t.Fatal("not running after start")
	}
	if err := p.stop(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(string(p)); p.pid() != 0 || err == nil {
		t.Error("still running, or the pid file is still there")
	}
	if err := p.stop(time.Second); err != nil {
		t.Errorf("a second stop: %v", err)
	}
}

// A pid that now belongs to another process, or is from before the last boot, is not signalled.
func TestStopLeavesOtherProcessesAlone(t *testing.T) {
	for name, text := range map[string]func(pid int, start uint64) string{
		"other start time": func(pid int, start uint64) string { return fmt.Sprintf("%d %d %s\n", pid, start+1, bootID()) },
		"earlier boot": func(pid int, start uint64) string {
			return fmt.Sprintf("%d %d 00000000-0000-0000-0000-000000000000\n", pid, start)
		},
		"garbage": func(pid int, _ uint64) string { return fmt.Sprintf("%d\n", pid) },
	} {
		t.Run(name, func(t *testing.T) {
			other := launch(t, "sleep", "60")
			pid, start, _ := other.recorded()
			p := process(filepath.Join(t.TempDir(), "pid"))
			if err := os.WriteFile(string(p), []byte(text(pid, start)), 0o600); err != nil {
				t.Fatal(err)
			}
			if p.pid() != 0 {
				t.Error("taken for the recorded process")
			}
			if err := p.stop(time.Second); err != nil {
				t.Fatal(err)
			}
			if other.pid() == 0 {
				t.Error("the other process was ended")
			}
		})
	}
}

// A process that ignores SIGTERM, or is suspended, ends nevertheless.
func TestStopInsists(t *testing.T) {
	p := launch(t, "bash", "-c", `trap "" TERM; while :; do sleep 0.1; done`)
	if err := p.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "stopped", p.stopped)
	if err := p.stop(200 * time.Millisecond); err != nil || p.pid() != 0 {
		t.Errorf("still running: %v", err)
	}
}

// The remaining children of a killed process end with it if they work on the folder.
func TestStopEndsWhatWasLeftBehind(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	p := process(filepath.Join(filepath.Dir(file), "pid"))
	script := fmt.Sprintf("tail -f %[1]s.log & echo $! >>%[1]s; tail -f /dev/null & echo $! >>%[1]s; wait", file)
	if err := os.WriteFile(file+".log", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.start(program{args: []string{"bash", "-c", script}}); err != nil {
		t.Fatal(err)
	}
	var ours, other int
	eventually(t, "children started", func() bool {
		text, _ := os.ReadFile(file)
		n, _ := fmt.Sscan(string(text), &ours, &other)
		if n != 2 {
			return false
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", ours))
		return strings.HasPrefix(string(line), "tail") // no longer a shell
	})
	if err := p.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.stop(time.Second); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the one that works on the folder has ended", func() bool { return !alive(ours) })
	if !alive(other) {
		t.Error("the other one was ended, too")
	}
	_ = syscall.Kill(other, syscall.SIGKILL)
}

func alive(pid int) bool {
	stat, err := statOf(pid)
	return err == nil && stat.State != "Z"
}

// The kernel ends what a caller has attached, however the caller died.
func TestAttachedProcessDiesWithItsParent(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SERVERS_TEST_PARENT="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	attached, detached := process(filepath.Join(dir, "attached")), process(filepath.Join(dir, "detached"))
	if pid, _, _ := attached.recorded(); pid == 0 {
		t.Fatal("the attached process was not started")
	}
	eventually(t, "the attached process has ended", func() bool { return attached.pid() == 0 })
	if detached.pid() == 0 {
		t.Error("the other one has ended, too")
	}
	if err := detached.stop(time.Second); err != nil {
		t.Error(err)
	}
}

// A folder with foreign files is refused.
func TestForeignFolders(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "theirs")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, kind := range Kinds {
		if _, err := Start(t.Context(), dir, kind, Options{}); err == nil || !strings.Contains(err.Error(), "not empty") {
			t.Errorf("start of %s: %v", kind, err)
		}
	}
	if _, err := StartMonitoring(t.Context(), dir, &Group{}, MonitoringOptions{}); err == nil {
		t.Error("monitoring took the folder")
	}
	if _, err := Open(dir); err == nil {
		t.Error("opened")
	}
	if _, err := OpenMonitoring(dir); err == nil {
		t.Error("opened as monitoring")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// The agent samples servers of MongoDB as such, and they have no mysqld_exporter.
func TestMonitoringOfMongoDB(t *testing.T) {
	m := &Monitoring{Dir: t.TempDir(), Port: 20000}
	if err := m.configure(&Group{Kind: MongoDB, N: 2}, MonitoringOptions{}); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"benchwatch.yml": "{name: n2, engine: mongodb,", "prometheus/prometheus.yml": "- targets: []\n"} {
		text, err := os.ReadFile(filepath.Join(m.Dir, file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("no %q in %s, %v:\n%s", want, file, err, text)
		}
	}
}

// A used port is reported before anything is created.
func TestTakenPort(t *testing.T) {
	need.Program(t, "mariadbd")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	dir := filepath.Join(t.TempDir(), "servers")
	_, err = Start(t.Context(), dir, MariaDB, Options{Port: port - 1, Servers: 1})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d is taken", port)) {
		t.Errorf("start: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "n1")); err == nil {
		t.Error("something was made")
	}
}

func TestFreePorts(t *testing.T) {
	base, err := FreePorts(40)
	if err != nil {
		t.Fatal(err)
	}
	if port := takenPort(base, 40); port != 0 {
		t.Errorf("port %d is taken", port)
	}
}
