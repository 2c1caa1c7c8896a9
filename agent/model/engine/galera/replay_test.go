package galera

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql/mysqltest"
)

// play samples the three nodes of a recording. The frame of Unix second t is
// frames[t-first].
func play(t *testing.T, scenario string) (frames []engine.Frame, first int64) {
	t.Helper()
	var nodes []mysqltest.Node
	for _, name := range []string{"n1", "n2", "n3"} {
		nodes = append(nodes, mysqltest.Node{
			Name:      name,
			Variables: mysql.Values{"version": "10.11.19-MariaDB-deb12u1", "max_connections": "151"},
			Details:   []mysql.Detail{New()},
		})
	}
	return mysqltest.Play(t, "testdata/"+scenario, nodes)
}

// node returns one node's sample of Unix second t.
func node(t *testing.T, frames []engine.Frame, first, second int64, name string) *engine.Sample {
	t.Helper()
	f := frames[second-first]
	for i := range f.Samples {
		if f.Samples[i].Target.Name == name {
			return &f.Samples[i]
		}
	}
	t.Fatalf("no sample of %s at %d", name, second)
	return nil
}

// A read lock holds n3 past the end of the load, at 220.37, until 224.50.
func TestDrain(t *testing.T) {
	frames, first := play(t, "drain")

	// n3 is at 184069. n1 was at 183765 at 200.012537 and at 184776 at 201.015810, so at 184069 at 200.314; n3 answers
	// at 215.141985.
	n3 := node(t, frames, first, 1795225215, "n3")
	enginetest.Lag(t, n3, 199051-184069, 14.828, 0.002)
	if !n3.Status.Replicating || enginetest.Value(t, n3, localState) != 2 || enginetest.Value(t, n3, desyncCount) != 1 {
		t.Error("a desynced node must show as such, and be compared")
	}
	// The load is over: the distance stays, the age grows by one second per second.
	enginetest.Lag(t, node(t, frames, first, 1795225223, "n3"), 206778-184069, 22.696, 0.002)
	enginetest.Lag(t, node(t, frames, first, 1795225224, "n3"), 206778-184069, 23.695, 0.002)

	goal := node(t, frames, first, 1795225221, "n1").Status.Position
	reached := map[string]int64{}
	for i := range frames {
		if second := first + int64(i); second >= 1795225221 {
			for _, s := range frames[i].Samples {
				if reached[s.Target.Name] == 0 && engine.Reached(s.Status.Position, goal) {
					reached[s.Target.Name] = second
				}
			}
		}
	}
	want := map[string]int64{"n1": 1795225221, "n2": 1795225221, "n3": 1795225228}
	if diff := cmp.Diff(want, reached); diff != "" {
		t.Errorf("caught up at (-want +got):\n%s", diff)
	}
}

// n3 has a tenth of a core: real flow control, with pauses that n3 requests.
func TestFlowControl(t *testing.T) {
	frames, first := play(t, "slow-cpu")
	paused := func(from, to int64, name string) float64 {
		a, b := node(t, frames, first, from, name), node(t, frames, first, to, name)
		return (enginetest.Value(t, b, pausedSeconds) - enginetest.Value(t, a, pausedSeconds)) / b.Answered.Sub(a.Answered).Seconds()
	}
	// n1: 7475052616 - 7249807633 ns between 145.011487 and 146.007354.
	if got := paused(1795225145, 1795225146, "n1"); math.Abs(got-0.22618) > 1e-4 {
		t.Errorf("paused share %v, want 0.22618", got)
	}
	if got := paused(1795225143, 1795225144, "n1"); got != 0 {
		t.Errorf("paused share %v in a second without a pause", got)
	}
	n1, n3 := node(t, frames, first, 1795225146, "n1"), node(t, frames, first, 1795225146, "n3")
	if enginetest.Value(t, n1, flowControlSent) != 0 || enginetest.Value(t, n3, flowControlSent) != 607 || enginetest.Value(t, n3, flowControlRecv) != 1209 {
		t.Error("who asked for the pauses is wrong")
	}
	// n1 writes, n3 applies: 568 commits on n1 in a second, none on n3.
	if got := enginetest.Value(t, node(t, frames, first, 1795225147, "n1"), localCommits) - enginetest.Value(t, n1, localCommits); got != 350 {
		t.Errorf("%v local commits, want 350", got)
	}
	if enginetest.Value(t, n3, localCommits) != 0 {
		t.Error("an applier has local commits")
	}
	if q, ok := n3.Status.Get(engine.StatementsTotal); !ok || q != 611524 {
		t.Errorf("statements %v", q)
	}
}

// n3 is killed at 276.3, started at 290.2, and gets a full copy from n1.
func TestKilledAndRejoined(t *testing.T) {
	frames, first := play(t, "kill-rejoin")
	for second := int64(1795225277); second <= 1795225306; second++ {
		if node(t, frames, first, second, "n3").Up() {
			t.Fatalf("n3 is up at %d", second)
		}
	}
	// The survivors commit nothing until the cluster notices.
	n1 := node(t, frames, first, 1795225282, "n1")
	if n1.Status.Position.Scalar() != 222537 || enginetest.Value(t, n1, clusterSize) != 3 || enginetest.Value(t, n1, configurationID) != 3 {
		t.Error("the silent seconds are wrong")
	}
	n1 = node(t, frames, first, 1795225283, "n1")
	if enginetest.Value(t, n1, clusterSize) != 2 || enginetest.Value(t, n1, configurationID) != 4 {
		t.Error("the death was not seen")
	}
	if donor := node(t, frames, first, 1795225299, "n1"); enginetest.Value(t, donor, localState) != 2 {
		t.Error("n1 is donor")
	}
	// Its first answer: joining, not ready, and the distance to the others.
	n3 := node(t, frames, first, 1795225307, "n3")
	if enginetest.Value(t, n3, localState) != 1 || enginetest.Value(t, n3, ready) != 0 || enginetest.Value(t, n3, receiveQueue) != 8228 || n3.Restarts != 1 {
		t.Errorf("joining node: %+v", n3)
	}
	if n3.LagTransactions.Value != 249413-243901 {
		t.Errorf("joining node is %v behind", n3.LagTransactions.Value)
	}
	if n3 = node(t, frames, first, 1795225311, "n3"); enginetest.Value(t, n3, localState) != 3 {
		t.Error("joined")
	}
	if n3 = node(t, frames, first, 1795225313, "n3"); enginetest.Value(t, n3, localState) != 4 || enginetest.Value(t, n3, ready) != 1 || n3.Restarts != 1 {
		t.Error("synced")
	}
	for i := range frames {
		if n1 := frames[i].Samples[0]; n1.Restarts != 0 {
			t.Fatalf("n1 restarted at %d", first+int64(i))
		}
	}
}

// A read lock desyncs a node: its queue grows, but no node is paused.
func TestReadLock(t *testing.T) {
	frames, first := play(t, "slow-ftwrl")
	n3 := node(t, frames, first, 1795224857, "n3")
	if enginetest.Value(t, n3, localState) != 2 || enginetest.Value(t, n3, receiveQueue) != 9025 || n3.Status.Position.Scalar() != 70165 {
		t.Errorf("locked node: %+v", n3.Status)
	}
	if n3 = node(t, frames, first, 1795224862, "n3"); enginetest.Value(t, n3, localState) != 4 || enginetest.Value(t, n3, receiveQueue) != 1 {
		t.Errorf("after the lock: %+v", n3.Status)
	}
}

// A recorded node has a value for every measure of Galera, except those of Percona XtraDB Cluster.
func TestMeasures(t *testing.T) {
	frames, first := play(t, "drain")
	previous, current := node(t, frames, first, 1795225199, "n1"), node(t, frames, first, 1795225200, "n1")
	enginetest.Measures(t, previous.Status, current.Status, "queries", "commits", "rollbacks", "ended_transactions", "connections", "threads_running",
		"flow_control", "flow_control_sent", "replication_queue", "write_sets", "send_queue", "certification_failures", "brute_force_aborts",
		"cluster_size", "applier_threads")
	w := engine.NewWindow(previous, current)
	used, _ := engine.CommitRate.Used(w)
	if used.Metric != localCommits {
		t.Errorf("commits are taken from %s", used.Metric.Name)
	}
	if lag := w.Now(engine.LagSeconds); !lag.Known {
		t.Error("lag of n1 is unknown")
	}
}
