package aurora

import (
	"bufio"
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// sections reads the composed answers: lines by the statement above them.
func sections(t *testing.T) map[string][][]string {
	t.Helper()
	f, err := os.Open("testdata/composed.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := map[string][][]string{}
	name := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		text := lines.Text()
		if rest, ok := strings.CutPrefix(text, "== "); ok {
			name = strings.Fields(rest)[0] + " " + strings.Fields(rest)[1]
		} else if name != "" && text != "" {
			found[name] = append(found[name], strings.Split(text, "\t"))
		}
	}
	return found
}

// status returns the composed SHOW GLOBAL STATUS, sample 1 or 2.
func status(t *testing.T, sample int) mysql.Values {
	t.Helper()
	values := mysql.Values{}
	for _, line := range sections(t)["SHOW GLOBAL"] {
		values[line[0]] = line[sample]
	}
	return values
}

const columns = "SERVER_ID|SESSION_ID|CPU|REPLICA_LAG_IN_MILLISECONDS|LAST_UPDATE_TIMESTAMP|IS_CURRENT"

func rows(lines ...string) []mysql.Row {
	var rows []mysql.Row
	for _, line := range lines {
		var values []sql.NullString
		for cell := range strings.SplitSeq(line, "|") {
			values = append(values, sql.NullString{String: cell, Valid: cell != "NULL"})
		}
		rows = append(rows, mysql.NewRow(strings.Split(columns, "|"), values))
	}
	return rows
}

// composedRows returns the composed replica_host_status.
func composedRows(t *testing.T) []mysql.Row {
	t.Helper()
	var lines []string
	for _, line := range sections(t)["SELECT SERVER_ID,"] {
		lines = append(lines, strings.Join(line, "|"))
	}
	return rows(lines...)
}

type querier struct {
	rows  []mysql.Row
	err   error
	asked int
}

func (q *querier) Rows(_ context.Context, statement string) ([]mysql.Row, error) {
	if statement == replicaStatement {
		q.asked++
	}
	return q.rows, q.err
}

const (
	writerID = "bench-aurora-1"
	readerID = "bench-aurora-2"
)

func server(t *testing.T, id, readOnly string) *mysql.Server {
	t.Helper()
	s, err := mysql.NewServer(mysql.Values{
		"version": "8.0.39", "version_comment": "Source distribution", "aurora_version": "3.08.1",
		"aurora_server_id": id, "innodb_read_only": readOnly,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var cluster = &engine.Target{Cluster: "bench-aurora"}

// sample decodes a tick like the prober of the family.
func sample(t *testing.T, d mysql.Detail, q mysql.Querier, server *mysql.Server, target *engine.Target, values mysql.Values) *engine.Status {
	t.Helper()
	s, err := mysql.Decode(context.Background(), &mysql.Tick{Target: target, Server: server, Status: values}, q, []mysql.Detail{d})
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.WellFormed(t, s)
}

func mustLag(t *testing.T, s *engine.Status, want float64) {
	t.Helper()
	if s.LagSeconds != series.Some(want) {
		t.Errorf("lag %v, not %v", s.LagSeconds, want)
	}
}

// The writer reports all instances. A reader takes its lag from there and sends no query.
func TestWriterAndReader(t *testing.T) {
	newDetail := Details()
	table := &querier{rows: composedRows(t)}
	w := sample(t, newDetail(), table, server(t, writerID, "0"), cluster, status(t, 1))
	if w.Flavour != "aurora" || w.Role != "primary" || !w.Replicating || w.LagSeconds.Known || w.Uptime != 24*time.Hour {
		t.Errorf("got %+v", w)
	}
	enginetest.Want(t, w, 0.017462, replicaLag, readerID)
	enginetest.Absent(t, w, replicaLag, writerID)
	enginetest.Absent(t, w, replicaLag, "bench-aurora-old")
	enginetest.Want(t, w, 0.6125, serverCPU, writerID)
	enginetest.Want(t, w, 0.185, serverCPU, readerID)
	enginetest.Absent(t, w, serverCPU, "bench-aurora-old")
	enginetest.Want(t, w, 0.6125, ownCPU)
	enginetest.Want(t, w, 1, readers)
	enginetest.Want(t, w, 1, isWriter)

	nothing := &querier{}
	r := sample(t, newDetail(), nothing, server(t, readerID, "ON"), cluster, mysql.Values{"Uptime": "5"})
	if r.Role != "replica" || nothing.asked != 0 {
		t.Errorf("role %q, asked %d times", r.Role, nothing.asked)
	}
	mustLag(t, r, 0.017462)
	enginetest.Want(t, r, 0.185, ownCPU)
	enginetest.Want(t, r, 0, isWriter)
	if engine.Reached(r.Position, w.Position) || !engine.Reached(w.Position, r.Position) {
		t.Errorf("writer at %v, reader at %v", w.Position, r.Position)
	}
	if got, want := r.Position.String(), "2026-01-15T10:00:03.380538"; got != want {
		t.Errorf("reader at %s, not %s", got, want)
	}
}

// The end of a run is a time of the writer. A reader has reached it when it shows the volume as of
// that time.
func TestDrain(t *testing.T) {
	d := Details()()
	at := func(writer, reader, lag string) (w, r engine.Position) {
		table := rows(writerID+"|MASTER_SESSION_ID|1|0|2026-01-15 10:00:"+writer+"|1", readerID+"|x|1|"+lag+"|2026-01-15 10:00:"+reader+"|1")
		w = sample(t, d, &querier{rows: table}, server(t, writerID, "0"), cluster, nil).Position
		r = sample(t, Details()(), &querier{rows: table}, server(t, readerID, "1"), &engine.Target{Cluster: cluster.Cluster}, nil).Position
		return w, r
	}
	goal, reader := at("10.000000", "10.000000", "2500")
	if engine.Reached(reader, goal) {
		t.Error("reached with a lag of 2.5 s")
	}
	_, reader = at("11.000000", "11.000000", "1500")
	if engine.Reached(reader, goal) {
		t.Error("reached half a second too early")
	}
	_, reader = at("12.000000", "11.900000", "20")
	if !engine.Reached(reader, goal) {
		t.Errorf("%v has not reached %v", reader, goal)
	}
	if _, ok := reader.Behind(goal); ok {
		t.Error("transactions were counted")
	}
	if engine.Reached(reader, position{"another", time.Time{}}) {
		t.Error("positions of two clusters were compared")
	}
}

// If the writer is not a target, a reader uses its own table as long as that changes.
func TestReaderAlone(t *testing.T) {
	d := Details()().(*Detail)
	q := &querier{rows: composedRows(t)}
	tick := &mysql.Tick{Target: &engine.Target{}, Server: server(t, readerID, "1"), Status: mysql.Values{}}
	now := time.Now()
	read := func(after time.Duration) *engine.Status {
		var s engine.Status
		if err := d.readReplicas(context.Background(), q, tick, &s, now.Add(after)); err != nil {
			t.Fatal(err)
		}
		return &s
	}
	s := read(0)
	mustLag(t, s, 0.017462)
	enginetest.Absent(t, s, replicaLag, readerID) // only the writer sees this correctly
	if s = read(2 * time.Second); !s.LagSeconds.Known {
		t.Error("lag is unknown after two seconds")
	}
	if s = read(4 * time.Second); s.LagSeconds.Known || s.Position == nil {
		t.Errorf("lag %v of a table that does not change, position %v", s.LagSeconds.Value, s.Position)
	}
	enginetest.Absent(t, s, ownCPU)
	q.rows = rows(readerID + "|x|1|30|2026-01-15 10:00:09.000000|1")
	mustLag(t, read(5*time.Second), 0.03)
}

func TestStrangeRows(t *testing.T) {
	const writerRow = writerID + "|MASTER_SESSION_ID|20|0|2026-01-15 10:00:00.000000|1"
	cases := map[string]struct {
		row     string
		lag     float64 // negative: unknown
		cpu     float64
		readers float64
	}{
		"whole seconds":     {"r|x|50|1500|2026-01-15 10:00:00|1", 1.5, 0.5, 1},
		"NULL":              {"r|x|NULL|NULL|2026-01-15 10:00:00|1", -1, -1, 1},
		"negative":          {"r|x|-1|-1|2026-01-15 10:00:00|1", -1, -1, 1},
		"silent since 20 s": {"r|x|50|12|2026-01-15 09:59:40|1", -1, -1, 1},
		"gone since 6 min":  {"r|x|50|12|2026-01-15 09:54:00|1", -1, -1, 0},
		"no time":           {"r|x|50|12|NULL|1", -1, -1, 0},
		"zero time":         {"r|x|50|12|0000-00-00 00:00:00|1", -1, -1, 0},
		"no name":           {"|x|50|12|2026-01-15 10:00:00|1", -1, -1, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := sample(t, Details()(), &querier{rows: rows(writerRow, c.row)}, server(t, writerID, "OFF"), cluster, nil)
			if c.lag < 0 {
				enginetest.Absent(t, s, replicaLag, "r")
			} else {
				enginetest.Want(t, s, c.lag, replicaLag, "r")
			}
			if c.cpu < 0 {
				enginetest.Absent(t, s, serverCPU, "r")
			} else {
				enginetest.Want(t, s, c.cpu, serverCPU, "r")
			}
			enginetest.Want(t, s, c.readers, readers)
		})
	}
	double := rows(writerRow, "r|x|50|900|2026-01-15 09:59:50|1", "r|y|50|10|2026-01-15 10:00:00|1")
	enginetest.Want(t, sample(t, Details()(), &querier{rows: double}, server(t, writerID, "0"), cluster, nil), 0.01, replicaLag, "r")
	empty := sample(t, Details()(), &querier{}, server(t, writerID, "0"), cluster, nil)
	if empty.Role != "primary" || empty.Position != nil {
		t.Errorf("got %+v", empty)
	}
	enginetest.Absent(t, empty, readers)
}

// After a failover the table is right earlier than the variables.
func TestFailover(t *testing.T) {
	d := Details()()
	after := rows(readerID+"|MASTER_SESSION_ID|20|0|2026-01-15 10:00:00.000000|1", writerID+"|x|20|5|2026-01-15 10:00:00.000000|1")
	s := sample(t, d, &querier{rows: after}, server(t, writerID, "0"), cluster, nil)
	if s.Role != "replica" {
		t.Errorf("role %q", s.Role)
	}
	enginetest.Want(t, s, 0, isWriter)
	mustLag(t, s, 0.005)
}

func TestStatusVariables(t *testing.T) {
	first := sample(t, Details()(), &querier{}, server(t, writerID, "0"), cluster, status(t, 1))
	second := sample(t, Details()(), &querier{}, server(t, writerID, "0"), cluster, status(t, 2))
	enginetest.Want(t, first, 1204331, commits)
	enginetest.Want(t, first, 4816.201123, commitSeconds)
	enginetest.Want(t, first, 7120.043312, statementTime, "select")
	enginetest.Want(t, first, 64, external)
	enginetest.Want(t, first, 24086511, engine.QueriesTotal)
	enginetest.Absent(t, first, statementTime, "ddl")
	enginetest.Absent(t, first, forwarded, "writer", "dml")
	enginetest.Want(t, second, 1219502, commits)

	s := sample(t, Details()(), &querier{}, server(t, writerID, "0"), cluster, mysql.Values{
		"AURORADB_COMMITS": "5", "aurora_lockmgr_memory_used": "77", "Aurora_fwd_master_dml_stmt_count": "3",
		"Aurora_fwd_writer_dml_stmt_count": "4", "AuroraDb_ddl_stmt_duration": "", "AuroraDb_commit_latency": "-1",
		"Innodb_os_log_written": "9", "Innodb_buffer_pool_pages_dirty": "0", "Innodb_buffer_pool_pages_free": "12", "Innodb_data_fsyncs": "1",
	})
	enginetest.Want(t, s, 5, commits)
	enginetest.Want(t, s, 77, lockMemory)
	enginetest.Want(t, s, 4, forwarded, "writer", "dml")
	enginetest.Absent(t, s, statementTime, "ddl")
	enginetest.Absent(t, s, commitSeconds)
	pages := 0
	for _, v := range s.Values {
		if strings.HasPrefix(v.Metric.Name, "mysql_innodb_log_") || strings.HasPrefix(v.Metric.Name, "mysql_innodb_data_") {
			t.Errorf("%s means nothing on Aurora", v.Metric.Name)
		}
		if v.Metric.Name == "mysql_innodb_buffer_pool_pages" {
			pages++
		}
	}
	if pages != 1 {
		t.Errorf("%d kinds of pages", pages)
	}
}

func TestNoRight(t *testing.T) {
	q := &querier{err: &driver.MySQLError{Number: 1142, Message: "SELECT command denied"}}
	s := sample(t, Details()(), q, server(t, writerID, "0"), cluster, status(t, 1))
	if len(s.Missing) != 1 || s.Role != "primary" {
		t.Errorf("missing %q, role %q", s.Missing, s.Role)
	}
	enginetest.Want(t, s, 1204331, commits)
	enginetest.Absent(t, s, readers)
}

// Other servers of the family are ignored.
func TestNotAurora(t *testing.T) {
	other, err := mysql.NewServer(mysql.Values{"version": "8.0.39", "innodb_read_only": "0"})
	if err != nil {
		t.Fatal(err)
	}
	q := &querier{}
	s := sample(t, Details()(), q, other, cluster, mysql.Values{"Uptime": "3"})
	if len(s.Values) != 0 || q.asked != 0 || s.Role != "" {
		t.Errorf("got %+v, asked %d times", s, q.asked)
	}
}

// The composed answers of a writer give a value for every measure of Aurora.
func TestMeasures(t *testing.T) {
	d := Details()()
	table := &querier{rows: composedRows(t)}
	first := sample(t, d, table, server(t, writerID, "0"), cluster, status(t, 1))
	second := sample(t, d, table, server(t, writerID, "0"), cluster, status(t, 2))
	enginetest.Measures(t, first, second, "commits", "commit_latency", "active_sessions")

	statuses := make([]*engine.Status, 2)
	for i, n := range []string{"10", "25"} {
		statuses[i] = &engine.Status{}
		readStatus(mysql.Values{"Aurora_fwd_writer_dml_stmt_count": n, "Aurora_lockmgr_memory_used": n, "AuroraDb_thread_deadlocks": n}, statuses[i])
	}
	enginetest.Measures(t, statuses[0], statuses[1], "forwarded_statements", "lock_manager_memory", "deadlocks")
}
