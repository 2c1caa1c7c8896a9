//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	mongooptions "go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// mongoLoad is the name of a benchmark tool: this test's program with that name.
const mongoLoad = "mongoload"

// runMongoLoad is the tool: it inserts and finds documents for some seconds. Its arguments are the
// addresses of a set and the number of seconds. Each second it prints the number of its commands.
func runMongoLoad(args []string) error {
	seconds, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	client, err := mongo.Connect(mongooptions.Client().SetHosts(strings.Split(args[0], ",")).SetReplicaSet("rs").SetHeartbeatInterval(500 * time.Millisecond))
	if err != nil {
		return err
	}
	c := client.Database("ycsb").Collection("usertable", mongooptions.Collection().SetWriteConcern(writeconcern.W1()))
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	defer cancel()
	var commands, failed atomic.Int64
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for ctx.Err() == nil {
				inserted, err := c.InsertOne(context.Background(), bson.D{{Key: "f", Value: strings.Repeat("x", 100)}})
				if err == nil {
					err = c.FindOne(context.Background(), bson.D{{Key: "_id", Value: inserted.InsertedID}}).Err()
				}
				if err != nil {
					failed.Add(1)
				} else {
					commands.Add(2)
				}
				select { // a pause leaves the processor to other tests
				case <-ctx.Done():
				case <-time.After(3 * time.Millisecond):
				}
			}
		})
	}
	last := int64(0)
	for second := 1; second <= seconds; second++ {
		time.Sleep(time.Until(begin.Add(time.Duration(second) * time.Second)))
		now := commands.Load()
		fmt.Printf("%d s: %d commands, %d failed\n", second, now-last, failed.Swap(0))
		last = now
	}
	clients.Wait()
	total := time.Since(begin).Seconds()
	fmt.Printf("total: %.3f s, %d commands, %.2f per second\n", total, commands.Load(), float64(commands.Load())/total)
	return client.Disconnect(context.Background())
}

// mongoAgent starts a replica set whose members are a shard's, and an agent that samples it.
func mongoAgent(t *testing.T) (*servers.Group, *agent, func(seconds int) []string) {
	t.Helper()
	dir := filepath.Join(env.Dir, "mongodb")
	g, err := servers.Start(t.Context(), dir, servers.MongoDB, servers.Options{Servers: 3, Attached: true, Settings: []string{"shardsvr=true"}})
	must(t, err)
	t.Cleanup(func() { must(t, g.Stop(context.Background())) })
	var config strings.Builder
	config.WriteString(`runs:
  drain_timeout: 1m
tools:
  - name: mongoload
    command: '^mongoload (?P<target>\S+)'
    interval: '^(?P<elapsed>\d+) s: (?P<count_transaction>\d+) commands, (?P<count_error>\d+) failed$'
    summary: '^total: (?P<elapsed>[\d.]+) s, (?P<count_transaction>\d+) commands, (?P<rate_transaction>[\d.]+) per second$'
targets:
`)
	var hosts []string
	for n := 1; n <= g.N; n++ {
		hosts = append(hosts, g.Address(n))
		fmt.Fprintf(&config, "  - {name: m%d, engine: mongodb, cluster: rs, address: '%s'}\n", n, g.Address(n))
	}
	self, err := os.Executable()
	must(t, err)
	tool := filepath.Join(t.TempDir(), mongoLoad)
	must(t, os.Symlink(self, tool))
	return g, startAgent(t, config.String()), func(seconds int) []string { return []string{tool, strings.Join(hosts, ","), strconv.Itoa(seconds)} }
}

func (a *agent) report(t *testing.T, run, format string) []byte {
	t.Helper()
	out, err := exec.Command(env.Binary, "report", run, "--format="+format, "--config.file="+a.Config).Output()
	must(t, err)
	return out
}

// elapsed waits until a run has lasted for some seconds.
func (a *agent) elapsed(t *testing.T, run string, seconds float64) {
	t.Helper()
	agents.Wait(t, 30*time.Second, fmt.Sprintf("%v s of run %s", seconds, run), func() error {
		elapsed, err := a.Scrape(t).Value("benchwatch_run_elapsed_seconds", "run", run)
		if err == nil && elapsed < seconds {
			err = errors.New("not yet")
		}
		return err
	})
}

// TestMongoDBRuns guards runs on a shard with an arbiter, by a tool that is given all members: the drain is the
// secondary's, the queries are the tool's, and no missing privileges are reported; then a run during which the primary
// dies.
func TestMongoDBRuns(t *testing.T) {
	g, a, load := mongoAgent(t)
	before := map[string]float64{}
	for _, target := range []string{"m1", "m2"} {
		agents.Wait(t, 20*time.Second, "samples", func() (err error) {
			before[target], err = a.Scrape(t).Value("benchwatch_db_queries_total", "target", target)
			return err
		})
	}
	w := a.Run(t, "load", load(8)...)
	a.elapsed(t, "load", 5)
	must(t, g.Lag(t.Context(), 2))
	agents.Wait(t, 30*time.Second, "run drains", func() error {
		_, err := a.Scrape(t).Value("benchwatch_run_phase", "run", "load", "phase", "draining")
		return err
	})
	must(t, g.Unlag(t.Context(), 2))
	if status := w.Status(t, 30*time.Second); status != 0 {
		t.Fatalf("exit status %d:\n%s", status, w.Output(t))
	}
	meta := a.Closed(t, "load", 20*time.Second)
	if drain := meta.Drain["m2"]; len(meta.Drain) != 1 || drain.Seconds == nil || !(*drain.Seconds > 0) {
		t.Errorf("drain %+v", meta.Drain)
	}
	text := string(a.report(t, "load", "text"))
	if strings.Contains(text, "rights") || strings.Contains(text, "are unknown") {
		t.Errorf("the report finds something unknown:\n%s", text)
	}
	var tool float64
	if found := regexp.MustCompile(`total: .* s, (\d+) commands`).FindStringSubmatch(w.Output(t)); found != nil {
		tool, _ = strconv.ParseFloat(found[1], 64)
	}
	for _, target := range []string{"m1", "m2"} {
		got := a.Scrape(t).Must(t, "benchwatch_db_queries_total", "target", target) - before[target]
		// The server itself sends a few commands, and the tool does not count what it did after its end.
		if least, most := tool, 1.01*tool+20; target == "m1" && (tool == 0 || got < least || got > most) || target == "m2" && got > 0.05*tool+20 {
			t.Errorf("%v queries on %s, the tool sent %v", got, target, tool)
		}
	}

	w = a.Run(t, "failover", load(10)...)
	a.elapsed(t, "failover", 3)
	must(t, g.Kill(1))
	agents.Wait(t, 20*time.Second, "another primary", func() error {
		_, err := a.Scrape(t).Value("benchwatch_db_up", "target", "m2", "role", "primary")
		return err
	})
	if status := w.Status(t, 30*time.Second); status != 0 {
		t.Fatalf("exit status %d:\n%s", status, w.Output(t))
	}
	if meta = a.Closed(t, "failover", 20*time.Second); len(meta.Drain) != 0 {
		t.Errorf("drain %+v of a dead server", meta.Drain)
	}
	text = string(a.report(t, "failover", "text"))
	for _, want := range []string{"m1 did not answer", "the statements of m1 are not known", "find ycsb.usertable"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}
