//go:build limits

package limits

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// sampledRun runs a tool with --sample and nothing else, and returns the servers that the run knows and its verdict.
func sampledRun(t *testing.T, during func(), command ...string) (known []string, v *limits.Verdict) {
	t.Helper()
	data := t.TempDir()
	args := append([]string{"run", "--data-dir=" + data, "--run-id=one", "--sample", "--drain-timeout=2s", "--"}, command...)
	wrapper := agents.StartCommand(t, exec.Command(env.binary, args...))
	if during != nil {
		time.Sleep(3 * time.Second) // into the run: what happens to a member happens to a running benchmark
		during()
	}
	if status := wrapper.Status(t, 2*time.Minute); status != 0 {
		t.Logf("exited with %d", status)
	}
	t.Log(wrapper.Output(t))
	out, err := exec.Command(env.binary, "report", "one", "--data-dir="+data, "--format=json").Output()
	must(t, err)
	var report struct {
		Runs []struct {
			Servers []struct{ Target string }
			Limits  *limits.Verdict
		}
	}
	must(t, json.Unmarshal(out, &report))
	for _, s := range report.Runs[0].Servers {
		known = append(known, s.Target)
	}
	v = report.Runs[0].Limits
	if v == nil {
		t.Fatal("no verdict")
	}
	logCauses(t, v)
	return known, v
}

// judgeGuilty fails the test unless all members are known and the guilty one is the first that is named.
func judgeGuilty(t *testing.T, g *servers.Group, members, guilty int, known []string, v *limits.Verdict) {
	t.Helper()
	for n := 1; n <= members; n++ {
		if !strings.Contains(strings.Join(known, " "), g.Address(n)) {
			t.Errorf("%s is not among the servers of the run: %q", g.Address(n), known)
		}
	}
	if len(v.Findings) == 0 {
		t.Errorf("no finding: %+v", v)
		return
	}
	f := &v.Findings[0]
	named := f.Evidence
	if len(f.Causes) > 0 {
		named = f.Causes[0].Of + ": " + f.Causes[0].Evidence
	}
	if !strings.Contains(named, g.Address(guilty)) {
		t.Errorf("the first finding, %s, names %q, want %s", f.Limit, named, g.Address(guilty))
	}
}

func TestSlowMember(t *testing.T) {
	cluster := func(kind servers.Kind, n int) *servers.Group {
		g, err := servers.Start(t.Context(), filepath.Join(env.dir, string(kind)), kind, servers.Options{Servers: n, Attached: true})
		must(t, err)
		t.Cleanup(func() { must(t, g.Stop(context.Background())) })
		return g
	}
	t.Run("Galera", func(t *testing.T) {
		g := started(t, servers.Galera, 3)
		must(t, g.Limit(t.Context(), 3, 3))
		known, v := sampledRun(t, nil, sysbenchOn(g, "oltp_update_non_index", "--threads=8", "--time=15", "run")...)
		judgeGuilty(t, g, 3, 3, known, v)
	})
	t.Run("replica set", func(t *testing.T) {
		g := cluster(servers.MongoDB, 3)
		client, err := g.Mongo(1)
		must(t, err)
		fillMongoDB(t, client)
		must(t, client.Disconnect(context.Background()))
		t.Cleanup(func() { must(t, g.Resume(2)) })
		known, v := sampledRun(t, func() { must(t, g.Pause(2)) }, goYCSBCommand(t, g.Address(1), "spread", "directConnection=true&w=majority", 4)...)
		judgeGuilty(t, g, 2, 2, known, v)
	})
	t.Run("group", func(t *testing.T) {
		g := cluster(servers.MySQL9Group, 3)
		must(t, prepare(g))
		_, err := g.Query(t.Context(), 1, "GRANT SELECT ON performance_schema.* TO bench@127.0.0.1") // without it the tool's login sees no members
		must(t, err)
		t.Cleanup(func() { must(t, g.Resume(3)) })
		known, v := sampledRun(t, func() { must(t, g.Pause(3)) }, sysbenchOn(g, "oltp_update_non_index", "--threads=8", "--time=20", "run")...)
		judgeGuilty(t, g, 3, 3, known, v)
	})
}
