package pgbouncer

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded are the answers of a console with a pool of two connections and eight clients, by command: the lines that
// psql printed.
func recorded(t *testing.T, version string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + version + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	answers, command := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "== "); ok {
			command = "SHOW " + name
			continue
		}
		answers[command] = append(answers[command], line)
	}
	return answers
}

// console answers in the simple protocol.
func fakeConsole(t *testing.T, answers map[string][]string, refusal string) engine.Target {
	t.Helper()
	port := enginetest.Listen(t, "127.0.0.1:0", func(c net.Conn) {
		b := pgproto3.NewBackend(c, c)
		if _, err := b.ReceiveStartupMessage(); err != nil {
			return
		}
		if refusal != "" {
			b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: refusal})
			_ = b.Flush()
			return
		}
		b.Send(&pgproto3.AuthenticationOk{})
		for {
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			if b.Flush() != nil {
				return
			}
			m, err := b.Receive()
			query, ok := m.(*pgproto3.Query)
			if err != nil || !ok {
				return
			}
			send(b, answers[query.String])
		}
	})
	return engine.Target{Address: port.Address(), User: "monitor", Password: "sesame"}
}

func send(b *pgproto3.Backend, lines []string) {
	if lines == nil {
		b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "08P01", Message: "invalid command"})
		return
	}
	var d pgproto3.RowDescription
	for name := range strings.SplitSeq(lines[0], "|") {
		d.Fields = append(d.Fields, pgproto3.FieldDescription{Name: []byte(name), DataTypeOID: 25})
	}
	b.Send(&d)
	for _, line := range lines[1:] {
		var row pgproto3.DataRow
		for cell := range strings.SplitSeq(line, "|") {
			row.Values = append(row.Values, []byte(cell))
		}
		b.Send(&row)
	}
	b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SHOW")})
}

func TestRecordedAnswers(t *testing.T) {
	for version, accepted := range map[string]bool{"1.18": false, "1.26": true} {
		t.Run(version, func(t *testing.T) {
			p := enginetest.Open(t, Engine, fakeConsole(t, recorded(t, version), ""), nil)
			defer p.Close()
			s, err := p.Probe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			enginetest.WellFormed(t, s)
			if !strings.HasPrefix(s.Version, version) || s.Role != proxy.Role || s.RoundTrip <= 0 {
				t.Errorf("got %q %q %v", s.Version, s.Role, s.RoundTrip)
			}
			queue, _ := s.Get(proxy.QueueLength, "sbtest")
			active, _ := s.Get(proxy.PoolConnections, "sbtest", proxy.PoolActive)
			if queue+active > 8 || queue < 2 || active > 2 {
				t.Errorf("%v clients wait, %v have a connection, of 8", queue, active)
			}
			enginetest.Want(t, s, 8, proxy.ClientConnections)
			enginetest.Want(t, s, 2, proxy.PoolLimit, "sbtest")
			enginetest.Want(t, s, 100, proxy.ClientLimit)
			enginetest.Want(t, s, 2, proxy.BackendConnections, "127.0.0.1:31373")
			if len(s.Members) != 1 || s.Members[0].Address != "127.0.0.1:31373" || s.Members[0].Engine != "postgresql" {
				t.Errorf("members %v", s.Members)
			}
			if _, ok := s.Get(proxy.AcceptedTotal); ok != accepted {
				t.Errorf("accepted connections known: %v", ok)
			}
			waited, ok := s.Get(proxy.QueueSecondsTotal, "sbtest")
			if !ok || waited <= 1 || waited > 1000 {
				t.Errorf("waited %v s", waited)
			}
			if held, _ := s.Get(proxy.TransactionSecondsTotal, "sbtest"); held <= 0 {
				t.Errorf("%v s in transactions", held)
			}
			enginetest.Measures(t, s, s, "proxy_queue", "proxy_waited", "proxy_sessions", "queries", "connections", "backends_up")
			settings, err := p.(engine.Configured).Settings(t.Context())
			if err != nil || settings["pool_mode"] != "transaction" || settings["sbtest pool_size"] != "2" || settings["auth_file"] != "" {
				t.Errorf("settings %v, %v", settings, err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for want, target := range map[string]engine.Target{
		"must be one of stats_users or admin_users": fakeConsole(t, nil, "not allowed"),
		"invalid command":                   fakeConsole(t, nil, ""),
		"nothing is listening on 127.0.0.1": {Address: "127.0.0.1:1", User: "monitor"},
		"there is no socket":                {Address: t.TempDir() + "/none", User: "monitor"},
		"127.0.0.1:":                        {Address: enginetest.Listen(t, "127.0.0.1:0", func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.0 400\r\n\r\n")) }).Address(), User: "m"},
	} {
		target.Password = "sesame"
		p := enginetest.Open(t, Engine, target, nil)
		_, err := p.Probe(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
		p.Close()
	}
	enginetest.Refused(t, Engine, engine.Target{Address: "pool:6432"}, "stats_users")
	enginetest.Refused(t, Engine, engine.Target{Address: "pool", User: "u"}, "neither host:port")
}

// TestDatabases has hosts that are no address of a server, and databases that are not in use.
func TestDatabases(t *testing.T) {
	for _, c := range []struct{ host, paused, address, state string }{
		{"10.0.0.1", "0", "10.0.0.1:5432", "active"}, {"10.0.0.1", "1", "10.0.0.1:5432", "paused"},
		{"/run/postgresql", "0", "db", "active"}, {"a,b", "0", "db", "active"}, {"", "0", "db", "active"},
	} {
		got := backendOf(row{"name": "db", "host": c.host, "port": "5432", "paused": c.paused})
		if got != (proxy.Backend{Address: c.address, State: c.state, Role: "db"}) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// TestNetTimes guards that the time in transactions has no waits, never falls, and begins again with the counters.
func TestNetTimes(t *testing.T) {
	n := netTimes{}
	for _, c := range []struct{ gross, waited, want float64 }{{20, 14, 6}, {20, 15, 6}, {30, 20, 10}, {3, 1, 2}} {
		if got := n.next("db", "total_xact_time", c.gross, c.waited); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
