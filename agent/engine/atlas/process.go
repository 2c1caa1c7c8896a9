package atlas

import (
	"cmp"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
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
	start     uint64    // tells a process from a later one with its id
	searched  time.Time // last search
	blind     bool      // the process's open files may not be read
	sockets   sockets   // as read last

	socketsDue time.Time      // when to read them again
	owned      map[uint64]int // sockets of the process, by inode
}

// missingFDs is told once if the agent may not look into the proxy's files.
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

// sample sets what the process tells.
func (p *process) sample(s *engine.Status, backends []backend, now time.Time) {
	if !p.local {
		return
	}
	proc, stat, ok := p.find(now)
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
	p.sampleThreads(s)
	p.sampleFiles(s, proc)
	p.sampleConnections(s, backends)
}

// userHZ is the unit of CPU times in procfs, the same on all of Linux's
// platforms that matter.
const userHZ = 100

// find returns the process, looking for it anew if it is gone.
func (p *process) find(now time.Time) (procfs.Proc, procfs.ProcStat, bool) {
	root, err := procfs.NewFS(p.root)
	if err != nil {
		return procfs.Proc{}, procfs.ProcStat{}, false
	}
	if p.pid != 0 {
		if proc, stat, ok := read(root, p.pid); ok && stat.Starttime == p.start {
			p.readSockets(now)
			if !p.replaced() {
				return proc, stat, true
			}
		}
		p.pid, p.searched = 0, time.Time{}
	}
	if now.Sub(p.searched) < searchInterval {
		return procfs.Proc{}, procfs.ProcStat{}, false
	}
	p.searched, p.socketsDue = now, time.Time{}
	p.pid = 0
	p.readSockets(now)
	pid := p.search(root)
	proc, stat, ok := read(root, pid)
	if !ok {
		return proc, stat, false
	}
	p.pid, p.start = pid, stat.Starttime
	p.log.Debug("found the proxy's process", "target", p.target.Name, "pid", pid)
	return proc, stat, true
}

// replaced reports whether another process listens on the admin port now.
func (p *process) replaced() bool {
	inode, ok := p.sockets.listener(p.adminPort)
	if !ok || p.blind || len(p.owned) == 0 {
		return false
	}
	_, mine := p.owned[inode]
	return !mine
}

func read(root procfs.FS, pid int) (procfs.Proc, procfs.ProcStat, bool) {
	if pid <= 0 {
		return procfs.Proc{}, procfs.ProcStat{}, false
	}
	proc, err := root.Proc(pid)
	if err != nil {
		return proc, procfs.ProcStat{}, false
	}
	stat, err := proc.Stat()
	return proc, stat, err == nil && stat.State != "Z"
}

// search looks for the process that listens on the admin port: first the one
// of the pid file, which may be left over from an earlier process, then those
// with Atlas's name, then all.
func (p *process) search(root procfs.FS) int {
	inode, listening := p.sockets.listener(p.adminPort)
	holds := func(proc procfs.Proc) bool {
		if !listening {
			return false
		}
		_, ok := socketInodes(proc)[inode]
		return ok
	}
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
	filed := p.filedPID()
	for _, proc := range slices.Concat(named, others) {
		if proc.PID == filed && holds(proc) {
			return filed
		}
	}
	for _, proc := range slices.Concat(named, others) {
		if holds(proc) {
			return proc.PID
		}
	}
	return guess(named, filed)
}

// guess is for an agent that may not read open files: the proxy is the process
// of the pid file if that has the right name, or the only one with the name.
// With keepalive there are two, and the child does the work.
func guess(named procfs.Procs, filed int) int {
	parents := map[int]int{}
	for _, proc := range named {
		if stat, err := proc.Stat(); err == nil {
			parents[proc.PID] = stat.PPID
		}
	}
	var workers []int
	for pid := range parents {
		isParent := false
		for _, parent := range parents {
			isParent = isParent || parent == pid
		}
		if !isParent {
			workers = append(workers, pid)
		}
	}
	for _, pid := range workers {
		if pid == filed || parents[pid] == filed {
			return pid
		}
	}
	if len(workers) == 1 {
		return workers[0]
	}
	return 0
}

// filedPID reads the pid file; 0 if there is none or it makes no sense.
func (p *process) filedPID() int {
	path := p.target.Options[optionPIDFile]
	if path == "" {
		return 0
	}
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return 0
	}
	return pid
}

// socketInodes returns the sockets that a process has open.
func socketInodes(proc procfs.Proc) map[uint64]int {
	targets, err := proc.FileDescriptorTargets()
	if err != nil {
		return nil
	}
	return inodes(targets)
}

func inodes(targets []string) map[uint64]int {
	owned := map[uint64]int{}
	for _, target := range targets {
		text, ok := strings.CutPrefix(target, "socket:[")
		if !ok {
			continue
		}
		if inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64); err == nil {
			owned[inode]++
		}
	}
	return owned
}

func (p *process) sampleThreads(s *engine.Status) {
	root, err := procfs.NewFS(p.root)
	if err != nil {
		return
	}
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
	p.blind = errors.Is(err, fs.ErrPermission)
	p.owned = nil
	if p.blind {
		s.Missing = append(s.Missing, missingFDs)
	}
	if err != nil {
		return
	}
	s.Set(openFDs, float64(len(targets)))
	p.owned = inodes(targets)
}

// sampleConnections counts connections by their ends. Those of clients can be
// counted without looking into the process, as nobody else has its port.
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
	seen := map[string]bool{}
	for _, b := range backends {
		if seen[b.address] {
			continue
		}
		seen[b.address] = true
		if n, ok := p.sockets.towards(b.address, p.owned); ok {
			s.Set(backendConnections, float64(n), b.address)
		}
	}
}

// proxyPort is where clients connect: as configured, or the one port beside
// the admin port on which the process listens.
func (p *process) proxyPort() (uint16, bool) {
	if a := p.target.Options[optionProxyAddress]; a != "" {
		port, err := portOf(a)
		return port, err == nil
	}
	var ports []uint16
	for i := range p.sockets {
		line := &p.sockets[i]
		if _, mine := p.owned[line.inode]; mine && line.state == stateListen && line.local.Port() != p.adminPort {
			ports = append(ports, line.local.Port())
		}
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	if len(ports) != 1 {
		return 0, false
	}
	return ports[0], true
}

func portOf(address string) (uint16, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return uint16(n), err
}

// parseBackend splits a backend's address; the host may be a name, then only
// the port is known.
func parseBackend(address string) (host netip.Addr, port uint16, ok bool) {
	text, _, err := net.SplitHostPort(address)
	if err != nil {
		return host, 0, false
	}
	n, err := portOf(address)
	if err != nil {
		return host, 0, false
	}
	host, _ = netip.ParseAddr(text)
	return host.Unmap(), n, true
}
