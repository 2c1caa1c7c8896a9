// Package mysqltest plays recorded answers of servers back through a sampler, for
// tests. A recording is a folder with one file per node and query,
// <node>.<query>.tsv:
//
//   - The first line names the columns. The first three are the recorder's
//     own: t_req and t_resp (Unix seconds, before the query and after its
//     answer) and err (empty, or why there is no answer).
//   - The query `status` is transposed: one line per sample, one column per variable;
//     an empty cell is a name that was not in the answer.
//   - Other queries have a line for each row; rows of one answer share t_req.
//     NULL is SQL's. \t, \n and \\ are escapes.
//
// It runs in a testing/synctest bubble, so that minutes take no time.
package mysqltest

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// recording contains the answers of all nodes.
type recording struct {
	// first and last are the seconds (Unix time) of the first and last tick.
	first, last int64
	nodes       map[string]map[int64]*answer
}

// answer contains the answers of one node in one second.
type answer struct {
	wait   time.Duration // from the full second to the last answer
	err    string
	status mysql.Values
	tables map[string][]mysql.Row
}

// load reads a folder.
func load(dir string) (*recording, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.*.tsv"))
	if err != nil {
		return nil, err
	}
	r := &recording{first: math.MaxInt64, nodes: map[string]map[int64]*answer{}}
	for _, file := range files {
		node, query, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".tsv"), ".")
		if r.nodes[node] == nil {
			r.nodes[node] = map[int64]*answer{}
		}
		if err := r.read(file, r.nodes[node], query); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if len(r.nodes) == 0 {
		return nil, fmt.Errorf("%s: no recording", dir)
	}
	return r, nil
}

func (r *recording) read(file string, node map[int64]*answer, query string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return errors.New("empty")
	}
	columns := strings.Split(lines.Text(), "\t")[3:]
	for lines.Scan() {
		cells := strings.Split(lines.Text(), "\t")
		if len(cells) < 3 {
			return fmt.Errorf("short line %q", lines.Text())
		}
		asked, err1 := strconv.ParseFloat(cells[0], 64)
		answered, err2 := strconv.ParseFloat(cells[1], 64)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		second := int64(asked)
		r.first, r.last = min(r.first, second), max(r.last, second)
		a := node[second]
		if a == nil {
			a = &answer{tables: map[string][]mysql.Row{}}
			node[second] = a
		}
		a.wait = max(a.wait, time.Duration((answered-float64(second))*float64(time.Second)))
		a.add(query, cells[2], columns, cells[3:])
	}
	return lines.Err()
}

func (a *answer) add(query, err string, columns, cells []string) {
	switch {
	case err == "NO_ROWS":
	case err != "":
		a.err = err
	case query == "status":
		a.status = mysql.Values{}
		for i, cell := range cells {
			if cell != "" && cell != "NULL" {
				a.status[columns[i]] = unescape(cell)
			}
		}
	default:
		values := make([]sql.NullString, len(columns))
		for i, cell := range cells {
			values[i] = sql.NullString{String: unescape(cell), Valid: cell != "NULL"}
		}
		a.tables[query] = append(a.tables[query], mysql.NewRow(columns, values))
	}
}

var escapes = strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n")

func unescape(cell string) string { return escapes.Replace(cell) }

// Node describes one server of a recording.
type Node struct {
	Name string
	// Variables of the server, as returned by SHOW GLOBAL VARIABLES.
	Variables mysql.Values
	// Details in the order in which they are called.
	Details []mysql.Detail
	// Table returns the name of the recorded query that answers a statement; empty: the server
	// refuses it.
	Table func(statement string) string
}

// Play samples the nodes of a recording, all in one cluster, once a second. The frame of Unix
// second s is frames[s-first], with the samples in the order of nodes.
func Play(t *testing.T, dir string, nodes []Node) (frames []engine.Frame, first int64) {
	t.Helper()
	r, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if frames, err = r.frames(nodes); err != nil {
			t.Fatal(err)
		}
	})
	return frames, r.first
}

func (r *recording) frames(nodes []Node) ([]engine.Frame, error) {
	var targets []engine.Target
	byName := map[string]*Node{}
	for i, n := range nodes {
		if r.nodes[n.Name] == nil {
			return nil, fmt.Errorf("node %q was not recorded", n.Name)
		}
		targets = append(targets, engine.Target{Name: n.Name, Engine: "mysql", Cluster: "c"})
		byName[n.Name] = &nodes[i]
	}
	start := time.Now().Truncate(time.Second).Add(time.Second) // the first tick
	s := engine.NewSampler(targets, func(t engine.Target) (engine.Prober, error) {
		server, err := mysql.NewServer(byName[t.Name].Variables)
		if err != nil {
			return nil, err
		}
		return &prober{recording: r, target: t, node: byName[t.Name], server: server, start: start}, nil
	}, time.Second, engine.Options{Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	frames, _ := s.Subscribe(1)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var got []engine.Frame
	for f := range frames {
		got = append(got, f)
		if int64(len(got)) > r.last-r.first {
			cancel()
		}
	}
	cancel()
	return got, <-done
}

// prober answers from the recording, with the delays of the recording.
type prober struct {
	recording *recording
	target    engine.Target
	node      *Node
	server    *mysql.Server
	start     time.Time
	now       *answer
}

// Probe implements engine.Prober.
func (p *prober) Probe(ctx context.Context) (*engine.Status, error) {
	tick := time.Now().Truncate(time.Second)
	p.now = p.recording.nodes[p.node.Name][p.recording.first+int64(tick.Sub(p.start)/time.Second)]
	if p.now == nil {
		return nil, errors.New("nothing recorded for this second")
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(p.now.wait):
	}
	switch {
	case strings.Contains(p.now.err, "Connection refused"):
		return nil, fmt.Errorf("recorded: %w", syscall.ECONNREFUSED)
	case p.now.err != "":
		return nil, errors.New(p.now.err)
	}
	return mysql.Decode(ctx, &mysql.Tick{Target: &p.target, Server: p.server, Status: p.now.status}, p, p.node.Details)
}

// Close implements engine.Prober.
func (p *prober) Close() error { return nil }

// Rows implements mysql.Querier.
func (p *prober) Rows(_ context.Context, statement string) ([]mysql.Row, error) {
	if strings.Contains(statement, "replication_applier_status_by_worker") {
		if recorded, ok := p.now.tables["applier_by_worker"]; ok {
			return workers(recorded), nil
		}
	}
	if p.node.Table != nil {
		if table := p.node.Table(statement); table != "" {
			return p.now.tables[table], nil
		}
	}
	return nil, mysql.ErrUnknownStatement
}

// workers converts the dates in the recorded table for a statement that asks for Unix times.
func workers(recorded []mysql.Row) []mysql.Row {
	columns := []string{"CHANNEL_NAME", "SERVICE_STATE", "APPLYING_TRANSACTION", "LAST_APPLIED_TRANSACTION"}
	times := map[string]string{
		"server_now":         "server_now",
		"applying_committed": "APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP",
		"applied_committed":  "LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP",
		"applied_end":        "LAST_APPLIED_TRANSACTION_END_APPLY_TIMESTAMP",
	}
	rows := []mysql.Row{}
	for _, r := range recorded {
		var names []string
		var values []sql.NullString
		for _, c := range columns {
			text, ok := r.Lookup(c)
			names, values = append(names, c), append(values, sql.NullString{String: text, Valid: ok})
		}
		for name, column := range times {
			text, ok := r.Lookup(column)
			unix := "0.000000" // for the year 0
			if at, err := time.Parse("2006-01-02 15:04:05.999999", text); err == nil {
				unix = fmt.Sprintf("%.6f", float64(at.UnixMicro())/1e6)
			}
			names, values = append(names, name), append(values, sql.NullString{String: unix, Valid: ok})
		}
		rows = append(rows, mysql.NewRow(names, values))
	}
	return rows
}
