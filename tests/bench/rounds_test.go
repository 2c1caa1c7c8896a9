//go:build bench

package bench

import (
	"database/sql"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/servers"
)

// BenchmarkRounds measures what everything of benchwatch (agent at 1 Hz on three servers, wrapper, scrapes) takes from
// a saturated sysbench, which runs all the time. Each round has three seconds in random order: one with benchwatch and
// two in which it is stopped. All run on one processor: the observer takes its time from the benchmark, and what two
// processors do to each other is no noise. resolution-% is half the 95 % interval of the ratio of their throughput;
// the number of rounds is fixed. same-% is the ratio of the two seconds without, same-resolution-% half its interval.
func BenchmarkRounds(b *testing.B) {
	const rounds, without = 300, "sysbench alone"
	config := targets(b, 3)
	g, err := database()
	must(b, g, err)
	pin(b, g.PID(1), "0")
	b.Cleanup(func() { pin(b, g.PID(1), "0-1") })
	var alone []float64
	builds(func(program, binary string) {
		measure(b, program, func(b *testing.B) values {
			o := observe(b, g, binary, config)
			var rates, ratios, same []float64
			for range rounds {
				var rate [3]float64 // with, without, without
				for _, i := range rand.Perm(len(rate)) {
					rate[i] = o.second(i == 0)
				}
				rates, alone = append(rates, rate[0]), append(alone, rate[1], rate[2])
				ratios = append(ratios, math.Log(rate[0])-(math.Log(rate[1])+math.Log(rate[2]))/2)
				same = append(same, math.Log(rate[1]/rate[2]))
			}
			ratio, resolution := interval(ratios)
			control, floor := interval(same)
			return values{
				"transactions/s": median(rates), "ratio-%": 100 * math.Exp(ratio), "resolution-%": 100 * resolution,
				"same-%": 100 * math.Exp(control), "same-resolution-%": 100 * floor, "observer-cpu-%": 100 * o.observer / o.benchmark,
			}
		})
	})
	measure(b, without, func(*testing.B) values { return values{"transactions/s": median(alone)} })
}

// interval returns the mean and half of its 95 % interval.
func interval(v []float64) (mean, half float64) {
	n, squares := float64(len(v)), 0.0
	for _, x := range v {
		mean += x / n
	}
	for _, x := range v {
		squares += (x - mean) * (x - mean)
	}
	return mean, 1.96 * math.Sqrt(squares/(n-1)/n)
}

// pin binds all threads of a process to processors.
func pin(b *testing.B, pid int, processors string) {
	b.Helper()
	cpuOf(b, "taskset", "-a", "-c", "-p", processors, strconv.Itoa(pid))
}

// observation is a sysbench under benchwatch, which can be stopped for a while.
type observation struct {
	b                *testing.B
	agent            *daemon
	wrapper          *exec.Cmd
	status           *sql.Conn
	server, sysbench int // their processes
	// CPU seconds of agent and wrapper, and of sysbench and its server, while they were observed.
	observer, benchmark float64
}

// observe starts sysbench under benchwatch.
func observe(b *testing.B, g *servers.Group, binary, config string) *observation {
	b.Helper()
	agent, file := startAgent(b, binary, config)
	pin(b, agent.cmd.Process.Pid, "0")
	command := append([]string{"-c", "0", binary}, recording(binary, file, 3)...)
	command = append(append(command, "sysbench"), sysbench(g, "oltp_read_only", "--threads=4", "--report-interval=1", "--time=0", "run")...)
	o := &observation{b: b, agent: agent, wrapper: exec.Command("taskset", command...), server: g.PID(1)}
	must(b, 0, servers.StartAttached(o.wrapper))
	b.Cleanup(func() {
		o.signal(syscall.SIGCONT)
		_ = o.wrapper.Process.Signal(os.Interrupt)
		_ = o.wrapper.Wait() // interrupted
	})
	db, err := g.Admin(1)
	must(b, db, err)
	b.Cleanup(func() { db.Close() })
	o.status, err = db.Conn(b.Context())
	must(b, o.status, err)
	for begin, end := o.commits(), time.Now().Add(20*time.Second); o.commits() < begin+1000; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatal("sysbench does not begin")
		}
	}
	_, child := cpuOf(b, "pgrep", "-P", strconv.Itoa(o.wrapper.Process.Pid))
	o.sysbench, err = strconv.Atoi(strings.TrimSpace(child))
	must(b, 0, err)
	return o
}

func (o *observation) signal(s syscall.Signal) {
	for _, p := range []*os.Process{o.agent.cmd.Process, o.wrapper.Process} {
		_ = p.Signal(s)
	}
}

// second returns the transactions of a second, with benchwatch or while it is stopped. A benchwatch that continues has
// missed a tick, and makes up for it before the second begins.
func (o *observation) second(isObserved bool) float64 {
	o.b.Helper()
	o.signal(syscall.SIGSTOP)
	if isObserved {
		o.signal(syscall.SIGCONT)
	}
	time.Sleep(150 * time.Millisecond)
	observer, benchmark := o.cpu()
	began, commits := time.Now(), o.commits()
	if isObserved {
		o.agent.get("/metrics")
	}
	time.Sleep(time.Until(began.Add(time.Second)))
	rate := (o.commits() - commits) / time.Since(began).Seconds()
	if isObserved {
		observerEnd, benchmarkEnd := o.cpu()
		o.observer += observerEnd - observer
		o.benchmark += benchmarkEnd - benchmark
	}
	return rate
}

// cpu returns the CPU seconds so far of agent and wrapper, and of sysbench and its server.
func (o *observation) cpu() (observer, benchmark float64) {
	o.b.Helper()
	of := func(pid int) float64 { return statOf(o.b, pid).CPUTime() }
	return of(o.agent.cmd.Process.Pid) + of(o.wrapper.Process.Pid), of(o.server) + of(o.sysbench)
}

// commits returns the transactions of the server so far.
func (o *observation) commits() (n float64) {
	o.b.Helper()
	var name string
	err := o.status.QueryRowContext(o.b.Context(), "SHOW GLOBAL STATUS LIKE 'Com_commit'").Scan(&name, &n)
	return must(o.b, n, err)
}
