package host

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// serverPrograms are those of database servers and of proxies before them, as the kernel names
// their processes: with up to 15 bytes.
var serverPrograms = []string{
	"mysqld", "mariadbd", "mongod", "mongos", "tidb-server", "tikv-server", "pd-server", "tiflash", "TiFlashMain", "mysql-proxyd",
	"proxysql", "haproxy", "maxscale", "mysqlrouter", "envoy",
}

const (
	// programsEvery is how often all processes are read, more seldom if there are many: one takes
	// 10 to 30 µs.
	programsEvery = 5 * time.Second
	processEvery  = 20 * time.Millisecond
	// firstPrograms is when they are read for the second time: then it is known which use much.
	firstPrograms = time.Second
	// namedCores is how much CPU a program uses before it is recorded by its name; the others
	// are OtherPrograms together. At most mostPrograms are.
	namedCores   = 0.1
	mostPrograms = 12
	// OtherPrograms are those that are not recorded by their names.
	OtherPrograms = "others"
)

// Programs adds up what CPU the tool, the servers and other programs used on the agent's own
// machine, and how long the tool and the servers waited for it. The agent itself and threads of the kernel are left out. The zero Programs has
// read nothing.
type Programs struct {
	files     files
	root      string // empty: /proc
	at        time.Time
	again     bool // they were read twice
	processes map[int]process
	// used is in seconds since the first reading. Nothing was seen of what has no value.
	tool, servers float64
	server        bool // a process of a server was seen
	others        map[string]float64
	// toolPIDs and serverPIDs are those processes at the last reading of all, whose threads are read
	// at each tick; allServers are other runs', too.
	toolPIDs, serverPIDs       []int
	allServers                 []int
	toolThreads, serverThreads threads
	quotas                     map[int]*quota // of these processes
}

// process is one at a reading, its times in seconds.
type process struct {
	name                   string
	parent, session        int
	own, children, started float64
}

// Read adds to a sample of this machine for how long the threads of tool and servers ran and waited
// for a core since the first reading, the share of the time since the previous one in which a quota
// held them, and, if it is time to read that again, what CPU all programs used. tool is the tool's
// process, which leads a session; ports are those of the run's servers and proxies: if it is known
// which servers listen there, another one is another program.
func (p *Programs) Read(tool int, ports []int, now time.Time, out *engine.Status) {
	p.readPrograms(tool, ports, now, out)
	root := p.proc()
	if p.toolThreads.read(&p.files, root, p.toolPIDs) {
		p.toolThreads.set(out, toolRunning, toolWaiting)
	}
	if p.serverThreads.read(&p.files, root, p.serverPIDs) {
		p.serverThreads.set(out, serversRunning, serversWaiting)
	}
	p.readQuotas(tool, now, out)
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

// sort finds which processes are the tool's and which are servers of the run.
func (p *Programs) sort(tool int, ports []int, read map[int]process) {
	var servers []int
	p.toolPIDs = nil
	for pid, one := range read {
		switch {
		case one.session == tool || isBelow(read, pid, tool):
			p.toolPIDs = append(p.toolPIDs, pid)
		case slices.Contains(serverPrograms, one.name):
			servers = append(servers, pid)
		}
	}
	slices.Sort(servers)
	if !slices.Equal(servers, p.allServers) || len(p.serverPIDs) == 0 {
		p.allServers, p.serverPIDs = servers, servers
		if own := p.files.listeners(p.proc(), servers, ports); len(own) > 0 {
			p.serverPIDs = own
		}
	}
	p.server = p.server || len(p.serverPIDs) > 0
}

// add adds what was used between two readings. What a process used that ended is in the times
// of the children of the one that waited for it, which may have used it before.
func (p *Programs) add(tool int, read map[int]process, seconds float64) {
	ended := map[int]float64{} // by the process that waited: what it had used before
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
		one := max(0, now.own-was.own)
		if pid != 1 { // it waits for orphans of all
			one += max(0, now.children-was.children-ended[pid])
		}
		switch {
		case now.session == tool || isBelow(read, pid, tool):
			p.tool += one
		case slices.Contains(p.serverPIDs, pid):
			p.servers += one
		case now.parent == kernelThreads || pid == kernelThreads || now.name == self:
		default:
			used[now.name] += one
		}
	}
	for name, one := range used {
		switch _, named := p.others[name]; {
		case named:
			p.others[name] += one
		default:
			p.others[OtherPrograms] += one
			if one >= namedCores*seconds && len(p.others) <= mostPrograms {
				p.others[name] = 0 // from now on
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
		one, ok := all[pid]
		if !ok {
			return false
		}
		pid = one.parent
	}
	return false
}

// readAll reads all processes; nil where there is no /proc.
func (p *Programs) readAll() map[int]process {
	root := p.proc()
	dir, err := os.Open(root)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what is there is read
	all := make(map[int]process, len(p.processes))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, err := p.files.read(root + "/" + name + "/stat")
		if err != nil {
			continue // it has ended
		}
		if one, ok := parseProcess(text); ok {
			all[pid] = one
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// parseProcess reads /proc/PID/stat, see proc_pid_stat(5). The name may have spaces and
// parentheses.
func parseProcess(text []byte) (process, bool) {
	begin, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if begin < 0 || end < begin {
		return process{}, false
	}
	// Of the fields after the name, the third one in the manual is the first here.
	const ppid, session, utime, starttime = 4 - 3, 6 - 3, 14 - 3, 22 - 3
	fields := bytes.Fields(text[end+1:])
	if len(fields) <= starttime {
		return process{}, false
	}
	number := func(i int) float64 {
		v, _ := strconv.ParseFloat(string(fields[i]), 64) // the kernel's are numbers
		return v
	}
	return process{
		name: printable(text[begin+1 : end]), parent: int(number(ppid)), session: int(number(session)), started: number(starttime),
		own: (number(utime) + number(utime+1)) / jiffies, children: (number(utime+2) + number(utime+3)) / jiffies,
	}, true
}

// printable returns a name, which any user can choose for a process, without what is not ASCII.
func printable(name []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, string(name))
}

// The seconds of CPU that programs used on the machine on which the tool was started.
var (
	toolCPU    = counter("host_tool_cpu_seconds_total")
	serversCPU = counter("host_servers_cpu_seconds_total")
	othersCPU  = counter("host_other_programs_cpu_seconds_total", Program)
)

// Which programs used the CPU. They are read every few seconds, so that they have no rate at each
// tick, and are unknown where the tool's process is.
var (
	ToolCPU    = used(64, "tool_cpu_seconds", "CPU seconds of the tool", toolCPU)
	ServersCPU = used(65, "servers_cpu_seconds", "CPU seconds of servers and proxies", serversCPU)
	OthersCPU  = used(66, "other_programs_cpu_seconds", "CPU seconds of other programs", othersCPU)
)

// Program is the label of the metric of OthersCPU.
const Program = "program"

func used(rank int, id, title string, m *measure.Metric) *measure.Measure {
	one := counted(rank, id, title, measure.RateOf(m))
	one.Note, one.NoChart = "between the first and the last reading of all processes while the tool ran", true
	return one
}
