//go:build limits

package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
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
	run := func(t *testing.T, id, workload string, threads int) (v *limits.Verdict, one trial) {
		t.Helper()
		server := cpuOf(t, g.PID(1))
		own := func() float64 { return cpuOf(t, g.PID(1)) + cpuOf(t, a.Cmd.Process.Pid) + cpuOf(t, os.Getpid()) }
		begin, before, ownBefore := time.Now(), taken(t), own()
		wrapper := agents.StartCommand(t, a.Command([]string{"--run-id=" + id, "--drain-timeout=2s"}, goYCSBCommand(t, g.Address(1), workload, "w=1", threads)...))
		if status := wrapper.Status(t, 90*time.Second); status != 0 {
			t.Logf("exited with %d: %s", status, wrapper.Output(t))
		}
		tool := wrapper.Cmd.ProcessState.UserTime() + wrapper.Cmd.ProcessState.SystemTime()
		spent := cpuOf(t, g.PID(1)) - server + tool.Seconds()
		foreign := used{all: taken(t) - before, own: own() - ownBefore + tool.Seconds()}.foreign(time.Since(begin).Seconds(), cores())
		a.Closed(t, id, 60*time.Second)
		out, err := exec.Command(env.binary, "report", id, "--config.file="+a.Config, "--format=json").Output()
		must(t, err)
		var report struct {
			Runs []struct {
				TransactionsPerSecond float64 `json:"transactions_per_second"`
				DurationSeconds       float64 `json:"duration_seconds"`
				Limits                *limits.Verdict
			}
		}
		must(t, json.Unmarshal(out, &report))
		if report.Runs[0].Limits == nil {
			t.Fatalf("no verdict: %s", out)
		}
		r := report.Runs[0]
		one = trial{tps: r.TransactionsPerSecond, cpu: spent / (r.TransactionsPerSecond * r.DurationSeconds)}
		t.Logf("%s: %s, other programs %.0f %% of the CPU", id, one, foreign*100)
		logCauses(t, r.Limits)
		return r.Limits, one
	}
	index := func(name string) func(t *testing.T, c *mongo.Collection) {
		return func(t *testing.T, c *mongo.Collection) {
			_, err := c.Indexes().CreateOne(context.Background(), mongo.IndexModel{Keys: bson.D{{Key: name, Value: 1}}})
			must(t, err)
		}
	}
	// command returns a step that changes a parameter of the server.
	command := func(name string, value any) func(t *testing.T, c *mongo.Collection) {
		return func(t *testing.T, c *mongo.Collection) {
			must(t, c.Database().Client().Database("admin").RunCommand(context.Background(), bson.D{{Key: "setParameter", Value: 1}, {Key: name, Value: value}}).Err())
		}
	}
	const engine = "wiredTigerEngineRuntimeConfig"
	for _, c := range []struct {
		workload, better string
		cause            string
		of               []cause.Limit
		plant, remedy    func(t *testing.T, c *mongo.Collection)
	}{
		{workload: "connecting", better: "point", cause: "a connection for each transaction", of: slices.Concat(scanning, one(cause.Outside, cause.GeneratorCPU))},
		{workload: "spread", cause: "clients that evict pages from the cache", of: slices.Concat(scanning, one(cause.Disk, cause.State)),
			plant: command(engine, "cache_size=2M"), remedy: command(engine, "cache_size=256M")},
		{workload: "scan", cause: "queries without an index", of: scanning, remedy: index("k")},
		{workload: "sort", cause: "sorts without an index", of: scanning, remedy: index("s")},
		{workload: "large", better: "point", cause: "large results", of: slices.Concat(scanning, one(cause.Network, cause.Outside))},
		{workload: "pausing", better: "point", cause: "pauses of the tool", of: one(cause.Outside)},
		{workload: "plans", better: "hinted", cause: "plans chosen again and again", of: slices.Concat(scanning, one(cause.State)), plant: fillPlans},
		{workload: "point"},
		{workload: "insert"},
		{workload: "spread"},
		{workload: "hot"}, // its conflicts cost less than can be measured on two cores
	} {
		t.Run(c.workload, func(t *testing.T) {
			p := planted{cause: c.cause, of: c.of}
			burn(t, besides)
			id := strings.ReplaceAll(filepath.Base(t.Name()), "#", "-") // a workload may come twice
			if c.plant != nil {
				c.plant(t, client.Database("goycsb").Collection("usertable"))
			}
			v, before := run(t, id, c.workload, 8)
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
			_, after := run(t, id+"-remedied", better, 8)
			gained(t, "MongoDB: "+c.workload, c.cause, c.workload != "pausing", before, after) // all others cost CPU
		})
	}
}
