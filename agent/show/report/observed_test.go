package report

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// recordNodes writes a record of two nodes: queries and new connections per second of each, and by
// second the size of the cluster and whether the node is in the primary component.
func recordNodes(t *testing.T, dir rundir.Directory, seconds int, queries, opened float64, size func(s int) int) {
	t.Helper()
	var b strings.Builder
	targets, servers := []string{"n1", "n2"}, &rundir.Servers{Source: rundir.ServersMatched}
	for _, target := range targets {
		servers.Targets = append(servers.Targets, rundir.Server{Target: target, Cluster: "c", Engine: "mysql"})
		fmt.Fprintf(&b, `{"target":%q,"engine":"mysql","cluster":"c","interval":1,"columns":["db_queries_total","mysql_connection_attempts_total","galera_cluster_size","galera_primary"]}`+"\n", target)
	}
	for s := -1; s <= seconds; s++ {
		for _, target := range targets {
			n := size(s)
			primary := 1
			if n == 1 {
				primary = 0
			}
			fmt.Fprintf(&b, `[%q,%d,0,0,0,"",%g,%g,%d,%d]`+"\n", target, recorded.Start.Unix()+int64(s), 1e6+float64(s)*queries, 1e6+float64(s)*opened, n, primary)
		}
	}
	if err := os.WriteFile(dir.Path(rundir.StatusFile), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Update(func(m *rundir.Meta) { m.Servers = servers }); err != nil {
		t.Fatal(err)
	}
}

func TestObserved(t *testing.T) {
	steady := slices.Repeat([]float64{1000}, 30)
	three := func(int) int { return 3 }
	lost := func(s int) int {
		if s == 12 || s == 13 {
			return 1
		}
		return 3
	}
	end := recorded.Start.Add(20 * time.Second)
	other := func(m rundir.Meta) rundir.Meta {
		m.ID, m.Title, m.StartedAt, m.EndedAt = "other", "another one", recorded.Start.Add(5*time.Second), &end
		return m
	}
	servers := func(names ...string) *rundir.Servers {
		s := &rundir.Servers{}
		for _, n := range names {
			s.Targets = append(s.Targets, rundir.Server{Target: n, Cluster: "c"})
		}
		return s
	}
	late := other(rundir.Meta{Placement: rundir.Placement{Servers: servers("n1")}})
	late.StartedAt = recorded.Start.Add(time.Minute)
	for _, c := range []struct {
		name    string
		queries float64
		size    func(int) int
		others  []rundir.Meta
		want    []string
		not     []string
	}{
		{"the tool's own statements", 500, three, nil, nil, []string{"something else", "primary component", "size changed", "used"}},
		{"a foreign load", 10000, three, nil, []string{"the servers executed 20000 statements/s, the tool sent "}, nil},
		{"no primary component", 500, lost, nil, []string{
			"n1 was not in the primary component in 2 samples, from 0:12 to 0:13: it could not commit",
			"the cluster's size changed as seen by n1 and n2: from 3 to 1 at 0:12, from 1 to 3 at 0:14",
		}, nil},
		{"another run", 500, three, []rundir.Meta{other(rundir.Meta{Placement: rundir.Placement{Servers: servers("x", "n2")}})}, []string{"run other (another one) used n2 at the same time, from 0:05 to 0:20"}, nil},
		{"a run on other servers", 500, three, []rundir.Meta{other(rundir.Meta{Placement: rundir.Placement{Servers: servers("x")}})}, nil, []string{"run other"}},
		{"a run on another cluster's servers of that name", 500, three, []rundir.Meta{other(rundir.Meta{Placement: rundir.Placement{Servers: &rundir.Servers{
			Targets: []rundir.Server{{Target: "n2", Cluster: "other"}},
		}}})}, nil, []string{"run other"}},
		{"a later run", 500, three, []rundir.Meta{late}, nil, []string{"run other"}},
	} {
		dir := recorded.Sysbench(t, steady)
		recordNodes(t, dir, 30, c.queries, 0, c.size)
		all := strings.Join(New(recorded.Read(t, dir), c.others...).Observed, "\n")
		for _, want := range c.want {
			if !strings.Contains(all, want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, all)
			}
		}
		for _, bad := range c.not {
			if strings.Contains(all, bad) {
				t.Errorf("%s: %q in\n%s", c.name, bad, all)
			}
		}
	}
}

// Statements at the beginning and end of connections are not another load: here the tool sends 1000 statements a second
// to each of two servers.
func TestNewConnectionsAreNoOtherLoad(t *testing.T) {
	for name, c := range map[string]struct {
		queries, opened float64
		want            string
	}{
		"a connection for each statement": {2000, 1000, ""},
		"two statements to connect":       {3000, 1000, ""},
		"another load beside them":        {5000, 1000, "the servers executed 10000 statements/s, up to 4000 of them to connect, the tool sent 2000: something else used them"},
		"another load":                    {5000, 0, "the servers executed 10000 statements/s, the tool sent 2000: something else used them"},
	} {
		dir := recorded.Sysbench(t, slices.Repeat([]float64{2000}, 30))
		recordNodes(t, dir, 30, c.queries, c.opened, func(int) int { return 2 })
		all := strings.Join(New(recorded.Read(t, dir)).Observed, "\n")
		if !strings.Contains(all, c.want) || c.want == "" && strings.Contains(all, "something else") {
			t.Errorf("%s: no %q in\n%s", name, c.want, all)
		}
	}
}

// Servers that were sampled for a part of the run are compared with the tool's statements in that part.
func TestStatementsAreComparedOverTheSameTime(t *testing.T) {
	rates := append(slices.Repeat([]float64{20000}, 15), slices.Repeat([]float64{1000}, 15)...)
	for queries, foreign := range map[float64]bool{10000: false, 25000: true} {
		dir := recorded.Sysbench(t, rates)
		recordNodes(t, dir, 15, queries, 0, func(int) int { return 3 })
		all := strings.Join(New(recorded.Read(t, dir)).Observed, "\n")
		if strings.Contains(all, "something else used them") != foreign {
			t.Errorf("%g statements/s of each of two servers: %s", queries, all)
		}
		if foreign && !strings.Contains(all, "the tool sent 20000") {
			t.Error(all)
		}
	}
}

// Unknown servers of a run are reported once, with a remedy.
func TestUnknownServersAreSaidOnce(t *testing.T) {
	h := recorded.Read(t, recorded.Sysbench(t, slices.Repeat([]float64{1000}, 30)))
	h.Snapshot.Meta.Servers = &rundir.Servers{Source: rundir.ServersUnknown, Problem: "no address"}
	row := New(h)
	said := 0
	for _, line := range row.Observed {
		if strings.Contains(line, "server") {
			said++
		}
	}
	for _, v := range row.Trust {
		if strings.Contains(v.Text, "servers are not known") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("said %d times: observed %q, trust %v", said, row.Observed, row.Trust)
	}
}

// The size of a cluster and its primary component have charts where they change.
func TestMembershipIsChartedWhereItChanges(t *testing.T) {
	for changes, size := range map[bool]func(int) int{false: func(int) int { return 3 }, true: func(s int) int { return 3 - s/20 }} {
		dir := recorded.Sysbench(t, slices.Repeat([]float64{1000}, 30))
		recordNodes(t, dir, 30, 500, 0, size)
		charted := slices.ContainsFunc(Charts(recorded.Read(t, dir)), func(c Chart) bool { return c.Title == "Cluster size" })
		if charted != changes {
			t.Errorf("changes %v, charted %v", changes, charted)
		}
	}
}
