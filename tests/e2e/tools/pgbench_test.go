//go:build e2e

// Package tools tests pgbench on PostgreSQL, on loopback (`make e2e`).
package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// bench is benchwatch with one data directory.
type bench struct {
	t                 *testing.T
	binary, data, dir string
}

// run executes benchwatch in the folder dir and returns what it prints.
func (b *bench) run(args ...string) string {
	b.t.Helper()
	cmd := exec.Command(b.binary, args...)
	cmd.Dir, cmd.Env = b.dir, append(os.Environ(), "BENCHWATCH_DATA_DIR="+b.data)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("benchwatch %s: %v\n%s%s", args[0], err, out, &stderr)
	}
	return string(out)
}

// listed is a run in `benchwatch runs --format=json`.
type listed struct {
	ID                    string
	ToolVersion           string `json:"tool_version"`
	Verb, Workload        string
	Threads               int
	Target, Database      string
	Result                string
	TransactionsPerSecond float64            `json:"transactions_per_second"`
	LatencySeconds        map[string]float64 `json:"latency_seconds"`
	FailedShare           float64            `json:"failed_share"`
}

func (b *bench) runs() []listed {
	b.t.Helper()
	var all []listed
	if err := json.Unmarshal([]byte(b.run("runs", "--format=json")), &all); err != nil {
		b.t.Fatal(err)
	}
	return all
}

// transactions returns how many a run had according to `benchwatch report`, and how many
// are in its distribution.
func (b *bench) transactions(id string) (count, distributed uint64) {
	b.t.Helper()
	var report struct {
		Runs []struct {
			Operations []struct {
				Name  string
				Count uint64
			}
			Distributions []struct {
				Operation string
				Count     uint64
			} `json:"latency_distributions"`
		}
	}
	text := b.run("report", "--format=json", id)
	if err := json.Unmarshal([]byte(text), &report); err != nil || len(report.Runs) != 1 {
		b.t.Fatalf("report of %s: %v\n%s", id, err, text)
	}
	for _, o := range report.Runs[0].Operations {
		if o.Name == "transaction" {
			count = o.Count
		}
	}
	for _, d := range report.Runs[0].Distributions {
		if d.Operation == "transaction" {
			distributed = d.Count
		}
	}
	return count, distributed
}

// printed returns a number that pgbench printed.
func printed(t *testing.T, out, expression string) float64 {
	t.Helper()
	m := regexp.MustCompile(expression).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("pgbench printed nothing like %s:\n%s", expression, out)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A run of pgbench has pgbench's own figures, the logs of its threads are one run with all
// of its transactions, and the password is nowhere.
func TestPgbench(t *testing.T) {
	dir := t.TempDir()
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o711); err != nil { // for the server's own user
			t.Fatal(err)
		}
	}
	server, err := servers.Start(t.Context(), filepath.Join(dir, "postgres"), servers.PostgreSQL, servers.Options{Attached: true, Settings: []string{"fsync = off"}})
	if errors.Is(err, servers.ErrNoPostgreSQL) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	b := &bench{t: t, binary: filepath.Join(dir, "benchwatch"), data: filepath.Join(dir, "data"), dir: filepath.Join(dir, "logs")}
	if err := errors.Join(os.Mkdir(b.dir, 0o755), agents.Build(b.binary, ".")); err != nil {
		t.Fatal(err)
	}
	pgbench, err := servers.PostgreSQLClient("pgbench")
	if err != nil {
		t.Fatal(err)
	}
	password, err := server.Password("bench")
	if err != nil {
		t.Fatal(err)
	}
	connect := fmt.Sprintf("host=127.0.0.1 port=%d user=bench dbname=sbtest password=%s", server.Port+1, password)

	b.run("run", "--run-id=init", "--", pgbench, "-i", "-s", "1", connect)
	out := b.run("run", "--run-id=real", "--", pgbench, "-c", "4", "-j", "2", "-T", "5", "-l", connect)
	b.run("runs", "import", "--label-from=pgbench_log.{generator}", b.dir)
	b.run("run", "--run-id=scripts", "--", pgbench, "-b", "select-only", "-b", "simple-update", "-c", "2", "-j", "2", "-T", "3", "-l", "--log-prefix="+filepath.Join(dir, "other"), connect)
	url := fmt.Sprintf("postgresql://bench:%s@%s/sbtest", password, server.Address(1))
	b.run("run", "--run-id=rate", "--", pgbench, "-S", "-c", "2", "-T", "2", "-R", "200", url)

	runs := map[string]listed{}
	for _, r := range b.runs() {
		if r.Result != "succeeded" || r.FailedShare != 0 {
			t.Errorf("run %+v", r)
		}
		id := r.ID
		if strings.Contains(id, "pgbench_log") {
			id = "logs"
		}
		runs[id] = r
	}
	if len(runs) != 5 {
		t.Fatalf("runs: %+v", runs)
	}
	if r := runs["init"]; r.Verb != "prepare" {
		t.Errorf("the initialization: %+v", r)
	}
	count := uint64(printed(t, out, `number of transactions actually processed: (\d+)`))
	tps, mean := printed(t, out, `tps = ([\d.]+) \(without`), printed(t, out, `latency average = ([\d.]+) ms`)/1e3
	r := runs["real"]
	if n, distributed := b.transactions("real"); n != count || distributed != count || r.TransactionsPerSecond != tps || !near(r.LatencySeconds["avg"], mean, 1e-9) {
		t.Errorf("%d transactions, %d in the histogram, %+v\nof\n%s", n, distributed, r, out)
	}
	if n, distributed := b.transactions("scripts"); n == 0 || distributed != n {
		t.Errorf("%d transactions of two scripts, %d in the histogram", n, distributed)
	}
	if r.Workload != "tpcb-like" || r.Threads != 4 || r.Target != server.Address(1) || r.Database != "sbtest" || r.ToolVersion == "" {
		t.Errorf("facts of %+v", r)
	}
	// The log has the same transactions and their exact mean, which pgbench prints with three
	// decimals.
	logs := runs["logs"]
	if n, distributed := b.transactions(logs.ID); n != count || distributed != count || logs.Threads != 4 || !near(logs.LatencySeconds["avg"], mean, 0.5001e-6) {
		t.Errorf("%d transactions in the logs, %d in the histogram, %+v\nof\n%s", n, distributed, logs, out)
	}
	if r := runs["rate"]; r.Workload != "select-only" || r.Target != server.Address(1) || r.TransactionsPerSecond <= 0 {
		t.Errorf("with a rate: %+v", r)
	}
	b.noSecret(password)
}

func near(a, b, within float64) bool { return a >= b-within && a <= b+within }

// noSecret fails the test if the password is in a file of the data directory.
func (b *bench) noSecret(password string) {
	b.t.Helper()
	files := 0
	err := filepath.WalkDir(b.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if files++; bytes.Contains(text, []byte(password)) {
			b.t.Errorf("%s has the password", path)
		}
		return err
	})
	if err != nil || files == 0 {
		b.t.Fatalf("%d files: %v", files, err)
	}
	if strings.Contains(b.run("runs", "--format=json"), password) {
		b.t.Error("runs shows the password")
	}
}
