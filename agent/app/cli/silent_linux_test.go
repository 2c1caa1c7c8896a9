package cli

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// silence is a row of TestSilence.
type silence struct {
	// command is the command with its arguments. FILE is replaced by a configuration that names
	// silent machines for everything, URL and ADDRESS by one of them, SSH by an ssh that prints
	// nothing, and LATESSH by one that prints nothing more once a generator runs.
	command string
	// until is what the command does before it gets SIGTERM.
	until moment
	// input is what it reads before standard input is silent.
	input string
}

// moment is what a command does before it gets SIGTERM.
type moment int

const (
	asking    moment = iota // it has asked a silent machine
	reading                 // it has read its standard input, and waits for more
	prompting               // it has printed a question; standard input is a terminal
	sshing                  // ssh is silent
	nothing                 // it asks no other machine, and ends
	elsewhere               // another test has it
)

// silences has every command; some more than once, with what else it can wait for.
var silences = []silence{
	{command: "run FILE --cluster=c --linger=0s -- sleep 1000"},
	{command: "run FILE --linger=0s --abort-when=promql:up<1 -- sleep 1000"},
	{command: "run FILE --on=gen1 SSH -- sleep 1000", until: sshing},
	{command: "run FILE --on=gen1 LATESSH -- sleep 1000", until: sshing},
	{command: "run FILE --linger=0s --tool=sysbench -", until: reading, input: "x\n"},
	{command: "run FILE --linger=0s -", until: reading, input: "x\n"},
	{command: "agent FILE --web.listen-address=127.0.0.1:0"},
	{command: "parse", until: reading, input: "x\n"},
	{command: "group attach", until: elsewhere}, // TestAttachUsesOwnConnection
	{command: "group serve FILE", until: reading, input: "{}\n"},
	{command: "mark FILE --run=r text", until: nothing},
	{command: "health --address=ADDRESS --timeout=1000s"},
	{command: "status FILE"},
	{command: "status FILE --once"},
	{command: "status --engine=mysql --address=ADDRESS --user=u"},
	{command: "runs list FILE", until: nothing},
	{command: "runs list FILE --archive="},
	{command: "runs rm FILE r", until: prompting},
	{command: "runs import FILE --cluster=c data/runs/r/stdout.log", until: nothing},
	{command: "report FILE r"},
	{command: "report FILE --archive= r"},
	{command: "compare FILE r s", until: nothing},
	{command: "compare FILE --archive= r s"},
	{command: "history FILE", until: nothing},
	{command: "history FILE --archive="},
	{command: "export FILE r", until: nothing},
	{command: "export FILE --remote-write=URL r"},
	{command: "export FILE --archive= r"},
	{command: "archive push FILE"},
	{command: "archive pull FILE r"},
	{command: "archive list FILE"},
	{command: "sweep FILE --on=gen1 SSH --set=n1=1,2 -- sleep {n1}000", until: sshing},
	{command: "sweep FILE --on=gen1 LATESSH --set=n1=1,2 -- sleep {n1}000", until: sshing},
	{command: "sweep FILE --set=n1=1,2 -- sleep {n1}000"},
	{command: "seek FILE --on=gen1 LATESSH --max=n1 --subject-to=p95<1s -- sleep {n1}000", until: sshing},
	{command: "replay FILE --web.listen-address=127.0.0.1:0"},
	{command: "init --config.file=new.yml --data-dir=new --target=mysql://u@ADDRESS --grafana.url=URL --grafana.token-file=token --prometheus.url=URL --yes"},
	{command: "init --config.file=new.yml", until: prompting},
	{command: "doctor FILE"},
	{command: "dashboards import FILE"},
}

// TestSilence: SIGTERM ends every command beside machines that never answer, and a command
// that asks none of them does not wait for one.
func TestSilence(t *testing.T) {
	t.Parallel()
	for _, c := range leaves(newProgram()) {
		if name := below(c); !slices.ContainsFunc(silences, func(s silence) bool { return strings.HasPrefix(s.command+" ", name+" ") }) {
			t.Errorf("%s has no row in silences", name)
		}
	}
	recorded := filepath.Join(t.TempDir(), "recorded")
	silent := newSilent(t, recorded)
	if err := os.WriteFile(filepath.Join(recorded, "output"), fmt.Appendf(nil, smallLog, 300), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"r", "s"} {
		run := startChild(t, silent.folder, "run", "--config.file="+silent.config, "--run-id="+id, "--cluster=c", "--linger=0s", "--drain-timeout=1s", "--tool=sysbench", "--",
			"cat", "output")
		if out := run.end(); !exists(string(rundir.At(filepath.Join(recorded, "data"), id))) {
			t.Fatal(out)
		}
	}
	for _, s := range silences {
		if s.until == elsewhere {
			continue
		}
		t.Run(s.command, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "own")
			if out, err := exec.Command("cp", "-rp", recorded, folder).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			newSilent(t, folder).try(s)
		})
	}
}

// silent is a folder with a configuration that names nothing but a machine which accepts
// connections and never answers.
type silent struct {
	t              *testing.T
	folder, config string
	address        string
	asked          atomic.Int64
}

func newSilent(t *testing.T, folder string) *silent {
	t.Helper()
	s := &silent{t: t, folder: folder, config: filepath.Join(folder, "benchwatch.yml")}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	ended := make(chan struct{})
	t.Cleanup(func() { listener.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			s.asked.Add(1)
		}
	}()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`
data_dir: %[2]s/data
grafana: {url: 'http://%[1]s', token_file: token}
prometheus: {url: 'http://%[1]s'}
peers: [{url: 'http://%[1]s'}]
archive: 's3://bucket?endpoint=http://%[1]s'
hosts: [{name: h, node_exporter: 'http://%[1]s/metrics', cluster: c}]
targets:
  - {name: a, engine: mysql, cluster: c, address: '%[1]s', user: u, node_exporter: 'http://%[1]s/metrics'}
  - {name: b, engine: mongodb, cluster: d, address: '%[1]s'}
`, s.address, folder)
	for name, content := range map[string]string{"benchwatch.yml": text, "token": "geheim"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeScript(t, filepath.Join(folder, "ssh"), "trap '' TERM INT HUP PIPE\ntouch waits\nwhile :; do sleep 1; done\n")
	writeScript(t, filepath.Join(folder, "latessh"), silentAfter(14, "sleep 1000"))
	return s
}

// try runs a command until it waits, ends it, and checks that it did not take longer than two
// seconds, and what else the machine has to do.
func (s *silent) try(row silence) {
	s.t.Helper()
	in := s.input(row)
	var args []string
	for arg := range strings.FieldsSeq(row.command) {
		args = append(args, strings.NewReplacer("FILE", "--config.file="+s.config, "URL", "http://"+s.address, "ADDRESS", s.address,
			"LATESSH", "--ssh="+s.folder+"/latessh", "SSH", "--ssh="+s.folder+"/ssh").Replace(arg))
	}
	printed, err := os.Create(filepath.Join(s.folder, "printed"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer printed.Close()
	c := &child{Cmd: exec.Command("benchwatch", args...), t: s.t, ended: make(chan error, 1)}
	c.Dir, c.Stdin, c.Stdout, c.Stderr = s.folder, in, printed, printed
	c.Env = append(os.Environ(), "HOME="+s.folder, "XDG_CACHE_HOME="+s.folder+"/cache", "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=geheim")
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Process.Kill(); endGenerators(s.t, s.folder) })
	go c.watch()
	text := func() string {
		text, err := os.ReadFile(printed.Name())
		if err != nil {
			s.t.Fatal(err)
		}
		return string(text)
	}
	if row.until == nothing {
		c.end()
		if s.asked.Load() > 0 || c.ProcessState.ExitCode() != 0 {
			s.t.Errorf("asked %d times, exit status %d:\n%s", s.asked.Load(), c.ProcessState.ExitCode(), text())
		}
		return
	}
	c.await("it waits", func() bool {
		switch row.until {
		case reading:
			n, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCINQ)
			return err == nil && n == 0
		case prompting:
			return strings.ContainsAny(text(), ":?")
		case sshing:
			return exists(filepath.Join(s.folder, "waits"))
		}
		return s.asked.Load() > 0
	})
	busy := time.Now()
	if err := exec.Command("benchwatch", "--version").Run(); err != nil {
		s.t.Fatal(err)
	}
	limit := 2*time.Second + 20*time.Since(busy)
	began := time.Now()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatalf("%v: it had ended before:\n%s", err, text())
	}
	c.end()
	took := time.Since(began)
	s.t.Logf("%.2f s after SIGTERM", took.Seconds())
	if took > limit {
		s.t.Errorf("ended %s after SIGTERM, where %s are enough:\n%s", took, limit, text())
	}
}

// input returns a standard input that says no more than the row's.
func (s *silent) input(row silence) *os.File {
	s.t.Helper()
	if row.until == prompting {
		return terminalInput(s.t)
	}
	in, out, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { in.Close(); out.Close() })
	if _, err := out.WriteString(row.input); err != nil {
		s.t.Fatal(err)
	}
	return in
}

// terminalInput returns a terminal on which nothing is typed.
func terminalInput(t *testing.T) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return terminal
}
