//go:build limits

package limits

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// env is what all tests share.
var env struct {
	dir, binary string
	server      *servers.Group
}

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == goYCSB { // as the tool of a test
		if err := runGoYCSB(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "limits:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	if env.dir, err = os.MkdirTemp("", "benchwatch-limits."); err != nil {
		return 1, err
	}
	defer os.RemoveAll(env.dir)
	// The database server's own user must be able to pass through.
	if err = os.Chmod(env.dir, 0o711); err != nil {
		return 1, err
	}
	env.binary = filepath.Join(env.dir, "benchwatch")
	if err := agents.Build(env.binary, "."); err != nil {
		return 1, err
	}
	ctx := context.Background()
	env.server, err = servers.Start(ctx, filepath.Join(env.dir, "servers"), servers.MariaDB, servers.Options{Servers: 1, Attached: true})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, env.server.Stop(ctx)) }()
	if err := prepare(env.server); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// sysbench returns a command line for tables of 50 MB together, on the shared server.
func sysbench(args ...string) []string { return sysbenchOn(env.server, args...) }

func sysbenchOn(g *servers.Group, args ...string) []string {
	return append([]string{"sysbench", "--config-file=" + filepath.Join(g.Dir, "sysbench.cnf"), "--tables=2", "--table-size=100000", "--report-interval=1"}, args...)
}

// must fails the test if something that a test does to a server fails.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// set changes a global variable of the server for as long as the test lasts.
func set(t *testing.T, name, value string) {
	t.Helper()
	before := query(t, "SELECT @@GLOBAL."+name)[0][0]
	query(t, "SET GLOBAL "+name+" = "+value)
	t.Cleanup(func() { query(t, "SET GLOBAL "+name+" = "+before) })
}
