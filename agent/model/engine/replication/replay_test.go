package replication

import (
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql/mysqltest"
)

var (
	mariaDB = mysql.Values{"version": "10.11.19-MariaDB-deb12u1"}
	mySQL   = mysql.Values{"version": "9.7.4", "gtid_mode": "ON"}
)

// play samples a primary and its replica. The frame of Unix second t is
// frames[t-first]; its first sample is the primary's.
func play(t *testing.T, scenario string, variables mysql.Values, names ...string) (frames []engine.Frame, first int64) {
	t.Helper()
	var nodes []mysqltest.Node
	for _, name := range names {
		nodes = append(nodes, mysqltest.Node{
			Name: name, Variables: variables, Details: []mysql.Detail{New()},
			Table: func(statement string) string {
				return map[string]string{
					"SHOW ALL SLAVES STATUS": "all_slaves_status", "SHOW REPLICA STATUS": "replica_status",
					askMariaDBPosition: "gtid", askMySQLPosition: "gtid",
				}[statement]
			},
		})
	}
	return mysqltest.Play(t, "testdata/"+scenario, nodes)
}

// replica returns the replica's sample of Unix second t.
func replica(frames []engine.Frame, first, second int64) *engine.Sample {
	return &frames[second-first].Samples[1]
}

func running(t *testing.T, s *engine.Sample, receiver, applier float64) {
	t.Helper()
	for thread, want := range map[string]float64{"receiver": receiver, "applier": applier} {
		if got, ok := s.Status.Get(engine.ReplicationRunning, "", thread); !ok || got != want {
			t.Errorf("%s running %v %v, want %v", thread, got, ok, want)
		}
	}
}

// The sequence in both recordings of a primary and its replica: CPU limited from 113.3 to 131.3;
// applier stopped from 143.3 to 152.4; receiver unable to log in from 160.5 to 172.8; load over at
// 182.5.
func TestMySQL(t *testing.T) {
	frames, first := play(t, "mysql", mySQL, "source", "replica")

	s := replica(frames, first, 1795226121) // applying far behind: the workers' table is the most exact
	running(t, s, 1, 1)
	enginetest.Lag(t, s, 4191-2098, 6.985, 0.005)
	if frames[0].Samples[0].Status.Role != "primary" || s.Status.Role != "replica" {
		t.Error("roles are wrong")
	}
	if n, ok := s.Status.Get(engine.ReplicationQueueTransactions); !ok || n != 1985 {
		t.Errorf("queue %v", n)
	}

	// Applier stopped: the server's seconds are NULL and the last applied times are frozen at a few
	// ms, while the lag grows by one second per second.
	a, b := replica(frames, first, 1795226147), replica(frames, first, 1795226149)
	for _, s := range []*engine.Sample{a, b} {
		running(t, s, 1, 0)
		if _, ok := s.Status.Get(secondsBehind, ""); ok || s.Status.LagSeconds.Known || s.Status.CoarseLagSeconds.Known {
			t.Error("a stopped replica does not know its lag")
		}
	}
	enginetest.Lag(t, a, 12081-11010, 3.533, 0.005)
	enginetest.Lag(t, b, 12649-11010, 5.627, 0.005)

	// Receiver broken: everything received is applied, yet the replica is behind.
	s = replica(frames, first, 1795226167)
	running(t, s, 0, 1)
	enginetest.Lag(t, s, 18159-16257, 6.229, 0.005)
	if n, ok := s.Status.Get(engine.ReplicationQueueTransactions); !ok || n != 0 {
		t.Errorf("queue %v", n)
	}
	if n, ok := s.Status.Get(errorNumber, "", "receiver"); !ok || n != 1045 {
		t.Errorf("receiver's error %v", n)
	}
	if n, ok := s.Status.Get(receiverConnecting, ""); !ok || n != 1 {
		t.Errorf("connecting %v", n)
	}

	// The load is over and everything is applied: 0, not the age of the last transaction.
	enginetest.Lag(t, replica(frames, first, 1795226190), 0, 0, 0.005)
	if s := replica(frames, first, 1795226190); s.Status.LagSeconds.Known {
		t.Errorf("idle workers tell %v", s.Status.LagSeconds.Value)
	}
}

func TestMariaDB(t *testing.T) {
	frames, first := play(t, "mariadb", mariaDB, "primary", "replica")
	s := replica(frames, first, 1795226147)
	running(t, s, 1, 0)
	enginetest.Lag(t, s, 12089-10700, 3.805, 0.005)
	if n, ok := s.Status.Get(engine.ReplicationQueueTransactions); !ok || n != 1386 {
		t.Errorf("queue %v", n)
	}
	s = replica(frames, first, 1795226171)
	running(t, s, 0, 1)
	enginetest.Lag(t, s, 19396-16232, 10.388, 0.005)
	enginetest.Lag(t, replica(frames, first, 1795226190), 0, 0, 0.005)
}

// The applier waits for a lock from 595.04 to 607.06. The server's own seconds
// are whole, and begin late.
func TestMariaDBHeldByALock(t *testing.T) {
	frames, first := play(t, "mariadb-slow-sql", mariaDB, "primary", "replica")
	s := replica(frames, first, 1795226606)
	running(t, s, 1, 1)
	enginetest.Lag(t, s, 41766-36503, 10.957, 0.005)
	if n, ok := s.Status.Get(secondsBehind, ""); !ok || n != 10 {
		t.Errorf("the server says %v", n)
	}
	enginetest.Lag(t, replica(frames, first, 1795226608), 3, 0.002, 0.005)
}

// A source was stopped for 9 s (SIGSTOP) and committed nothing meanwhile. Its replica with a delay
// of 5 s, which counts whole seconds, must not be behind when the source continues.
func TestDelayedReplicaOfASourceThatStoodStill(t *testing.T) {
	for _, c := range []struct {
		scenario  string
		variables mysql.Values
		source    string
	}{
		{"mariadb-delay5-sigstop", mariaDB, "primary"},
		{"mysql-delay5-sigstop", mySQL, "source"},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			frames, first := play(t, c.scenario, c.variables, c.source, "replica")
			stopped, known := 0, 0
			for i, f := range frames {
				s := &f.Samples[1]
				switch {
				case !f.Samples[0].Up():
					stopped++
				case stopped == 0:
				case s.LagSeconds.Value > 1.1:
					t.Errorf("%d: %.2f s behind, beyond the delay", first+int64(i), s.LagSeconds.Value)
				case s.LagSeconds.Known:
					known++
				}
			}
			if stopped < 5 || known < 15 {
				t.Errorf("the source is down in %d samples, and the lag known in %d later ones", stopped, known)
			}
		})
	}
}
