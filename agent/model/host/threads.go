package host

import (
	"bytes"
	"maps"
	"strconv"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// mostThreads bounds how many threads of the tool, and of the servers, are read at a tick: one takes 5 µs. If there are
// more, a sample represents all.
const mostThreads = 64

// threads adds up for how long the threads of some processes ran and waited for a core, from
// /proc/PID/task/TID/schedstat. The wait includes the time for which a quota held them. The zero
// threads has read nothing.
type threads struct {
	processes       map[int]*tasks
	known           map[int]schedule // by thread
	stride          int              // one of as many threads is read, a power of two
	round           int              // counts the readings
	running, waited float64          // seconds since the first reading
}

// tasks are the threads of a process.
type tasks struct {
	folder string
	all    []task
}

type task struct {
	id        int
	schedstat string // path
}

// schedule is what a thread did since it began, in seconds.
type schedule struct {
	running, waited float64
	round           int // of the reading
}

// read adds what the threads of some processes did since the previous reading. It returns false
// where the kernel has no such statistics. What a thread did since the last tick before it ended is
// not known.
func (t *threads) read(f *openFiles, root string, pids []int) bool {
	t.round++
	total := t.list(f, root, pids)
	stride := 1
	for total/stride > mostThreads {
		stride *= 2
	}
	if t.known == nil {
		t.known = map[int]schedule{}
	}
	first, denser := len(t.known) == 0, stride < t.stride
	sampled, ran := false, false
	read := func(p *tasks) (complete bool) {
		complete = true
		for _, thread := range p.all {
			was, known := t.known[thread.id]
			if spread(thread.id)%stride != 0 || known && was.round == t.round {
				continue
			}
			text, err := f.read(thread.schedstat)
			if err != nil {
				complete = false
				continue
			}
			ranFor, rest, _ := bytes.Cut(text, []byte(" "))
			waitedFor, slices, ok := bytes.Cut(rest, []byte(" "))
			if !ok {
				continue
			}
			sampled, ran = true, ran || !bytes.HasPrefix(slices, []byte("0")) // a kernel without the statistics shows zeros
			now := schedule{kernelNumber(ranFor) / 1e9, kernelNumber(waitedFor) / 1e9, t.round}
			t.known[thread.id] = now
			if first || !known && denser {
				continue
			}
			t.running += max(0, now.running-was.running) * float64(stride)
			t.waited += max(0, now.waited-was.waited) * float64(stride)
		}
		return complete
	}
	for _, p := range t.processes {
		if !read(p) {
			p.list(f)
			read(p)
		}
	}
	if sampled {
		t.stride = stride
		maps.DeleteFunc(t.known, func(_ int, s schedule) bool { return s.round != t.round })
	}
	return ran
}

// list finds the threads of the processes and returns their number.
func (t *threads) list(f *openFiles, root string, pids []int) (total int) {
	processes := make(map[int]*tasks, len(pids))
	for _, pid := range pids {
		p := t.processes[pid]
		if p == nil {
			p = &tasks{folder: root + "/" + strconv.Itoa(pid) + "/task"}
		}
		// A thread that took the place of another is noticed by read: the other one can't be read any more.
		if links, err := f.links(p.folder); err != nil || links != len(p.all)+2 || t.stride > 1 {
			p.list(f)
		}
		processes[pid] = p
		total += len(p.all)
	}
	t.processes = processes
	return total
}

// list reads the names of a process's threads, none if it has ended.
func (p *tasks) list(f *openFiles) {
	names, _ := f.names(p.folder)
	p.all = p.all[:0]
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			p.all = append(p.all, task{id, p.folder + "/" + name + "/schedstat"})
		}
	}
}

// spread turns a thread's number into one in which each bit is equally likely to be set: threads
// that do the same often have numbers that follow each other.
func spread(tid int) int { return int(uint32(tid) * 2654435769 >> 16) }

// The seconds for which the threads of the tool and of the servers on its machine ran, and for
// which they waited for a core.
var (
	toolRunning    = counter("host_tool_running_seconds_total")
	toolWaiting    = counter("host_tool_waiting_seconds_total")
	serversRunning = counter("host_servers_running_seconds_total")
	serversWaiting = counter("host_servers_waiting_seconds_total")
)

// How many threads of the tool and of the servers ran or waited for a core. They are unknown if the tool's process is
// unknown or the kernel has no statistics of the scheduler.
var (
	ToolRunning    = ofThreads(67, "tool_threads_running", "Threads of the tool that run", toolRunning)
	ToolWaiting    = ofThreads(68, "tool_threads_waiting", "Threads of the tool that wait for a core", toolWaiting)
	ServersRunning = ofThreads(69, "servers_threads_running", "Threads of servers and proxies that run", serversRunning)
	ServersWaiting = ofThreads(69, "servers_threads_waiting", "Threads of servers and proxies that wait for a core", serversWaiting)
)

func ofThreads(rank int, id, title string, m *measure.Metric) *measure.Measure {
	return inTables(rank, id, title, "on average, on the tool's machine", measure.Count, measure.RateOf(m))
}

// set adds both times to a sample.
func (t *threads) set(out *engine.Status, running, waiting *measure.Metric) {
	out.Set(running, t.running)
	out.Set(waiting, t.waited)
}

// littleCPU: processes with less than this share of the CPU of the program's busiest process do not
// count, such as a shell that started it.
const littleCPU = 0.1

// allowed returns how many cores some processes may use together, ignoring those that use little
// CPU; 0 if unknown.
func (p *Programs) allowed(all map[int]process, pids []int) int {
	most := 0.0
	for _, pid := range pids {
		most = max(most, all[pid].own)
	}
	cores := map[int]bool{}
	for _, pid := range pids {
		if all[pid].own < littleCPU*most {
			continue
		}
		text, err := p.files.read(p.proc() + "/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			continue // it has ended
		}
		_, list, _ := bytes.Cut(text, []byte("\nCpus_allowed_list:"))
		list, _, _ = bytes.Cut(list, []byte("\n"))
		addCores(cores, list)
	}
	return len(cores)
}

// addCores adds the numbers of a list such as 0-3,8, see cpuset(7).
func addCores(to map[int]bool, list []byte) {
	for part := range bytes.SplitSeq(bytes.TrimSpace(list), []byte(",")) {
		from, until, isRange := bytes.Cut(part, []byte("-"))
		if !isRange {
			until = from
		}
		first, err1 := strconv.Atoi(string(from))
		last, err2 := strconv.Atoi(string(until))
		if err1 != nil || err2 != nil || first < 0 {
			continue
		}
		for n := first; n <= min(last, first+maxCores); n++ {
			to[n] = true
		}
	}
}

var (
	toolCores    = gauge("host_tool_cores")
	serversCores = gauge("host_servers_cores")
)

// ToolCores and ServersCores are read together with the CPU times of all processes, and unknown
// where the tool's process is unknown.
var (
	ToolCores    = inTables(71, "tool_cores", "Cores that the tool may use", "of all cores; fewer if it is pinned (taskset, cpuset)", measure.Count, measure.ValueOf(toolCores))
	ServersCores = inTables(71, "servers_cores", "Cores that servers and proxies may use", "of all cores; fewer if they are pinned (taskset, cpuset)", measure.Count, measure.ValueOf(serversCores))
)
