//go:build e2e

// Package e2e tests the built binary on real servers: a Galera cluster, sysbench
// and Prometheus, all on loopback. `make e2e` runs it.
package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stand is what all tests share. The cluster's nodes are targets n1 to n3.
var stand struct {
	root    string // of the repository
	binary  string
	dir     string // of everything that the tests make
	servers string // the cluster's folder
	port    int    // node N listens on port+N
}

const nodes = 3

func TestMain(m *testing.M) {
	code, err := withStand(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func withStand(m *testing.M) (code int, err error) {
	if stand.root, err = filepath.Abs("../.."); err != nil {
		return 1, err
	}
	if stand.dir, err = os.MkdirTemp("", "benchwatch-e2e."); err != nil {
		return 1, err
	}
	defer os.RemoveAll(stand.dir)
	// The database servers' own user must be able to pass through.
	if err = os.Chmod(stand.dir, 0o711); err != nil {
		return 1, err
	}
	stand.binary = filepath.Join(stand.dir, "benchwatch")
	if out, err := exec.Command("go", "build", "-o", stand.binary, stand.root+"/agent").CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build: %w\n%s", err, out)
	}
	stand.servers = filepath.Join(stand.dir, "servers")
	if stand.port, err = freePorts(40); err != nil {
		return 1, err
	}
	defer func() {
		if _, e := script("galera.sh", "stop", stand.servers); e != nil && err == nil {
			err = e
		}
	}()
	if _, err = script("galera.sh", "start", stand.servers, fmt.Sprint(stand.port), fmt.Sprint(nodes)); err != nil {
		return 1, err
	}
	out, err := exec.Command("sysbench", sysbench("oltp_write_only", "--threads=2", "prepare")[1:]...).CombinedOutput()
	if err != nil {
		return 1, fmt.Errorf("prepare tables: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// freePorts returns the port before a row of n free ones.
func freePorts(n int) (int, error) {
next:
	for base := 27000 + os.Getpid()%10*50; base < 29000; base += n + 10 {
		for p := base; p <= base+n; p++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if err != nil {
				continue next
			}
			l.Close()
		}
		return base, nil
	}
	return 0, fmt.Errorf("no %d free ports in a row", n)
}

// freeAddress returns a loopback address that is free now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// script runs one of the repository's scripts and returns what it printed.
func script(name string, args ...string) (string, error) {
	return scriptIn("", name, args...)
}

func scriptIn(stdin, name string, args ...string) (string, error) {
	var stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(stand.root, "scripts", name), args...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, args[0], err, stderr.String())
	}
	return string(out), nil
}

// node does something to node n: pause, resume, kill, rejoin, limit, unlimit.
func node(t *testing.T, what string, n int, args ...string) {
	t.Helper()
	args = append([]string{what, stand.servers, fmt.Sprint(n)}, args...)
	if _, err := script("galera.sh", args...); err != nil {
		t.Fatal(err)
	}
}

// sql asks node n as administrator.
func sql(t *testing.T, n int, statement string) string {
	t.Helper()
	out, err := scriptIn(statement, "galera.sh", "sql", stand.servers, fmt.Sprint(n))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// waitSynced waits until every node is a member in step with the others.
func waitSynced(t *testing.T) {
	t.Helper()
	wait(t, 60*time.Second, "cluster complete", func() error {
		out, err := script("galera.sh", "status", stand.servers)
		if err != nil {
			return err
		}
		if strings.Count(out, fmt.Sprintf("Synced size %d", nodes)) != nodes {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
}

// sysbench is a command line on node 1.
func sysbench(args ...string) []string {
	return append([]string{"sysbench", "--config-file=" + filepath.Join(stand.servers, "sysbench.cnf"),
		"--tables=2", "--table-size=5000", "--mysql-ignore-errors=1213,1020,1205,1047"}, args...)
}

// load is a sysbench that writes for so many seconds.
func load(seconds int) []string {
	return sysbench("oltp_write_only", "--threads=4", "--report-interval=1", fmt.Sprintf("--time=%d", seconds), "run")
}

// wait polls until check returns nil, and fails the test with its last error.
func wait(t *testing.T, limit time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: not after %s: %v", what, limit, err)
		case <-tick.C:
		}
	}
}
