//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/tests/e2e/galera"
)

// A sweep over a setting of the servers, which a hook sets. Its table has the throughput of
// each node and the drain, and a comparison of its runs names the setting that the servers
// really had.
func TestSweepOverServerSetting(t *testing.T) {
	waitSynced(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "benchwatch.yml")
	text := fmt.Sprintf("data_dir: %s/data\nsample_interval: 1s\n%s", dir, env.Targets())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client := filepath.Join(dir, "servers")
	must(t, agents.Build(client, "internal/servers/cmd"))
	hook := fmt.Sprintf(`for n in 1 2 3; do %s flow-control-limit %s $n {fc_limit}; done`, client, env.Cluster.Dir)
	t.Cleanup(func() {
		for n := 1; n <= galera.Nodes; n++ {
			must(t, env.Cluster.SetFlowControlLimit(context.Background(), n, 16))
		}
	})
	args := []string{"sweep", "--config.file=" + config, "--set=fc_limit=24,240", "--before=" + hook, "--format=json", "--"}
	out, err := exec.Command(env.Binary, append(args, env.Load(7)...)...).Output()
	if err != nil {
		t.Fatalf("sweep: %v\n%s", err, out)
	}
	var result struct {
		Combinations []struct {
			State   string
			TPS     struct{ Median float64 } `json:"transactions_per_second"`
			Servers []struct {
				Name, Unit string
				Value      float64
			}
		}
	}
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Combinations) != 2 {
		t.Fatalf("want two combinations:\n%s", out)
	}
	for _, s := range result.Combinations {
		seen := map[string]float64{}
		for _, m := range s.Servers {
			seen[m.Name+" "+m.Unit] = m.Value
		}
		for n := 1; n <= galera.Nodes; n++ {
			// All nodes apply what one node commits.
			if rate := seen[fmt.Sprintf("n%d write sets per_second", n)]; rate < s.TPS.Median/2 || rate > s.TPS.Median*2 {
				t.Errorf("n%d: %g write sets a second, the tool has %g transactions", n, rate, s.TPS.Median)
			}
		}
		if _, ok := seen["drain seconds"]; !ok {
			t.Errorf("no drain: %v", seen)
		}
	}
	text = compare(t, config, "fc_limit=24", "fc_limit=240")
	for _, want := range []string{"gcs.fc_limit", "n1 write sets"} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
	for _, measure := range []string{"flow control", "drain"} {
		if !compares(text, measure) {
			t.Errorf("no row for %s in\n%s", measure, text)
		}
	}
}

// compares reports whether a comparison has a row for a measure.
func compares(text, measure string) bool {
	for line := range strings.Lines(text) {
		name, _, isRow := strings.Cut(strings.TrimSpace(line), "  ")
		if isRow && (name == measure+" %" || name == measure+" s") {
			return true
		}
	}
	return false
}

func compare(t *testing.T, config string, groups ...string) string {
	t.Helper()
	out, err := exec.Command(env.Binary, append([]string{"compare", "--all", "--config.file=" + config}, groups...)...).Output()
	if err != nil {
		t.Fatalf("compare: %v\n%s", err, out)
	}
	return string(out)
}
