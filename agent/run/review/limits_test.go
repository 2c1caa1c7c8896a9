package review

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// second is what the tool and the only server of a run report for a second.
type second struct {
	tps    float64
	server map[string]float64
}

// observedRun is a run of sysbench by 16 threads whose seconds are given, and whose slowest transaction
// took slowest seconds.
func observedRun(t *testing.T, slowest float64, seconds []second) *record.History {
	t.Helper()
	dir := recorded.Sysbench(t, make([]float64, len(seconds)))
	var out, status strings.Builder
	out.WriteString("sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 16\nReport intermediate results every 1 second(s)\n\nThreads started!\n\n")
	total := 0.0
	for i, s := range seconds {
		total += s.tps
		fmt.Fprintf(&out, "[ %ds ] thds: 16 tps: %.2f qps: %.2f (r/w/o: 0.00/%.2f/0.00) lat (ms,95%%): 5.00 err/s: 0.00 reconn/s: 0.00\n", i+1, s.tps, s.tps, s.tps)
		names := []string{}
		for name := range s.server {
			names = append(names, name)
		}
		slices.Sort(names)
		columns, err := json.Marshal(names)
		if err != nil {
			t.Fatal(err)
		}
		at := recorded.Start.Add(time.Duration(i) * time.Second)
		fmt.Fprintf(&status, `{"target":"n1","engine":"mysql","interval":1,"columns":%s}`+"\n"+`["n1",%d,0,0,0,""`, columns, at.Unix())
		for _, name := range names {
			fmt.Fprintf(&status, ",%v", s.server[name])
		}
		status.WriteString("]\n")
	}
	n := float64(len(seconds))
	fmt.Fprintf(&out, "SQL statistics:\n    queries performed:\n        read:                            0\n        write:                           %.0f\n        other:                           0\n        total:                           %.0f\n    transactions:                        %.0f   (%.2f per sec.)\n    queries:                             %.0f   (%.2f per sec.)\n    ignored errors:                      0      (0.00 per sec.)\n    reconnects:                          0      (0.00 per sec.)\n\n", total, total, total, total/n, total, total/n)
	fmt.Fprintf(&out, "General statistics:\n    total time:                          %.4fs\n    total number of events:              %.0f\n\nLatency (ms):\n         min:                                    0.50\n         avg:                                    3.00\n         max:                                    %.2f\n         95th percentile:                        5.00\n         sum:                                3.00\n\n", n, total, slowest*1000)
	for name, text := range map[string]string{rundir.StdoutFile: out.String(), rundir.StatusFile: status.String()} {
		if err := os.WriteFile(dir.Path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dir.Update(func(m *rundir.Meta) {
		m.Servers = &rundir.Servers{Source: rundir.ServersMatched, Targets: []rundir.Server{{Target: "n1", Engine: "mysql"}}}
	}); err != nil {
		t.Fatal(err)
	}
	return recorded.Read(t, dir)
}

// sessions returns what a server reports with sessions in some classes.
func sessions(more map[string]float64, classes map[string]float64) map[string]float64 {
	all := map[string]float64{"db_connections": 9, `db_active_sessions{class="running",event="running"}`: 0}
	maps.Copy(all, more)
	for class, n := range classes {
		all[fmt.Sprintf(`db_active_sessions{class=%q,event="e"}`, class)] = n
	}
	return all
}

func finding(v *limits.Verdict, limit cause.Limit) *limits.LimitFinding {
	i := slices.IndexFunc(v.Findings, func(f limits.LimitFinding) bool { return f.Limit == limit })
	if i < 0 {
		return nil
	}
	return &v.Findings[i]
}

// TestLockOfSomeSeconds has a backup that locks all writes from 7.2 to 15.2 s of 24: its class of sessions has no value
// before, nine samples are in it, and the tool is stalled for eight seconds.
func TestLockOfSomeSeconds(t *testing.T) {
	all := make([]second, 24)
	for i := range all {
		switch {
		case i < 7:
			all[i] = second{1000, sessions(nil, map[string]float64{"running": 8})}
		case i < 16:
			all[i] = second{0, sessions(nil, map[string]float64{"running": 0, "lock": 16})}
		default:
			all[i] = second{1000, sessions(nil, map[string]float64{"running": 8, "lock": 0})}
		}
	}
	all[7].tps, all[15].tps = 300, 700 // in part
	h := observedRun(t, 8, all)
	r := NewRun(h)
	f := finding(r.Limits, cause.Locks)
	if f == nil || f.Seconds != 8 || math.Abs(f.Share-8.0/24) > 0.01 || !strings.HasPrefix(f.Evidence, "no transaction ended for 8 of 24 s in one stretch, from second") {
		t.Errorf("%+v", f)
	}
	if v := r.Servers[0].Value(engine.LockSessions); math.Abs(v-9*16.0/24) > 0.01 {
		t.Errorf("%v sessions on average, want 6: a class that nothing was in yet is 0", v)
	}
}

// TestCountedRowLocks guards that the counted waits for row locks are a lower bound of the share, unless the samples
// show less than half of them.
func TestCountedRowLocks(t *testing.T) {
	for _, c := range []struct{ sampled, counted, want float64 }{{6, 9, 9}, {9, 6, 9}, {2, 9, 2}} {
		all := make([]second, 24)
		for i := range all {
			all[i] = second{1000, sessions(map[string]float64{"db_lock_wait_seconds_total": c.counted * float64(i)}, map[string]float64{"running": 5, "row_lock": c.sampled})}
		}
		r := NewRun(observedRun(t, 1, all))
		f := finding(r.Limits, cause.RowLocks)
		if c.want/16 < limits.LeastShare {
			if f != nil {
				t.Errorf("%+v: %+v", c, f)
			}
			continue
		}
		if f == nil || math.Abs(f.Share-c.want/16) > 0.01 {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}

// TestFlowControlOfEachTick guards that sessions which the server reports as held back, at every second
// sample, are not estimated once more from the time for which it was paused.
func TestFlowControlOfEachTick(t *testing.T) {
	all := make([]second, 24)
	for i := range all {
		classes := map[string]float64{"flow_control": 16, "replication": 0}
		if i%2 == 0 {
			classes = map[string]float64{"flow_control": 0, "replication": 16}
		}
		all[i] = second{1000, sessions(map[string]float64{"galera_flow_control_paused_seconds_total": 0.5 * float64(i)}, classes)}
	}
	r := NewRun(observedRun(t, 1, all))
	if f := finding(r.Limits, cause.FlowControl); f == nil || math.Abs(f.Share-0.5) > 0.05 {
		t.Errorf("%+v", f)
	}
}

// TestShortWaitsAreNoStandstill guards that there is no standstill if all clients wait at each sample while
// transactions end.
func TestShortWaitsAreNoStandstill(t *testing.T) {
	all := make([]second, 24)
	for i := range all {
		all[i] = second{1000, sessions(nil, map[string]float64{"row_lock": 16})}
	}
	all[10].tps = 0 // one second is no reason for the others
	r := NewRun(observedRun(t, 1, all))
	if f := finding(r.Limits, cause.RowLocks); f == nil || f.Share < 0.9 || f.Seconds > 3 || strings.HasPrefix(f.Evidence, "no transaction ended") {
		t.Errorf("%+v", f)
	}
}

// TestLockIsNoCheckpoint guards that the seconds of a lock do not count for a redo log that is nearly
// full at the same time.
func TestLockIsNoCheckpoint(t *testing.T) {
	for _, c := range []struct {
		class string
		want  bool
	}{{"lock", false}, {"running", true}} {
		all := make([]second, 24)
		for i := range all {
			age := map[string]float64{"mysql_innodb_checkpoint_age_bytes": 10, "mysql_innodb_checkpoint_age_limit_bytes": 100}
			all[i] = second{1000, sessions(age, map[string]float64{c.class: 0})}
			if i >= 6 && i < 18 {
				age["mysql_innodb_checkpoint_age_bytes"] = 95
				all[i] = second{0, sessions(age, map[string]float64{c.class: 16})}
			}
		}
		r := NewRun(observedRun(t, 12, all))
		if found := finding(r.Limits, cause.Checkpoint) != nil; found != c.want {
			t.Errorf("%s: checkpoints found: %v: %+v", c.class, found, r.Limits.Findings)
		}
	}
}

// TestFewTransactionsAreNoStandstill guards that single seconds without the end of a transaction show no standstill where
// few end in a second, such as those of large inserts, while the redo log is nearly full.
func TestFewTransactionsAreNoStandstill(t *testing.T) {
	for _, c := range []struct {
		tps  float64
		want bool
	}{{2, false}, {200, true}} {
		all := make([]second, 24)
		for i := range all {
			all[i] = second{c.tps, sessions(map[string]float64{"mysql_innodb_checkpoint_age_bytes": 95, "mysql_innodb_checkpoint_age_limit_bytes": 100}, map[string]float64{"running": 2})}
			if i%3 == 2 {
				all[i].tps = 0
			}
		}
		r := NewRun(observedRun(t, 1, all))
		if found := finding(r.Limits, cause.Checkpoint) != nil; found != c.want {
			t.Errorf("%.0f a second: checkpoints found: %v: %+v", c.tps, found, r.Limits.Findings)
		}
	}
}

// TestBurstIsNoOtherLoad guards that statements which the ends of the sampled span may add are the
// tool's: a run whose first second has most of them.
func TestBurstIsNoOtherLoad(t *testing.T) {
	for _, c := range []struct {
		first float64 // transactions of the first second
		rest  float64
		want  bool
	}{{2000, 10, false}, {100, 100, true}} {
		total := 0.0
		all := make([]second, 15)
		for i := range all {
			all[i].tps = c.rest
			if i == 0 {
				all[i].tps = c.first
			}
			all[i].server = map[string]float64{"db_connections": 9, "db_queries_total": total}
			if total += all[i].tps; c.want {
				total += 1000
			} else if i == 0 {
				total += 2800 // sent before the first sample was taken
			}
		}
		h := observedRun(t, 1, all)
		r := NewObservedRow(h)
		if line, share := foreignStatements(h, &r); (line != "") != c.want || c.want && share < 0.8 {
			t.Errorf("first second %v: %q, %v", c.first, line, share)
		}
	}
}

// A run that only reads is not limited by what holds back the writes of another load.
func TestRunThatOnlyReads(t *testing.T) {
	for name, c := range map[string]struct {
		counts []tool.Count
		want   bool
	}{
		"reads":            {[]tool.Count{{Operation: tool.Read, N: 5}, {Operation: tool.Write, N: 0}}, true},
		"writes":           {[]tool.Count{{Operation: tool.Read, N: 5}, {Operation: tool.Write, N: 1}}, false},
		"writes not known": {[]tool.Count{{Operation: tool.Read, N: 5}}, false},
		"nothing":          {[]tool.Count{{Operation: tool.Read, N: 0}, {Operation: tool.Write, N: 0}}, false},
	} {
		if r := (Row{counts: c.counts}); r.onlyReads() != c.want {
			t.Errorf("%s: %v", name, r.onlyReads())
		}
	}
	s := limits.ServerEvidence{
		FlowControl: limits.Level{Mean: 0.2, High: 0.5}, Sessions: map[string]float64{"commit": 1, "replication": 2, "flow_control": 3, "row_lock": 4},
		States: []limits.StateEvidence{{Class: "commit", Name: "a"}, {Class: "row_lock", Name: "b"}},
	}
	withoutWrites(&s)
	if want := (map[string]float64{"row_lock": 4}); series.IsKnown(s.FlowControl.Mean) || !maps.Equal(s.Sessions, want) || len(s.States) != 1 {
		t.Errorf("%+v", s)
	}
}

// TestSlowdownExceedsSpread guards that a throughput that varies beside other programs is no slowdown, since a redo log
// is always fuller at the end of a run.
func TestSlowdownExceedsSpread(t *testing.T) {
	for name, c := range map[string]struct {
		during, otherwise []float64
		want              bool
	}{
		"a full log":                {[]float64{120, 0, 300, 90, 0, 150}, []float64{4800}, true},
		"after some seconds":        {[]float64{900, 1100, 950, 1000}, []float64{3900, 4100, 4000, 4050}, true},
		"beside other programs":     {[]float64{2500, 4100, 3200, 2900}, []float64{5100, 2800, 4400, 3100, 4900}, false},
		"one interval that is fast": {[]float64{2500, 4100, 3200, 2900}, []float64{4300}, false},
		"nothing to compare with":   {[]float64{100, 120}, nil, false},
		"faster":                    {[]float64{4000, 4100}, []float64{100, 120}, false},
	} {
		if got := isSlower(c.during, c.otherwise); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
