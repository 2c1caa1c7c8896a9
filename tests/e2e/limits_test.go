//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/internal/agents"
)

// A Galera node with slow appliers limits the run: flow control is the first finding, and names the node that requested
// it.
func TestSlowNodeIsTheLimit(t *testing.T) {
	const id = "slow-node"
	waitSynced(t)
	a := startAgent(t, env.Targets())
	must(t, env.Cluster.Limit(t.Context(), 3, 2)) // percent of a core: far less than the others have beside other tests
	defer waitSynced(t)
	defer func() { must(t, env.Cluster.Unlimit(context.Background(), 3)) }()
	wrapper := a.Run(t, id, env.Sysbench("oltp_write_only", "--threads=8", "--report-interval=1", "--time=12", "run")...)
	agents.Wait(t, 60*time.Second, "the tool's end", func() error { // the node would drain for long
		if a.Meta(t, id).EndedAt == nil {
			return errors.New("it runs")
		}
		return nil
	})
	must(t, env.Cluster.Unlimit(t.Context(), 3))
	if status := wrapper.Status(t, 60*time.Second); status != 0 {
		t.Fatalf("benchwatch run exited with %d:\n%s", status, wrapper.Output(t))
	}
	out, err := exec.Command(env.Binary, "report", id, "--data-dir="+a.DataDir, "--format=json").Output()
	must(t, err)
	var report struct {
		Runs []struct{ Limits limits.Verdict }
	}
	must(t, json.Unmarshal(out, &report))
	found := report.Runs[0].Limits.Findings
	t.Logf("%+v", found)
	if len(found) == 0 || found[0].Limit != cause.FlowControl || !strings.Contains(found[0].Evidence, "n3 asked for it") {
		t.Errorf("found %+v", found)
	}
}
