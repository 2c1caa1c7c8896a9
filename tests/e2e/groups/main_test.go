//go:build e2e

package groups

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/need"
	"github.com/benchwatch/benchwatch/internal/servers"
)

const generators = 4

// env is what all tests share.
var env struct {
	dir, binary string
	server      *servers.Group
}

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e/groups:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	if env.dir, err = os.MkdirTemp("", "benchwatch-groups."); err != nil {
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
	out, err := exec.Command("sysbench", sysbench("oltp_read_write", "prepare")[1:]...).CombinedOutput()
	if err != nil {
		return 1, fmt.Errorf("prepare tables: %w\n%s", err, out)
	}
	return m.Run(), nil
}

func sysbench(args ...string) []string {
	return append([]string{"sysbench", "--config-file=" + filepath.Join(env.server.Dir, "sysbench.cnf"), "--tables=4", "--table-size=1000", "--mysql-ignore-errors=all"}, args...)
}

// load returns a sysbench of so many seconds, at a rate that leaves most of the processor to other tests.
func load(seconds int) []string {
	return sysbench("oltp_read_write", "--threads=2", "--rate=50", fmt.Sprintf("--time=%d", seconds), "run")
}

// lab is the machines of a test and the one that starts groups on them.
type lab struct {
	*servers.Machines
	data, config string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	need.Program(t, "sshd")
	dir, err := os.MkdirTemp(env.dir, "lab.")
	if err != nil {
		t.Fatal(err)
	}
	port, err := servers.FreePorts(generators + 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := servers.StartMachines(t.Context(), filepath.Join(dir, "machines"), generators, port, env.dir+":"+os.Getenv("PATH"), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
	})
	l := &lab{m, filepath.Join(dir, "data"), filepath.Join(dir, "benchwatch.yml")}
	text := fmt.Sprintf("data_dir: %s\ntargets:\n  - {name: db1, engine: mysql, cluster: db, address: '%s', user: monitor, password_file: %s/monitor.password}\n",
		l.data, env.server.Address(1), env.server.Dir)
	if err := os.WriteFile(l.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// hosts are the names of the machines for --on.
func (l *lab) hosts() string {
	var names []string
	for i := 1; i <= l.N; i++ {
		names = append(names, fmt.Sprintf("gen%d", i))
	}
	return strings.Join(names, ",")
}

// flags of a run on all machines.
func (l *lab) flags(group string, more ...string) []string {
	return append([]string{"run", "--config.file=" + l.config, "--cluster=db", "--on=" + l.hosts(), "--group=" + group, "--ssh=ssh -F " + l.Config(), "--linger=0s", "--web.listen-address=127.0.0.1:0"}, more...)
}

// command is a benchwatch whose output is kept.
type command struct {
	*exec.Cmd
	out, err bytes.Buffer
}

func benchwatch(ctx context.Context, args ...string) *command {
	c := &command{Cmd: exec.CommandContext(ctx, env.binary, args...)}
	c.Stdout, c.Stderr = &c.out, &c.err
	return c
}

func (l *lab) dir(id string) rundir.Directory { return rundir.At(l.data, id) }

func (l *lab) load(t *testing.T, id string) rundir.Meta {
	t.Helper()
	m, err := l.dir(id).Load()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// report is what `report --format=json` prints of a run, as far as tests read it.
type report struct {
	ID         string
	Result     string
	Reason     string
	TPS        float64 `json:"transactions_per_second"`
	Operations []struct {
		Name    string
		Count   float64
		Latency map[string]float64 `json:"latency_seconds"`
	}
	Observed []string
	Trust    []struct{ Text string }
}

func (r *report) count(operation string) float64 {
	for _, o := range r.Operations {
		if o.Name == operation {
			return o.Count
		}
	}
	return 0
}

func (l *lab) report(t *testing.T, ids ...string) []report {
	t.Helper()
	c := benchwatch(t.Context(), append([]string{"report", "--config.file=" + l.config, "--format=json"}, ids...)...)
	if err := c.Run(); err != nil {
		t.Fatalf("report: %v\n%s", err, c.err.String())
	}
	var doc struct{ Runs []report }
	if err := json.Unmarshal(c.out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Runs
}

// status returns a counter of the server.
func status(t *testing.T, names ...string) float64 {
	t.Helper()
	rows, err := env.server.Query(t.Context(), 1, "SHOW GLOBAL STATUS WHERE Variable_name IN ('"+strings.Join(names, "','")+"')")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, row := range rows {
		var v float64
		if _, err := fmt.Sscan(row[1], &v); err != nil {
			t.Fatal(err)
		}
		sum += v
	}
	return sum
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, holds func() error) {
	t.Helper()
	agents.Wait(t, time.Minute, what, holds)
}
