//go:build limits

package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// TestMongoDBCauses plants causes on a real mongod, follows the advice and measures again.
func TestMongoDBCauses(t *testing.T) {
	g, err := servers.Start(t.Context(), filepath.Join(env.dir, "mongod"), servers.MongoDB, servers.Options{Servers: 1, Attached: true})
	must(t, err)
	t.Cleanup(func() { must(t, g.Stop(context.Background())) })
	client, err := g.Mongo(1)
	must(t, err)
	t.Cleanup(func() { must(t, client.Disconnect(context.Background())) })
	fillMongoDB(t, client)
	a := agents.New(t, env.binary, fmt.Sprintf("targets:\n  - {name: m1, engine: mongodb, address: '%s'}\n", g.Address(1)))
	a.Again(t)
	run := func(t *testing.T, id, workload string, threads int) (*limits.Verdict, float64) {
		t.Helper()
		wrapper := agents.StartCommand(t, a.Command([]string{"--run-id=" + id, "--drain-timeout=2s"}, goYCSBCommand(t, g.Address(1), workload, "w=1", threads)...))
		if status := wrapper.Status(t, 90*time.Second); status != 0 {
			t.Logf("exited with %d: %s", status, wrapper.Output(t))
		}
		a.Closed(t, id, 60*time.Second)
		out, err := exec.Command(env.binary, "report", id, "--config.file="+a.Config, "--format=json").Output()
		must(t, err)
		var report struct {
			Runs []struct {
				TransactionsPerSecond float64 `json:"transactions_per_second"`
				Limits                *limits.Verdict
			}
		}
		must(t, json.Unmarshal(out, &report))
		if report.Runs[0].Limits == nil {
			t.Fatalf("no verdict: %s", out)
		}
		t.Logf("%s: %.0f transactions/s", id, report.Runs[0].TransactionsPerSecond)
		logCauses(t, report.Runs[0].Limits)
		return report.Runs[0].Limits, report.Runs[0].TransactionsPerSecond
	}
	index := func(name string) func(t *testing.T, c *mongo.Collection) {
		return func(t *testing.T, c *mongo.Collection) {
			_, err := c.Indexes().CreateOne(context.Background(), mongo.IndexModel{Keys: bson.D{{Key: name, Value: 1}}})
			must(t, err)
		}
	}
	for _, c := range []struct {
		workload, better string
		cause            string
		of               []cause.Limit
		remedy           func(t *testing.T, c *mongo.Collection)
	}{
		{workload: "scan", cause: "queries without an index", of: scanning, remedy: index("k")},
		{workload: "sort", cause: "sorts without an index", of: scanning, remedy: index("s")},
		{workload: "large", better: "point", cause: "large results", of: slices.Concat(scanning, one(cause.Network, cause.Outside))},
		{workload: "pausing", better: "point", cause: "pauses of the tool", of: one(cause.Outside)},
		{workload: "point"},
		{workload: "insert"},
		{workload: "spread"},
		{workload: "hot"}, // its conflicts cost less than can be measured on two cores
	} {
		t.Run(c.workload, func(t *testing.T) {
			p := planted{cause: c.cause, of: c.of}
			burn(t, besides)
			v, before := run(t, c.workload, c.workload, 8)
			p.judge(t, v)
			if c.cause == "" {
				return
			}
			if c.remedy != nil {
				c.remedy(t, client.Database("goycsb").Collection("usertable"))
			}
			better := c.better
			if better == "" {
				better = c.workload
			}
			_, after := run(t, c.workload+"-remedied", better, 8)
			t.Logf("GAIN | MongoDB: %s | %s | %.0f → %.0f tps | × %.1f |", c.workload, c.cause, before, after, after/before)
			if after < 1.1*before {
				t.Errorf("the advice against %q does not help: %.0f and %.0f transactions/s", strings.ToLower(c.cause), before, after)
			}
		})
	}
}
