package host

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// mostBlocked bounds the threads of a process that are looked at, shownBlocked those that are described.
const (
	mostBlocked  = 512
	shownBlocked = 5
)

// What the answer of a machine has. Names of values that end in a colon are followed by a program.
const (
	stoppedTool   = "stopped tool"
	stoppedServer = "stopped server"
	blockedIn     = "threads of servers in state D"
	blockedAt     = "blocked at"
	heldServers   = "seconds held by the CPU quota"
	ioFull        = "seconds in which no task ran for I/O"
	cpuSome       = "seconds in which a task waited for a CPU"
	memoryFull    = "seconds in which no task ran for memory"
	runQueue      = "runnable tasks"
	dirtyBytes    = "dirty bytes"
	writtenBytes  = "bytes under write-back"
)

// quotaFrom is how many core seconds a second a quota must hold servers.
const quotaFrom = 0.7

var _ = evidence.Declare(evidence.Rules{
	Engine: Procfs,
	Reasons: []evidence.Reason{
		{Name: "tool stopped", Reads: "state T of the tool's process (a signal such as SIGSTOP)", Level: evidence.Origin,
			Part: stopped(stoppedTool), Text: stoppedText(stoppedTool)},
		{Name: "server stopped", Reads: "state T of a server's process (a signal such as SIGSTOP)", Level: evidence.Origin,
			Part: stopped(stoppedServer), Text: stoppedText(stoppedServer)},
		{Name: "disk", Reads: "threads of servers in state D, the pressure of I/O, sessions that wait for the log, and how long each disk was busy",
			Part: waitForDisk, Text: diskText},
		{Name: "CPU quota", Reads: "throttled seconds of the servers' control group",
			Part: func(l *evidence.Look) float64 {
				if held := l.Increase(heldServers); held >= quotaFrom {
					return held
				}
				return 0
			},
			Text: func(s *evidence.Scene, _ *evidence.Look) string {
				return fmt.Sprintf("the CPU quota of the servers' control group held them for up to %s core seconds each second", table.Rounded(s.Increase(heldServers)))
			}},
		{Name: "memory", Reads: "the pressure of memory",
			Part: func(l *evidence.Look) float64 { return l.Increase(memoryFull) },
			Text: func(s *evidence.Scene, _ *evidence.Look) string {
				return fmt.Sprintf("no task ran for want of memory in up to %s of the time", table.Share(min(1, s.Increase(memoryFull))))
			}},
	},
})

// Testify returns what this machine says during a stall: which processes of the tool and of the servers are stopped or
// blocked, the pressure, and what its disks have to write. Read has found the processes. It reads a few files for each.
func (p *Programs) Testify() *evidence.Answer {
	a := &evidence.Answer{Target: "this machine", Engine: Procfs, At: time.Now()}
	if name, err := os.Hostname(); err == nil {
		a.Target = name
	}
	p.testifyProcesses(a, p.toolPIDs, stoppedTool)
	p.testifyProcesses(a, p.serverPIDs, stoppedServer)
	all := quotas{&openFiles{}, p.proc(), map[string]throttling{}}
	defer all.files.Close()
	for _, pid := range p.serverPIDs {
		if is, ok := all.of(pid); ok {
			a.Set(heldServers, max(is.seconds, a.Values[heldServers]))
		}
	}
	root := p.proc()
	for _, f := range []struct{ file, line, name string }{
		{"io", "full", ioFull}, {"cpu", "some", cpuSome}, {"memory", "full", memoryFull},
	} {
		if seconds, ok := pressure(root+"/pressure/"+f.file, f.line); ok {
			a.Set(f.name, seconds)
		}
	}
	if text, err := os.ReadFile(root + "/loadavg"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 3 {
			running, _, _ := strings.Cut(fields[3], "/")
			if n, err := strconv.ParseFloat(running, 64); err == nil {
				a.Set(runQueue, n)
			}
		}
	}
	if text, err := os.ReadFile(root + "/meminfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) < 2 {
				continue
			}
			n, _ := strconv.ParseFloat(fields[1], 64)
			switch fields[0] {
			case "Dirty:":
				a.Set(dirtyBytes, n*1024)
			case "Writeback:":
				a.Set(writtenBytes, n*1024)
			}
		}
	}
	if text, err := os.ReadFile(root + "/diskstats"); err == nil {
		testifyDisks(a, text)
	}
	a.Seconds = time.Since(a.At).Seconds()
	return a
}

// diskMetrics are what an answer has of each disk.
var diskMetrics = []*measure.Metric{DiskBusyTime, DiskReadTime, DiskWriteTime, DiskReads, DiskWrites, DiskFlushes}

// testifyDisks adds the counters of each disk.
func testifyDisks(a *evidence.Answer, text []byte) {
	r := newReading()
	r.setDisks(text)
	for name, d := range r.disks {
		for _, m := range diskMetrics {
			if v, ok := d.values[m]; ok {
				a.Set(diskName(name, m), v)
			}
		}
	}
}

func diskName(disk string, m *measure.Metric) string { return "disk " + disk + ": " + m.Name }

// busiestDisk describes the disk that was busy for the longest time; empty if none was for most of the time.
func busiestDisk(s *evidence.Scene) string {
	busiest, most := "", 0.8
	for _, l := range s.Looks[:min(1, len(s.Looks))] {
		for name := range l.Values {
			disk, ok := strings.CutSuffix(strings.TrimPrefix(name, "disk "), ": "+DiskBusyTime.Name)
			if v := s.Increase(name); ok && v >= most {
				busiest, most = disk, v
			}
		}
	}
	if busiest == "" {
		return ""
	}
	took := func(time, count *measure.Metric) float64 {
		return s.Increase(diskName(busiest, time)) / s.Increase(diskName(busiest, count))
	}
	text := fmt.Sprintf("%s was busy for %s of the time", busiest, table.Share(min(1, most)))
	if v := took(DiskWriteTime, DiskWrites); v > 0 && v < 1000 {
		text += fmt.Sprintf(", a write took %s ms", table.Milliseconds.Format(v))
	}
	if v := took(DiskReadTime, DiskReads); v > 0 && v < 1000 {
		text += fmt.Sprintf(", a read %s ms", table.Milliseconds.Format(v))
	}
	return text
}

// testifyProcesses adds the processes that are stopped, and the threads of servers that are blocked in the kernel.
func (p *Programs) testifyProcesses(a *evidence.Answer, pids []int, stopped string) {
	for _, pid := range pids {
		folder := p.proc() + "/" + strconv.Itoa(pid)
		name, state := stateOf(folder + "/stat")
		switch {
		case state == 'T':
			a.Set(stopped, a.Values[stopped]+1)
			a.Say(stopped, fmt.Sprintf("process %d (%s)", pid, name))
		case stopped == stoppedServer:
			p.testifyThreads(a, folder, name)
		}
	}
}

// testifyThreads adds the threads of a server that are blocked, and where in the kernel, as far as that may be read.
func (p *Programs) testifyThreads(a *evidence.Answer, folder, name string) {
	threads, err := os.ReadDir(folder + "/task")
	if err != nil {
		return
	}
	blocked := 0
	var places []string
	for _, thread := range threads[:min(len(threads), mostBlocked)] {
		path := folder + "/task/" + thread.Name()
		if _, state := stateOf(path + "/stat"); state != 'D' {
			continue
		}
		blocked++
		if channel, err := os.ReadFile(path + "/wchan"); err == nil && len(channel) > 1 && len(places) < shownBlocked {
			place := string(channel)
			if call, err := os.ReadFile(path + "/syscall"); err == nil {
				number, _, _ := strings.Cut(string(call), " ")
				place += " (system call " + number + ")"
			}
			if !slices.Contains(places, place) {
				places = append(places, place)
			}
		}
	}
	if blocked > 0 {
		a.Set(blockedIn, a.Values[blockedIn]+float64(blocked))
		a.Say(blockedIn, name)
		a.Say(blockedAt, strings.Join(places, ", "))
	}
}

// stateOf reads the name and the state of a process or thread.
func stateOf(path string) (name string, state byte) {
	text, err := os.ReadFile(path)
	from, to := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if err != nil || from < 0 || to < from || to+2 >= len(text) {
		return "", 0
	}
	return string(text[from+1 : to]), text[to+2]
}

// pressure reads the total of a line of a pressure file, in seconds.
func pressure(path, line string) (seconds float64, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for l := range strings.Lines(string(text)) {
		_, total, found := strings.Cut(l, "total=")
		if !found || !strings.HasPrefix(l, line+" ") {
			continue
		}
		us, err := strconv.ParseFloat(strings.TrimSpace(total), 64)
		return us / 1e6, err == nil
	}
	return 0, false
}

// stopped is the part of the clients that a process stops that a signal stopped.
func stopped(name string) func(*evidence.Look) float64 {
	return func(l *evidence.Look) float64 {
		if !(l.Number(name) > 0) {
			return 0
		}
		return l.Remaining()
	}
}

func stoppedText(name string) func(*evidence.Scene, *evidence.Look) string {
	return func(s *evidence.Scene, worst *evidence.Look) string {
		return fmt.Sprintf("%s was stopped by a signal (state T) at %s", worst.Texts[name],
			s.Count(func(l *evidence.Look) bool { return l.Number(name) > 0 })) + s.Absent()
	}
}

// waitForDisk is the part of the clients whose sessions have threads that are blocked, or wait for the log while any thread
// is; or the part of the time in which no task ran for I/O. A file system that is held up causes no such pressure.
func waitForDisk(l *evidence.Look) float64 {
	threads := l.Number(blockedIn)
	if !(threads > 0) {
		return 0
	}
	part := max(l.ShareOfAll(threads), l.ForLog())
	if full := l.Increase(ioFull); full > part {
		part = full
	}
	return part
}

func diskText(s *evidence.Scene, worst *evidence.Look) string {
	_, threads := s.Worst(func(l *evidence.Look) float64 { return l.Number(blockedIn) })
	text := fmt.Sprintf("up to %.0f threads of %s were blocked in the kernel at %s", threads, worst.Texts[blockedIn],
		s.Count(func(l *evidence.Look) bool { return l.Number(blockedIn) > 0 }))
	if at := worst.Texts[blockedAt]; at != "" {
		text += " (" + at + ")"
	}
	if full := s.Increase(ioFull); full >= 0.1 {
		text += fmt.Sprintf(", and no task ran for I/O in up to %s of the time", table.Share(min(1, full)))
	}
	if disk := busiestDisk(s); disk != "" {
		text += "; " + disk
	}
	return text
}
