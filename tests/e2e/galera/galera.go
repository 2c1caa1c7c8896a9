//go:build e2e

// Package galera runs a package's tests of the built binary on a Galera cluster with sysbench's
// tables, all on loopback.
package galera

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// Nodes is the size of the cluster.
const Nodes = 3

// Lab is what the tests share. The nodes of the cluster are targets n1 to n3.
type Lab struct {
	Root    string // of the repository
	Binary  string
	Dir     string // of everything that the tests make
	Cluster *servers.Group
}

// Main fills the lab, runs the tests and returns the exit status.
func Main(m *testing.M, lab *Lab) int {
	code, err := lab.run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return code
}

func (l *Lab) run(m *testing.M) (code int, err error) {
	if l.Root, err = servers.Repository(); err != nil {
		return 1, err
	}
	if l.Dir, err = os.MkdirTemp("", "benchwatch-e2e."); err != nil {
		return 1, err
	}
	defer os.RemoveAll(l.Dir)
	// The database servers' own user must be able to pass through.
	if err = os.Chmod(l.Dir, 0o711); err != nil {
		return 1, err
	}
	l.Binary = filepath.Join(l.Dir, "benchwatch")
	if err := agents.Build(l.Binary, "."); err != nil {
		return 1, err
	}
	ctx := context.Background()
	l.Cluster, err = servers.Start(ctx, filepath.Join(l.Dir, "servers"), servers.Galera, servers.Options{Servers: Nodes, Attached: true})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, l.Cluster.Stop(ctx)) }()
	out, err := exec.Command("sysbench", l.Sysbench("oltp_write_only", "--threads=2", "prepare")[1:]...).CombinedOutput()
	if err != nil {
		return 1, fmt.Errorf("prepare tables: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// Sysbench returns a command line for node 1.
func (l *Lab) Sysbench(args ...string) []string {
	return append([]string{"sysbench", "--config-file=" + filepath.Join(l.Cluster.Dir, "sysbench.cnf"),
		"--tables=2", "--table-size=5000", "--mysql-ignore-errors=1213,1020,1205,1047"}, args...)
}

// Load returns a sysbench that writes for some seconds, at a rate that leaves most of the processor to other tests.
func (l *Lab) Load(seconds int) []string {
	return l.Sysbench("oltp_write_only", "--threads=4", "--rate=100", "--report-interval=1", fmt.Sprintf("--time=%d", seconds), "run")
}

// Targets returns the part of a configuration that names the nodes.
func (l *Lab) Targets() string {
	var b strings.Builder
	b.WriteString("targets:\n")
	for n := 1; n <= Nodes; n++ {
		fmt.Fprintf(&b, "  - {name: n%d, engine: mysql, cluster: e2e, address: '%s', user: monitor, password_file: %s/monitor.password}\n",
			n, l.Cluster.Address(n), l.Cluster.Dir)
	}
	return b.String()
}

// StartAgent starts an agent with a new data directory. more is added to its configuration.
func (l *Lab) StartAgent(t *testing.T, more string) *agents.Agent {
	t.Helper()
	a := agents.New(t, l.Binary, more)
	a.Again(t)
	return a
}
