package atlas

import (
	"cmp"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/benchwatch/benchwatch/agent/engine"
)

const (
	// processName is what Atlas's binary is called.
	processName = "mysql-proxy"
	// searchInterval is the pace of looking for a process that was not found.
	searchInterval = 10 * time.Second
	// maxThreads bounds the series of threads.
	maxThreads = 64
)

// process is the proxy's process, if it runs on this machine. Nothing here
// fails a sample: what can't be read is absent.
type process struct {
	target *engine.Target
	log    *slog.Logger
	root   string // of procfs

	local     bool      // the admin connection stays on this machine
	adminPort uint16    // of the admin connection
	pid       int       // 0: not found
	start     uint64    // distinguishes a process from a later one with its id
	searched  time.Time // last search
	blind     bool      // the process's open files may not be read

	sockets    sockets         // of the machine, as read last
	socketsDue time.Time       // when to read them again
	owned      map[uint64]bool // sockets of the process, by inode
}

// missingFDs is logged once if the agent may not look into the proxy's files.
const missingFDs = "reading /proc/PID/fd of the proxy (same user, or CAP_SYS_PTRACE): open files and connections to backends"

// connected notes where the admin connection ends.
func (p *process) connected(conn net.Conn) {
	remote, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return
	}
	p.adminPort = uint16(remote.Port)
	p.local = remote.IP.IsLoopback()
	if own, ok := conn.LocalAddr().(*net.TCPAddr); ok && own.IP.Equal(remote.IP) {
		p.local = true // a machine reaches its own addresses from themselves
	}
}

// sample sets the metrics of the process.
func (p *process) sample(s *engine.Status, backends []backend, now time.Time) {
	root, err := procfs.NewFS(p.root)
	if err != nil || !p.local {
		return
	}
	proc, stat, ok := p.find(root, now)
	if !ok {
		return
	}
	s.Set(cpuSeconds, float64(stat.UTime)/userHZ, "user")
	s.Set(cpuSeconds, float64(stat.STime)/userHZ, "system")
	s.Set(residentBytes, float64(stat.ResidentMemory()))
	s.Set(threads, float64(stat.NumThreads))
	if started, err := stat.StartTime(); err == nil {
		s.Uptime = max(0, now.Sub(time.UnixMilli(int64(started*1000))))
	}
	p.sampleThreads(s, root)
	p.sampleFiles(s, proc)
	p.sampleConnections(s, backends)
}

// userHZ is the unit of CPU times in procfs, the same on all of Linux's
// platforms that matter.
const userHZ = 100

// find returns the process. One that is gone is searched for again.
func (p *process) find(root procfs.FS, now time.Time) (proc procfs.Proc, stat procfs.ProcStat, ok bool) {
	if p.pid != 0 {
		if proc, stat, ok = read(root, p.pid); ok && stat.Starttime == p.start {
			p.readSockets(now)
			if !p.replaced() {
				return proc, stat, true
			}
		}
		p.pid, p.searched = 0, time.Time{}
	}
	if now.Sub(p.searched) < searchInterval {
		return proc, stat, false
	}
	p.searched, p.socketsDue = now, time.Time{}
	p.readSockets(now)
	if proc, stat, ok = read(root, p.search(root)); ok {
		p.pid, p.start = proc.PID, stat.Starttime
		p.log.Debug("found the proxy's process", "target", p.target.Name, "pid", p.pid)
	}
	return proc, stat, ok
}

// replaced reports whether another process listens on the admin port now.
func (p *process) replaced() bool {
	inode, listening := p.sockets.listener(p.adminPort)
	return listening && !p.blind && len(p.owned) > 0 && !p.owned[inode]
}

// read returns a process that runs. There is none with the id 0.
func read(root procfs.FS, pid int) (procfs.Proc, procfs.ProcStat, bool) {
	proc, err := root.Proc(pid)
	if err != nil {
		return proc, procfs.ProcStat{}, false
	}
	stat, err := proc.Stat()
	return proc, stat, err == nil && stat.State != "Z"
}

// search looks for the process that listens on the admin port, first among
// those with Atlas's name. If the agent may not read open files, it guesses.
func (p *process) search(root procfs.FS) int {
	all, err := root.AllProcs()
	if err != nil {
		return 0
	}
	var named, others procfs.Procs
	for _, proc := range all {
		if name, err := proc.Comm(); err == nil && name == processName {
			named = append(named, proc)
		} else {
			others = append(others, proc)
		}
	}
	if inode, listening := p.sockets.listener(p.adminPort); listening {
		for _, proc := range slices.Concat(named, others) {
			if targets, err := proc.FileDescriptorTargets(); err == nil && socketInodes(targets)[inode] {
				return proc.PID
			}
		}
	}
	text, _ := os.ReadFile(p.target.Options[optionPIDFile])
	filed, _ := strconv.Atoi(strings.TrimSpace(string(text))) // 0 if there is none
	return guess(named, filed)
}

// guess returns the process of the pid file if it has the right name, or else
// the only one with that name. With keepalive there are two, of which the child
// does the work.
func guess(named procfs.Procs, filed int) int {
	parents := map[int]int{}
	for _, proc := range named {
		if stat, err := proc.Stat(); err == nil {
			parents[proc.PID] = stat.PPID
		}
	}
	for _, parent := range parents {
		delete(parents, parent)
	}
	for pid, parent := range parents {
		if len(parents) == 1 || filed != 0 && (pid == filed || parent == filed) {
			return pid
		}
	}
	return 0
}

// socketInodes returns the sockets among the targets of open files.
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

func (p *process) sampleThreads(s *engine.Status, root procfs.FS) {
	all, err := root.AllThreads(p.pid)
	if err != nil {
		return
	}
	slices.SortFunc(all, func(a, b procfs.Proc) int { return cmp.Compare(a.PID, b.PID) })
	for i, thread := range all[:min(len(all), maxThreads)] {
		if stat, err := thread.Stat(); err == nil {
			s.Set(threadCPUSeconds, stat.CPUTime(), strconv.Itoa(i))
		}
	}
}

func (p *process) sampleFiles(s *engine.Status, proc procfs.Proc) {
	targets, err := proc.FileDescriptorTargets()
	p.owned, p.blind = nil, errors.Is(err, fs.ErrPermission)
	if p.blind {
		s.Missing = append(s.Missing, missingFDs)
	}
	if err == nil {
		s.Set(openFDs, float64(len(targets)))
		p.owned = socketInodes(targets)
	}
}

// sampleConnections counts connections by their ends. Those of clients can be
// counted without looking into the process, since no other has its port.
func (p *process) sampleConnections(s *engine.Status, backends []backend) {
	if p.sockets == nil {
		return
	}
	if port, ok := p.proxyPort(); ok {
		n := float64(p.sockets.clients(port))
		s.Set(clientConnections, n)
		s.Set(engine.Connections, n)
	}
	if p.owned == nil {
		return
	}
	for _, b := range backends {
		_, set := s.Get(backendConnections, b.address)
		if n, ok := p.sockets.towards(b.address, p.owned); ok && !set {
			s.Set(backendConnections, float64(n), b.address)
		}
	}
}

// proxyPort returns the port for clients: the configured one, or the only one
// besides the admin port on which the process listens.
func (p *process) proxyPort() (port uint16, ok bool) {
	if a := p.target.Options[optionProxyAddress]; a != "" {
		_, port, err := splitAddress(a)
		return port, err == nil
	}
	for i := range p.sockets {
		line := &p.sockets[i]
		switch listens := line.local.Port(); {
		case line.state != stateListen || !p.owned[line.inode] || listens == p.adminPort:
		case ok && listens != port:
			return 0, false
		default:
			port, ok = listens, true
		}
	}
	return port, ok
}

// splitAddress splits host:port; the address is not valid if the host is a name.
func splitAddress(address string) (host netip.Addr, port uint16, err error) {
	text, number, err := net.SplitHostPort(address)
	if err != nil {
		return host, 0, err
	}
	host, _ = netip.ParseAddr(text)
	n, err := strconv.ParseUint(number, 10, 16)
	return host.Unmap(), uint16(n), err
}
