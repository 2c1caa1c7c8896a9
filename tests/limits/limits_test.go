//go:build limits

package limits

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// lab is an agent that samples the servers of a group, by another address if it has one.
type lab struct {
	*agents.Agent
	group *servers.Group
	// sampled and used are the addresses of the first server for the agent and for the tool.
	sampled, used string
	// generators is how many tools generate the load: a group if there are several.
	generators int
	// dir is where the tool is started; empty: here.
	dir string
	// spent is the CPU time in seconds that tools and servers used in the last run.
	spent float64
}

func newLab(t *testing.T, g *servers.Group, sampled, used string) *lab {
	t.Helper()
	targets := "targets:\n"
	for n := 1; n <= g.N; n++ {
		address := g.Address(n)
		if n == 1 {
			address = sampled
		}
		targets += fmt.Sprintf("  - {name: db%d, engine: mysql, cluster: one, address: '%s', user: monitor, password_file: %s/monitor.password}\n", n, address, g.Dir)
	}
	a := agents.New(t, env.binary, targets)
	a.Again(t)
	return &lab{Agent: a, group: g, sampled: sampled, used: used, generators: 1}
}

// used is how much of the machine's CPU a run used, as the kernel reports it.
type used struct{ own, all float64 } // seconds

// foreign is the share of the machine's CPU that other programs took.
func (u used) foreign(seconds float64, cores int) float64 {
	return max(0, u.all-u.own) / (seconds * float64(cores))
}

// one runs a benchmark to its end, and returns its verdict. during is called when the tool
// has started.
func (l *lab) one(t *testing.T, id string, during func(meta rundir.Meta), args ...string) (v limits.Verdict, foreign float64) {
	t.Helper()
	host, port, err := net.SplitHostPort(l.used)
	must(t, err)
	command := append(sysbenchOn(l.group, args...), "--mysql-host="+host, "--mysql-port="+port)
	start := func(flags ...string) *agents.Process {
		flags = append(flags, "--drain-timeout=10s") // a replica that lags on purpose takes minutes
		if l.used != l.sampled {
			flags = append(flags, "--targets=db1")
		}
		cmd := l.Command(flags, append(command, "run")...)
		cmd.Dir = l.dir
		return agents.StartCommand(t, cmd)
	}
	ofServers := func() (sum float64) {
		for n := 1; n <= l.group.N; n++ {
			sum += cpuOf(t, l.group.PID(n))
		}
		return sum
	}
	own := func() float64 { return ofServers() + cpuOf(t, l.Cmd.Process.Pid) + cpuOf(t, os.Getpid()) }
	begin, before, ownBefore, serversBefore := time.Now(), taken(t), own(), ofServers()
	var wrappers []*agents.Process
	if l.generators == 1 {
		wrappers = append(wrappers, start("--run-id="+id))
		t.Cleanup(func() { l.EndTool(id) })
	}
	for n := 1; l.generators > 1 && n <= l.generators; n++ {
		wrappers = append(wrappers, start("--group="+id, fmt.Sprintf("--generators=%d", l.generators), fmt.Sprintf("--generator=%d", n)))
		t.Cleanup(func() { l.EndTool(rundir.GeneratorID(id, n)) })
	}
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
	var output string
	var tools time.Duration
	for _, w := range wrappers {
		output += fmt.Sprintf("benchwatch run exited with %d:\n", w.Status(t, 90*time.Second)) + w.Output(t)
		tools += w.Cmd.ProcessState.UserTime() + w.Cmd.ProcessState.SystemTime() // the tool's included
	}
	seconds := time.Since(begin).Seconds()
	u := used{all: taken(t) - before, own: own() - ownBefore + tools.Seconds()}
	l.spent = ofServers() - serversBefore + tools.Seconds()
	l.Closed(t, id, 60*time.Second)
	out, err := exec.Command(env.binary, "report", id, "--config.file="+l.Config, "--format=json").Output()
	if err != nil {
		t.Fatalf("report: %v", err)
	}
	var report struct {
		Runs []struct{ Limits *limits.Verdict }
	}
	if strings.Contains(output, "exited with 139") {
		t.Skip("sysbench itself crashed, as it does at times when its threads fail to connect")
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Runs) != 1 || report.Runs[0].Limits == nil {
		if strings.Contains(output, "Cannot find benchmark") {
			t.Skip("sysbench had no file left for its own script, before it connected")
		}
		t.Fatalf("no verdict (%v); %s", err, output)
	}
	return *report.Runs[0].Limits, u.foreign(seconds, cores())
}

func cores() int {
	text, _ := os.ReadFile("/proc/stat")
	return bytes.Count(text, []byte("\ncpu"))
}

// ticks are the kernel's, of a hundredth of a second on all of Debian's machines.
const ticks = 100

// busy returns the seconds for which the cores were in use, and the seconds that other virtual machines took.
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

// limited is a run that one thing limits.
type limited struct {
	name string
	// want are the findings that name the limit, empty if nothing limits the run. text is in the evidence of the first
	// finding.
	want []cause.Limit
	text string
	// noise: if other programs take more of the CPU, they limit the run themselves.
	noise float64
	// setup prepares the server and returns what to run; nil: the shared server.
	setup  func(t *testing.T) *lab
	during func(t *testing.T, l *lab, meta rundir.Meta)
	args   []string
	// generators is how many tools run as a group; 0: one, without a group.
	generators int
	// behind is a replica that does not keep up, which limits nothing.
	behind string
}

// anyNoise: the finding does not depend on what else uses the CPU.
const anyNoise = 1

func one(limits ...cause.Limit) []cause.Limit { return limits }

// onShared returns the setup of a lab on the shared server, after changing it.
func onShared(change func(t *testing.T)) func(t *testing.T) *lab {
	return func(t *testing.T) *lab {
		if change != nil {
			change(t)
		}
		return newLab(t, env.server, env.server.Address(1), env.server.Address(1))
	}
}

// own returns the setup of a lab on a separate server.
func own(kind servers.Kind, n int, settings ...string) func(t *testing.T) *lab {
	return func(t *testing.T) *lab {
		g := started(t, kind, n, settings...)
		return newLab(t, g, g.Address(1), g.Address(1))
	}
}

// script returns the arguments for a transaction in Lua; con is its connection.
func script(t *testing.T, event string, args ...string) []string {
	t.Helper()
	file := filepath.Join(env.dir, filepath.Base(t.Name())+".lua")
	must(t, os.WriteFile(file, []byte(""+pausing+"function thread_init()\n con = sysbench.sql.driver():connect()\nend\nfunction event()\n "+event+"\nend\n"), 0o644))
	return append([]string{file}, args...)
}

// holding has another session execute statements, which ends with the test.
func holding(statements ...string) func(t *testing.T, l *lab, meta rundir.Meta) {
	return func(t *testing.T, l *lab, _ rundir.Meta) {
		t.Helper()
		execute := otherSession(t, l)
		for _, s := range statements {
			execute(s)
		}
	}
}

// repeating has another session execute a statement again and again for a time.
func repeating(d time.Duration, statement string) func(t *testing.T, l *lab, meta rundir.Meta) {
	return func(t *testing.T, l *lab, _ rundir.Meta) {
		t.Helper()
		execute := otherSession(t, l)
		for end := time.Now().Add(d); time.Now().Before(end); {
			execute(statement)
		}
	}
}

// otherSession returns a function that executes statements in one session, which ends with the test.
func otherSession(t *testing.T, l *lab) func(statement string) {
	t.Helper()
	db, err := l.group.Admin(1)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	con, err := db.Conn(context.Background())
	must(t, err)
	t.Cleanup(func() { must(t, con.Close()) })
	return func(statement string) {
		t.Helper()
		_, err := con.ExecContext(context.Background(), statement)
		must(t, err)
	}
}

// events are transactions in Lua, by the name of the case.
var events = map[string]string{
	"row locks in a transaction": `con:query("BEGIN")
 con:query("UPDATE sbtest1 SET k = k + 1 WHERE id = 1")
 for i = 1, 9 do con:query("SELECT c FROM sbtest2 WHERE id = " .. i) end
 con:query("COMMIT")`,
	"row locks beside lag": `con:query("BEGIN")
 con:query("UPDATE sbtest1 SET k = k + 1 WHERE id <= 200")
 con:query("SELECT SLEEP(0.01)")
 con:query("COMMIT")`,
	"user-level lock": `con:query("SELECT GET_LOCK('one', 60)")
 con:query("SELECT SLEEP(0.01)")
 con:query("SELECT RELEASE_LOCK('one')")`,
	"pauses of the tool": `con:query("SELECT c FROM sbtest1 WHERE id = " .. sysbench.rand.uniform(1, 100000))
 sleep(20)`,
	"sleep in the server":     `con:query("SELECT SLEEP(0.02)")`,
	"rate above the server's": `con:query("SELECT SLEEP(0.02)")`,
	"new connection for each transaction": `local c = sysbench.sql.driver():connect()
 c:query("SELECT c FROM sbtest1 WHERE id = " .. sysbench.rand.uniform(1, 100000))
 c:disconnect()`,
	"pool of threads": `con:query("SELECT SLEEP(0.02)")`,
	"lost index":      `con:query("SELECT COUNT(*) FROM sbtest1 WHERE c LIKE '" .. sysbench.rand.uniform(1, 99999) .. "%'")`,
	"MyISAM":          `con:query("UPDATE slow SET v = v + 1 WHERE id > " .. sysbench.rand.uniform(1, 1000))`,
	"large results":   `con:query("SELECT c, pad FROM sbtest1 WHERE id < 3000")`,
}

// pausing is the program with which the event "pauses of the tool" sleeps.
const pausing = `
local ffi = require("ffi")
ffi.cdef("int usleep(unsigned int us);")
function sleep(ms) ffi.C.usleep(ms * 1000) end
`

// cases are all things that limit a run.
var cases = []limited{
	{name: "server CPU quota", want: one(cause.ProcessCPU), noise: anyNoise, text: "CPU quota", args: []string{"oltp_read_only", "--threads=8", "--time=12"},
		setup: onShared(func(t *testing.T) {
			must(t, env.server.Limit(t.Context(), 1, 15))
			t.Cleanup(func() { must(t, env.server.Unlimit(context.Background(), 1)) })
		})},
	{name: "tool CPU quota", want: one(cause.ToolCPU), noise: anyNoise, text: "CPU quota", args: []string{"oltp_point_select", "--threads=8", "--time=12"},
		during: func(t *testing.T, _ *lab, meta rundir.Meta) {
			release, err := servers.LimitProcess(meta.PID, 12)
			if err != nil {
				t.Skipf("the tool can't be limited: %v", err)
			}
			t.Cleanup(func() { must(t, release()) })
		}},
	{name: "pinned server", want: one(cause.ProcessCPU, cause.SharedCPU, cause.Neighbours), noise: anyNoise, args: []string{"oltp_read_only", "--threads=16", "--time=12"},
		setup: onShared(func(t *testing.T) { pin(t, env.server.PID(1)) })},
	{name: "pinned tool", want: one(cause.ToolCPU, cause.SharedCPU, cause.Neighbours), noise: anyNoise, args: []string{"oltp_point_select", "--threads=16", "--time=12"},
		during: func(t *testing.T, _ *lab, meta rundir.Meta) { pin(t, meta.PID) }},
	{name: "generator and server", want: one(cause.SharedCPU, cause.Neighbours), noise: anyNoise, text: "other programs", args: []string{"oltp_read_only", "--threads=32", "--time=12"}},
	{name: "other programs", want: one(cause.Neighbours), noise: anyNoise, text: "other programs ", args: []string{"oltp_read_only", "--threads=8", "--time=12"},
		setup: onShared(func(t *testing.T) { burn(t, 8*cores()) })},
	{name: "hot row", want: one(cause.RowLocks), noise: anyNoise, text: "waited for a row lock", args: []string{"oltp_update_non_index", "--tables=1", "--table-size=1", "--threads=16", "--time=12"}},
	{name: "hot row of two generators", want: one(cause.RowLocks), noise: anyNoise, generators: 2, args: []string{"oltp_update_non_index", "--tables=1", "--table-size=1", "--threads=8", "--time=12"}},
	{name: "row locks beside lag", want: one(cause.RowLocks), noise: anyNoise, behind: "db2", args: []string{"--threads=8", "--time=20"},
		setup: func(t *testing.T) *lab {
			l := own(servers.MariaDB, 2)(t)
			must(t, l.group.Lag(t.Context(), 2))
			return l
		}},
	{name: "row locks in a transaction", want: one(cause.RowLocks), noise: anyNoise, args: []string{"--threads=16", "--time=12"}},
	{name: "binary log fsync", want: one(cause.Commit), noise: anyNoise, args: []string{"oltp_update_non_index", "--threads=8", "--time=12"},
		setup: func(t *testing.T) *lab {
			g := syncing(t, "/bin.", 20*time.Millisecond, "sync_binlog=1", "innodb_flush_log_at_trx_commit=0")
			return newLab(t, g, g.Address(1), g.Address(1))
		}},
	{name: "redo fsync", want: one(cause.Commit), noise: anyNoise, args: []string{"oltp_update_index", "--threads=8", "--time=12"},
		setup: func(t *testing.T) *lab {
			g := syncing(t, "ib_logfile", 20*time.Millisecond, "skip_log_bin", "innodb_flush_log_at_trx_commit=1")
			return newLab(t, g, g.Address(1), g.Address(1))
		}},
	{name: "redo fsync of inserts", want: one(cause.Commit), noise: anyNoise, args: []string{"oltp_insert", "--threads=4", "--time=12"},
		setup: func(t *testing.T) *lab {
			g := syncing(t, "ib_logfile", 20*time.Millisecond, "skip_log_bin", "innodb_flush_log_at_trx_commit=1")
			return newLab(t, g, g.Address(1), g.Address(1))
		}},
	{name: "semi-synchronous replica", want: one(cause.Replication), noise: anyNoise, args: []string{"oltp_update_non_index", "--threads=4", "--time=15"},
		setup: func(t *testing.T) *lab {
			l := own(servers.MariaDB, 2, "rpl_semi_sync_slave_enabled=ON", "rpl_semi_sync_master_timeout=60000")(t)
			_, err := l.group.Query(t.Context(), 1, "SET GLOBAL rpl_semi_sync_master_enabled = ON")
			must(t, err)
			must(t, l.group.Limit(t.Context(), 2, 3))
			return l
		}},
	{name: "few writes a second", want: one(cause.Commit), noise: anyNoise, args: []string{"oltp_update_non_index", "--threads=8", "--time=12"},
		setup: onShared(func(t *testing.T) {
			set(t, "sync_binlog", "1")
			set(t, "innodb_flush_log_at_trx_commit", "1")
			limitDisk(t, 0, 200)
		})},
	{name: "LOCK TABLES", want: one(cause.Locks), noise: anyNoise, args: []string{"oltp_read_write", "--threads=8", "--time=12"},
		during: holding("LOCK TABLES sbtest.sbtest1 READ, sbtest.sbtest2 READ", "DO SLEEP(9)", "UNLOCK TABLES")},
	{name: "backup", want: one(cause.Locks), noise: anyNoise, args: []string{"oltp_update_index", "--threads=8", "--time=12"},
		during: holding("FLUSH TABLES WITH READ LOCK", "DO SLEEP(9)", "UNLOCK TABLES")},
	{name: "ALTER TABLE", want: one(cause.Locks), noise: anyNoise, args: []string{"oltp_update_index", "--threads=8", "--time=12", "--tables=1"},
		during: repeating(9*time.Second, "ALTER TABLE sbtest.sbtest1 FORCE, ALGORITHM=COPY, LOCK=SHARED")},
	{name: "rows of another session", want: one(cause.RowLocks), noise: anyNoise, args: []string{"oltp_update_non_index", "--threads=8", "--time=12"},
		during: holding("BEGIN", "UPDATE sbtest.sbtest1 SET k = k + 1", "DO SLEEP(7)", "ROLLBACK")},
	{name: "user-level lock", want: one(cause.UserLocks), text: "GET_LOCK", noise: anyNoise, args: []string{"--threads=8", "--time=12"}},
	{name: "MyISAM", want: one(cause.Locks), noise: anyNoise, args: []string{"--threads=8", "--time=12"},
		setup: onShared(func(t *testing.T) {
			query(t, "CREATE TABLE sbtest.slow (id INT PRIMARY KEY, v INT) ENGINE=MyISAM SELECT id, k v FROM sbtest.sbtest1 WHERE id <= 20000")
			t.Cleanup(func() { query(t, "DROP TABLE sbtest.slow") })
		})},
	{name: "slow Galera node", want: one(cause.FlowControl, cause.Replication), noise: anyNoise, args: []string{"oltp_update_non_index", "--threads=8", "--time=15"},
		setup: func(t *testing.T) *lab {
			l := own(servers.Galera, 3)(t)
			must(t, l.group.Limit(t.Context(), 3, 3))
			return l
		}},
	{name: "round trip", want: one(cause.RoundTrip, cause.Outside), noise: anyNoise, text: "a round trip of at least", args: []string{"oltp_point_select", "--threads=4", "--time=12"},
		setup: func(t *testing.T) *lab {
			address := delayed(t, env.server.Address(1), always(5*time.Millisecond))
			return newLab(t, env.server, address, address)
		}},
	{name: "proxy", want: one(cause.Outside), noise: anyNoise, args: []string{"oltp_point_select", "--threads=8", "--time=12"},
		setup: func(t *testing.T) *lab {
			return newLab(t, env.server, env.server.Address(1), delayed(t, env.server.Address(1), always(5*time.Millisecond)))
		}},
	{name: "pauses of the tool", want: one(cause.Outside), noise: anyNoise, args: []string{"--threads=8", "--time=12"}},
	{name: "sleep in the server", want: one(cause.Sleep), noise: anyNoise, args: []string{"--threads=8", "--time=12"}},
	{name: "pool of threads", want: one(cause.ThreadPool), noise: anyNoise, args: []string{"--threads=16", "--time=12"},
		setup: func(t *testing.T) *lab {
			port, err := servers.FreePorts(1)
			must(t, err)
			extra := fmt.Sprint(port + 1) // has threads of its own: the agent does not wait in the queue
			g := started(t, servers.MariaDB, 1, "thread_handling=pool-of-threads", "thread_pool_size=1", "thread_pool_max_threads=2", "extra_port="+extra, "extra_max_connections=10")
			return newLab(t, g, "127.0.0.1:"+extra, g.Address(1))
		}},
	{name: "large results", want: one(cause.Network, cause.Outside), noise: anyNoise, args: []string{"--threads=4", "--time=12"},
		setup: func(t *testing.T) *lab {
			return newLab(t, env.server, env.server.Address(1), narrow(t, env.server.Address(1), 1<<20))
		}},
	{name: "lost index", want: one(cause.SharedCPU, cause.ServerCPU, cause.Neighbours), noise: anyNoise, args: []string{"--threads=8", "--time=12"}},
	{name: "new connection for each transaction", want: one(cause.SharedCPU, cause.Neighbours), noise: anyNoise, args: []string{"--threads=8", "--time=12"}},
	{name: "two generators", want: one(cause.SharedCPU, cause.Neighbours), noise: anyNoise, generators: 2, args: []string{"oltp_read_only", "--threads=8", "--time=12"}},
	{name: "four generators", want: one(cause.OtherLoad, cause.SharedCPU, cause.Neighbours), noise: anyNoise, args: []string{"oltp_read_only", "--threads=8", "--time=12"},
		during: func(t *testing.T, l *lab, _ rundir.Meta) {
			for range 3 { // generators that are unknown to the agent
				agents.StartCommand(t, exec.Command("sysbench", append(sysbenchOn(l.group, "oltp_read_only", "--threads=8", "--time=12"), "run")[1:]...))
			}
		}},
	{name: "too few clients", want: one(cause.Clients), noise: 0.2, text: "1 client, each of which waits", args: []string{"oltp_point_select", "--threads=1", "--time=12"}},
	{name: "max_connections", want: one(cause.Connections), noise: anyNoise, text: "Too many connections", args: []string{"oltp_point_select", "--threads=32", "--time=8"},
		setup: onShared(func(t *testing.T) { set(t, "max_connections", "10") })},
	{name: "small buffer pool", want: one(cause.Pool), noise: anyNoise, text: "pages/s from disk", args: []string{"oltp_point_select", "--rand-type=uniform", "--threads=8", "--time=12"},
		setup: onShared(func(t *testing.T) {
			set(t, "innodb_buffer_pool_size", strconv.Itoa(16<<20))
			limitDisk(t, 300, 0)
		})},
	{name: "open files", want: one(cause.Files), noise: anyNoise, text: "(24)", args: []string{"oltp_point_select", "--threads=100", "--time=8"},
		setup: onShared(func(t *testing.T) {
			var old unix.Rlimit
			must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
			// The tool inherits it; benchwatch raises its own again, as Go's programs do.
			must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: old.Max}))
			t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) })
		})},
	{name: "checkpoint", want: one(cause.Checkpoint, cause.Commit, cause.Disk), noise: anyNoise, args: []string{"oltp_update_index", "--rand-type=uniform", "--threads=8", "--time=20"},
		setup: onShared(func(t *testing.T) {
			set(t, "innodb_flush_log_at_trx_commit", "0")
			set(t, "sync_binlog", "0")
			set(t, "innodb_log_file_size", strconv.Itoa(16<<20)) // two seconds of writes
			limitDisk(t, 0, 150)
		})},
	{name: "rate above the server's", want: one(cause.Sleep), noise: anyNoise, args: []string{"--threads=4", "--rate=1000", "--time=12"}},
	{name: "rate", args: []string{"oltp_point_select", "--threads=4", "--rate=100", "--time=8"}, noise: anyNoise},
}

// beside is how many programs use the CPU in the second run of each case.
var beside = cores()

// quiet is the share of the CPU that other programs may use on a machine that counts as idle.
const quiet = 0.2

// score is in how many runs the first finding is right, and in how many it is wrong with more than
// half of the clients' time.
type score struct{ right, wrong, all int }

// scores are of the runs on an idle machine, and on a busy one.
var scores [2]score

const (
	// leastRight are the shares of the runs whose first finding must be right, judged from enoughRuns on.
	leastRightIdle, leastRight = 0.9, 0.8
	enoughRuns                 = 20
)

// judgeScores fails the test if too few first findings are right, or any wrong one explains most.
func judgeScores(t *testing.T) {
	t.Helper()
	total := score{}
	for i, s := range scores {
		t.Logf("SCORE on %s: %d of %d first findings are right, %d are wrong with a share above 50 %%", []string{"an idle machine", "a busy machine"}[i], s.right, s.all, s.wrong)
		total.right, total.all, total.wrong = total.right+s.right, total.all+s.all, total.wrong+s.wrong
	}
	if idle := scores[0]; idle.all >= enoughRuns && float64(idle.right) < leastRightIdle*float64(idle.all) || total.all >= enoughRuns && float64(total.right) < leastRight*float64(total.all) {
		t.Errorf("too few first findings are right: %+v", scores)
	}
}

// TestFirstFinding guards that on an otherwise idle machine the first finding is what limited the
// run. On a machine with all cores in use it is the same, or unknown time: never another cause that
// allegedly explains more than half.
func TestFirstFinding(t *testing.T) {
	defer judgeScores(t)
	for _, c := range cases {
		for _, load := range []struct {
			name   string
			beside int
		}{{"idle", 0}, {"busy", beside}} {
			if c.name == "other programs" && load.beside > 0 {
				continue
			}
			t.Run(strings.ReplaceAll(load.name+" "+c.name, " ", "-"), func(t *testing.T) {
				setup := c.setup
				if setup == nil {
					setup = onShared(nil)
				}
				l := setup(t)
				args := c.args
				if event := events[c.name]; event != "" {
					args = script(t, event, args...)
				}
				var during func(rundir.Meta)
				if c.during != nil {
					during = func(meta rundir.Meta) { c.during(t, l, meta) }
				}
				l.generators = max(1, c.generators)
				burn(t, load.beside)
				v, foreign := l.one(t, "one", during, args...)
				c.judge(t, &v, foreign, load.beside > 0)
			})
		}
	}
}

// judge fails the test if the verdict differs from the case's.
func (c *limited) judge(t *testing.T, v *limits.Verdict, foreign float64, loaded bool) {
	t.Helper()
	first, share, unknown := "none", 0.0, 0.0
	if len(v.Findings) > 0 {
		first, share = string(v.Findings[0].Limit), v.Findings[0].Share
	}
	text := ""
	if v.Unexplained != nil {
		unknown = v.Unexplained.Share
		text += "\nunexplained: " + v.Unexplained.Evidence
	}
	for _, f := range v.Findings {
		text += fmt.Sprintf("\n%s (%.2f, %g s): %s", f.Limit, f.Share, f.Seconds, f.Evidence)
	}
	t.Logf("VERDICT first: %s %.0f %%, unknown %.0f %%, other programs %.0f %% of the CPU%s\nunlimited %q, missing %q", first, share*100, unknown*100, foreign*100, text, v.Unlimited, v.Missing)
	right := len(v.Findings) > 0 && slices.Contains(c.want, v.Findings[0].Limit) && (v.Findings[0].Limit != c.want[0] || strings.Contains(v.Findings[0].Evidence, c.text))
	if c.name == "rate" {
		right = len(v.Findings) == 0 && v.Unlimited != ""
	}
	s := &scores[0]
	if loaded || foreign > quiet {
		s = &scores[1]
	}
	s.all++
	switch {
	case right:
		s.right++
	case share > 0.5:
		s.wrong++
	}
	switch {
	case c.name == "rate":
		if len(v.Findings) > 0 || v.Unlimited == "" {
			t.Error("a limit was found of a run that did all it was asked to")
		}
	case strings.Contains(text, "max_connections of db1 is") && !strings.Contains(text, "is 10"):
		t.Error("a value from before the run is named")
	case c.behind != "" && !strings.Contains(strings.Join(v.Behind, "\n"), c.behind+" was up to"):
		t.Errorf("no lag of %s is named: %q", c.behind, v.Behind)
	case right, len(v.Findings) == 0, v.MostlyUnknown() && share <= 0.5:
	case loaded && share <= 0.5:
		// On a busy machine the cause may cost less than other programs: no wrong finding explains most.
	case foreign > c.noise:
		t.Skipf("the machine is not quiet: other programs took %.0f %% of its CPU", foreign*100)
	default:
		t.Errorf("want %v first, or unknown", c.want)
	}
}

// query executes a statement on the shared server.
func query(t *testing.T, statement string) [][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	rows, err := env.server.Query(ctx, 1, statement)
	must(t, err)
	return rows
}

// pin lets the threads of a process use the first core only, for as long as the test lasts.
func pin(t *testing.T, pid int) {
	t.Helper()
	var all, first unix.CPUSet
	must(t, unix.SchedGetaffinity(pid, &all))
	first.Set(0)
	each := func(set *unix.CPUSet) {
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // none if it has ended
		for _, task := range tasks {
			if tid, err := strconv.Atoi(task.Name()); err == nil {
				_ = unix.SchedSetaffinity(tid, set) // it may have ended
			}
		}
	}
	each(&first)
	t.Cleanup(func() { each(&all) })
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
		// One session each: the kernel divides the CPU among sessions before it divides it among processes.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		must(t, cmd.Start())
		t.Cleanup(func() {
			must(t, cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
		})
	}
}

func limitDisk(t *testing.T, reads, writes int) {
	t.Helper()
	release, err := env.server.LimitDisk(1, reads, writes)
	if err != nil {
		t.Skipf("the server's disk can't be limited: %v", err)
	}
	t.Cleanup(func() { must(t, release()) })
}
