package proxy

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
)

// procTree is a recorded /proc with a proxy in it.
type procTree struct {
	t    testing.TB
	root string
}

func newProcTree(t *testing.T) *procTree {
	p := &procTree{t: t, root: t.TempDir()}
	p.write("cpu  0 0 0 0\nbtime 1795225900\n", "stat")
	p.sockets()
	return p
}

func (p *procTree) write(text string, path ...string) {
	p.t.Helper()
	file := filepath.Join(append([]string{p.root}, path...)...)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		p.t.Fatal(err)
	}
}

// recordedStat is a proxy under load: 14 ticks in user mode, 39 in the system.
const recordedStat = "%d (%s) S %d 9599 9599 0 -1 4194304 1124 0 0 0 14 39 0 0 20 0 4 0 %d 63971328 2861 18446744073709551615 94751356416000 94751356421853 140727206415840 0 0 0 0 4102 18945 0 0 0 17 0 0 0 0 0 0 94751356431752 94751356432920 94752004210688 140727206422918 140727206423007 140727206423007 140727206424531 0\n"

// process adds a process; nil inodes: its open files can't be read.
func (p *procTree) process(pid, parent int, name string, start int, inodes ...int) {
	p.t.Helper()
	dir := fmt.Sprint(pid)
	p.write(fmt.Sprintf(recordedStat, pid, name, parent, start), dir, "stat")
	ticks := [][2]int{{2, 1}, {0, 0}, {4, 18}, {7, 18}}
	for i, tid := range []int{pid, 9623, 9624, 9625} {
		line := fmt.Sprintf(recordedStat, tid, name, parent, start)
		line = strings.Replace(line, " 14 39 ", fmt.Sprintf(" %d %d ", ticks[i][0], ticks[i][1]), 1)
		p.write(line, dir, "task", fmt.Sprint(tid), "stat")
	}
	for i, inode := range inodes {
		p.link(fmt.Sprintf("socket:[%d]", inode), dir, "fd", fmt.Sprint(i+3))
	}
	if len(inodes) > 0 {
		p.link("/dev/null", dir, "fd", "0")
		p.link("pipe:[17]", dir, "fd", "1")
	}
}

func (p *procTree) link(target string, path ...string) {
	p.t.Helper()
	file := filepath.Join(append([]string{p.root}, path...)...)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Symlink(target, file); err != nil {
		p.t.Fatal(err)
	}
}

// tcp is one socket of the table: ports on 127.0.0.1, state and inode.
type tcp struct{ local, remote, state, inode int }

func (p *procTree) sockets(list ...tcp) {
	p.t.Helper()
	var b strings.Builder
	b.WriteString("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n")
	for i, s := range list {
		remote := "0100007F"
		if s.remote == 0 {
			remote = "00000000"
		}
		fmt.Fprintf(&b, "%4d: 0100007F:%04X %s:%04X %02X 00000000:00000000 00:00000000 00000000     0        0 %d 1 0000000000000000 100 0 0 10 0\n",
			i, s.local, remote, s.remote, s.state, s.inode)
	}
	p.write(b.String(), "net", "tcp")
}

// The proxy of the recording, Atlas.
const program = "mysql-proxy"

var backends = []Backend{{"127.0.0.1:3367", "up", "rw"}, {"127.0.0.1:3368", "up", "ro"}}

// The ports of the recording.
const (
	adminPort  = 12345
	clientPort = 13306
)

// underLoad adds four clients, two of them gone, and connections to both backends, each with its
// other end on the same machine.
func (p *procTree) underLoad() {
	p.sockets(
		tcp{adminPort, 0, stateListen, 100}, tcp{clientPort, 0, stateListen, 101},
		tcp{adminPort, 40000, stateEstablished, 102}, tcp{40000, adminPort, stateEstablished, 900},
		tcp{clientPort, 40001, stateEstablished, 103}, tcp{40001, clientPort, stateEstablished, 901},
		tcp{clientPort, 40002, stateEstablished, 104}, tcp{40002, clientPort, stateEstablished, 902},
		tcp{clientPort, 40003, 6, 0}, tcp{clientPort, 40004, 8, 105}, // TIME_WAIT, CLOSE_WAIT
		tcp{40010, 3367, stateEstablished, 106}, tcp{3367, 40010, stateEstablished, 903},
		tcp{40011, 3368, stateEstablished, 107}, tcp{40012, 3368, stateEstablished, 108},
		tcp{40013, 3368, stateEstablished, 904}, // another process
	)
}

func (p *procTree) sampled(change ...func(*Process)) *engine.Status {
	p.t.Helper()
	p.write("700\n", "proxy.pid")
	proc := &Process{Program: program, PIDFile: filepath.Join(p.root, "proxy.pid"), root: p.root, local: true, adminPort: adminPort}
	for _, c := range change {
		c(proc)
	}
	var s engine.Status
	proc.Sample(&s, backends, time.Unix(1795228000, 0))
	return &s
}

var proxySockets = []int{100, 101, 102, 103, 104, 105, 106, 107, 108}

func TestProcessUnderLoad(t *testing.T) {
	p := newProcTree(t)
	p.underLoad()
	p.process(1, 0, "init", 1)
	p.process(700, 1, program, 204901, proxySockets...)
	s := p.sampled(func(p *Process) { p.Clients = "127.0.0.1:13306" })
	enginetest.Want(t, s, 0.14, CPUSeconds, "user")
	enginetest.Want(t, s, 0.39, CPUSeconds, "system")
	for thread, v := range map[string]float64{"0": 0.03, "1": 0, "2": 0.22, "3": 0.25} {
		enginetest.Want(t, s, v, ThreadCPUSeconds, thread)
	}
	enginetest.Want(t, s, float64(2861*os.Getpagesize()), ResidentBytes)
	enginetest.Want(t, s, 4, Threads)
	enginetest.Want(t, s, float64(len(proxySockets)+2), OpenFDs)
	enginetest.Want(t, s, 2, ClientConnections)
	enginetest.Want(t, s, 1, BackendConnections, "127.0.0.1:3367")
	enginetest.Want(t, s, 2, BackendConnections, "127.0.0.1:3368")
}

func pidFile(t *testing.T, text string) func(*Process) {
	path := filepath.Join(t.TempDir(), "bench.pid")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return func(p *Process) { p.PIDFile = path }
}

// keepalive is a parent that restarts the proxy. The proxy owns these sockets.
func keepalive(sockets ...int) func(*procTree) {
	return func(p *procTree) {
		p.process(600, 1, program, 5, 555)
		p.write("700 ", "600", "task", "600", "children")
		p.process(700, 600, program, 6, sockets...)
	}
}

func TestWhichProcess(t *testing.T) {
	proxy := func(name string, sockets ...int) func(*procTree) {
		return func(p *procTree) { p.process(700, 1, name, 5, sockets...) }
	}
	cases := map[string]struct {
		tree  func(*procTree)
		file  string
		found int
	}{
		"whatever its name":                      {proxy("renamed", proxySockets...), "700\n", 700},
		"of an earlier process":                  {proxy(program, proxySockets...), "601", 0},
		"of another proxy by now":                {proxy(program, 555), "700", 0},
		"with keepalive, of the parent":          {keepalive(proxySockets...), "600", 700},
		"with keepalive, of the child":           {keepalive(proxySockets...), "700", 700},
		"open files unreadable":                  {proxy(program), "700", 700},
		"open files unreadable, keepalive":       {keepalive(), "600", 700},
		"open files unreadable, another program": {proxy("sshd"), "700", 0},
		"garbage":                                {proxy(program, proxySockets...), "-1 \x00", 0},
		"empty":                                  {proxy(program, proxySockets...), "", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProcTree(t)
			p.underLoad()
			c.tree(p)
			var proc *Process
			s := p.sampled(pidFile(t, c.file), func(p *Process) { proc = p })
			root, err := procfs.NewFS(p.root)
			if err != nil {
				t.Fatal(err)
			}
			if _, stat, _ := proc.find(root); stat.PID != c.found {
				t.Errorf("found %d, not %d", stat.PID, c.found)
			}
			if _, ok := s.Get(CPUSeconds, "user"); ok != (c.found != 0) {
				t.Errorf("CPU time known: %v", ok)
			}
			if missing := slices.Contains(s.Missing, missingProcess); missing != (c.found == 0) {
				t.Errorf("missing: %q", s.Missing)
			}
		})
	}
}

// Without a pid file the process is not sampled, and nothing is reported missing.
func TestNoPIDFile(t *testing.T) {
	p := newProcTree(t)
	p.underLoad()
	p.process(700, 1, program, 5, proxySockets...)
	s := p.sampled(func(p *Process) { p.PIDFile = "" })
	if len(s.Values) != 0 || len(s.Missing) != 0 {
		t.Errorf("%v, missing %q", s.Values, s.Missing)
	}
}

// If the open files of the process can't be read, clients are still counted by port; connections to
// backends are not.
func TestUnreadableFiles(t *testing.T) {
	p := newProcTree(t)
	p.underLoad()
	p.process(700, 1, program, 5)
	s := p.sampled(func(p *Process) { p.Clients = "0.0.0.0:13306" })
	enginetest.Want(t, s, 2, ClientConnections)
	enginetest.Absent(t, s, BackendConnections, "127.0.0.1:3367")
	enginetest.Absent(t, s, OpenFDs)
	if !slices.Equal(s.Missing, []string{missingFDs}) {
		t.Errorf("missing %q", s.Missing)
	}
}

// After a restart the process with the new id is sampled.
func TestProcessIsReplaced(t *testing.T) {
	p := newProcTree(t)
	p.underLoad()
	p.process(700, 1, program, 5, proxySockets...)
	var proc *Process
	p.sampled(func(p *Process) { proc = p })
	if err := os.RemoveAll(filepath.Join(p.root, "700")); err != nil {
		t.Fatal(err)
	}
	sample := func() *engine.Status {
		var s engine.Status
		proc.Sample(&s, backends, time.Unix(1795228000, 0))
		return &s
	}
	enginetest.Absent(t, sample(), CPUSeconds, "user")
	p.process(701, 1, program, 10, proxySockets...)
	p.write("701\n", "proxy.pid")
	enginetest.Want(t, sample(), 0.14, CPUSeconds, "user")
}

func TestRemoteProxyHasNoProcess(t *testing.T) {
	p := &Process{}
	p.Connected(endpoints{local: "192.0.2.10:40000", remote: "192.0.2.20:4041"})
	if p.local {
		t.Error("a proxy on another machine is taken to be here")
	}
	p.Connected(endpoints{local: "192.0.2.20:40000", remote: "192.0.2.20:4041"})
	if !p.local || p.adminPort != 4041 {
		t.Errorf("local %v, admin port %d", p.local, p.adminPort)
	}
}

// endpoints is a connection with nothing but its ends.
type endpoints struct {
	net.Conn
	local, remote string
}

func (e endpoints) LocalAddr() net.Addr  { return resolve(e.local) }
func (e endpoints) RemoteAddr() net.Addr { return resolve(e.remote) }

func resolve(address string) net.Addr {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		panic(err)
	}
	return a
}

func TestSocketTable(t *testing.T) {
	table := parseSockets([]byte(`  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:0FC9 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   1: 0000000000000000FFFF00000100007F:33FA 0000000000000000FFFF00000100007F:9C41 01 00000000:00000000 02:00000000 00000000  1000        0 12 2 0
   2: 0100007F:3039 0200007F:9C42 01 00000000:00000000 00:00000000 00000000     0        0 13
   3: 0100007F:3039 0200007F:9C42 06 00000000:00000000 03:00000000 00000000     0        0 0 3
   4: xyz 0200007F:9C42 01 00000000:00000000 00:00000000 00000000     0        0 14
   5: 0100007F:3039 0200007F:9C42 01
  10: 0100007F 0200007F:9C42 0A 0 0 0 0 0 15`))
	want := sockets{
		{netip.MustParseAddrPort("[::1]:4041"), netip.MustParseAddrPort("[::]:0"), stateListen, 11},
		{netip.MustParseAddrPort("127.0.0.1:13306"), netip.MustParseAddrPort("127.0.0.1:40001"), stateEstablished, 12},
		{netip.MustParseAddrPort("127.0.0.1:12345"), netip.MustParseAddrPort("127.0.0.2:40002"), stateEstablished, 13},
	}
	if !slices.Equal(table, want) {
		t.Errorf("got %v", table)
	}
}

func FuzzSocketTable(f *testing.F) {
	f.Add([]byte("header\n   0: 0100007F:3039 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if table := parseSockets(text); len(table) > bytes.Count(text, []byte("\n"))+1 {
			t.Errorf("%d sockets of %d bytes", len(table), len(text))
		}
	})
}

// A proxy under load has a value for every measure.
func TestMeasures(t *testing.T) {
	p := newProcTree(t)
	p.underLoad()
	p.process(700, 1, program, 204901, proxySockets...)
	s := p.sampled(func(p *Process) { p.Clients = "127.0.0.1:13306" })
	SetBackends(s, States{Up: []string{"up"}, Down: []string{"down"}}, backends)
	enginetest.Measures(t, s, s, "connections", "process_cpu", "server_memory", "backend_connections", "backends_up", "open_files")
}
