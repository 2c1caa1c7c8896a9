package metrics

import (
	"bytes"
	"os"
	"runtime"
	runtimemetrics "runtime/metrics"
	"strconv"

	"github.com/prometheus/common/version"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Series of the agent's process. Series that all programs have are named as in Prometheus' own clients.
var (
	buildInfo = family("build_info", "The agent's version, what it was built from and for; value 1.",
		"version", "revision", "branch", "goversion", "goos", "goarch", "tags")

	processCPU     = standard("process_cpu_seconds_total", "CPU time of the agent, in user and system mode.")
	processStart   = standard("process_start_time_seconds", "When the agent was started, Unix time.")
	processSize    = standard("process_virtual_memory_bytes", "Size of the agent's address space.")
	processMemory  = standard("process_resident_memory_bytes", "Memory of the agent that is in RAM.")
	processFiles   = standard("process_open_fds", "Files that the agent has open.")
	processMaximum = standard("process_max_fds", "How many files the agent may have open.")

	goInfo       = standard("go_info", "The version of Go that the agent was built with; value 1.", "version")
	goGoroutines = standard("go_goroutines", "Goroutines, except those of Go's runtime.")
)

// runtimeFamilies describe Go's runtime: each value is the sum of values of the runtime.
var runtimeFamilies = []struct {
	*Family
	values []string
}{
	{standard("go_gc_cycles_total_gc_cycles_total", "Garbage collections."), []string{"/gc/cycles/total:gc-cycles"}},
	{standard("go_memstats_alloc_bytes_total", "Memory allocated in the heap, including memory that is free again."), []string{"/gc/heap/allocs:bytes"}},
	{standard("go_memstats_heap_alloc_bytes", "Memory of the heap's objects."), []string{"/memory/classes/heap/objects:bytes"}},
	{standard("go_memstats_heap_idle_bytes", "Memory of the heap that waits for use, or was given back."), []string{"/memory/classes/heap/free:bytes", "/memory/classes/heap/released:bytes"}},
	{standard("go_memstats_heap_inuse_bytes", "Memory of the parts of the heap that are in use."), []string{"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes"}},
	{standard("go_memstats_heap_objects", "Objects in the heap."), []string{"/gc/heap/objects:objects"}},
	{standard("go_memstats_heap_released_bytes", "Memory of the heap that was given back to the system."), []string{"/memory/classes/heap/released:bytes"}},
	{standard("go_memstats_next_gc_bytes", "Size of the heap at which it is collected next."), []string{"/gc/heap/goal:bytes"}},
	{standard("go_memstats_stack_inuse_bytes", "Memory of the goroutines' stacks."), []string{"/memory/classes/heap/stacks:bytes"}},
	{standard("go_memstats_sys_bytes", "Memory that Go's runtime has mapped."), []string{"/memory/classes/total:bytes"}},
	{standard("go_sched_gomaxprocs_threads", "Threads that may run Go code at once."), []string{"/sched/gomaxprocs:threads"}},
	{standard("go_threads", "Threads of the agent."), []string{"/sched/threads/total:threads"}},
}

// standard describes a family that other programs have too.
func standard(name, help string, labels ...string) *Family {
	f := newFamily(name, help, labels)
	f.Name = name
	declared = append(declared, f)
	return f
}

// Process is the agent's process. It must not be read by several scrapes at once.
type Process struct {
	memory  *os.File // stays open: opening it takes longer than reading it
	started float64  // 0: unknown
	samples []runtimemetrics.Sample
}

// NewProcess returns the process of the caller.
func NewProcess() *Process {
	p := &Process{}
	p.memory, _ = os.Open("/proc/self/statm") // what can't be read is absent
	if self, err := procfs.Self(); err == nil {
		if stat, err := self.Stat(); err == nil {
			p.started, _ = stat.StartTime()
		}
	}
	for _, f := range runtimeFamilies {
		for _, name := range f.values {
			p.samples = append(p.samples, runtimemetrics.Sample{Name: name})
		}
	}
	return p
}

func (p *Process) emit(emit emit) {
	emit(buildInfo, 1, version.Version, version.GetRevision(), version.Branch,
		version.GoVersion, version.GoOS, version.GoArch, version.GetTags())
	emit(goInfo, 1, version.GoVersion)
	emit(goGoroutines, float64(runtime.NumGoroutine()))
	p.emitRuntime(emit)
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) == nil {
		emit(processCPU, float64(used.Utime.Nano()+used.Stime.Nano())/1e9)
	}
	if p.started > 0 {
		emit(processStart, p.started)
	}
	if pages, ok := p.pages(); ok {
		emit(processSize, pages[0]*float64(os.Getpagesize()))
		emit(processMemory, pages[1]*float64(os.Getpagesize()))
	}
	if n, ok := openFiles(); ok {
		emit(processFiles, float64(n))
	}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		emit(processMaximum, float64(files.Cur))
	}
}

func (p *Process) emitRuntime(emit emit) {
	runtimemetrics.Read(p.samples)
	rest := p.samples
	for _, f := range runtimeFamilies {
		sum, known := 0.0, true
		for _, s := range rest[:len(f.values)] {
			if known = known && s.Value.Kind() == runtimemetrics.KindUint64; known {
				sum += float64(s.Value.Uint64())
			}
		}
		if rest = rest[len(f.values):]; known {
			emit(f.Family, sum)
		}
	}
}

// pages returns the pages of the address space and those in RAM.
func (p *Process) pages() (pages [2]float64, ok bool) {
	if p.memory == nil {
		return pages, false
	}
	var buffer [128]byte
	n, _ := p.memory.ReadAt(buffer[:], 0) // it ends before the buffer does
	fields := bytes.Fields(buffer[:n])
	if len(fields) < len(pages) {
		return pages, false
	}
	for i := range pages {
		v, err := strconv.ParseFloat(string(fields[i]), 64)
		if err != nil {
			return pages, false
		}
		pages[i] = v
	}
	return pages, true
}

// openFiles returns the number of files that are open. Since Linux 6.2 it is the size of their
// folder.
func openFiles() (n int64, ok bool) {
	const folder = "/proc/self/fd"
	var stat unix.Stat_t
	if unix.Stat(folder, &stat) == nil && stat.Size > 0 {
		return stat.Size, true
	}
	names, err := os.ReadDir(folder)
	return int64(len(names)) - 1, err == nil // without the folder itself
}
