package proxy

import (
	"cmp"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// maxThreads limits the series of threads.
const maxThreads = 64

// Process samples a proxy's process, if it runs on this machine. It never fails a sample: values that can't be read are
// absent. It is used by one goroutine at a time.
type Process struct {
	// Program is the name of the proxy's binary, which recognises the process if its open files can't be read.
	Program string
	// PIDFile is the file with the proxy's process id.
	PIDFile string
	// PID is the process id as the proxy reports it. Without it and a PIDFile, the process is not sampled unless Search
	// is set.
	PID int
	// Search looks for the process that listens on the port of the admin connection, or on that of Clients.
	Search bool
	// Clients is the address for clients, host:port; empty: clients are not counted.
	Clients string

	root string // root of procfs; empty: /proc

	local     bool   // the admin connection stays on this machine
	adminPort uint16 // the proxy's port of the admin connection

	sockets    sockets   // of this machine, as last read
	socketsDue time.Time // when to read sockets again

	searched time.Time // when Search last looked
	threads  threadTimes
}

// searchInterval is the time between two searches for a process that is not found.
const searchInterval = 10 * time.Second

const (
	// missingProcess is logged once if the process in the file cannot be the proxy.
	missingProcess = "the proxy's process: its pid_file names no process that listens on the admin port"
	// processNotFound is logged once if no process can be the proxy.
	processNotFound = "the proxy's process: none on this machine listens on its port (another user's process, or a container?): " +
		"CPU and memory of the proxy"
	// missingFDs is logged once if the agent may not read the list of the proxy's open files.
	missingFDs = "reading /proc/PID/fd of the proxy (same user, or CAP_SYS_PTRACE): open files and connections to backends"
)

// Connected notes the ends of a connection to the proxy's admin interface: whether the proxy runs on this machine, and
// the port on which its process listens.
func (p *Process) Connected(conn net.Conn) {
	if conn.RemoteAddr().Network() == "unix" {
		p.local = true
		_, p.adminPort, _ = SplitAddress(p.Clients) // unknown without it
		return
	}
	remote, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return
	}
	p.adminPort = uint16(remote.Port)
	p.local = remote.IP.IsLoopback()
	if own, ok := conn.LocalAddr().(*net.TCPAddr); ok && own.IP.Equal(remote.IP) {
		p.local = true // the machine connects to its own addresses
	}
}

// Sample sets the metrics of the process, and its connections to the backends.
func (p *Process) Sample(s *engine.Status, backends []Backend, now time.Time) {
	p.root = cmp.Or(p.root, "/proc")
	root, err := procfs.NewFS(p.root)
	if err != nil || !p.local || p.PIDFile == "" && p.PID == 0 && !p.Search {
		return
	}
	p.readSockets(now)
	proc, stat, targets := p.find(root)
	if stat.PID == 0 && p.Search && p.PIDFile == "" && now.Sub(p.searched) >= searchInterval {
		p.searched = now
		p.PID = p.search(root)
		proc, stat, targets = p.find(root)
	}
	if stat.PID == 0 {
		s.Missing = append(s.Missing, p.whyNotFound())
		return
	}
	s.Set(CPUSeconds, float64(stat.UTime)/userHZ, "user")
	s.Set(CPUSeconds, float64(stat.STime)/userHZ, "system")
	s.Set(ResidentBytes, float64(stat.ResidentMemory()))
	s.Set(Threads, float64(stat.NumThreads))
	if started, err := stat.StartTime(); err == nil {
		s.Uptime = max(0, now.Sub(time.UnixMilli(int64(started*1000))))
	}
	p.threads.sample(s, root, proc.PID, now)
	if targets == nil {
		s.Missing = append(s.Missing, missingFDs)
	} else {
		s.Set(OpenFDs, float64(len(targets)))
	}
	p.sampleConnections(s, backends, targets)
}

// userHZ is the number of CPU time units per second in procfs, the same on all relevant Linux
// platforms.
const userHZ = 100

// whyNotFound is the reason why the process is not sampled.
func (p *Process) whyNotFound() string {
	if p.PIDFile != "" {
		return missingProcess
	}
	return processNotFound
}

// isUnpacked reports whether a process is the proxy under a dynamic loader of its own.
func (p *Process) isUnpacked(proc procfs.Proc, comm string) bool {
	if !strings.HasPrefix(comm, "ld-linux") {
		return false
	}
	line, err := proc.CmdLine()
	return err == nil && slices.ContainsFunc(line, func(word string) bool { return filepath.Base(word) == p.Program })
}

// search returns the id of a process that has the proxy's name and its port, 0 if there is none.
func (p *Process) search(root procfs.FS) int {
	all, err := root.AllProcs()
	if err != nil {
		return 0
	}
	inode, listening := p.sockets.listener(p.adminPort)
	for _, proc := range all {
		if comm, err := proc.Comm(); err != nil || comm != p.Program && !p.isUnpacked(proc, comm) {
			continue
		}
		if targets, err := proc.FileDescriptorTargets(); err == nil && listening && socketInodes(targets)[inode] {
			return proc.PID
		}
	}
	return 0
}

// Listens reports whether a process with this name listens on the port of an address of this machine. It is false if
// the open files of the process can't be read.
func Listens(program, address string) bool {
	_, port, err := SplitAddress(address)
	root, rootErr := procfs.NewFS("/proc")
	if err != nil || rootErr != nil {
		return false
	}
	p := Process{Program: program, root: "/proc", adminPort: port}
	p.readSockets(time.Now())
	return p.search(root) != 0
}

// find returns the process in the pid file or, with keepalive, its child, which serves the clients.
// The process has PID 0 if neither is the proxy, since a file may be left over from an earlier process.
// The open files are nil if they can't be read.
func (p *Process) find(root procfs.FS) (procfs.Proc, procfs.ProcStat, []string) {
	pid := p.PID
	if p.PIDFile != "" {
		text, _ := secret.ReadRegular(p.PIDFile) // the caller reports a missing process
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	children, _ := os.ReadFile(filepath.Join(p.root, strconv.Itoa(pid), "task", strconv.Itoa(pid), "children"))
	for _, field := range append(strings.Fields(string(children)), strconv.Itoa(pid)) {
		id, _ := strconv.Atoi(field)
		proc, err := root.Proc(id)
		if err != nil || id <= 0 {
			continue
		}
		stat, err := proc.Stat()
		targets, unreadable := proc.FileDescriptorTargets()
		isProxy := stat.Comm == p.Program
		if inode, listening := p.sockets.listener(p.adminPort); listening && unreadable == nil {
			isProxy = socketInodes(targets)[inode]
		}
		if err == nil && isProxy && stat.State != "Z" {
			return proc, stat, targets
		}
	}
	return procfs.Proc{}, procfs.ProcStat{}, nil
}

// socketInodes returns the inodes of the sockets among open files.
func socketInodes(targets []string) map[uint64]bool {
	owned := map[uint64]bool{}
	for _, target := range targets {
		if text, ok := strings.CutPrefix(target, "socket:["); ok {
			if inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64); err == nil {
				owned[inode] = true
			}
		}
	}
	return owned
}

// threadTimes are the CPU times of a process's threads at a time.
type threadTimes struct {
	at      time.Time
	seconds map[int]float64 // by thread id
}

// sample sets the CPU time of each thread, and how much of a core the busiest one used since the previous sample.
func (t *threadTimes) sample(s *engine.Status, root procfs.FS, pid int, now time.Time) {
	all, err := root.AllThreads(pid)
	if err != nil {
		return
	}
	before := *t
	*t = threadTimes{now, map[int]float64{}}
	for _, thread := range all {
		if stat, err := thread.Stat(); err == nil {
			t.seconds[stat.PID] = stat.CPUTime()
		}
	}
	ids := slices.Sorted(maps.Keys(t.seconds))
	for i, id := range ids[:min(len(ids), maxThreads)] {
		s.Set(ThreadCPUSeconds, t.seconds[id], strconv.Itoa(i))
	}
	busiest, known := 0.0, false
	for id, seconds := range t.seconds {
		if earlier, ok := before.seconds[id]; ok && seconds >= earlier {
			busiest, known = max(busiest, seconds-earlier), true
		}
	}
	if passed := now.Sub(before.at).Seconds(); known && passed > 0 {
		s.Set(BusiestThread, min(1, busiest/passed))
	}
}

// sampleConnections counts connections by their ends. Clients are counted even if the open files
// can't be read, since no other process has the proxy's port.
func (p *Process) sampleConnections(s *engine.Status, backends []Backend, targets []string) {
	if p.sockets == nil {
		return
	}
	if _, port, err := SplitAddress(p.Clients); err == nil {
		if _, reported := s.Get(ClientConnections); !reported {
			n := float64(p.sockets.clients(port))
			s.Set(ClientConnections, n)
			s.Set(engine.Connections, n)
		}
	}
	if targets == nil {
		return
	}
	owned := socketInodes(targets)
	for _, b := range backends {
		_, set := s.Get(BackendConnections, b.Address)
		if n, ok := p.sockets.towards(b.Address, owned); ok && !set {
			s.Set(BackendConnections, float64(n), b.Address)
		}
	}
}

// SplitAddress splits host:port. host is invalid if it is a name.
func SplitAddress(address string) (host netip.Addr, port uint16, err error) {
	text, number, err := net.SplitHostPort(address)
	if err != nil {
		return host, 0, err
	}
	host, _ = netip.ParseAddr(text)
	n, err := strconv.ParseUint(number, 10, 16)
	return host.Unmap(), uint16(n), err
}
