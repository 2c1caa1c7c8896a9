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
	// nothing, LATESSH by one that prints nothing more once a generator runs, and ␣ by a space.
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
	{command: "runs label FILE r keep=yes", until: nothing},
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
	{command: "ab FILE --a=n1=1 --b=n1=2 -- sleep {n1}000"},
	{command: "ab FILE --on=gen1 LATESSH --a=n1=1 --b=n1=2 -- sleep {n1}000", until: sshing},
	{command: "ab FILE --toggle-on=a --toggle=SET␣GLOBAL␣max_connections={v} --values=100,200 --every=3s -- sleep 1000"},
	{command: "ab FILE --toggle=POST␣URL/{v} --values=1,2 --every=3s -- sleep 1000"},
	{command: "replay FILE --web.listen-address=127.0.0.1:0"},
	{command: "init --config.file=new.yml --data-dir=new --target=mysql://u@ADDRESS --grafana.url=URL --grafana.token-file=token --prometheus.url=URL --yes"},
	{command: "init --config.file=new.yml", until: prompting},
	{command: "doctor FILE"},
	{command: "dashboards import FILE"},
	{command: "version", until: nothing},
}

// TestSilence: SIGTERM ends every command even if other machines never answer or answer endlessly, and endless answers
// take bounded memory. A command that queries none of them does not wait.
func TestSilence(t *testing.T) {
	t.Parallel()
	for _, c := range leaves(newProgram()) {
		if name := below(c); !slices.ContainsFunc(silences, func(s silence) bool { return strings.HasPrefix(s.command+" ", name+" ") }) {
			t.Errorf("%s has no row in silences", name)
		}
	}
	recorded := filepath.Join(t.TempDir(), "recorded")
	silent := newSilent(t, recorded, nil)
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
		for answer, try := range map[string]func(folder string, t *testing.T){
			"silence":         func(folder string, t *testing.T) { newSilent(t, folder, nil).try(s) },
			"endless text":    func(folder string, t *testing.T) { newSilent(t, folder, flood("", "x")).bounded(s) },
			"endless objects": func(folder string, t *testing.T) { newSilent(t, folder, flood("[", "{},")).bounded(s) },
		} {
			if s.until == elsewhere || answer != "silence" && (s.until == nothing || s.until == prompting) || answer == "endless objects" && s.until != asking {
				continue
			}
			t.Run(s.command+": "+answer, func(t *testing.T) {
				t.Parallel()
				folder := filepath.Join(t.TempDir(), "own")
				if out, err := exec.Command("cp", "-rp", recorded, folder).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				try(folder, t)
			})
		}
	}
}

// flood returns what answers every request with text that never ends: one of HTTP, by a body that
// begins with begin and repeats again, the list of an object store, or bytes for a server's client.
func flood(begin, again string) func(net.Conn) {
	return func(conn net.Conn) {
		_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond)) // the client of a server may wait for it
		request := make([]byte, 64<<10)
		n, _ := conn.Read(request)
		line, _, _ := strings.Cut(string(request[:n]), "\r\n")
		switch {
		case !strings.Contains(line, " HTTP/1."):
			endless(conn, "\xff\xff\xff\x00")
			return
		case strings.Contains(line, "list-type"):
			begin, again = "<ListBucketResult>", "<Contents><Key>"+indexName(1)+"</Key></Contents>"
		}
		if _, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nLast-Modified: Sat, 21 Nov 2026 14:03:00 GMT\r\nETag: \"x\"\r\n\r\n" + begin)); err == nil {
			endless(conn, again)
		}
	}
}

// silent is a folder with a configuration that names nothing but a machine which accepts
// connections and never answers, or without end.
type silent struct {
	t              *testing.T
	folder, config string
	address        string
	floods         bool
	asked          atomic.Int64
}

func newSilent(t *testing.T, folder string, answer func(net.Conn)) *silent {
	t.Helper()
	s := &silent{t: t, folder: folder, config: filepath.Join(folder, "benchwatch.yml"), floods: answer != nil}
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
			if answer != nil {
				go func() { answer(conn); conn.Close() }()
			}
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
	ssh, late := "trap '' TERM INT HUP PIPE\ntouch waits\nwhile :; do sleep 1; done\n", "sleep 1000"
	if s.floods {
		ssh, late = "touch waits\nexec cat /dev/zero\n", "cat /dev/zero"
	}
	writeScript(t, filepath.Join(folder, "ssh"), ssh)
	writeScript(t, filepath.Join(folder, "latessh"), silentAfter(14, late))
	return s
}

// start runs a command with a standard input. The returned function returns its output so far.
func (s *silent) start(row silence, in *os.File) (c *child, text func() string) {
	s.t.Helper()
	var args []string
	for arg := range strings.FieldsSeq(row.command) {
		args = append(args, strings.NewReplacer("␣", " ", "FILE", "--config.file="+s.config, "URL", "http://"+s.address, "ADDRESS", s.address,
			"LATESSH", "--ssh="+s.folder+"/latessh", "SSH", "--ssh="+s.folder+"/ssh").Replace(arg))
	}
	printed, err := os.Create(filepath.Join(s.folder, "printed"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer printed.Close()
	c = &child{Cmd: exec.Command("benchwatch", args...), t: s.t, ended: make(chan error, 1)}
	c.Dir, c.Stdin, c.Stdout, c.Stderr = s.folder, in, printed, printed
	c.Env = append(os.Environ(), "HOME="+s.folder, "XDG_CACHE_HOME="+s.folder+"/cache", "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=geheim")
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Process.Kill(); endGenerators(s.t, s.folder) })
	go c.watch()
	return c, func() string {
		text, err := os.ReadFile(printed.Name())
		if err != nil {
			s.t.Fatal(err)
		}
		return string(text)
	}
}

// try runs a command until it waits, ends it, and checks that this took at most two seconds, plus the time that other
// work takes.
func (s *silent) try(row silence) {
	s.t.Helper()
	in := s.input(row)
	c, text := s.start(row, in)
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
	limit := 2*time.Second + s.busy()
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

// TestPipedBacklog ends a run whose piped output comes much faster than it can be parsed.
func TestPipedBacklog(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := newSilent(t, folder, func(net.Conn) {})
	for _, last := range []bool{false, true} {
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("ended-%t", last)
		c, text := s.start(silence{command: "run FILE --data-dir=" + folder + "/data --linger=0s --tool=sysbench --run-id=" + id + " -"}, in)
		in.Close()
		block := strings.Repeat("x\n", 1<<20)
		for range 24 {
			if _, err := out.WriteString(block); err != nil {
				t.Fatal(err)
			}
		}
		if last {
			out.Close()
		}
		limit := 2*time.Second + s.busy()
		began := time.Now()
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatalf("%v: it had ended before:\n%s", err, text())
		}
		c.end()
		out.Close()
		if took := time.Since(began); took > limit || !strings.Contains(text(), "is not read yet") {
			t.Errorf("ended %s after SIGTERM, where %s are enough:\n%s", took, limit, text())
		}
		dir := rundir.At(folder+"/data", id)
		if info, err := os.Stat(dir.Path(rundir.StdoutFile)); err != nil || info.Size() < int64(22*len(block)) {
			t.Errorf("%v %v", info, err)
		}
		if meta, err := dir.Load(); err != nil || !meta.Ended() {
			t.Errorf("%+v %v", meta, err)
		}
	}
}

// busy is how much longer a command may take because of other work on this machine.
func (s *silent) busy() time.Duration {
	s.t.Helper()
	began := time.Now()
	if err := exec.Command("benchwatch", "--version").Run(); err != nil {
		s.t.Fatal(err)
	}
	return 20 * time.Since(began)
}

// bounded runs a command until it ends, or is ended, and checks how much memory it needed and that
// it neither fails by itself nor prints what it gets.
func (s *silent) bounded(row silence) {
	s.t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	defer in.Close()
	c, text := s.start(row, in)
	fed := make(chan struct{})
	go func() { // not without end, which would fill the disk of a run
		defer close(fed)
		block := []byte(row.input + strings.Repeat("\x00x[{", 64<<10))
		for n := 0; n < 64<<20; n += len(block) {
			if _, err := out.Write(block); err != nil {
				return
			}
			block = block[len(row.input):]
			row.input = ""
		}
	}()
	begun := func() bool {
		switch row.until {
		case reading:
			select {
			case <-fed:
				return true
			default:
				return false
			}
		case sshing:
			return exists(filepath.Join(s.folder, "waits"))
		}
		return s.asked.Load() > 0
	}
	const floods = 2 * time.Second
	var since time.Time
	for deadline := time.Now().Add(patience); len(c.ended) == 0 && (since.IsZero() || time.Since(since) < floods); <-time.After(10 * time.Millisecond) {
		if since.IsZero() && begun() {
			since = time.Now()
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("it has not asked:\n%s", text())
		}
	}
	c.terminate()
	in.Close()
	out.Close()
	<-fed
	own := strings.HasPrefix(row.command, "run") && row.until == reading // the tool's output is the user's
	if printed := text(); !own && len(printed) > 1<<20 || strings.Contains(printed, "panic:") || strings.Contains(printed, "fatal error:") {
		s.t.Errorf("printed %d bytes: %.2000q", len(printed), printed)
	}
	s.t.Logf("%d MiB, exit status %d: %.300q", c.most.Load()>>20, c.ProcessState.ExitCode(), text())
}

// input returns a standard input with only the row's text.
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
