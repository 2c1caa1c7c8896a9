//go:build limits

package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// stage is an agent, and a tool with which it watches runs of 22 s.
type stage struct {
	*agents.Agent
	group   *servers.Group
	command []string
	n       int // the first run's number
	options []string
}

// stalling is a stall that a test injects into a run. Its reason is one of those that are separated by a stroke. Its
// evidence must contain a text, and the session that held what the clients waited for, if there is one.
type stalling struct {
	name, reason, evidence string
	inject                 func(t *testing.T, s *stage, meta rundir.Meta) (holder string, seconds float64) // at least
	// more is by how many seconds the stall may be longer or shorter than what was injected: a cluster notices late that a
	// node is away or back, and row locks are taken one after the other.
	more float64
	// command, if there is one, is another tool.
	command []string
}

const (
	// stalled is how long the injected stalls last, before how long a run has lasted then: what is usual must be known.
	stalled = 5 * time.Second
	before  = 9 * time.Second
)

// newStage starts an agent that samples the servers of a group.
func newStage(t *testing.T, g *servers.Group, engine, options string, command ...string) *stage {
	t.Helper()
	targets := "targets:\n"
	for n := 1; n <= g.N; n++ {
		login := fmt.Sprintf(", user: monitor, password_file: %s/monitor.password", g.Dir)
		if engine == "mongodb" {
			login = ""
		}
		targets += fmt.Sprintf("  - {name: db%d, engine: %s, cluster: one, address: '%s'%s%s}\n", n, engine, g.Address(n), login, options)
	}
	a := agents.New(t, env.binary, targets)
	a.Again(t)
	return &stage{a, g, command, 0, nil}
}

// slowSysbench is a tool that leaves the machine idle for most of the time: its throughput is constant on a busy one, too.
func slowSysbench(g *servers.Group, workload string) []string {
	return sysbenchOn(g, "--mysql-host=127.0.0.1", fmt.Sprintf("--mysql-port=%d", g.Port+1), "--threads=8", "--table-size=20000", "--rand-type=uniform",
		"--time=22", "--rate=80", workload, "run")
}

// stall injects each stall into a run of its own, and compares the worst stall of the report with it.
func (s *stage) stall(t *testing.T, all ...stalling) {
	t.Helper()
	for i, x := range all {
		t.Run(x.name, func(t *testing.T) {
			id := fmt.Sprintf("stall%d", s.n+i)
			command := s.command
			if x.command != nil {
				command = x.command
			}
			wrapper := agents.StartCommand(t, s.Command(append(s.options, "--run-id="+id, "--drain-timeout=5s"), command...))
			t.Cleanup(func() { s.EndTool(id) })
			var meta rundir.Meta
			agents.Wait(t, 10*time.Second, "the tool's start", func() (err error) {
				if meta, err = rundir.At(s.DataDir, id).Load(); err == nil && meta.PID == 0 {
					err = fmt.Errorf("no process yet")
				}
				return err
			})
			<-time.After(before)
			session, seconds := x.inject(t, s, meta)
			if status := wrapper.Status(t, 90*time.Second); status != 0 {
				t.Logf("exited with %d: %s", status, wrapper.Output(t))
			}
			s.Closed(t, id, 60*time.Second)
			found := stallsOf(t, s.Agent, id)
			x.judge(t, found, session, seconds)
			if copied := os.Getenv("STALLS"); copied != "" {
				_ = exec.Command("cp", "-r", string(rundir.At(s.DataDir, id)), filepath.Join(copied, strings.ReplaceAll(t.Name(), "/", "-"))).Run()
			}
			if t.Failed() {
				text, _ := os.ReadFile(rundir.At(s.DataDir, id).Path(rundir.StdoutFile))
				t.Logf("%s", text)
			}
		})
	}
}

// judge compares the worst stall of a run with what was injected.
func (x *stalling) judge(t *testing.T, all []review.Stall, session string, seconds float64) {
	t.Helper()
	worst := review.Stall{}
	for _, found := range all {
		t.Logf("%s: %s: %s", found.Title(), found.Reason, found.Evidence)
		if found.Seconds > worst.Seconds {
			worst = found
		}
	}
	verdict := "right"
	if !slices.Contains(strings.Split(x.reason, "|"), worst.Reason) || !strings.Contains(worst.Evidence, "session "+session+" ") && session != "" || !strings.Contains(worst.Evidence, x.evidence) {
		verdict = "WRONG"
		t.Errorf("reason %q: %s; expected %q, session %q, %q", worst.Reason, worst.Evidence, x.reason, session, x.evidence)
	}
	if d := worst.Seconds - seconds; math.Abs(d) > max(1, x.more) {
		t.Errorf("%.1f s, expected %.1f s", worst.Seconds, seconds)
	}
	t.Logf("STALL | %s | %s | %s | %.1f of %.1f s |", t.Name(), worst.Reason, verdict, worst.Seconds, seconds)
}

// stallsOf reads the stalls of a run from its report.
func stallsOf(t *testing.T, a *agents.Agent, id string) []review.Stall {
	t.Helper()
	out, err := exec.Command(env.binary, "report", id, "--config.file="+a.Config, "--format=json").Output()
	must(t, err)
	var report struct {
		Runs []struct {
			Stalls []review.Stall `json:"stalls"`
		}
	}
	must(t, json.Unmarshal(out, &report))
	if len(report.Runs) != 1 {
		t.Fatalf("%d runs", len(report.Runs))
	}
	return report.Runs[0].Stalls
}

// timed ends something after the time of a stall.
func timed(end func()) float64 {
	from := time.Now()
	<-time.After(stalled)
	end()
	return time.Since(from).Seconds()
}

// sqlSession is a session of the administrator at a server.
func sqlSession(t *testing.T, s *stage, n int) (execute func(string), id string) {
	t.Helper()
	con := session(t, s.group, n)
	must(t, con.QueryRowContext(context.Background(), "SELECT CONNECTION_ID()").Scan(&id))
	return func(statement string) { t.Helper(); do(t, con, statement) }, id
}

// held executes statements at a server, and others after the time of a stall.
func held(n int, begin, end []string) func(*testing.T, *stage, rundir.Meta) (string, float64) {
	return func(t *testing.T, s *stage, _ rundir.Meta) (string, float64) {
		t.Helper()
		execute, id := sqlSession(t, s, n)
		for _, statement := range begin {
			execute(statement)
		}
		return id, timed(func() {
			for _, statement := range end {
				execute(statement)
			}
		})
	}
}

// chain is an idle transaction, and a change of the table that waits for it, and for which all others wait.
func chain(t *testing.T, s *stage, _ rundir.Meta) (string, float64) {
	t.Helper()
	execute, id := sqlSession(t, s, 1)
	alter, _ := sqlSession(t, s, 1)
	execute("BEGIN")
	execute("SELECT COUNT(*) FROM sbtest.sbtest1 WHERE id = 1")
	execute("SELECT COUNT(*) FROM sbtest.sbtest2 WHERE id = 1")
	done := make(chan struct{})
	go func() {
		defer close(done)
		alter("ALTER TABLE sbtest.sbtest1 ADD COLUMN IF NOT EXISTS extra INT, ALGORITHM=INSTANT")
	}()
	second, _ := sqlSession(t, s, 1)
	other := make(chan struct{})
	go func() {
		defer close(other)
		second("ALTER TABLE sbtest.sbtest2 ADD COLUMN IF NOT EXISTS extra INT, ALGORITHM=INSTANT")
	}()
	seconds := timed(func() { execute("ROLLBACK") })
	<-done
	<-other
	alter("ALTER TABLE sbtest.sbtest1 DROP COLUMN extra")
	alter("ALTER TABLE sbtest.sbtest2 DROP COLUMN extra")
	return id, seconds
}

// rowChain is three transactions, each waiting for the one before.
func rowChain(t *testing.T, s *stage, _ rundir.Meta) (string, float64) {
	t.Helper()
	first, id := sqlSession(t, s, 1)
	second, _ := sqlSession(t, s, 1)
	first("BEGIN")
	first("DELETE FROM sbtest.sbtest1 WHERE id = 19999")
	second("BEGIN")
	second("UPDATE sbtest.sbtest1 SET k = k + 1 WHERE id < 19000")
	second("UPDATE sbtest.sbtest2 SET k = k + 1 WHERE id <= 20000")
	done := make(chan struct{})
	go func() {
		defer close(done)
		second("UPDATE sbtest.sbtest1 SET k = k + 1 WHERE id = 19999")
		second("ROLLBACK")
	}()
	begin := time.Now()
	timed(func() { first("ROLLBACK") })
	<-done // others still wait for its rows
	return id, time.Since(begin).Seconds()
}

// full takes all connections that are left, and then the lock of the server.
func full(t *testing.T, s *stage, meta rundir.Meta) (string, float64) {
	t.Helper()
	execute, id := sqlSession(t, s, 1)
	before := query(t, "SELECT @@GLOBAL.max_connections")[0][0]
	execute("SET GLOBAL max_connections = 11") // no more than are open
	execute("FLUSH TABLES WITH READ LOCK")
	seconds := timed(func() { execute("UNLOCK TABLES") })
	execute("SET GLOBAL max_connections = " + before)
	return id, seconds
}

// paused stops a process for the time of a stall.
func paused(pid func(*stage, rundir.Meta) int) func(*testing.T, *stage, rundir.Meta) (string, float64) {
	return func(t *testing.T, s *stage, meta rundir.Meta) (string, float64) {
		t.Helper()
		must(t, syscall.Kill(pid(s, meta), syscall.SIGSTOP))
		return "", timed(func() { must(t, syscall.Kill(pid(s, meta), syscall.SIGCONT)) })
	}
}

func server(n int) func(*stage, rundir.Meta) int {
	return func(s *stage, _ rundir.Meta) int { return s.group.PID(n) }
}

func tool(_ *stage, meta rundir.Meta) int { return meta.PID }

// throttled leaves a server hundredths of a core.
func throttled(t *testing.T, s *stage, _ rundir.Meta) (string, float64) {
	t.Helper()
	must(t, s.group.Limit(t.Context(), 1, 2))
	return "", timed(func() { must(t, s.group.Unlimit(context.Background(), 1)) })
}

// oneRow is a script of sysbench that updates one row.
const oneRow = `function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("UPDATE hot SET n = n + 1 WHERE id = 1") end`

// rowStorm is 12 sessions that each hold the row of oneRow for 200 ms, one after the other.
func rowStorm(t *testing.T, s *stage, _ rundir.Meta) (string, float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stalled)
	defer cancel()
	begin := time.Now()
	var all sync.WaitGroup
	for range 12 {
		con := session(t, s.group, 1)
		all.Go(func() {
			for ctx.Err() == nil {
				for _, statement := range []string{"BEGIN", "UPDATE sbtest.hot SET n = n + 1 WHERE id = 1", "DO SLEEP(0.2)", "COMMIT"} {
					if _, err := con.ExecContext(context.Background(), statement); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	return "", time.Since(begin).Seconds()
}

// connectionsTaken takes all connections that are left.
func connectionsTaken(t *testing.T, s *stage, _ rundir.Meta) (string, float64) {
	t.Helper()
	execute, _ := sqlSession(t, s, 1)
	before := query(t, "SELECT @@GLOBAL.max_connections")[0][0]
	for range 12 {
		sqlSession(t, s, 1)
	}
	execute("SET GLOBAL max_connections = 12")
	return "", timed(func() { execute("SET GLOBAL max_connections = " + before) })
}

// luaScript writes a script of sysbench.
func luaScript(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(env.dir, name+".lua")
	must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// TestStalls injects a stall into each of several runs. The worst stall of each is the one that was injected, with the
// right reason, session and length.
func TestStalls(t *testing.T) {
	query(t, "INSTALL SONAME 'metadata_lock_info'")
	t.Cleanup(func() { query(t, "UNINSTALL SONAME 'metadata_lock_info'") })
	query(t, "CREATE OR REPLACE TABLE sbtest.hot (id INT PRIMARY KEY, n INT); INSERT INTO sbtest.hot VALUES (1, 1)")
	newStage(t, env.server, "mysql", "", slowSysbench(env.server, "oltp_read_write")...).stall(t,
		stalling{name: "a lock storm on one row", reason: "row lock", evidence: "one after the other", inject: rowStorm, more: 3,
			command: slowSysbench(env.server, luaScript(t, "one-row", oneRow))},
		stalling{name: "the limit of connections", reason: "connection limit", evidence: "of max_connections = 12", inject: connectionsTaken,
			command: slowSysbench(env.server, luaScript(t, "slow-connections", slowConnections))},
		stalling{name: "FLUSH TABLES WITH READ LOCK", reason: "global read lock", inject: held(1, []string{"FLUSH TABLES WITH READ LOCK"}, []string{"UNLOCK TABLES"})},
		stalling{name: "LOCK TABLES", reason: "metadata lock", inject: held(1, []string{"LOCK TABLES sbtest.sbtest1 WRITE, sbtest.sbtest2 WRITE"}, []string{"UNLOCK TABLES"})},
		stalling{name: "an idle transaction and ALTER TABLE", reason: "metadata lock", evidence: "which waited for session", inject: chain},
		stalling{name: "row locks of a transaction", reason: "row lock", more: 5, inject: held(1, []string{
			"BEGIN", "UPDATE sbtest.sbtest1 SET k = k + 1 WHERE id <= 20000", "UPDATE sbtest.sbtest2 SET k = k + 1 WHERE id <= 20000",
		}, []string{"ROLLBACK"})},
		stalling{name: "a chain of row locks", reason: "row lock", evidence: "which waited for session", more: 5, inject: rowChain},
		stalling{name: "a backup's lock", reason: "backup lock", inject: held(1, []string{"BACKUP STAGE START", "BACKUP STAGE FLUSH", "BACKUP STAGE BLOCK_DDL", "BACKUP STAGE BLOCK_COMMIT"}, []string{"BACKUP STAGE END"})},
		stalling{name: "no connection left", reason: "global read lock", inject: full},
		stalling{name: "a CPU quota", reason: "CPU quota", inject: throttled, more: 3},
		stalling{name: "a stopped server", reason: "server stopped", inject: paused(server(1))},
		stalling{name: "a stopped tool", reason: "tool stopped", inject: paused(tool)},
	)
}

// TestStallsOfReplication stops what commits wait for.
func TestStallsOfReplication(t *testing.T) {
	g := started(t, servers.MariaDB, 2, "rpl_semi_sync_slave_enabled=ON", "rpl_semi_sync_master_timeout=60000")
	_, err := g.Query(t.Context(), 1, "SET GLOBAL rpl_semi_sync_master_enabled = ON")
	must(t, err)
	newStage(t, g, "mysql", "", slowSysbench(g, "oltp_update_non_index")...).stall(t,
		stalling{name: "a replica that does not acknowledge", reason: "server stopped|acknowledgement of a replica", evidence: "db2 did not answer", inject: paused(server(2))},
	)
}

// TestStallsOfGalera holds up one node of a cluster.
func TestStallsOfGalera(t *testing.T) {
	g := started(t, servers.Galera, 3)
	newStage(t, g, "mysql", "", slowSysbench(g, "oltp_update_non_index")...).stall(t,
		stalling{name: "a node that does not apply", reason: "flow control", evidence: "db3 had up to", more: 2, inject: func(t *testing.T, s *stage, meta rundir.Meta) (string, float64) {
			_, seconds := held(3, []string{"LOCK TABLES sbtest.sbtest1 WRITE, sbtest.sbtest2 WRITE"}, []string{"UNLOCK TABLES"})(t, s, meta)
			return "", seconds
		}},
		stalling{name: "a stopped node", reason: "server stopped|other nodes of the cluster", inject: paused(server(3)), more: 12},
	)
}

// TestStallsOfGroup holds up members of a group.
func TestStallsOfGroup(t *testing.T) {
	g := started(t, servers.MySQL9Group, 3)
	newStage(t, g, "mysql", "", slowSysbench(g, "oltp_update_non_index")...).stall(t,
		stalling{name: "two stopped members", reason: "member that does not answer", evidence: "db2, db3 did not answer", more: 12, inject: func(t *testing.T, s *stage, _ rundir.Meta) (string, float64) {
			for n := 2; n <= 3; n++ {
				must(t, s.group.Pause(n))
			}
			return "", timed(func() {
				for n := 2; n <= 3; n++ {
					must(t, s.group.Resume(n))
				}
			})
		}},
	)
}

// TestStallsOfMySQL9 injects the stalls that MySQL lists in performance_schema.
func TestStallsOfMySQL9(t *testing.T) {
	g := started(t, servers.MySQL9, 1)
	newStage(t, g, "mysql", "", slowSysbench(g, "oltp_read_write")...).stall(t,
		stalling{name: "FLUSH TABLES WITH READ LOCK", reason: "global read lock", inject: held(1, []string{"FLUSH TABLES WITH READ LOCK"}, []string{"UNLOCK TABLES"})},
		stalling{name: "LOCK TABLES", reason: "metadata lock", inject: held(1, []string{"LOCK TABLES sbtest.sbtest1 WRITE, sbtest.sbtest2 WRITE"}, []string{"UNLOCK TABLES"})},
		stalling{name: "row locks of a transaction", reason: "row lock", more: 5, inject: held(1, []string{
			"BEGIN", "UPDATE sbtest.sbtest1 SET k = k + 1 WHERE id <= 20000", "UPDATE sbtest.sbtest2 SET k = k + 1 WHERE id <= 20000",
		}, []string{"ROLLBACK"})},
		stalling{name: "a chain of row locks", reason: "row lock", evidence: "which waited for session", more: 5, inject: rowChain},
	)
}

// TestStallsOfPostgreSQL injects the stalls of PostgreSQL.
func TestStallsOfPostgreSQL(t *testing.T) {
	g, err := servers.Start(t.Context(), filepath.Join(env.dir, "stalls-postgresql"), servers.PostgreSQL, servers.Options{Servers: 2, Attached: true})
	must(t, err)
	t.Cleanup(func() { must(t, g.Stop(context.Background())) })
	secret, err := g.Password("bench")
	must(t, err)
	program, err := servers.PostgreSQLClient("pgbench")
	must(t, err)
	at := fmt.Sprintf("host=127.0.0.1 port=%d user=bench dbname=sbtest password=%s", g.Port+1, secret)
	if out, err := exec.Command(program, "-i", "-q", "-s", "5", at).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := newStage(t, g, "postgresql", ", options: {database: sbtest}", program, "-n", "-c", "8", "-j", "2", "-T", "22", "-P", "1", "--rate=80", at)
	p := &pg{s.Agent, g}
	transaction := func(statements ...string) func(*testing.T, *stage, rundir.Meta) (string, float64) {
		return func(t *testing.T, s *stage, _ rundir.Meta) (string, float64) {
			t.Helper()
			c := p.connect(t)
			p.exec(t, c, "BEGIN")
			for _, statement := range statements {
				p.exec(t, c, statement)
			}
			return fmt.Sprint(c.PID()), timed(func() { p.exec(t, c, "ROLLBACK") })
		}
	}
	s.stall(t,
		stalling{name: "ACCESS EXCLUSIVE", reason: "table lock", inject: transaction("LOCK TABLE pgbench_branches IN ACCESS EXCLUSIVE MODE")},
		stalling{name: "row locks of a transaction", reason: "row lock", inject: transaction("UPDATE pgbench_branches SET bbalance = bbalance")},
		stalling{name: "VACUUM FULL", reason: "table lock", evidence: "vacuum full", more: 2, inject: func(t *testing.T, s *stage, _ rundir.Meta) (string, float64) {
			// It waits for an open transaction that has read the table, and all others wait for it.
			c := p.connect(t)
			p.exec(t, c, "BEGIN")
			p.exec(t, c, "SELECT count(*) FROM pgbench_branches")
			vacuum := p.connect(t)
			done := make(chan struct{})
			go func() { defer close(done); p.exec(t, vacuum, "vacuum full pgbench_branches") }()
			seconds := timed(func() { p.exec(t, c, "ROLLBACK") })
			<-done
			return fmt.Sprint(c.PID()), seconds
		}},
	)
	p.sql(t, 1, "ALTER SYSTEM SET synchronous_standby_names = '*'; SELECT pg_reload_conf()")
	t.Run("a synchronous standby", func(t *testing.T) {
		s.n = 10
		s.stall(t, stalling{name: "stopped", reason: "server stopped|acknowledgement of a replica", inject: func(t *testing.T, s *stage, _ rundir.Meta) (string, float64) {
			all, err := exec.Command("pgrep", "-P", fmt.Sprint(s.group.PID(2))).Output()
			must(t, err)
			signal := func(sig syscall.Signal) {
				for pid := range strings.FieldsSeq(string(all)) {
					var n int
					fmt.Sscan(pid, &n)
					_ = syscall.Kill(n, sig)
				}
			}
			signal(syscall.SIGSTOP)
			return "", timed(func() { signal(syscall.SIGCONT) })
		}})
	})
}

// TestStallsOfMongoDB injects the stalls of MongoDB.
func TestStallsOfMongoDB(t *testing.T) {
	g, err := servers.Start(t.Context(), filepath.Join(env.dir, "stalls-mongod"), servers.MongoDB, servers.Options{Servers: 1, Attached: true})
	must(t, err)
	t.Cleanup(func() { must(t, g.Stop(context.Background())) })
	client, err := g.Mongo(1)
	must(t, err)
	t.Cleanup(func() { must(t, client.Disconnect(context.Background())) })
	fillMongoDB(t, client)
	command := append(goYCSBCommand(t, g.Address(1), "slow", "w=1", 8), "-p", "maxexecutiontime=22")
	newStage(t, g, "mongodb", "", command...).stall(t,
		stalling{name: "fsyncLock", reason: "lock of fsyncLock", evidence: "fsyncLockWorker", inject: func(t *testing.T, s *stage, _ rundir.Meta) (string, float64) {
			must(t, s.group.Lag(t.Context(), 1))
			return "", timed(func() { must(t, s.group.Unlag(context.Background(), 1)) })
		}},
		stalling{name: "a stopped server", reason: "server stopped", inject: paused(server(1))},
	)
}

// slowConnections is a script of sysbench that opens a connection for each transaction, and holds it for 50 ms. It tries
// again until it gets one.
const slowConnections = `local ffi = require("ffi")
ffi.cdef[[int usleep(unsigned int microseconds);]]
function thread_init() drv = sysbench.sql.driver() end
function event()
  local ok, con = pcall(function() return drv:connect() end)
  while not ok do
    ffi.C.usleep(100000)
    ok, con = pcall(function() return drv:connect() end)
  end
  con:query("SELECT SLEEP(0.05)")
  con:disconnect()
end`

// TestStallsInProxy leaves HAProxy one connection to the server, and none.
func TestStallsInProxy(t *testing.T) {
	folder, err := os.MkdirTemp(env.dir, "socket")
	must(t, err)
	must(t, os.Chmod(folder, 0o777))
	admin := filepath.Join(folder, "admin.sock")
	p := start(t, servers.HAProxy, servers.ProxyOptions{Backends: []string{env.server.Address(1)}, Server: "maxconn 20", Global: []string{"stats socket " + admin + " mode 660 level admin"}})
	host, port, err := net.SplitHostPort(p.Clients())
	must(t, err)
	a := agents.New(t, env.binary, fmt.Sprintf("targets:\n  - {name: px, engine: haproxy, address: '%s', options: {proxy_address: '%s'}}\n", p.Admin(), p.Clients()))
	a.Again(t)
	order := func(text string) {
		con, err := net.Dial("unix", admin)
		must(t, err)
		defer con.Close()
		fmt.Fprintln(con, text)
		_, _ = io.ReadAll(con)
	}
	held := func(begin, end string) func(*testing.T, *stage, rundir.Meta) (string, float64) {
		return func(*testing.T, *stage, rundir.Meta) (string, float64) {
			order(begin)
			return "", timed(func() { order(end) })
		}
	}
	s := &stage{a, nil, append(sysbenchOn(env.server, "--mysql-host="+host, "--mysql-port="+port, "--threads=8", "--time=22", "--rate=80"),
		luaScript(t, "slow-connections", slowConnections), "run"), 0, nil}
	s.stall(t,
		stalling{name: "one connection", reason: "queue of a proxy", evidence: "which allows 1 connection",
			inject: held("set maxconn server servers/s1 1", "set maxconn server servers/s1 20")},
		stalling{name: "server down", reason: "servers behind a proxy down", evidence: "no server to use",
			inject: held("set server servers/s1 state maint", "set server servers/s1 state ready")},
	)
}

// TestStallsOfNetwork holds back what a server and the tool send each other.
func TestStallsOfNetwork(t *testing.T) {
	link, err := servers.NewLink(nil, "127.0.0.1:0", nil, env.server.Address(1))
	must(t, err)
	t.Cleanup(link.Close)
	host, port, err := net.SplitHostPort(link.Address())
	must(t, err)
	command := append(slowSysbench(env.server, "oltp_read_write"), "--mysql-host="+host, "--mysql-port="+port)
	paused := func(*testing.T, *stage, rundir.Meta) (string, float64) {
		link.Pause()
		return "", timed(link.Resume)
	}
	for _, x := range []struct {
		name, address string
		stalling
	}{
		{"between tool and server", env.server.Address(1), stalling{reason: "outside of the servers"}},
		{"to the server", link.Address(), stalling{reason: "server did not answer", evidence: "db1 did not answer"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			a := agents.New(t, env.binary, fmt.Sprintf("targets:\n  - {name: db1, engine: mysql, address: '%s', user: monitor, password_file: %s/monitor.password}\n",
				x.address, env.server.Dir))
			a.Again(t)
			x.inject, x.stalling.name = paused, "network pause"
			(&stage{a, env.server, command, 0, []string{"--targets=db1"}}).stall(t, x.stalling)
		})
	}
}

// TestStallsOfFiles holds up the writes of a server's file system, and leaves no space on it.
func TestStallsOfFiles(t *testing.T) {
	f, err := servers.NewFilesystem(t.Context(), filepath.Join(env.dir, "files"), 700<<20)
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	g, err := servers.Start(t.Context(), filepath.Join(f.Dir, "servers"), servers.MariaDB,
		servers.Options{Servers: 1, Attached: true, Settings: []string{"log_bin=binlog", "innodb_log_file_size=16M", "innodb_flush_log_at_trx_commit=1"}})
	must(t, err)
	t.Cleanup(func() { must(t, g.Stop(context.Background())) })
	must(t, prepare(g))
	s := newStage(t, g, "mysql", "", slowSysbench(g, "oltp_update_non_index")...)
	long := append(slowSysbench(g, "oltp_update_non_index"), "--time=90")
	s.stall(t,
		stalling{name: "held writes", reason: "disk|flush of files", inject: func(t *testing.T, _ *stage, _ rundir.Meta) (string, float64) {
			must(t, f.Freeze())
			return "", timed(func() { must(t, f.Thaw()) })
		}},
		// The server tries again after 60 s.
		stalling{name: "full disk", reason: "space on the disk", command: long, inject: func(t *testing.T, _ *stage, _ rundir.Meta) (string, float64) {
			must(t, f.Fill())
			timed(func() { must(t, f.Free()) })
			return "", 60
		}},
	)
}

// TestStallsOfCheckpoint has a server write much with a small redo log.
func TestStallsOfCheckpoint(t *testing.T) {
	g := started(t, servers.MariaDB, 1, "innodb_log_file_size=8M", "innodb_flush_neighbors=0")
	newStage(t, g, "mysql", "", slowSysbench(g, "oltp_update_non_index")...).stall(t, stalling{name: "a small redo log", reason: "checkpoint|disk", more: 4,
		inject: func(t *testing.T, s *stage, _ rundir.Meta) (string, float64) {
			release, err := g.LimitDiskWrites(1, 1<<20)
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), stalled)
			defer cancel()
			begin := time.Now()
			var all sync.WaitGroup
			for n := range 8 {
				con := session(t, g, 1)
				all.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						first := (n*12_000 + i*97) % 99_000
						_, _ = con.ExecContext(ctx, fmt.Sprintf("UPDATE sbtest.sbtest%d SET c = REVERSE(c), pad = REVERSE(pad) WHERE id BETWEEN %d AND %d", n%2+1, first, first+300))
					}
				})
			}
			<-ctx.Done()
			must(t, release())
			all.Wait()
			return "", time.Since(begin).Seconds()
		}})
}
