package atlasproxy

import (
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

const (
	// processName is the name of Atlas's binary.
	processName = "mysql-proxy"
	// maxThreads limits the series of threads.
	maxThreads = 64
)

// process is the proxy's process, if it runs on this machine and the target has the option
// pid_file. It never fails a sample: values that can't be read are absent.
type process struct {
	target *engine.Target
	root   string // root of procfs

	local     bool   // the admin connection stays on this machine
	adminPort uint16 // the proxy's port of the admin connection

	sockets    sockets   // of this machine, as last read
	socketsDue time.Time // when to read sockets again
}

const (
	// missingProcess is logged once if the process in the file cannot be Atlas.
	missingProcess = "the proxy's process: its pid_file names no process that listens on the admin port"
	// missingFDs is logged once if the agent may not read the list of the proxy's open files.
	missingFDs = "reading /proc/PID/fd of the proxy (same user, or CAP_SYS_PTRACE): open files and connections to backends"
)

// connected notes the remote end of the admin connection.
func (p *process) connected(conn net.Conn) {
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

// sample sets the metrics of the process.
func (p *process) sample(s *engine.Status, backends []backend, now time.Time) {
	file := p.target.Options[optionPIDFile]
	root, err := procfs.NewFS(p.root)
	if err != nil || !p.local || file == "" {
		return
	}
	p.readSockets(now)
	proc, stat, targets := p.find(root, file)
	if stat.PID == 0 {
		s.Missing = append(s.Missing, missingProcess)
		return
	}
	s.Set(cpuSeconds, float64(stat.UTime)/userHZ, "user")
	s.Set(cpuSeconds, float64(stat.STime)/userHZ, "system")
	s.Set(residentBytes, float64(stat.ResidentMemory()))
	s.Set(threads, float64(stat.NumThreads))
	if started, err := stat.StartTime(); err == nil {
		s.Uptime = max(0, now.Sub(time.UnixMilli(int64(started*1000))))
	}
	sampleThreads(s, root, proc.PID)
	if targets == nil {
		s.Missing = append(s.Missing, missingFDs)
	} else {
		s.Set(openFDs, float64(len(targets)))
	}
	p.sampleConnections(s, backends, targets)
}

// userHZ is the number of CPU time units per second in procfs, the same on all relevant Linux
// platforms.
const userHZ = 100

// find returns the process in the pid file or, with keepalive, its child, which serves the clients.
// The process has PID 0 if neither is Atlas, since a file may be left over from an earlier process.
// The open files are nil if they can't be read.
func (p *process) find(root procfs.FS, file string) (procfs.Proc, procfs.ProcStat, []string) {
	text, _ := secret.ReadRegular(file) // the caller reports a missing process
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	children, _ := os.ReadFile(filepath.Join(p.root, strconv.Itoa(pid), "task", strconv.Itoa(pid), "children"))
	for _, field := range append(strings.Fields(string(children)), strconv.Itoa(pid)) {
		id, _ := strconv.Atoi(field)
		proc, err := root.Proc(id)
		if err != nil || id <= 0 {
			continue
		}
		stat, err := proc.Stat()
		targets, unreadable := proc.FileDescriptorTargets()
		isAtlas := stat.Comm == processName
		if inode, listening := p.sockets.listener(p.adminPort); listening && unreadable == nil {
			isAtlas = socketInodes(targets)[inode]
		}
		if err == nil && isAtlas && stat.State != "Z" {
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

func sampleThreads(s *engine.Status, root procfs.FS, pid int) {
	all, err := root.AllThreads(pid)
	if err != nil {
		return
	}
	seconds := map[int]float64{} // by thread id
	for _, thread := range all {
		if stat, err := thread.Stat(); err == nil {
			seconds[stat.PID] = stat.CPUTime()
		}
	}
	ids := slices.Sorted(maps.Keys(seconds))
	for i, id := range ids[:min(len(ids), maxThreads)] {
		s.Set(threadCPUSeconds, seconds[id], strconv.Itoa(i))
	}
}

// sampleConnections counts connections by their ends. Clients are counted even if the open files
// can't be read, since no other process has the proxy's port.
func (p *process) sampleConnections(s *engine.Status, backends []backend, targets []string) {
	if p.sockets == nil {
		return
	}
	if _, port, err := splitAddress(p.target.Options[optionProxyAddress]); err == nil {
		n := float64(p.sockets.clients(port))
		s.Set(clientConnections, n)
		s.Set(engine.Connections, n)
	}
	if targets == nil {
		return
	}
	owned := socketInodes(targets)
	for _, b := range backends {
		_, set := s.Get(backendConnections, b.address)
		if n, ok := p.sockets.towards(b.address, owned); ok && !set {
			s.Set(backendConnections, float64(n), b.address)
		}
	}
}

// splitAddress splits host:port. The address is invalid if the host is a name.
func splitAddress(address string) (host netip.Addr, port uint16, err error) {
	text, number, err := net.SplitHostPort(address)
	if err != nil {
		return host, 0, err
	}
	host, _ = netip.ParseAddr(text)
	n, err := strconv.ParseUint(number, 10, 16)
	return host.Unmap(), uint16(n), err
}
