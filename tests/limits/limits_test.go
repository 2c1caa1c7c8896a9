//go:build limits

package limits

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/analysis"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// lab is an agent that samples the server at one address.
type lab struct {
	*agents.Agent
	address string
}

func newLab(t *testing.T, address string) *lab {
	t.Helper()
	a := agents.New(t, env.binary, fmt.Sprintf("targets:\n  - {name: db1, engine: mysql, cluster: one, address: '%s', user: monitor, password_file: %s/monitor.password}\n",
		address, env.server.Dir))
	a.Again(t)
	return &lab{a, address}
}

// used is what a run took of the machine's CPU, as the kernel reports it.
type used struct{ own, all float64 } // seconds

// foreign is the share of the machine's CPU that other programs took.
func (u used) foreign(seconds float64, cores int) float64 {
	return max(0, u.all-u.own) / (seconds * float64(cores))
}

// one runs a benchmark to its end, and returns its verdict. during is called when the tool
// has started.
func (l *lab) one(t *testing.T, id string, during func(meta rundir.Meta), command ...string) (v analysis.Verdict, foreign float64) {
	t.Helper()
	host, port, err := net.SplitHostPort(l.address)
	must(t, err)
	command = append(slices.Clip(command), "--mysql-host="+host, "--mysql-port="+port, "run")
	begin, before := time.Now(), taken(t)
	own := cpuOf(t, env.server.PID(1)) + cpuOf(t, l.Cmd.Process.Pid) + cpuOf(t, os.Getpid())
	wrapper := agents.StartCommand(t, l.Command([]string{"--run-id=" + id}, command...))
	t.Cleanup(func() { l.EndTool(id) })
	if during != nil {
		var meta rundir.Meta
		agents.Wait(t, 10*time.Second, "the tool's start", func() (err error) {
			if meta, err = rundir.At(l.DataDir, id).Load(); err == nil && meta.PID == 0 {
				err = fmt.Errorf("no process yet")
			}
			return err
		})
		during(meta)
	}
	status := wrapper.Status(t, 60*time.Second)
	seconds := time.Since(begin).Seconds()
	u := used{all: taken(t) - before, own: cpuOf(t, env.server.PID(1)) + cpuOf(t, l.Cmd.Process.Pid) + cpuOf(t, os.Getpid()) - own}
	u.own += (wrapper.Cmd.ProcessState.UserTime() + wrapper.Cmd.ProcessState.SystemTime()).Seconds() // the tool's included
	l.Closed(t, id, 30*time.Second)
	out, err := exec.Command(env.binary, "report", id, "--config.file="+l.Config, "--format=json").Output()
	if err != nil {
		t.Fatalf("report: %v", err)
	}
	var report struct {
		Runs []struct{ Limits *analysis.Verdict }
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Runs) != 1 || report.Runs[0].Limits == nil {
		t.Fatalf("no verdict (%v); benchwatch run exited with %d:\n%s", err, status, wrapper.Output(t))
	}
	return *report.Runs[0].Limits, u.foreign(seconds, cores())
}

func cores() int {
	text, _ := os.ReadFile("/proc/stat")
	return bytes.Count(text, []byte("\ncpu"))
}

// ticks are the kernel's, of a hundredth of a second on all of Debian's machines.
const ticks = 100

// busy returns the seconds for which the cores were in use, and those that other virtual
// machines took.
func busy(t *testing.T) (used, stolen float64) {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	must(t, err)
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line)[1:9] {
		v, err := strconv.ParseFloat(field, 64)
		must(t, err)
		switch i {
		case 3, 4: // idle, iowait
		case 7:
			stolen += v
		default:
			used += v
		}
	}
	return used / ticks, stolen / ticks
}

// taken returns the seconds for which nothing else could have used the cores.
func taken(t *testing.T) float64 {
	t.Helper()
	used, stolen := busy(t)
	return used + stolen
}

// cpuOf returns the seconds of CPU of a process.
func cpuOf(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(t, err)
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	must(t, err1)
	must(t, err2)
	return (user + system) / ticks
}

// anyNoise: the finding does not depend on what else uses the CPU.
const anyNoise = 1

// TestFirstFinding guards that the first finding is the thing that limited the run.
func TestFirstFinding(t *testing.T) {
	near := newLab(t, env.server.Address(1))
	for _, c := range []struct {
		name   string
		want   analysis.Limit
		text   string  // in the evidence
		noise  float64 // if other programs take more of the CPU, they limit the run themselves
		far    time.Duration
		before func(t *testing.T)
		during func(t *testing.T, meta rundir.Meta)
		args   []string
	}{
		{
			name: "server CPU", want: analysis.LimitServerCPU, noise: 0.4, args: []string{"oltp_read_only", "--threads=8", "--time=8"},
			before: func(t *testing.T) {
				must(t, env.server.Limit(t.Context(), 1, 40))
				t.Cleanup(func() { must(t, env.server.Unlimit(t.Context(), 1)) })
			},
		},
		{
			name: "generator CPU", want: analysis.LimitGeneratorCPU, noise: 0.4, args: []string{"oltp_point_select", "--threads=8", "--time=8"},
			during: func(t *testing.T, meta rundir.Meta) {
				release, err := servers.LimitProcess(meta.PID, 20)
				if err != nil {
					t.Skipf("the tool can't be limited: %v", err)
				}
				t.Cleanup(func() { must(t, release()) })
			},
		},
		{name: "generator and server", want: analysis.LimitSharedCPU, noise: 0.3, text: "other programs", args: []string{"oltp_read_only", "--threads=32", "--time=8"}},
		{
			name: "other programs", want: analysis.LimitNeighbours, noise: anyNoise, text: "cpu-burner ", args: []string{"oltp_read_only", "--threads=8", "--time=12"},
			before: func(t *testing.T) { burn(t, 8*cores()) },
		},
		{name: "hot row", want: analysis.LimitRowLocks, noise: anyNoise, text: "waited for a row lock", args: []string{"oltp_update_non_index", "--tables=1", "--table-size=1", "--threads=16", "--time=8"}},
		{
			name: "fsync", want: analysis.LimitCommit, noise: anyNoise, args: []string{"oltp_update_non_index", "--threads=8", "--time=10"},
			before: func(t *testing.T) {
				set(t, "sync_binlog", "1")
				set(t, "innodb_flush_log_at_trx_commit", "1")
				limitDisk(t, 0, 200)
			},
		},
		{name: "round trip", want: analysis.LimitRoundTrip, noise: 0.7, text: "a round trip of at least", far: 3 * time.Millisecond, args: []string{"oltp_point_select", "--threads=2", "--time=8"}},
		{name: "too few clients", want: analysis.LimitClients, noise: 0.2, text: "1 client, each of which waits", args: []string{"oltp_point_select", "--threads=1", "--time=8"}},
		{
			name: "max_connections", want: analysis.LimitConnections, noise: anyNoise, text: "Too many connections", args: []string{"oltp_point_select", "--threads=32", "--time=8"},
			before: func(t *testing.T) { set(t, "max_connections", "10") },
		},
		{
			name: "small buffer pool", want: analysis.LimitPool, noise: 0.7, text: "pages/s from disk", args: []string{"oltp_point_select", "--rand-type=uniform", "--threads=8", "--time=10"},
			before: func(t *testing.T) {
				set(t, "innodb_buffer_pool_size", strconv.Itoa(16<<20))
				limitDisk(t, 300, 0)
			},
		},
		{
			name: "open files", want: analysis.LimitFiles, noise: anyNoise, text: "(24)", args: []string{"oltp_point_select", "--threads=100", "--time=8"},
			before: func(t *testing.T) {
				var old unix.Rlimit
				must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
				// The tool inherits it; benchwatch raises its own again, as Go's programs do.
				must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: old.Max}))
				t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) })
			},
		},
		{
			name: "checkpoint", want: analysis.LimitCheckpoint, noise: 0.7, text: "redo log", args: []string{"oltp_update_index", "--rand-type=uniform", "--threads=8", "--time=20"},
			before: func(t *testing.T) {
				set(t, "innodb_flush_log_at_trx_commit", "0")
				set(t, "sync_binlog", "0")
				set(t, "innodb_log_file_size", strconv.Itoa(16<<20)) // two seconds of writes
				limitDisk(t, 0, 150)
			},
		},
		{name: "rate", args: []string{"oltp_point_select", "--threads=4", "--rate=100", "--time=8"}, noise: anyNoise},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := near
			if c.far > 0 {
				l = newLab(t, delayed(t, env.server.Address(1), always(c.far)))
			}
			if c.before != nil {
				c.before(t)
			}
			id := strings.ReplaceAll(c.name, " ", "-")
			var during func(rundir.Meta)
			if c.during != nil {
				during = func(meta rundir.Meta) { c.during(t, meta) }
			}
			v, foreign := l.one(t, id, during, sysbench(c.args...)...)
			text := fmt.Sprintf("other programs took %.0f %% of the CPU", foreign*100)
			for _, f := range v.Findings {
				text += fmt.Sprintf("\n%s (%.2f, %g s): %s", f.Limit, f.Share, f.Seconds, f.Evidence)
			}
			text += fmt.Sprintf("\nunlimited %q, not known %q", v.Unlimited, v.Unknown)
			t.Log(text)
			if foreign > c.noise {
				t.Skipf("the machine is not quiet: other programs took %.0f %% of its CPU", foreign*100)
			}
			switch {
			case c.want == "" && (len(v.Findings) > 0 || v.Unlimited == ""):
				t.Error("a limit was found of a run that did all it was asked to")
			case c.want == "":
			case strings.Contains(text, "max_connections of db1 is") && !strings.Contains(text, "is 10"):
				t.Error("a value from before the run is named")
			case len(v.Findings) == 0 || v.Findings[0].Limit != c.want || !strings.Contains(v.Findings[0].Evidence, c.text):
				t.Errorf("want %s", c.want)
			}
		})
	}
}

// burn has as many processes use the CPU for as long as the test lasts.
func burn(t *testing.T, processes int) {
	t.Helper()
	shell, err := exec.LookPath("sh")
	must(t, err)
	name := filepath.Join(t.TempDir(), "cpu-burner")
	must(t, os.Symlink(shell, name))
	for range processes {
		cmd := exec.Command(name, "-c", "while :; do :; done")
		must(t, cmd.Start())
		t.Cleanup(func() {
			must(t, cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
		})
	}
}

func limitDisk(t *testing.T, reads, writes int) {
	t.Helper()
	if err := env.server.LimitDisk(1, reads, writes); err != nil {
		t.Skipf("the server's disk can't be limited: %v", err)
	}
	t.Cleanup(func() { must(t, env.server.UnlimitDisk(1)) })
}
