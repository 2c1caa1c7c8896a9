package limits

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	_ "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	_ "github.com/benchwatch/benchwatch/agent/model/host"
)

var nan = math.NaN()

// machine returns one with everything known and nothing busy.
func machine(name string, generator, server bool, targets ...string) MachineEvidence {
	quiet, unknown := Level{0.2, 0}, ThreadsEvidence{nan, nan, nan, nan}
	return MachineEvidence{Name: name, Samples: 120, Generator: generator, Server: server, Servers: targets, Cores: 8, CPU: quiet, BusiestCore: quiet, Tool: unknown, Local: unknown, Waiting: 0.1, Steal: Level{0, 0}, Disk: Level{0.1, 0}, Network: Level{nan, nan}, DiskWait: 0.0002, DiskReadWait: 0.0002, ToolCPU: nan, ServersCPU: nan, OthersCPU: nan}
}

// server returns a server about which everything is known.
func server(name string, sessions map[string]float64) ServerEvidence {
	return ServerEvidence{
		Name: name, Engine: "mysql", Samples: 120, Sessions: sessions, FlowControl: Level{nan, nan}, CPU: Level{nan, nan}, FlowControlSent: nan, LagSeconds: nan,
		ConnectionLimit: 200, Refused: 0, PoolReads: 10, PoolMisses: 0.0001,
	}
}

// stall puts the server into a state that its engine declares.
func (s *ServerEvidence) stall(limit cause.Limit, from string, d Slowdown) {
	for _, one := range cause.StallsOf(s.Engine) {
		if one.Limit == limit {
			s.Stalls = append(s.Stalls, StallEvidence{one, d, from})
		}
	}
}

// shared makes all servers and the tool run on one machine of 8 cores, whose programs are
// known, in threads that run and that wait for a core on average.
func (e *Evidence) shared(tool, local ThreadsEvidence) *MachineEvidence {
	e.Machines = []MachineEvidence{machine("vm", true, true, "n1")}
	m := &e.Machines[0]
	m.Tool, m.Local = tool, local
	return m
}

// quiet is a run of 32 clients in which nothing is at its limit but their number.
func quiet(change func(*Evidence)) *Evidence {
	e := &Evidence{
		Tool: "sysbench", Seconds: 120, Threads: 32, Rate: nan, Queue: nan, Throughput: 4000, Statements: 20, RoundTrip: nan, RoundTrips: 120, MeanRoundTrip: nan, MinLatency: nan, ForeignShare: nan,
		Machines: []MachineEvidence{machine("gen", true, false), machine("db1", false, true, "n1")},
		Servers:  []ServerEvidence{server("n1", map[string]float64{"running": 15, "row_lock": 0.1})},
	}
	change(e)
	return e
}

// TestFindLimits guards the first finding, and the numbers in its evidence, where one thing
// is at its limit.
func TestFindLimits(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Evidence)
		limit  cause.Limit
		text   string
	}{
		"too few clients": {func(*Evidence) {}, cause.Clients, "32 clients, each of which waits for its answer, make 4000 transactions/s of 8 ms"},
		// From a run of 16 threads that update one row on MariaDB 10.11, on a busy machine.
		"hot row": {func(e *Evidence) {
			e.Threads = 16
			e.Servers[0] = server("n1", map[string]float64{"row_lock": 14.6, "running": 1.2})
			e.Machines[1].CPU = Level{1, 1}
		}, cause.RowLocks, "clients waited for a row lock on n1 for 91 % of their time, 15 of 16 on average"},
		"server CPU": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 28})
			e.Machines[1].CPU, e.Machines[1].Waiting = Level{0.97, 0.95}, 19
		}, cause.ServerCPU, "clients waited for a core of db1 for 59 % of their time, and ran on one for another 23 % while nearly all were busy. Its 8 cores were 97 % busy"},
		"server CPU, which only the database reports": {func(e *Evidence) {
			e.Machines = e.Machines[:1]
			e.Servers[0] = server("n1", map[string]float64{"running": 28})
			e.Servers[0].CPU = Level{0.97, 0.95}
		}, cause.ServerCPU, "clients ran statements on n1 for 83 % of their time while nearly all of its cores were busy. They were 97 % busy on average, as the database reports it"},
		"generator CPU": {func(e *Evidence) {
			e.Machines[0].CPU, e.Machines[0].Tool = Level{0.98, 1}, ThreadsEvidence{7.8, 9, 0, nan}
		}, cause.GeneratorCPU, "8 cores were 98 % busy"},
		"one core of the generator": {func(e *Evidence) {
			e.Machines[0].CPU, e.Machines[0].BusiestCore = Level{0.13, 0}, Level{0.99, 1}
		}, cause.OneCore, "one core of gen was full for 100 % of the time, while all were 13 % busy"},
		"generator and server on one machine": {func(e *Evidence) {
			e.shared(ThreadsEvidence{3, 8, 0, nan}, ThreadsEvidence{5, 15, 0, nan}).CPU = Level{1, 1}
		}, cause.SharedCPU, "clients waited for a core of vm for 72 % of their time, and ran on one for another 25 %"},
		// From a VM on which compilers run beside the benchmark.
		"other programs of many clients": {func(e *Evidence) {
			m := e.shared(ThreadsEvidence{0.8, 9, 0, nan}, ThreadsEvidence{1.7, 18, 0, nan})
			m.CPU, m.ToolCPU, m.ServersCPU, m.OthersCPU = Level{1, 1}, 100, 200, 660
			m.OtherPrograms = []ProgramEvidence{{"make", 600}, {"python3", 48}, {"cron", 1}}
		}, cause.Neighbours, "because of other programs, clients waited for a core of vm for 69 % of their time. Its 8 cores were 100 % busy: of what was used, sysbench 10 %, n1 21 %, other programs 69 % (make 62 %, python3 5 %)"},
		"few other programs": {func(e *Evidence) {
			m := e.shared(ThreadsEvidence{2.5, 9, 0, nan}, ThreadsEvidence{5.2, 15, 0, nan})
			m.CPU, m.ToolCPU, m.ServersCPU, m.OthersCPU = Level{1, 1}, 300, 600, 20
		}, cause.SharedCPU, "sysbench 33 %, n1 65 %, other programs 2.2 %"},
		// What the cores were idle is not what other programs took.
		"few other programs beside idle cores": {func(e *Evidence) {
			m := e.shared(ThreadsEvidence{0.2, 2, 0, nan}, ThreadsEvidence{6, 12, 0, nan})
			m.CPU, m.ToolCPU, m.ServersCPU, m.OthersCPU = Level{0.77, 0.2}, 16, 600, 4
		}, cause.SharedCPU, "clients waited for a core of vm for 44 % of their time. Its 8 cores were 77 % busy: of what was used, sysbench 2.6 %, n1 97 %, other programs 0.65 %"},
		"other programs on the generator": {func(e *Evidence) {
			m := &e.Machines[0]
			m.CPU, m.ToolCPU, m.OthersCPU, m.Tool = Level{1, 1}, 100, 860, ThreadsEvidence{0.8, 12, 0, nan}
		}, cause.Neighbours, "sysbench 10 %, other programs 90 %"},
		"quota beside other programs": {func(e *Evidence) {
			m := e.shared(ThreadsEvidence{0.1, 2, 0, nan}, ThreadsEvidence{0.2, 28, 0.9, nan})
			m.CPU, m.ToolCPU, m.ServersCPU, m.OthersCPU = Level{1, 1}, 10, 20, 900
			e.Servers[0] = server("n1", map[string]float64{"running": 12})
		}, cause.ProcessCPU, "used all of its CPU quota of 20 % of a core; clients waited because of that for 79 % of their time"},
		"quota of the tool beside other programs": {func(e *Evidence) {
			m := e.shared(ThreadsEvidence{0.1, 28, 0.9, nan}, ThreadsEvidence{0.2, 2, 0, nan})
			m.CPU, m.ToolCPU, m.ServersCPU, m.OthersCPU = Level{1, 1}, 10, 20, 900
			e.Servers[0] = server("n1", map[string]float64{"running": 12})
		}, cause.ToolCPU, "used all of its CPU quota of 10 % of a core; clients waited because of that for 79 % of their time"},
		"pinned servers": {func(e *Evidence) {
			e.shared(ThreadsEvidence{0.4, 0.1, 0, nan}, ThreadsEvidence{1, 25, 0, nan})
		}, cause.ProcessCPU, "waited for a core although the cores of vm were only 20 % busy: it may be bound to a few of them; clients waited because of that for 78 % of their time"},
		"pinned servers, as their threads report": {func(e *Evidence) {
			e.shared(ThreadsEvidence{0.4, 0.1, 0, 8}, ThreadsEvidence{1, 25, 0, 1})
		}, cause.ProcessCPU, "may use only 1 of the 8 cores of vm, and used 100 % of that; clients waited because of that for 78 % of their time"},
		"pinned servers beside other programs": {func(e *Evidence) {
			m := e.shared(ThreadsEvidence{0.4, 0.1, 0, 8}, ThreadsEvidence{0.9, 25, 0, 1})
			m.CPU, m.ToolCPU, m.ServersCPU, m.OthersCPU = Level{1, 1}, 40, 100, 660
		}, cause.ProcessCPU, "may use only 1 of the 8 cores of vm, and used 90 % of that; clients waited because of that for 66 % of their time"},
		// The servers use all that the tool may not.
		"pinned tool on a machine that its servers fill": {func(e *Evidence) {
			m := e.shared(ThreadsEvidence{0.7, 12, 0, 1}, ThreadsEvidence{7.2, 12, 0, 8})
			m.CPU, m.ToolCPU, m.ServersCPU, m.OthersCPU = Level{1, 1}, 90, 860, 5
		}, cause.SharedCPU, "n1 90 %"},
		// A client can't wait for a core of two that only it and its server use.
		"other programs of one client": {func(e *Evidence) {
			e.Threads = 1
			m := e.shared(ThreadsEvidence{0.2, 0.2, 0, 8}, ThreadsEvidence{0.31, 0.29, 0, 8})
			m.CPU, m.ToolCPU, m.ServersCPU, m.OthersCPU = Level{1, 1}, 20, 31, 900
			e.Servers[0] = server("n1", map[string]float64{"running": 0.6})
		}, cause.Neighbours, "because of other programs, clients waited for a core of vm for 49 % of their time"},
		// A client can't use two cores itself, but its server does.
		"no other programs": {func(e *Evidence) {
			e.Threads = 1
			m := e.shared(ThreadsEvidence{0.1, 0, 0, nan}, ThreadsEvidence{7, 0.1, 0, nan})
			m.CPU, m.ToolCPU, m.ServersCPU, m.OthersCPU = Level{1, 1}, 10, 900, 5
			e.Servers[0] = server("n1", map[string]float64{"running": 0.9})
		}, cause.SharedCPU, "clients used the cores of vm for 100 % of their time while nearly all were busy. Its 8 cores were 100 % busy: of what was used, sysbench 1.1 %, n1 98 %"},
		"flow control": {func(e *Evidence) {
			e.Servers = []ServerEvidence{server("n1", map[string]float64{"running": 3, "flow_control": 20}), server("n2", map[string]float64{}), server("n3", map[string]float64{})}
			for i := range e.Servers {
				e.Servers[i].FlowControl, e.Servers[i].FlowControlSent = Level{0.71, 0.9}, 0
			}
			e.Servers[2].FlowControlSent = 214
			e.Machines[1].Servers = []string{"n1", "n2", "n3"}
		}, cause.FlowControl, "writes were held back for 71 % of the time, and n3 asked for it 214 times"},
		"flow control in certification": {func(e *Evidence) {
			e.Threads = 8
			e.Servers = []ServerEvidence{server("n1", map[string]float64{"running": 0.5, "flow_control": 4.45, "replication": 2.3, "row_lock": 0.55}), server("n3", map[string]float64{})}
			e.Servers[0].FlowControl, e.Servers[1].FlowControl = Level{0.61, 1}, Level{0.61, 1}
			e.Servers[1].FlowControlSent = 286
			e.Machines[1].Servers = []string{"n1", "n3"}
		}, cause.FlowControl, "writes were held back for 61 % of the time, and n3 asked for it 286 times"},
		// From a Galera node whose appliers have 3 % of a core, which is nearly enough.
		"certification with some flow control": {func(e *Evidence) {
			e.Threads = 6
			e.Servers = []ServerEvidence{server("n1", map[string]float64{"replication": 4.48, "flow_control": 0.67}), server("n3", map[string]float64{})}
			e.Servers[0].FlowControl, e.Servers[1].FlowControl = Level{0.13, 0.1}, Level{0.13, 0.1}
			e.Servers[1].FlowControlSent = 91
			e.Machines[1].Servers = []string{"n1", "n3"}
		}, cause.Replication, "clients waited for the other nodes of the cluster (certification) on n1 for 75 % of their time, 4.5 of 6 on average; n3 asked for flow control 91 times, which held writes back for 13 % of the time"},
		"commit": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 1, "commit": 29})
		}, cause.Commit, "clients waited in commit, for the redo or binary log on n1 for 91 % of their time, 29 of 32"},
		"disk": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 1, "disk": 27})
		}, cause.Disk, "clients waited for a disk on n1 for 84 % of their time"},
		"buffer pool": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 30})
			e.Servers[0].PoolReads, e.Servers[0].PoolMisses, e.Machines[1].DiskReadWait = 9000, 0.06, 0.003
		}, cause.Pool, "n1 read 9000 pages/s from disk, 6 % of those that were asked for, a read of the disk takes 3 ms: clients waited for pages for 84 % of their time"},
		// From a server whose disk is limited to a rate by a control group: the disk itself is fast.
		"buffer pool by sessions": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 1, "disk": 30})
			e.Servers[0].PoolReads, e.Servers[0].PoolMisses = 300, 0.2
		}, cause.Pool, "a read of the disk takes 0.2 ms: clients waited for pages for 94 % of their time"},
		// From a PostgreSQL whose files are in the operating system's cache, beside a slow disk.
		"blocks from the page cache": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 1, "row_lock": 29})
			e.Servers[0].Engine = "postgresql"
			e.Servers[0].PoolReads, e.Servers[0].PoolMisses, e.Machines[1].DiskReadWait = 69000, 0.78, 0.003
		}, cause.RowLocks, "clients waited for a row that another transaction changes on n1 for 91 %"},
		"blocks, by sessions": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 1, "disk": 28})
			e.Servers[0].Engine = "postgresql"
			e.Servers[0].PoolReads, e.Servers[0].PoolMisses = 300, 0.2
		}, cause.Pool, "n1 read 300 pages/s that were not in its buffers, 20 % of those that were asked for: clients waited for pages for 88 % of their time"},
		"buffer pool, estimated": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 30})
			e.Servers[0].PoolReads, e.Servers[0].PoolMisses, e.Machines = 9000, 0.06, e.Machines[:1]
		}, cause.Pool, "an estimate of 60 % of the clients' time"},
		// From a MariaDB with 40 % of a core: most requests have not been read when the sessions are sampled.
		"quota of the server, requests not read": {func(e *Evidence) {
			e.Threads, e.Throughput, e.Statements, e.RoundTrip, e.MeanRoundTrip = 8, 40, 16, 0.0007, 0.03
			e.shared(ThreadsEvidence{0.1, 0.1, 0, nan}, ThreadsEvidence{0.4, 7, 0.9, nan})
			e.Servers[0] = server("n1", map[string]float64{"running": 2.2, "network": 2.5})
		}, cause.ProcessCPU, "used all of its CPU quota of 40 % of a core; clients waited because of that for 88 %"},
		// The quota's periods of 100 ms are in step with the ticks: of one tool all sessions run at
		// each tick, of another one none.
		"quota of the tool, in step": {func(e *Evidence) {
			e.Threads = 8
			e.shared(ThreadsEvidence{0.1, 7, 0.9, nan}, ThreadsEvidence{0.2, 0.1, 0, nan})
			e.Servers[0] = server("n1", map[string]float64{"running": 7.5})
		}, cause.ToolCPU, "used all of its CPU quota of 10 % of a core"},
		"quota of the server, in step": {func(e *Evidence) {
			e.Threads = 8
			e.Throughput, e.Statements, e.RoundTrip, e.MeanRoundTrip = 10, 16, 0.05, 0.055
			e.shared(ThreadsEvidence{0.1, 0.1, 0, nan}, ThreadsEvidence{0.4, 7, 0.9, nan})
			e.Servers[0] = server("n1", map[string]float64{"running": 0.5})
		}, cause.ProcessCPU, "used all of its CPU quota of 40 % of a core"},
		"round trip beside others' load": {func(e *Evidence) {
			e.Threads, e.Throughput, e.Statements, e.RoundTrip, e.MeanRoundTrip = 8, 900, 1, 0.007, 0.008
			e.Servers[0], e.RoundTripTo, e.MinLatency = server("n1", map[string]float64{"running": 0.5}), "n1", 0.0075
			e.shared(ThreadsEvidence{0.1, 0.4, 0, nan}, ThreadsEvidence{0.2, 0.4, 0, nan}).CPU = Level{1, 1}
		}, cause.RoundTrip, "a round trip of at least 7 ms"},
		"local round trip": {func(e *Evidence) {
			e.Threads, e.Throughput, e.Statements, e.RoundTrip, e.MeanRoundTrip = 1, 10000, 1, 0.00006, 0.00007
			e.Servers[0] = server("n1", map[string]float64{"running": 0.3, "network": 0.2})
			e.RoundTripTo = "n1"
			e.shared(ThreadsEvidence{0.2, 0.01, 0, nan}, ThreadsEvidence{0.3, 0.01, 0, nan})
		}, cause.Clients, "1 client, each of which"},
		"max_connections":               {func(e *Evidence) { e.Servers[0].Refused = 12 }, cause.Connections, "n1 refused 12 connections since its max_connections of 200 was reached"},
		"limit of connections not read": {func(e *Evidence) { e.Servers[0].Refused, e.Servers[0].ConnectionLimit = 1, nan }, cause.Connections, "n1 refused 1 connection since its max_connections was reached"},
		"checkpoint": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 31})
			e.Servers[0].stall(cause.Checkpoint, "80 %", Slowdown{Held: 0.9, During: 100, Otherwise: 1000})
		}, cause.Checkpoint, "no checkpoint covers was at 80 % of its limit or more for 90 % of the time: 100 transactions/s then, 1000 otherwise"},
		// From a backup that holds the global lock while the redo log is nearly full.
		"lock beside a checkpoint": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 6, "lock": 22})
			e.Servers[0].stall(cause.Checkpoint, "80 %", Slowdown{Held: 0.9, During: 800, Otherwise: 8400})
		}, cause.Locks, "clients waited for a lock of a table or its metadata on n1 for 69 % of their time, 22 of 32"},
		"checkpoint all the time": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 31})
			e.Servers[0].stall(cause.Checkpoint, "80 %", Slowdown{Held: 1, During: nan, Otherwise: nan, Stopped: 0.8})
			e.Machines[0].CPU = Level{0.8, 0.77}
		}, cause.Checkpoint, "of its limit or more for 100 % of the time: in 80 % of the time no transaction ended"},
		"purge": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 31})
			e.Servers[0].stall(cause.Purge, "100000", Slowdown{Held: 0.9, During: 250, Otherwise: 1000})
		}, cause.Purge, "history list of n1 was longer than its innodb_max_purge_lag of 100000 for 90 % of the time"},
		"no port": {func(e *Evidence) { e.NoPort = "Can't connect to server on 'h' (99)" }, cause.Ports, "no port left for a connection: Can't connect to server on 'h' (99)"},
		"no file": {func(e *Evidence) { e.NoFile = "Can't create TCP/IP socket (24)" }, cause.Files, "could open no more files, and each connection needs one: Can't"},
		"refused at once": {func(e *Evidence) {
			*e = Evidence{Seconds: 0.1, Threads: 64, Rate: nan, Throughput: nan, Statements: nan, ForeignShare: nan, RefusedByServer: "error 1040: Too many connections"}
		}, cause.Connections, "error 1040"},
		"round trip": {func(e *Evidence) {
			e.RoundTrip, e.RoundTripTo = 0.0003, "n1"
			e.Servers[0] = server("n1", map[string]float64{"running": 6})
		}, cause.RoundTrip, "a round trip of at least 0.3 ms to n1: 75 %"},
		// The tool goes through a proxy that is no target, and the agent does not.
		"round trip of others than the agent": {func(e *Evidence) {
			e.RoundTrip, e.RoundTripTo, e.MinLatency = 0.00005, "n1", 0.006
			e.Servers[0] = server("n1", map[string]float64{"running": 3})
		}, cause.Outside, "the threads of sysbench neither used nor waited for a CPU; even the fastest transaction took 6 ms of 8 ms on average"},
		"another load": {func(e *Evidence) {
			e.OtherLoad, e.ForeignShare = "the servers executed 80000 statements/s, the tool sent 10000", 0.875
			e.Servers[0] = server("n1", map[string]float64{"running": 30})
			e.Machines[1].CPU, e.Machines[1].Waiting = Level{0.97, 0.95}, 19
		}, cause.OtherLoad, "executed 80000"},
		"a little other load": {func(e *Evidence) {
			e.OtherLoad, e.ForeignShare = "the servers executed 13000 statements/s, the tool sent 10000", 0.23
			e.Servers[0] = server("n1", map[string]float64{"running": 30})
			e.Machines[1].CPU, e.Machines[1].Waiting = Level{0.97, 0.95}, 22
		}, cause.ServerCPU, "clients waited for a core of db1 for 69 % of their time"},
		"link": {func(e *Evidence) { e.Machines[1].Network = Level{0.93, 0.95} }, cause.Network, "the link of db1 was used by 93 %"},
		"slower than asked": {func(e *Evidence) {
			e.Rate, e.Throughput = 8000, 4000
		}, cause.Rate, "4000 of the 8000 transactions/s"},
		"slower than asked, and some commits": {func(e *Evidence) {
			e.Rate, e.Throughput = 8000, 4000
			e.Servers[0] = server("n1", map[string]float64{"running": 6, "commit": 7})
		}, cause.Rate, "4000 of the 8000 transactions/s"},
		"slower than asked for a reason": {func(e *Evidence) {
			e.Rate, e.Throughput = 800000, 4000
			e.Servers[0] = server("n1", map[string]float64{"running": 6, "commit": 24})
		}, cause.Commit, "clients waited in commit, for the redo or binary log on n1 for 75 %"},
	} {
		v := Find(quiet(c.change))
		if len(v.Findings) == 0 {
			t.Errorf("%s: nothing found, %+v", name, v)
			continue
		}
		if f := v.Findings[0]; f.Limit != c.limit || !strings.Contains(f.Evidence, c.text) || f.Test == "" {
			t.Errorf("%s: %+v", name, v.Findings)
		}
	}
}

// TestSuggestedTests guards that no finding suggests settings that the server already has, and that a standstill
// leads to the session that caused it.
func TestSuggestedTests(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Evidence)
		want   string
	}{
		"commits": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"commit": 29})
		}, "repeat with innodb_flush_log_at_trx_commit=2"},
		"commits that flush no log": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"commit": 29})
			e.Servers[0].Meanings = map[cause.Limit]string{cause.Commit: "by their settings no commit waits for a flush"}
		}, "by their settings no commit waits for a flush"},
		"row locks": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"row_lock": 29})
		}, "spread the writes"},
		"row locks of one stretch": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"row_lock": 16})
			e.Servers[0].Stopped = map[string]Standstill{"row_lock": {Seconds: 60, From: 20, To: 80, Times: 1}}
		}, "find the session that held the rows"},
	} {
		v := Find(quiet(c.change))
		if len(v.Findings) == 0 || !strings.Contains(v.Findings[0].Test, c.want) {
			t.Errorf("%s: %+v", name, v.Findings)
		}
	}
}

// TestShareOfFullCores guards that the share of a finding is the sum of the shares in its evidence.
func TestShareOfFullCores(t *testing.T) {
	v := Find(quiet(func(e *Evidence) {
		e.Servers[0] = server("n1", map[string]float64{"running": 30})
		e.Machines[1].CPU, e.Machines[1].Waiting = Level{0.97, 0.95}, 22
	}))
	if f := v.Findings[0]; math.Round(f.Share*100) != 92 || !strings.Contains(f.Evidence, "for 69 % of their time") || !strings.Contains(f.Evidence, "for another 23 %") {
		t.Errorf("%+v", f)
	}
}

// TestRateByChance guards that a rate that is missed by no more than random intervals explain counts as
// made only if no transaction waits at the end.
func TestRateByChance(t *testing.T) {
	for _, c := range []struct {
		throughput, queue     float64
		made, missed, unknown bool
	}{
		{49.5, nan, true, false, false},
		{48, nan, false, false, true},
		{48, 2, true, false, false},
		{48, 110, false, true, false},
		{46, 2, false, true, false}, // the tool itself was held up
		{46, nan, false, true, false},
	} {
		v := Find(quiet(func(e *Evidence) { e.Rate, e.Throughput, e.Seconds, e.Queue = 50, c.throughput, 60, c.queue }))
		missed := slices.ContainsFunc(v.Findings, func(f LimitFinding) bool { return f.Limit == cause.Rate })
		unknown := slices.ContainsFunc(v.Missing, func(m Missing) bool { return strings.Contains(m.What, "random intervals") })
		if (v.Unlimited != "") != c.made || missed != c.missed || unknown != c.unknown {
			t.Errorf("%+v: %+v", c, v)
		}
	}
}

// TestNoInventedLimit guards that a run that made its rate has no limit, whatever else was
// busy, and that missing evidence is never taken for a limit.
func TestNoInventedLimit(t *testing.T) {
	v := Find(quiet(func(e *Evidence) {
		e.Rate = 4010
		e.Machines[1].CPU = Level{0.92, 0.6}
	}))
	if len(v.Findings) > 0 || !strings.Contains(v.Unlimited, "4000 of the 4010") {
		t.Errorf("%+v", v)
	}
	for name, c := range map[string]struct {
		change func(*Evidence)
		what   string
	}{
		"no machines": {func(e *Evidence) { e.Machines = nil }, "node_exporter"},
		"no servers":  {func(e *Evidence) { e.Servers = nil }, "no server was sampled"},
		"no sessions": {func(e *Evidence) { e.Servers[0].Sessions = nil }, "rights for active sessions"},
		"no threads":  {func(e *Evidence) { e.Threads = nan }, "how many clients"},
		"the machine did not answer": {func(e *Evidence) {
			e.Machines[1].CPU, e.Machines[1].BusiestCore = Level{nan, nan}, Level{nan, nan}
		}, "CPU and disks of n1"},
		"one sample": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 1, "row_lock": 30})
			e.Servers[0].Samples = 1
		}, "only 1 sample of n1"},
	} {
		v := Find(quiet(c.change))
		if len(v.Findings) > 0 || !strings.Contains(fmt.Sprint(v.Missing), c.what) {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v := Find(&Evidence{Seconds: nan, Threads: nan, Rate: nan, Throughput: nan, Statements: nan, ForeignShare: nan}); len(v.Findings) > 0 || len(v.Missing) == 0 {
		t.Errorf("of nothing: %+v", v)
	}
}

// TestUnexplainedTime guards that time of the clients which no evidence explains is reported as such
// with its share, and given to nothing that happens to be busy: each case once misled.
func TestUnexplainedTime(t *testing.T) {
	full := func(m *MachineEvidence) {
		m.CPU, m.ToolCPU, m.ServersCPU, m.OthersCPU = Level{1, 1}, 5, 10, 900
	}
	for name, c := range map[string]struct {
		change func(*Evidence)
		least  float64 // of the share
		text   string
	}{
		"pauses of the tool beside other programs": {func(e *Evidence) {
			e.Threads, e.Throughput = 8, 330
			full(e.shared(ThreadsEvidence{0.1, 0.8, 0, nan}, ThreadsEvidence{0.2, 0.5, 0, nan}))
			e.Servers[0] = server("n1", map[string]float64{"running": 0.5})
		}, 0.75, "neither used nor waited for a CPU: the network, a proxy, a pause of the tool"},
		"a wait that sessions do not show, beside other programs": {func(e *Evidence) {
			e.Threads = 8
			full(e.shared(ThreadsEvidence{0.1, 0.5, 0, nan}, ThreadsEvidence{0.2, 0.5, 0, nan}))
			e.Servers[0] = server("n1", map[string]float64{"running": 7})
		}, 0.75, "in sessions that execute a statement (their threads neither used nor waited"},
		"sessions that neither wait nor compute": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 28})
		}, 0.8, "in sessions that execute a statement"},
		"sessions in a state that is no wait": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 1, "other": 26})
		}, 0.8, "81 % in sessions in other states"},
		"a full machine without statistics": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 28})
			e.Machines[1].CPU, e.Machines[1].Waiting = Level{0.97, 0.95}, nan
		}, 0.8, "the cores of db1 are suspected: they were 97 % busy"},
		"no server, beside other programs": {func(e *Evidence) {
			e.Threads, e.Servers = 8, nil
			full(e.shared(ThreadsEvidence{0.1, 1, 0, nan}, ThreadsEvidence{0.2, 1, 0, nan}))
		}, 0.7, "no server was sampled"},
		// Four generators that the agent does not know, on the server's machine.
		"generators that are not known": {func(e *Evidence) {
			e.Machines = e.Machines[1:]
			e.Machines[0].CPU, e.Machines[0].Waiting = Level{1, 1}, 25
			e.Servers[0] = server("n1", map[string]float64{"running": 10})
		}, 0.9, "whether sysbench ran or waited for a core is not known"},
		// A step of a sweep on a busy machine: two samples, 16 statements of 30 ms in 27 ms.
		"round trips longer than the transaction": {func(e *Evidence) {
			e.Threads, e.Throughput, e.Statements, e.RoundTrip, e.MeanRoundTrip, e.RoundTripTo = 32, 1170, 16, 0.03, 0.05, "n1"
			full(e.shared(ThreadsEvidence{0.1, 1, 0, nan}, ThreadsEvidence{0.2, 1, 0, nan}))
			e.Servers[0] = server("n1", map[string]float64{"running": 4, "network": 10})
		}, 0.8, ""},
		"round trips longer than the fastest transaction": {func(e *Evidence) {
			e.Threads, e.Throughput, e.Statements, e.RoundTrip, e.MeanRoundTrip, e.MinLatency = 32, 100, 2, 0.1, 0.11, 0.02
			e.Servers[0] = server("n1", map[string]float64{"running": 4})
		}, 0.7, ""},
	} {
		v := Find(quiet(c.change))
		if u := v.Unexplained; u == nil || u.Share < c.least || u.Evidence == "" || !strings.Contains(u.Evidence, c.text) || !v.MostlyUnknown() {
			t.Errorf("%s: %+v, %+v", name, u, v.Findings)
		}
		for _, f := range v.Findings {
			if f.Share > 0.25 {
				t.Errorf("%s: invented %+v", name, f)
			}
		}
	}
}

// TestLagIsNamed guards that a replica that can't keep up is named, and is no limit.
func TestLagIsNamed(t *testing.T) {
	v := Find(quiet(func(e *Evidence) {
		e.Servers = append(e.Servers, server("n2", map[string]float64{}))
		e.Servers[1].LagSeconds, e.Machines[1].Servers = 40, []string{"n1", "n2"}
	}))
	if len(v.Findings) != 1 || v.Findings[0].Limit != cause.Clients || len(v.Behind) != 1 || !strings.Contains(v.Behind[0], "n2 was up to 40 s behind") {
		t.Errorf("%+v", v)
	}
}

// TestRank guards that a standstill, which the tool's own output shows, and the cause of another finding
// come first, unless the other one explains far more.
func TestRank(t *testing.T) {
	galera := func(paused, replicating float64) func(*Evidence) {
		return func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"replication": replicating * e.Threads})
			e.Servers[0].FlowControl, e.Servers[0].FlowControlSent = Level{paused, 1}, 9
			e.Servers[0].HeldBack = map[string]float64{"replication": 5}
		}
	}
	for name, c := range map[string]struct {
		change func(*Evidence)
		want   []cause.Limit
		text   string // in the last one
	}{
		"a standstill": {func(e *Evidence) {
			e.shared(ThreadsEvidence{0.8, 8, 0, nan}, ThreadsEvidence{1.7, 8, 0, nan})
			m := &e.Machines[0]
			m.CPU, m.ToolCPU, m.ServersCPU, m.OthersCPU = Level{1, 1}, 100, 200, 660
			e.Servers[0] = server("n1", map[string]float64{"lock": 11, "running": 10})
			e.Servers[0].Stopped = map[string]Standstill{"lock": {Seconds: 40, From: 20, To: 60, Times: 1}}
		}, []cause.Limit{cause.Locks, cause.Neighbours}, "other programs 69 %"},
		"a cause":           {galera(0.34, 0.35), []cause.Limit{cause.FlowControl, cause.Replication}, "11 of 32 on average, without another 5 that flow control held back"},
		"much more of else": {galera(0.16, 0.6), []cause.Limit{cause.Replication, cause.FlowControl}, "held back for 16 %"},
	} {
		v := Find(quiet(c.change))
		var found []cause.Limit
		for _, f := range v.Findings {
			found = append(found, f.Limit)
		}
		if !slices.Equal(found, c.want) || !strings.Contains(v.Findings[len(found)-1].Evidence, c.text) {
			t.Errorf("%s: %+v, want %q", name, v.Findings, c.want)
		}
	}
}

// TestWaitsByState guards that a state with a rule is a separate finding, and that the largest state
// of the class other is named.
func TestWaitsByState(t *testing.T) {
	for _, c := range []struct {
		class, state string
		want         cause.Limit
		text         string
	}{
		{"lock", "user lock", cause.UserLocks, "waited for a user-level lock"},
		{"lock", "waiting for backup lock", cause.Locks, "waited for a lock of a table"},
		{"lock", "waiting for table level lock", cause.Locks, "waited for a lock of a table"},
		{"latch", "thread pool queue", cause.ThreadPool, "thread pool"},
		{"latch", "synch/mutex/innodb/trx_sys_mutex", cause.Latches, "latch"},
		{"other", "user sleep", cause.Sleep, "slept in the server"},
		{"other", "waiting for someone to free space", cause.State, `in the state "waiting for someone to free space" on db1 for 75 % of their time`},
	} {
		v := Find(&Evidence{Seconds: 60, Threads: 8, Throughput: 100, Rate: nan, Servers: []ServerEvidence{{
			Name: "db1", Engine: "mysql", Samples: LeastSamples, Sessions: map[string]float64{c.class: 6.5, "running": 1},
			States: []StateEvidence{{c.class, c.state, 6}, {c.class, "something else", 0.5}},
		}}})
		if len(v.Findings) == 0 || v.Findings[0].Limit != c.want || !strings.Contains(v.Findings[0].Evidence, c.text) {
			t.Errorf("%s: %+v, want %s first", c.state, v.Findings, c.want)
		}
		if c.class == "other" && v.Unexplained != nil && v.Unexplained.Share > 0.3 {
			t.Errorf("%s: %.2f is called unknown as well: %s", c.state, v.Unexplained.Share, v.Unexplained.Evidence)
		}
	}
}

// TestStandstillBelongsToItsReason guards that a full redo log does not explain the time in which flow control held
// writes back, or in which all clients waited for something else.
func TestStandstillBelongsToItsReason(t *testing.T) {
	for name, change := range map[string]func(*Evidence){
		"flow control": func(e *Evidence) { e.Servers[0].FlowControl = Level{0.85, 0.9} },
		"commits": func(e *Evidence) {
			e.Servers[0].Sessions = map[string]float64{"commit": 24}
			e.Servers[0].Stopped = map[string]Standstill{"commit": {Seconds: 85, Times: 20}}
		},
	} {
		v := Find(quiet(func(e *Evidence) {
			e.Servers[0].stall(cause.Checkpoint, "80 %", Slowdown{Held: 1, During: nan, Otherwise: nan, Stopped: 0.74})
			change(e)
		}))
		if slices.ContainsFunc(v.Findings, func(f LimitFinding) bool { return f.Limit == cause.Checkpoint }) {
			t.Errorf("%s: %+v", name, v.Findings)
		}
	}
}

// TestStallOfThreadsThatRun guards that a nearly full redo log explains no time in which the servers' threads had a core or
// waited for one, even if the throughput fell meanwhile.
func TestStallOfThreadsThatRun(t *testing.T) {
	share := func(local ThreadsEvidence) float64 {
		v := Find(quiet(func(e *Evidence) {
			m := e.shared(ThreadsEvidence{1, 0.2, 0, 8}, local)
			m.CPU = Level{0.99, 1}
			e.Servers[0] = server("n1", map[string]float64{"running": 30})
			e.Servers[0].stall(cause.Checkpoint, "80 %", Slowdown{Held: 0.9, During: 400, Otherwise: 1000})
		}))
		for i := range v.Findings {
			if v.Findings[i].Limit == cause.Checkpoint {
				return v.Findings[i].Share
			}
		}
		return 0
	}
	if busy, idle := share(ThreadsEvidence{7, 20, 0, 8}), share(ThreadsEvidence{0.5, 0.5, 0, 8}); busy != 0 || math.Abs(idle-0.54) > 0.01 {
		t.Errorf("%.2f while threads ran or waited for a core, want 0; %.2f while they did not, want 0.54", busy, idle)
	}
}
