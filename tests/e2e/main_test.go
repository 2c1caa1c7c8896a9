//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// env is what all tests share. The nodes of the cluster are targets n1 to n3.
var env struct {
	root    string // of the repository
	binary  string
	dir     string // of everything that the tests make
	cluster *servers.Group
}

const nodes = 3

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == mongoLoad {
		if err := runMongoLoad(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	if env.root, err = servers.Repository(); err != nil {
		return 1, err
	}
	if env.dir, err = os.MkdirTemp("", "benchwatch-e2e."); err != nil {
		return 1, err
	}
	defer os.RemoveAll(env.dir)
	// The database servers' own user must be able to pass through.
	if err = os.Chmod(env.dir, 0o711); err != nil {
		return 1, err
	}
	env.binary = filepath.Join(env.dir, "benchwatch")
	if err := agents.Build(env.binary, "agent"); err != nil {
		return 1, err
	}
	ctx := context.Background()
	env.cluster, err = servers.Start(ctx, filepath.Join(env.dir, "servers"), servers.Galera, servers.Options{Servers: nodes, Attached: true})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, env.cluster.Stop(ctx)) }()
	out, err := exec.Command("sysbench", sysbench("oltp_write_only", "--threads=2", "prepare")[1:]...).CombinedOutput()
	if err != nil {
		return 1, fmt.Errorf("prepare tables: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// must fails the test if something that a test does to a server fails.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sql asks node n as administrator and returns the cells of the first row. It also works
// in cleanups, where the test's context has ended.
func sql(t *testing.T, n int, statement string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	rows, err := env.cluster.Query(ctx, n, statement)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 {
		return nil
	}
	return rows[0]
}

// waitSynced waits until every node is a synced member of the cluster.
func waitSynced(t *testing.T) {
	t.Helper()
	agents.Wait(t, 60*time.Second, "cluster complete", func() error {
		out := strings.Join(env.cluster.Status(t.Context()), "\n")
		if strings.Count(out, fmt.Sprintf("Synced size %d", nodes)) != nodes {
			return errors.New(out)
		}
		return nil
	})
}

// sysbench returns a command line for node 1.
func sysbench(args ...string) []string {
	return append([]string{"sysbench", "--config-file=" + filepath.Join(env.cluster.Dir, "sysbench.cnf"),
		"--tables=2", "--table-size=5000", "--mysql-ignore-errors=1213,1020,1205,1047"}, args...)
}

// load returns a sysbench that writes for some seconds.
func load(seconds int) []string {
	return sysbench("oltp_write_only", "--threads=4", "--report-interval=1", fmt.Sprintf("--time=%d", seconds), "run")
}

// agent is an agent whose runs a test of this package reads.
type agent struct{ *agents.Agent }

// startAgent starts an agent with a new data directory. more is added to its configuration.
func startAgent(t *testing.T, more string) *agent {
	t.Helper()
	a := &agent{agents.New(t, env.binary, more)}
	a.Again(t)
	return a
}

// clusterTargets returns the part of a configuration that names the nodes.
func clusterTargets() string {
	var b strings.Builder
	b.WriteString("targets:\n")
	for n := 1; n <= nodes; n++ {
		fmt.Fprintf(&b, "  - {name: n%d, engine: mysql, cluster: e2e, address: '%s', user: monitor, password_file: %s/monitor.password}\n",
			n, env.cluster.Address(n), env.cluster.Dir)
	}
	return b.String()
}
