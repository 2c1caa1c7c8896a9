package tidb

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// querier answers from a table; without a table, with an error.
type querier struct {
	rows  []mysql.Row
	err   error
	asked []string
}

func (q *querier) Rows(_ context.Context, statement string) ([]mysql.Row, error) {
	q.asked = append(q.asked, statement)
	return q.rows, q.err
}

func rows(columns string, lines ...string) []mysql.Row {
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

const memberColumns = "TYPE|INSTANCE|STATUS_ADDRESS|VERSION"

// recordedMembers returns information_schema.cluster_info of a real server.
func recordedMembers(statusAddress string) []mysql.Row {
	return rows(memberColumns, "tidb|127.0.0.1:4000|"+statusAddress+"|8.4.0-this-is-a-placeholder", "tikv|store1||")
}

// tick returns SHOW GLOBAL STATUS and the variables of a real server.
func tick(t *testing.T, target *engine.Target) *mysql.Tick {
	t.Helper()
	server, err := mysql.NewServer(mysql.Values{
		"version": "8.0.11-TiDB-v8.4.0-this-is-a-placeholder", "version_comment": "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible",
		"max_connections": "0",
	})
	if err != nil {
		t.Fatal(err)
	}
	return &mysql.Tick{Target: target, Server: server, Status: mysql.Values{
		"Ssl_cipher": "", "Ssl_verify_mode": "0", "Ssl_version": "", "Uptime": "27",
		"ddl_schema_version": "55", "server_id": "f79ce59a-87d6-4b39-af86-c67d8c208a5a",
	}}
}

// statusPort serves what answer writes, and counts the requests.
func statusPort(t *testing.T, answer http.HandlerFunc) (server *httptest.Server) {
	t.Helper()
	server = httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server
}

func newDetail(t *testing.T) *Detail {
	t.Helper()
	d := New().(*Detail)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// sample decodes a tick like the prober of the family.
func sample(t *testing.T, d *Detail, q mysql.Querier, target *engine.Target) *engine.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := mysql.Decode(ctx, tick(t, target), q, []mysql.Detail{d})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The cluster's own table gives the status port.
func TestSample(t *testing.T) {
	port := statusPort(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" || r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("asked for %s with %v", r.URL, r.Header)
		}
		_, _ = w.Write(recorded(t, "metrics_read_write_t5"))
	})
	address := strings.TrimPrefix(port.URL, "http://")
	q := &querier{rows: recordedMembers(address)}
	d := newDetail(t)
	target := &engine.Target{Address: "127.0.0.1:4000"}
	s := sample(t, d, q, target)
	if s.Flavour != "tidb" || s.Uptime != 27*time.Second || len(s.Missing) != 0 || s.Position != nil {
		t.Errorf("got %+v", s)
	}
	enginetest.Want(t, s, 310790, engine.QueriesTotal)
	enginetest.Want(t, s, 1, clusterMembers, "tidb")
	enginetest.Want(t, s, 1, clusterMembers, "tikv")
	enginetest.Want(t, s, 1, memberInfo, "tikv", "store1", "")
	enginetest.Absent(t, s, engine.ConnectionsLimit)
	sample(t, d, q, target)
	if members := slices.DeleteFunc(q.asked, func(s string) bool { return s != memberStatement }); len(members) != 1 {
		t.Errorf("asked %d times for the members", len(members))
	}
}

// Without the status port the load is unknown: SHOW STATUS has no counters, and no value becomes 0.
func TestStatusPortFails(t *testing.T) {
	refused := statusPort(t, nil)
	refused.Close()
	cases := map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"refused":        {nil, "connection refused"},
		"not found":      {http.NotFound, "404"},
		"elsewhere":      {http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound).ServeHTTP, "302"},
		"another server": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "go_goroutines 7\n") }, "no metrics of TiDB"},
		"a web page":     {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>\n<body>hello</body>\n") }, "no metrics of TiDB"},
		"broken values":  {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "tidb_server_tokens {x\n") }, "status port"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			_, _ = io.WriteString(w, "tidb_server_tokens 1\n")
		}, "unexpected EOF"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			port := refused
			if c.answer != nil {
				port = statusPort(t, c.answer)
			}
			d := newDetail(t)
			target := &engine.Target{Address: "127.0.0.1:4000", Options: map[string]string{"status_address": port.URL}}
			s := sample(t, d, &querier{}, target)
			if len(s.Missing) != 1 || !strings.Contains(s.Missing[0], c.want) || !strings.Contains(s.Missing[0], "status_address") || strings.Contains(s.Missing[0], "\n") {
				t.Errorf("missing %q", s.Missing)
			}
			for _, m := range []*measure.Metric{engine.QueriesTotal, engine.CommitsTotal, engine.Connections, engine.ThreadsRunning, metricsAge} {
				enginetest.Absent(t, s, m)
			}
		})
	}
}

// A status port that hangs costs its share of the tick, not the sample.
func TestStatusPortHangs(t *testing.T) {
	release := make(chan struct{})
	port := statusPort(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	d := newDetail(t)
	target := &engine.Target{Address: "127.0.0.1:4000", Options: map[string]string{"status_address": port.URL}}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	s, err := mysql.Decode(ctx, tick(t, target), &querier{}, []mysql.Detail{d})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Missing) != 1 || !strings.Contains(s.Missing[0], "no answer in time") {
		t.Errorf("missing %q", s.Missing)
	}
}

// A slow status port is read less often. Meanwhile the last values are used, with their age, but
// not for long.
func TestPace(t *testing.T) {
	requests := 0
	port := statusPort(t, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		_, _ = io.WriteString(w, "tidb_server_tokens 3\n")
	})
	client := newClient(&engine.Target{})
	defer client.CloseIdleConnections()
	var m metrics
	read := func(now time.Time) *engine.Status {
		var s engine.Status
		m.read(context.Background(), client, port.URL+"/metrics", now, &s)
		return &s
	}
	start := time.Now()
	read(start)
	m.next = start.Add(2 * time.Second) // as after a reading of 100 ms
	m.readAt = start
	s := read(start.Add(time.Second))
	enginetest.Want(t, s, 3, engine.ThreadsRunning)
	enginetest.Want(t, s, 1, metricsAge)
	if requests != 1 {
		t.Errorf("%d requests", requests)
	}
	m.next = start.Add(time.Hour) // no more answers
	enginetest.Absent(t, read(start.Add(keepFor+time.Second)), engine.ThreadsRunning)
}

func TestNoRight(t *testing.T) {
	q := &querier{err: &driver.MySQLError{Number: 1227, Message: "Access denied; you need (at least one of) the PROCESS privilege(s) for this operation"}}
	port := statusPort(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "tidb_server_tokens 3\n") })
	target := &engine.Target{Address: "127.0.0.1:4000", Options: map[string]string{"status_address": port.URL}}
	s := sample(t, newDetail(t), q, target)
	if !slices.Equal(s.Missing, []string{missingProcess, missingSessions}) {
		t.Errorf("missing %q", s.Missing)
	}
	enginetest.Want(t, s, 3, engine.ThreadsRunning)
	enginetest.Absent(t, s, clusterMembers, "tidb")
	enginetest.Absent(t, s, engine.ActiveSessions, engine.Running, engine.Running) // 0 would be wrong
}

func TestStatusAddress(t *testing.T) {
	table := rows(memberColumns, "tidb|10.0.0.1:4000|10.0.0.1:10081|v", "tidb|10.0.0.2:4000|10.0.0.2:10082|v", "pd|10.0.0.3:2379|10.0.0.3:2379|v")
	same := rows(memberColumns, "tidb|10.0.0.1:4000|10.0.0.1:10085|v", "tidb|10.0.0.2:4000|10.0.0.2:10085|v")
	cases := map[string]struct {
		target  engine.Target
		members []mysql.Row
		want    string
	}{
		"default":              {target: engine.Target{Address: "db:4000"}, want: "http://db:10080/metrics"},
		"IPv6":                 {target: engine.Target{Address: "[::1]:4000"}, want: "http://[::1]:10080/metrics"},
		"a unix socket":        {target: engine.Target{Address: "/tmp/tidb.sock"}, want: "http://127.0.0.1:10080/metrics"},
		"its own row":          {target: engine.Target{Address: "10.0.0.2:4000"}, members: table, want: "http://10.0.0.2:10082/metrics"},
		"known by other names": {target: engine.Target{Address: "bench:4000"}, members: same, want: "http://bench:10085/metrics"},
		"ports differ":         {target: engine.Target{Address: "bench:4000"}, members: table, want: "http://bench:10080/metrics"},
		"told":                 {target: engine.Target{Address: "db:4000", Options: map[string]string{"status_address": "10.1.1.1:10090"}}, members: table, want: "http://10.1.1.1:10090/metrics"},
		"told, with TLS":       {target: engine.Target{Address: "db:4000", Options: map[string]string{"status_address": "https://db:10080"}}, want: "https://db:10080/metrics"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := newDetail(t)
			if err := d.members.ask(context.Background(), &querier{rows: c.members}, time.Now()); err != nil {
				t.Fatal(err)
			}
			if got, err := d.statusURL(&c.target); err != nil || got != c.want {
				t.Errorf("got %q, %v, not %q", got, err, c.want)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	for address, ok := range map[string]bool{
		"db:10080": true, "https://db:10080": true, "http://[::1]:10080": true, "": true,
		"db": false, "ftp://db:10080": false, "http://user:secret@db:10080": false, "db:http": false, ":10080": false, "db:0": false,
	} {
		p, err := mysql.Family(New).Open(engine.Target{Address: "db:4000", Options: map[string]string{"status_address": address}}, nil)
		if (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "user:secret") {
			t.Errorf("the error shows a password: %v", err)
		}
		if p != nil {
			_ = p.Close()
		}
	}
	if _, err := mysql.Family(New).Open(engine.Target{Address: "db:4000", Options: map[string]string{"status_port": "1"}}, nil); err == nil {
		t.Error("an unknown option was accepted")
	}
}

// Other servers of the family are ignored.
func TestNotTiDB(t *testing.T) {
	server, err := mysql.NewServer(mysql.Values{"version": "8.0.39"})
	if err != nil {
		t.Fatal(err)
	}
	q := &querier{}
	s := &engine.Status{}
	if err := newDetail(t).Read(context.Background(), q, &mysql.Tick{Target: &engine.Target{}, Server: server}, s); err != nil || len(s.Values) != 0 || len(q.asked) != 0 {
		t.Errorf("%v, %+v, asked %q", err, s, q.asked)
	}
}
