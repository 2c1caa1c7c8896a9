//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/tests/e2e/galera"
)

var env galera.Lab

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == mongoLoad {
		if err := runMongoLoad(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(galera.Main(m, &env))
}

// must fails the test if something that a test does to a server fails.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.WriteFile(file, []byte(text), 0o600))
}

// sql asks node n as administrator and returns the cells of the first row. It also works
// in cleanups, where the test's context has ended.
func sql(t *testing.T, n int, statement string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	rows, err := env.Cluster.Query(ctx, n, statement)
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
		out := strings.Join(env.Cluster.Status(t.Context()), "\n")
		if strings.Count(out, fmt.Sprintf("Synced size %d", galera.Nodes)) != galera.Nodes {
			return errors.New(out)
		}
		return nil
	})
}

// agent is an agent whose runs a test of this package reads.
type agent struct{ *agents.Agent }

func startAgent(t *testing.T, more string) *agent {
	t.Helper()
	return &agent{env.StartAgent(t, more)}
}
