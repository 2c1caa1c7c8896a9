package registry_test

import (
	"context"
	"database/sql"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/aurora"
	"github.com/benchwatch/benchwatch/agent/model/engine/galera"
	"github.com/benchwatch/benchwatch/agent/model/engine/groupreplication"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/engine/replication"
	"github.com/benchwatch/benchwatch/agent/model/engine/tidb"
)

// tables answers each statement with the next table.
type tables struct {
	all  [][]mysql.Row
	next int
}

// Rows implements mysql.Querier.
func (q *tables) Rows(context.Context, string) ([]mysql.Row, error) {
	if len(q.all) == 0 {
		return nil, mysql.ErrUnknownStatement
	}
	q.next++
	return q.all[q.next%len(q.all)], nil
}

// parseTables reads tables separated by empty lines. The first line of each names the columns, and
// tabs separate the cells.
func parseTables(text string) *tables {
	q := &tables{}
	for block := range strings.SplitSeq(text, "\n\n") {
		var columns []string
		var rows []mysql.Row
		for line := range strings.SplitSeq(block, "\n") {
			cells := strings.Split(line, "\t")
			if columns == nil {
				columns = cells
				continue
			}
			var values []sql.NullString
			for _, c := range cells {
				values = append(values, sql.NullString{String: c, Valid: c != "NULL"})
			}
			rows = append(rows, mysql.NewRow(columns, values))
		}
		q.all = append(q.all, rows)
	}
	return q
}

// FuzzMySQLTables guards that no detail panics, whatever tables a server of the family returns, and
// that the results are finite and bounded.
func FuzzMySQLTables(f *testing.F) {
	files, err := filepath.Glob("../*/testdata/*/*.*.tsv")
	if err != nil {
		f.Fatal(err)
	}
	variables := []string{
		"version\t10.11.6-MariaDB\nwsrep_on\tON\nserver_id\t1\nserver_uuid\tx\ngtid_domain_id\t0\nread_only\tON\nhostname\tdb1",
		"version\t8.4.3\nserver_uuid\t31420075-e54e-11f1-8be2-02fc00000001\ngtid_executed\tx:1-43\ngroup_replication_group_name\tx",
		"version\t8.0.28\naurora_version\t3.04.0\naurora_server_id\tone\ninnodb_read_only\tON",
		"version\t8.0.11-TiDB-v8.5.0\nversion_comment\tTiDB Server\nport\t4000\nhostname\tx",
	}
	var seeds []string
	for _, file := range files {
		if strings.Contains(file, ".status.") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		lines := strings.SplitN(string(data), "\n", 4)
		for i, line := range lines[:len(lines)-1] {
			if cells := strings.Split(line, "\t"); len(cells) > 3 { // without the recorder's own columns
				lines[i] = strings.Join(cells[3:], "\t")
			}
		}
		if seed := strings.Join(lines[:len(lines)-1], "\n"); !slices.Contains(seeds, seed) {
			seeds = append(seeds, seed)
		}
	}
	if len(seeds) < 5 {
		f.Fatalf("%d recorded tables", len(seeds))
	}
	seeds = append(seeds,
		"SERVER_ID\tSESSION_ID\tCPU\tREPLICA_LAG_IN_MILLISECONDS\tLAST_UPDATE_TIMESTAMP\none\tMASTER_SESSION_ID\t5\t0\t2026-11-21 01:55:05.605169\ntwo\tx\t1e308\t1e308\t2026-11-21T01:55:05",
		"TYPE\tINSTANCE\tSTATUS_ADDRESS\tVERSION\ntidb\t127.0.0.1:4000\t127.0.0.1:1\t8.5.0\ntikv\tx\ty\tz")
	for _, vars := range variables {
		for _, seed := range seeds {
			f.Add(vars, "Uptime\t133\nwsrep_local_state\t4\nwsrep_last_committed\t18446744073709551615\nwsrep_cluster_status\tPrimary", seed)
		}
		f.Add(vars, "", strings.Join(seeds, "\n\n"))
	}
	parse := func(text string) mysql.Values {
		v := mysql.Values{}
		for line := range strings.SplitSeq(text, "\n") {
			name, value, _ := strings.Cut(line, "\t")
			v[name] = value
		}
		return v
	}
	f.Fuzz(func(t *testing.T, vars, status, text string) {
		server, err := mysql.NewServer(parse(vars))
		if err != nil {
			return
		}
		details := []mysql.Detail{aurora.Details()(), galera.New(), groupreplication.New(), replication.New(), tidb.New()}
		target := &engine.Target{Name: "x", Cluster: "c", Address: "127.0.0.1:1", Options: map[string]string{"status_address": "127.0.0.1:1"}}
		q := parseTables(text)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		for range 2 { // counters need two
			out, err := mysql.Decode(ctx, &mysql.Tick{Target: target, Server: server, Status: parse(status)}, q, details)
			if err != nil {
				if ctx.Err() != nil {
					t.Fatal("it takes too long")
				}
				return
			}
			if limit := 1000 + 20*strings.Count(text, "\n"); len(out.Values) > limit {
				t.Fatalf("%d values of %d bytes", len(out.Values), len(text))
			}
			for _, v := range out.Values {
				if math.IsNaN(v.V) || math.IsInf(v.V, 0) {
					t.Fatalf("%s is %v", v.Metric.Name, v.V)
				}
			}
			for _, lag := range []float64{out.LagSeconds.Value, out.CoarseLagSeconds.Value} {
				if math.IsNaN(lag) || math.IsInf(lag, 0) || lag < 0 {
					t.Fatalf("lag %v", lag)
				}
			}
			if out.Uptime < 0 || out.Delay < 0 {
				t.Fatalf("up for %s, delayed by %s", out.Uptime, out.Delay)
			}
			if p := out.Position; p != nil {
				if n, ok := p.Behind(p); ok && n != 0 || math.IsNaN(p.Scalar()) || len(p.String()) > 10*len(vars+status+text)+1000 {
					t.Fatalf("position %q is %d behind itself, %v", p, n, p.Scalar())
				}
			}
		}
		for _, d := range details {
			if c, ok := d.(interface{ Close() error }); ok {
				_ = c.Close()
			}
		}
	})
}
