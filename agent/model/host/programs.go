package host

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

const (
	// programsEvery is how often all processes are read. With many processes it is less often: one
	// takes 10 to 30 µs.
	programsEvery = 5 * time.Second
	processEvery  = 20 * time.Millisecond
	// firstPrograms is the time of the second reading, which shows the busy programs.
	firstPrograms = time.Second
	// namedCores is the CPU use from which a program is recorded by its name, up to mostPrograms.
	// The rest is summed up as OtherPrograms.
	namedCores   = 0.1
	mostPrograms = 12
	// OtherPrograms are the programs without a name in the record.
	OtherPrograms = "others"
)

// Programs adds up the CPU time of the tool, the servers and other programs on the agent's own
// machine, and the time that the tool and the servers waited for a core. It excludes the agent
// itself and kernel threads. The zero Programs has read nothing.
type Programs struct {
	files     files
	open      openFiles // read at each tick
	stats     openFiles // of all processes
	root      string    // empty: /proc
	at        time.Time
	again     bool // they were read twice
	processes map[int]process
	// used is in seconds since the first reading. A program without a value was not seen.
	tool, servers float64
	server        bool // a process of a server was seen
	others        map[string]float64
	// toolPIDs and serverPIDs are the processes at the last full reading; their threads are read at
	// each tick. allServers includes other runs' servers.
	toolPIDs, serverPIDs       []int
	allServers                 []int
	toolThreads, serverThreads threads
	quotas                     map[int]*quota // of these processes
}

// process is the state of a process at one reading, with times in seconds.
type process struct {
	name                   string
	parent, session        int
	own, children, started float64
}

// Read adds to a sample of this machine: for how long the threads of tool and servers ran and
// waited for a core since the first reading; the share of the time since the previous reading in
// which a quota throttled them; and, when due, the CPU time of all programs. tool is the tool's
// process, which leads a session. ports are the ports of the run's servers and proxies: if the
// servers that listen there are known, all others count as other programs.
func (p *Programs) Read(tool int, ports []int, now time.Time, out *engine.Status) {
	p.readPrograms(tool, ports, now, out)
	root := p.proc()
	if p.toolThreads.read(&p.open, root, p.toolPIDs) {
		p.toolThreads.set(out, toolRunning, toolWaiting)
	}
	if p.serverThreads.read(&p.open, root, p.serverPIDs) {
		p.serverThreads.set(out, serversRunning, serversWaiting)
	}
	p.readQuotas(tool, now, out)
	p.open.closeUnread()
}

// Close closes the files that stay open between readings.
func (p *Programs) Close() {
	p.open.Close()
	p.stats.Close()
}

func (p *Programs) proc() string {
	if p.root == "" {
		return "/proc"
	}
	return p.root
}

func (p *Programs) readPrograms(tool int, ports []int, now time.Time, out *engine.Status) {
	every := max(programsEvery, time.Duration(len(p.processes))*processEvery)
	if !p.again {
		every = firstPrograms
	}
	if !p.at.IsZero() && now.Sub(p.at) < every {
		return
	}
	read := p.readAll()
	if read == nil {
		return
	}
	p.sort(tool, ports, read)
	if p.processes != nil {
		p.add(tool, read, now.Sub(p.at).Seconds())
		p.again = true
	} else {
		p.others = map[string]float64{OtherPrograms: 0}
	}
	p.at, p.processes = now, read
	out.Set(toolCPU, p.tool)
	if n := p.allowed(read, p.toolPIDs); n > 0 {
		out.Set(toolCores, float64(n))
	}
	if p.server {
		out.Set(serversCPU, p.servers)
		if n := p.allowed(read, p.serverPIDs); n > 0 {
			out.Set(serversCores, float64(n))
		}
	}
	for name, used := range p.others {
		out.Set(othersCPU, used, name)
	}
}

// sort finds the processes of the tool and of the run's servers.
func (p *Programs) sort(tool int, ports []int, read map[int]process) {
	var servers []int
	serverPrograms := cause.Programs()
	p.toolPIDs = nil
	for pid, proc := range read {
		switch {
		case proc.session == tool || isBelow(read, pid, tool):
			p.toolPIDs = append(p.toolPIDs, pid)
		case slices.Contains(serverPrograms, proc.name):
			servers = append(servers, pid)
		}
	}
	slices.Sort(servers)
	if !slices.Equal(servers, p.allServers) || len(p.serverPIDs) == 0 {
		p.allServers, p.serverPIDs = servers, servers
		// A server that starts a process for each session listens only in the first one.
		first := slices.DeleteFunc(slices.Clone(servers), func(pid int) bool {
			_, below := slices.BinarySearch(servers, read[pid].parent)
			return below
		})
		if own := p.files.listeners(p.proc(), first, ports); len(own) > 0 {
			p.serverPIDs = slices.DeleteFunc(slices.Clone(servers), func(pid int) bool {
				return !slices.ContainsFunc(own, func(server int) bool { return isBelow(read, pid, server) })
			})
		}
	}
	p.server = p.server || len(p.serverPIDs) > 0
}

// add adds the CPU time between two readings. The time of an ended process is in the child times of
// the process that waited for it; some of it may have been counted before.
func (p *Programs) add(tool int, read map[int]process, seconds float64) {
	ended := map[int]float64{} // by the waiting process: the time already counted
	for pid, was := range p.processes {
		if now, alive := read[pid]; alive && now.started == was.started {
			continue
		}
		parent := was.parent
		for parent > 1 {
			before, known := p.processes[parent]
			if now, alive := read[parent]; alive && (!known || now.started == before.started) {
				break
			}
			parent = before.parent
		}
		ended[parent] += was.own + was.children
	}
	self := read[os.Getpid()].name
	used := map[string]float64{}
	for pid, now := range read {
		was, known := p.processes[pid]
		if !known || was.started != now.started {
			was = process{}
		}
		spent := max(0, now.own-was.own)
		if pid != 1 { // it waits for all orphans
			spent += max(0, now.children-was.children-ended[pid])
		}
		switch {
		case now.session == tool || isBelow(read, pid, tool):
			p.tool += spent
		case slices.Contains(p.serverPIDs, pid):
			p.servers += spent
		case now.parent == kernelThreads || pid == kernelThreads || now.name == self:
		default:
			used[now.name] += spent
		}
	}
	for name, spent := range used {
		switch _, named := p.others[name]; {
		case named:
			p.others[name] += spent
		default:
			p.others[OtherPrograms] += spent
			if spent >= namedCores*seconds && len(p.others) <= mostPrograms {
				p.others[name] = 0 // counts from now on
			}
		}
	}
}

// kernelThreads is the process whose children are the kernel's.
const kernelThreads = 2

// isBelow reports whether a process descends from another one.
func isBelow(all map[int]process, pid, ancestor int) bool {
	for range len(all) {
		if pid == ancestor {
			return true
		}
		proc, ok := all[pid]
		if !ok {
			return false
		}
		pid = proc.parent
	}
	return false
}

// readAll reads all processes; nil without /proc.
func (p *Programs) readAll() map[int]process {
	root := p.proc()
	dir, err := os.Open(root)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // an error leaves a partial list
	all := make(map[int]process, len(p.processes))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, err := p.stats.read(root + "/" + name + "/stat")
		if err != nil {
			continue // it has ended
		}
		if proc, ok := parseProcess(text, p.processes[pid].name); ok {
			all[pid] = proc
		}
	}
	p.stats.closeUnread()
	if len(all) == 0 {
		return nil
	}
	return all
}

// parseProcess reads /proc/PID/stat, see proc_pid_stat(5). The name may have spaces and
// parentheses. known is its previous name, which saves a copy.
func parseProcess(text []byte, known string) (process, bool) {
	begin, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if begin < 0 || end < begin {
		return process{}, false
	}
	// Fields are counted after the name: the third one in the manual is the first here.
	const ppid, session, utime, starttime = 4 - 3, 6 - 3, 14 - 3, 22 - 3
	var numbers [starttime + 1]float64
	i := 0
	for field := range bytes.FieldsSeq(text[end+1:]) {
		if i > 0 { // the state is a letter
			numbers[i] = kernelNumber(field)
		}
		if i++; i == len(numbers) {
			break
		}
	}
	name := text[begin+1 : end]
	if string(name) != known {
		known = printable(name)
	}
	return process{
		name: known, parent: int(numbers[ppid]), session: int(numbers[session]), started: numbers[starttime],
		own: (numbers[utime] + numbers[utime+1]) / jiffies, children: (numbers[utime+2] + numbers[utime+3]) / jiffies,
	}, i == len(numbers)
}

// kernelNumber returns a whole number as the kernel prints it.
func kernelNumber(text []byte) (n float64) {
	digits := bytes.TrimPrefix(text, []byte("-"))
	for _, c := range digits {
		n = n*10 + float64(c-'0')
	}
	if len(digits) < len(text) {
		return -n
	}
	return n
}

// printable removes non-ASCII characters from a process name, which any user can choose.
func printable(name []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, string(name))
}

// CPU seconds of programs on the machine on which the tool was started.
var (
	toolCPU    = counter("host_tool_cpu_seconds_total")
	serversCPU = counter("host_servers_cpu_seconds_total")
	othersCPU  = counter("host_other_programs_cpu_seconds_total", Program)
)

// The CPU time by program. It is read every few seconds, so there is no rate at each tick, and it
// is unknown if the tool's process is unknown.
var (
	ToolCPU    = used(64, "tool_cpu_seconds", "CPU seconds of the tool, between readings", toolCPU)
	ServersCPU = used(65, "servers_cpu_seconds", "CPU seconds of servers and proxies, between readings", serversCPU)
	OthersCPU  = used(66, "other_programs_cpu_seconds", "CPU seconds of other programs, between readings", othersCPU)
)

// Program is the label of the metric of OthersCPU.
const Program = "program"

func used(rank int, id, title string, m *measure.Metric) *measure.Measure {
	declared := counted(rank, id, title, measure.RateOf(m))
	declared.Unit = measure.Seconds
	declared.Note, declared.NoChart = "all processes are read every few seconds while the tool runs", true
	return declared
}
