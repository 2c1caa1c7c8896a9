package analysis

import (
	"math"
	"strings"
	"testing"
)

var nan = math.NaN()

// machine returns one with everything known and nothing busy.
func machine(name string, generator, server bool, targets ...string) MachineEvidence {
	quiet := Level{0.2, 0}
	return MachineEvidence{Name: name, Generator: generator, Server: server, Servers: targets, Cores: 8, CPU: quiet, BusiestCore: quiet, Stalled: Level{0.1, 0}, ToolHeld: nan, Steal: Level{0, 0}, Disk: Level{0.1, 0}, Network: Level{nan, nan}, DiskWait: 0.0002, DiskReadWait: 0.0002, ToolCPU: nan, ServersCPU: nan, OthersCPU: nan}
}

// server returns one of which everything is known.
func server(name string, sessions map[string]float64) ServerEvidence {
	held := map[string]float64{}
	for class := range sessions {
		held[class] = 0.9
	}
	return ServerEvidence{
		Name: name, Sessions: sessions, Held: held, FlowControl: Level{nan, nan}, FlowControlSent: nan, LagSeconds: nan,
		Connections: 33, ConnectionLimit: 200, Refused: 0, PoolReads: 10, PoolMisses: 0.0001,
	}
}

// quiet is a run of 32 clients in which nothing is at its limit but their number.
func quiet(change func(*Evidence)) *Evidence {
	e := &Evidence{
		Seconds: 120, Threads: 32, Rate: nan, Throughput: 4000, Statements: 20, RoundTrip: nan, MeanRoundTrip: nan, ForeignShare: nan,
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
		limit  Limit
		text   string
		held   float64
	}{
		"too few clients": {func(*Evidence) {}, LimitClients, "32 clients, each of which waits for its answer, make 4000 transactions/s of 8 ms", 120},
		// Of a run of 16 threads that update one row on MariaDB 10.11, on a busy machine.
		"hot row": {func(e *Evidence) {
			e.Threads = 16
			e.Servers[0] = server("n1", map[string]float64{"row_lock": 14.6, "running": 1.2})
			e.Machines[1].CPU = Level{1, 1}
		}, LimitRowLocks, "on average 15 of 16 clients waited for a row lock (91 % of their time), on n1", 108},
		"server CPU": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 28})
			e.Machines[1].CPU = Level{0.97, 0.95}
		}, LimitServerCPU, "8 cores of db1 (n1) were 97 % busy on average", 114},
		"generator CPU": {func(e *Evidence) { e.Machines[0].CPU = Level{0.98, 1} }, LimitGeneratorCPU, "8 cores of gen were 98 % busy", 120},
		"one core of the generator": {func(e *Evidence) {
			e.Machines[0].CPU, e.Machines[0].BusiestCore = Level{0.13, 0}, Level{0.99, 1}
		}, LimitOneCore, "one core of gen was full for 100 % of the time, while all were 13 % busy", 120},
		"generator and server on one machine": {func(e *Evidence) {
			e.Machines = []MachineEvidence{machine("vm", true, true, "n1")}
			e.Machines[0].CPU = Level{1, 1}
		}, LimitSharedCPU, "8 cores of vm (n1)", 120},
		// Of a VM on which compilers run beside the benchmark.
		"other programs of many clients": {func(e *Evidence) {
			e.Machines = []MachineEvidence{machine("vm", true, true, "n1")}
			m := &e.Machines[0]
			m.CPU, m.ToolCPU, m.ServersCPU, m.OthersCPU = Level{1, 1}, 100, 200, 660
			m.OtherPrograms = []ProgramEvidence{{"make", 600}, {"python3", 48}, {"cron", 1}}
		}, LimitNeighbours, "8 cores of vm (n1) were 100 % busy on average, and at least 90 % for 100 % of the time; of what programs used, the tool took 10 %, servers 21 %, other programs 69 % (make 62 %, python3 5 %)", 120},
		"few other programs": {func(e *Evidence) {
			e.Machines = []MachineEvidence{machine("vm", true, true, "n1")}
			m := &e.Machines[0]
			m.CPU, m.ToolCPU, m.ServersCPU, m.OthersCPU = Level{1, 1}, 300, 600, 20
		}, LimitSharedCPU, "the tool took 33 %, servers 65 %, other programs 2 %", 120},
		"programs of which the servers are unknown": {func(e *Evidence) {
			e.Machines = []MachineEvidence{machine("vm", true, true, "n1")}
			m := &e.Machines[0]
			m.CPU, m.ToolCPU, m.OthersCPU = Level{1, 1}, 100, 860
		}, LimitSharedCPU, "at least 90 % for 100 % of the time", 120},
		"other programs on the generator": {func(e *Evidence) {
			m := &e.Machines[0]
			m.CPU, m.ToolCPU, m.OthersCPU = Level{1, 1}, 100, 860
		}, LimitNeighbours, "the tool took 10 %, other programs 90 %", 120},
		// A client can't use two cores itself, but its server does.
		"no other programs": {func(e *Evidence) {
			e.Threads, e.Machines = 1, []MachineEvidence{machine("vm", true, true, "n1")}
			m := &e.Machines[0]
			m.CPU, m.ToolCPU, m.ServersCPU, m.OthersCPU = Level{1, 1}, 10, 900, 5
			e.Servers[0] = server("n1", map[string]float64{"running": 0.9})
		}, LimitSharedCPU, "servers 98 %", 120},
		"other programs": {func(e *Evidence) {
			e.Threads, e.Machines = 1, []MachineEvidence{machine("vm", true, true, "n1")}
			e.Machines[0].CPU = Level{1, 1}
			e.Servers[0] = server("n1", map[string]float64{"running": 0.6})
		}, LimitNeighbours, "1 client can use at most as many cores, but 8 of 8 were in use", 120},
		"flow control": {func(e *Evidence) {
			e.Servers = []ServerEvidence{server("n1", map[string]float64{"running": 3, "flow_control": 20}), server("n2", map[string]float64{}), server("n3", map[string]float64{})}
			for i := range e.Servers {
				e.Servers[i].FlowControl, e.Servers[i].FlowControlSent = Level{0.71, 0.9}, 0
			}
			e.Servers[2].FlowControlSent = 214
			e.Machines[1].Servers = []string{"n1", "n2", "n3"}
		}, LimitFlowControl, "writes were held back for 71 % of the time; n3 asked for it 214 times", 108},
		// Of a Galera cluster on a busy machine: the sessions show certification, not flow control.
		"flow control in certification": {func(e *Evidence) {
			e.Threads = 8
			e.Servers = []ServerEvidence{server("n1", map[string]float64{"running": 0.5, "replication": 5.9, "row_lock": 1.4}), server("n3", map[string]float64{})}
			e.Servers[0].FlowControl, e.Servers[1].FlowControl = Level{0.61, 1}, Level{0.61, 1}
			e.Servers[1].FlowControlSent = 286
			e.Machines[1].Servers = []string{"n1", "n3"}
		}, LimitFlowControl, "writes were held back for 61 % of the time; n3 asked for it 286 times", 120},
		// Of a Galera node whose appliers have 3 % of a core, which is nearly enough.
		"certification with some flow control": {func(e *Evidence) {
			e.Threads = 6
			e.Servers = []ServerEvidence{server("n1", map[string]float64{"replication": 5.15}), server("n3", map[string]float64{})}
			e.Servers[0].FlowControl, e.Servers[1].FlowControl = Level{0.13, 0.1}, Level{0.13, 0.1}
			e.Servers[1].FlowControlSent = 91
			e.Machines[1].Servers = []string{"n1", "n3"}
		}, LimitReplication, "4.5 of 6 clients waited for certification or for the acknowledgement of other servers (75 % of their time), on n1; n3 asked for flow control 91 times, which held writes back for 13 % of the time", 108},
		"commit": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 1, "commit": 29})
		}, LimitCommit, "29 of 32 clients waited in commit", 108},
		"disk": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 1, "disk": 27})
		}, LimitDisk, "27 of 32 clients waited for a disk", 108},
		"buffer pool": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 30})
			e.Servers[0].PoolReads, e.Servers[0].PoolMisses, e.Machines[1].DiskReadWait = 9000, 0.06, 0.003
		}, LimitPool, "n1 read 9000 pages/s from disk, 6 % of those that were asked for, a read of the disk takes 3 ms: clients waited for pages for 84 % of their time", 0},
		// Of a server whose disk is held to a rate by a control group: the disk itself is fast.
		"buffer pool by sessions": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 1, "disk": 30})
			e.Servers[0].PoolReads, e.Servers[0].PoolMisses = 300, 0.2
		}, LimitPool, "a read of the disk takes 0.2 ms: clients waited for pages for 94 % of their time", 0},
		"buffer pool, estimated": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 30})
			e.Servers[0].PoolReads, e.Servers[0].PoolMisses, e.Machines = 9000, 0.06, e.Machines[:1]
		}, LimitPool, "an estimate of 60 % of the clients' time", 0},
		"quota of the server": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 28})
			e.Machines[1].Stalled = Level{0.93, 1}
		}, LimitServerCPU, "tasks of db1 (n1) waited for a core for 93 % of the time, though all cores were in use for at most 20 %", 120},
		// Of a MariaDB with 40 % of a core: most requests are not read when the sessions are.
		"quota of the server, requests not read": {func(e *Evidence) {
			e.Threads, e.Throughput, e.Statements, e.RoundTrip, e.MeanRoundTrip = 8, 40, 16, 0.0007, 0.03
			e.Servers[0] = server("n1", map[string]float64{"running": 2.2, "network": 2.5})
			e.Machines = []MachineEvidence{machine("vm", true, true, "n1")}
			e.Machines[0].Stalled = Level{0.99, 1}
		}, LimitServerCPU, "tasks of vm (n1) waited for a core", 120},
		// The quota's periods of 100 ms are in step with the ticks: of one tool all sessions run at
		// each tick, of another one none.
		"quota of the tool, in step": {func(e *Evidence) {
			e.Threads = 8
			e.Servers[0] = server("n1", map[string]float64{"running": 7.5})
			e.Machines = []MachineEvidence{machine("vm", true, true, "n1")}
			e.Machines[0].Stalled, e.Machines[0].ToolHeld = Level{0.9, 1}, 0.97
		}, LimitGeneratorCPU, "tasks of vm (n1) waited for a core", 120},
		"quota of the server, in step": {func(e *Evidence) {
			e.Threads = 8
			e.Throughput, e.Statements, e.RoundTrip, e.MeanRoundTrip = 10, 16, 0.05, 0.055
			e.Servers[0] = server("n1", map[string]float64{"running": 0.5})
			e.Machines = []MachineEvidence{machine("vm", true, true, "n1")}
			e.Machines[0].Stalled, e.Machines[0].ToolHeld = Level{0.9, 1}, 0
		}, LimitServerCPU, "tasks of vm (n1) waited for a core", 120},
		"round trip beside others' load": {func(e *Evidence) {
			e.Threads, e.Throughput, e.Statements, e.RoundTrip, e.MeanRoundTrip = 8, 900, 1, 0.007, 0.008
			e.Servers[0] = server("n1", map[string]float64{"running": 0.5})
			e.Machines = []MachineEvidence{machine("vm", true, true, "n1")}
			e.Machines[0].CPU = Level{1, 1}
		}, LimitRoundTrip, "a round trip of at least 7 ms", 0},
		"local round trip": {func(e *Evidence) {
			e.Threads, e.Throughput, e.Statements, e.RoundTrip, e.MeanRoundTrip = 1, 10000, 1, 0.00006, 0.00007
			e.Servers[0] = server("n1", map[string]float64{"running": 0.3, "network": 0.2})
			e.Machines = []MachineEvidence{machine("vm", true, true, "n1")}
		}, LimitClients, "1 client, each of which", 120},
		"quota of the tool": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 6})
			e.Machines = []MachineEvidence{machine("vm", true, true, "n1")}
			e.Machines[0].Stalled = Level{0.9, 1}
		}, LimitGeneratorCPU, "tasks of vm (n1) waited for a core", 120},
		"max_connections":               {func(e *Evidence) { e.Servers[0].Refused = 12 }, LimitConnections, "n1 refused 12 connections since its max_connections of 200 was reached", 0},
		"limit of connections not read": {func(e *Evidence) { e.Servers[0].Refused, e.Servers[0].ConnectionLimit = 1, nan }, LimitConnections, "n1 refused 1 connection since its max_connections was reached", 0},
		"checkpoint": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 31})
			e.Servers[0].Checkpoint = Slowdown{Held: 0.9, During: 100, Otherwise: 1000}
		}, LimitCheckpoint, "no checkpoint covers was at 80 % of its limit or more for 90 % of the time: 100 transactions/s then, 1000 otherwise", 108},
		"checkpoint all the time": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 31})
			e.Servers[0].Checkpoint = Slowdown{Held: 1, During: nan, Otherwise: nan, Stopped: 0.8}
			e.Machines[0].CPU = Level{0.8, 0.77}
		}, LimitCheckpoint, "of its limit or more for 100 % of the time: in 80 % of the time no transaction ended", 120},
		"purge": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 31})
			e.Servers[0].Purge, e.Servers[0].PurgeLimit = Slowdown{Held: 0.9, During: 250, Otherwise: 1000}, 100000
		}, LimitPurge, "history list of n1 was longer than its innodb_max_purge_lag of 100000 for 90 % of the time", 108},
		"no port": {func(e *Evidence) { e.NoPort = "Can't connect to server on 'h' (99)" }, LimitPorts, "no port left for a connection: Can't connect to server on 'h' (99)", 0},
		"no file": {func(e *Evidence) { e.NoFile = "Can't create TCP/IP socket (24)" }, LimitFiles, "could open no more files, of which a connection needs one: Can't", 0},
		"refused at once": {func(e *Evidence) {
			*e = Evidence{Seconds: 0.1, Threads: 64, Rate: nan, Throughput: nan, Statements: nan, ForeignShare: nan, RefusedByServer: "error 1040: Too many connections"}
		}, LimitConnections, "error 1040", 0},
		"round trip": {func(e *Evidence) {
			e.RoundTrip, e.RoundTripTo = 0.0003, "n1"
			e.Servers[0] = server("n1", map[string]float64{"running": 6})
		}, LimitRoundTrip, "a round trip of at least 0.3 ms to n1: 75 %", 0},
		// The tool goes through a proxy that is no target, and the agent does not.
		"round trip of others than the agent": {func(e *Evidence) {
			e.RoundTrip, e.RoundTripTo = 0.00005, "n1"
			e.Servers[0] = server("n1", map[string]float64{"running": 3})
		}, LimitRoundTrip, "for 91 % of their time the clients had no statement in a server, of which the tool's CPU explains at most 5 %", 0},
		"another load": {func(e *Evidence) {
			e.OtherLoad, e.ForeignShare = "the servers executed 80000 statements/s, the tool sent 10000", 0.875
			e.Servers[0] = server("n1", map[string]float64{"running": 30})
			e.Machines[1].CPU = Level{0.97, 0.95}
		}, LimitOtherLoad, "executed 80000", 0},
		"a little other load": {func(e *Evidence) {
			e.OtherLoad, e.ForeignShare = "the servers executed 13000 statements/s, the tool sent 10000", 0.23
			e.Servers[0] = server("n1", map[string]float64{"running": 30})
			e.Machines[1].CPU = Level{0.97, 0.95}
		}, LimitServerCPU, "8 cores of db1 (n1) were 97 % busy", 114},
		"link": {func(e *Evidence) { e.Machines[1].Network = Level{0.93, 0.95} }, LimitNetwork, "the link of db1 was used by 93 %", 114},
		"slower than asked": {func(e *Evidence) {
			e.Rate, e.Throughput = 8000, 4000
		}, LimitRate, "4000 of 8000 transactions/s", 0},
		"slower than asked, and some commits": {func(e *Evidence) {
			e.Rate, e.Throughput = 8000, 4000
			e.Servers[0] = server("n1", map[string]float64{"running": 6, "commit": 7})
		}, LimitRate, "4000 of 8000 transactions/s", 0},
		"slower than asked for a reason": {func(e *Evidence) {
			e.Rate, e.Throughput = 800000, 4000
			e.Servers[0] = server("n1", map[string]float64{"running": 6, "commit": 24})
		}, LimitCommit, "24 of 32 clients waited in commit", 108},
	} {
		v := FindLimits(quiet(c.change))
		if len(v.Findings) == 0 {
			t.Errorf("%s: nothing found, %+v", name, v)
			continue
		}
		if f := v.Findings[0]; f.Limit != c.limit || !strings.Contains(f.Evidence, c.text) || f.Seconds != c.held || f.Test == "" {
			t.Errorf("%s: %+v", name, v.Findings)
		}
	}
}

// TestNoInventedLimit guards that a run that made its rate has no limit, whatever else was
// busy, and that missing evidence is never taken for a limit.
func TestNoInventedLimit(t *testing.T) {
	v := FindLimits(quiet(func(e *Evidence) {
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
		"no servers":  {func(e *Evidence) { e.Servers = nil }, "what the servers did"},
		"no sessions": {func(e *Evidence) { e.Servers[0].Sessions = nil }, "rights for active sessions"},
		"no threads":  {func(e *Evidence) { e.Threads = nan }, "how many clients"},
		"sessions that neither wait nor compute": {func(e *Evidence) {
			e.Servers[0] = server("n1", map[string]float64{"running": 28})
		}, "what 28 of 32 clients waited for"},
		"the machine did not answer": {func(e *Evidence) {
			e.Machines[1].CPU, e.Machines[1].BusiestCore = Level{nan, nan}, Level{nan, nan}
		}, "CPU and disks of n1"},
	} {
		v := FindLimits(quiet(c.change))
		if len(v.Findings) > 0 || !strings.Contains(strings.Join(v.Unknown, "\n"), c.what) {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v := FindLimits(&Evidence{Seconds: nan, Threads: nan, Rate: nan, Throughput: nan, Statements: nan, ForeignShare: nan}); len(v.Findings) > 0 || len(v.Unknown) == 0 {
		t.Errorf("of nothing: %+v", v)
	}
}

// TestLagIsNamed guards that a replica that can't keep up is reported beside what limits.
func TestLagIsNamed(t *testing.T) {
	v := FindLimits(quiet(func(e *Evidence) {
		e.Servers = append(e.Servers, server("n2", map[string]float64{}))
		e.Servers[1].LagSeconds, e.Machines[1].Servers = 40, []string{"n1", "n2"}
	}))
	if len(v.Findings) != 2 || v.Findings[0].Limit != LimitClients || v.Findings[1].Limit != LimitLag || !strings.Contains(v.Findings[1].Evidence, "n2 was up to 40 s behind") {
		t.Errorf("%+v", v.Findings)
	}
}
