package postgresql

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is what a fake server returns for a statement.
type answer struct {
	columns []string
	rows    [][]string // "NULL" is NULL
	code    string     // SQLSTATE of a refusal
	message string
}

// serve accepts connections until the test ends, each with its own handler.
func serve(t *testing.T, handle func(net.Conn)) (address string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	conns := make(chan net.Conn, 100)
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- c
			go handle(c)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		close(conns)
		for c := range conns {
			_ = c.Close()
		}
	})
	return l.Addr().String()
}

// greet reads the startup message and answers that the login succeeded.
func greet(c net.Conn, version string) (*pgproto3.Backend, *pgproto3.StartupMessage) {
	b := pgproto3.NewBackend(c, c)
	m, err := b.ReceiveStartupMessage()
	startup, ok := m.(*pgproto3.StartupMessage)
	if err != nil || !ok {
		_ = c.Close()
		return nil, nil
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: version})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if b.Flush() != nil {
		return nil, nil
	}
	return b, startup
}

// fake is a server that answers statements by a word in them.
func fake(t *testing.T, version string, answers map[string]answer) string {
	return serve(t, func(c net.Conn) {
		b, _ := greet(c, version)
		if b == nil {
			return
		}
		prepared := map[string]answer{}
		failed := false
		var current answer
		for {
			m, err := b.Receive()
			if err != nil {
				return
			}
			if _, sync := m.(*pgproto3.Sync); failed && !sync {
				continue
			}
			switch m := m.(type) {
			case *pgproto3.Parse:
				a := answerFor(answers, m.Query)
				if a.code != "" {
					b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: a.code, Message: a.message})
					failed = true
					continue
				}
				prepared[m.Name] = a
				b.Send(&pgproto3.ParseComplete{})
			case *pgproto3.Describe:
				if m.ObjectType == 'S' {
					current = prepared[m.Name]
					b.Send(&pgproto3.ParameterDescription{})
				}
				b.Send(describeRows(current))
			case *pgproto3.Bind:
				current = prepared[m.PreparedStatement]
				b.Send(&pgproto3.BindComplete{})
			case *pgproto3.Close:
				b.Send(&pgproto3.CloseComplete{})
			case *pgproto3.Execute:
				for _, row := range current.rows {
					var d pgproto3.DataRow
					for _, v := range row {
						if v == "NULL" {
							d.Values = append(d.Values, nil)
						} else {
							d.Values = append(d.Values, []byte(v))
						}
					}
					b.Send(&d)
				}
				b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
			case *pgproto3.Sync:
				failed = false
				b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
				if b.Flush() != nil {
					return
				}
			case *pgproto3.Terminate:
				_ = c.Close()
				return
			}
		}
	})
}

func describeRows(a answer) *pgproto3.RowDescription {
	d := &pgproto3.RowDescription{}
	for _, name := range a.columns {
		d.Fields = append(d.Fields, pgproto3.FieldDescription{Name: []byte(name), DataTypeOID: 25, DataTypeSize: -1, TypeModifier: -1})
	}
	return d
}

func answerFor(answers map[string]answer, query string) answer {
	best, found := "", answer{columns: []string{"nothing"}}
	for word, a := range answers {
		if strings.Contains(query, word) && len(word) > len(best) {
			best, found = word, a
		}
	}
	return found
}

func newTestProber(t *testing.T, address string) *prober {
	t.Helper()
	p, err := open(engine.Target{Name: "db", Address: address, User: "me", Password: "hunter2"}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p.(*prober)
}

func probe(t *testing.T, p *prober, limit time.Duration) (*engine.Status, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return p.Probe(ctx)
}

// identified is the composed identity of a reader of Aurora, which refuses the functions of a standby.
var identified = answer{columns: []string{"version", "database", "role", "monitor", "aurora", "max_connections", "track_io_timing"},
	rows: [][]string{{"16.4", "postgres", "me", "t", "t", "5000", "f"}}}

func TestRefusals(t *testing.T) {
	refusal := answer{code: featureNotSupported, message: "Function pg_last_wal_receive_lsn() is currently not supported for Aurora"}
	p := newTestProber(t, fake(t, "16.4", map[string]answer{
		"server_version": identified,
		"pg_is_in_recovery() AS recovery": {columns: []string{"recovery", "lsn", "uptime", "synchronous", "delay"},
			rows: [][]string{{"t", "NULL", "100", "", "0"}}},
		"AS replayed, pg_last":  refusal,
		"pg_control_checkpoint": {code: insufficientPrivilege, message: "permission denied for function pg_control_checkpoint"},
		"pg_stat_database": {columns: []string{"connected", "xact_commit", "xact_rollback", "blks_hit"},
			rows: [][]string{{"t", "10", "1", "5"}, {"NULL", "90", "0", "4"}, {"f", "0", "0", "3"}}},
	}))
	for range 3 {
		s, err := probe(t, p, 2*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		missing := strings.Join(s.Missing, "\n")
		if !strings.Contains(missing, "the position of a standby: aurora refuses: Function pg_last_wal_receive_lsn() is currently not supported") ||
			!strings.Contains(missing, "GRANT pg_monitor TO me") {
			t.Errorf("missing: %s", missing)
		}
		if s.Flavour != "aurora" || s.Role != "replica" || s.Position != nil || s.LagSeconds.Known {
			t.Errorf("%+v", s)
		}
		if v, ok := s.Get(blocksHit, "others"); !ok || v != 7 {
			t.Errorf("what is not refused is missing: %v", s.Values)
		}
	}
}

// A pooler that changes servers refuses parameters, and has no prepared statements.
func TestPooler(t *testing.T) {
	logins := make(chan map[string]string, 10)
	names := make(chan string, 1000)
	address := serve(t, func(c net.Conn) {
		b := pgproto3.NewBackend(c, c)
		m, err := b.ReceiveStartupMessage()
		startup, ok := m.(*pgproto3.StartupMessage)
		if err != nil || !ok {
			return
		}
		logins <- startup.Parameters
		if startup.Parameters["statement_timeout"] != "" {
			b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: protocolViolation, Message: "unsupported startup parameter: statement_timeout"})
			_ = b.Flush()
			_ = c.Close()
			return
		}
		b.Send(&pgproto3.AuthenticationOk{})
		b.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: "15.1"})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		for b.Flush() == nil {
			m, err := b.Receive()
			if err != nil {
				return
			}
			switch m := m.(type) {
			case *pgproto3.Parse:
				names <- m.Name
				b.Send(&pgproto3.ParseComplete{})
			case *pgproto3.Bind:
				b.Send(&pgproto3.BindComplete{})
			case *pgproto3.Describe:
				b.Send(describeRows(identified))
			case *pgproto3.Execute:
				b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 0")})
			case *pgproto3.Sync:
				b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			}
		}
	})
	p := newTestProber(t, address)
	if _, err := probe(t, p, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if first, second := <-logins, <-logins; first["statement_timeout"] == "" || len(second) > 3 || second["application_name"] != appName {
		t.Errorf("logins: %v, %v", first, second)
	}
	close(names)
	for name := range names {
		if name != "" {
			t.Errorf("statement %s was prepared behind a pooler", name)
		}
	}
}

// A hostile server gets no password, ends no process, and is refused within the tick.
func TestHostile(t *testing.T) {
	greeted := func(then func(*pgproto3.Backend, net.Conn)) func(net.Conn) {
		return func(c net.Conn) {
			if b, _ := greet(c, "18.1"); b != nil {
				then(b, c)
			}
		}
	}
	login := func(m pgproto3.BackendMessage, then ...[]byte) func(net.Conn) {
		return func(c net.Conn) {
			b := pgproto3.NewBackend(c, c)
			if _, err := b.ReceiveStartupMessage(); err != nil {
				return
			}
			b.Send(m)
			_ = b.Flush()
			for _, text := range then {
				_, _ = c.Read(make([]byte, 1000))
				_, _ = c.Write(text)
			}
			got, _ := io.ReadAll(io.LimitReader(c, 1000))
			if strings.Contains(string(got), "hunter2") {
				t.Error("the server got the password")
			}
		}
	}
	message := func(kind byte, length uint32, body string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{kind}, length), body...)
	}
	scram := "r=" + strings.Repeat("x", 40) + ",s=QUJD,i=9999999"
	challenge := message('R', uint32(8+len(scram)), "\x00\x00\x00\x0b"+scram)
	endless := message('D', 13, "\x00\x01\x00\x00\x00\x03xxx")
	for name, test := range map[string]struct {
		handle func(net.Conn)
		want   string
	}{
		"plain text": {login(&pgproto3.AuthenticationCleartextPassword{}), "plain text"},
		"iterations": {login(&pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-256"}}, challenge), "SCRAM"},
		"MySQL":      {func(c net.Conn) { _, _ = c.Write([]byte("J\x00\x00\x00\x0a8.4.3\x00")) }, "does not speak the PostgreSQL protocol"},
		"HTTP": {func(c net.Conn) {
			_, _ = c.Read(make([]byte, 100))
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		}, "PostgreSQL"},
		"silence":           {func(net.Conn) {}, "does not answer as a PostgreSQL server"},
		"closes":            {func(c net.Conn) { _ = c.Close() }, "closes the connection at once"},
		"silence later":     {greeted(func(*pgproto3.Backend, net.Conn) {}), "does not answer"},
		"a giant message":   {greeted(func(_ *pgproto3.Backend, c net.Conn) { _, _ = c.Write(message('D', 1<<30, "")) }), ""},
		"a negative length": {greeted(func(_ *pgproto3.Backend, c net.Conn) { _, _ = c.Write(message('D', 1<<31, "")) }), ""},
		"endless rows": {greeted(func(_ *pgproto3.Backend, c net.Conn) {
			for {
				if _, err := c.Write(endless); err != nil {
					return
				}
			}
		}), ""},
		"endless notices": {greeted(func(_ *pgproto3.Backend, c net.Conn) {
			for {
				if _, err := c.Write(message('N', 5, "\x00")); err != nil {
					return
				}
			}
		}), ""},
		"many columns": {greeted(func(_ *pgproto3.Backend, c net.Conn) { _, _ = c.Write(message('T', 6, "\xff\xff")) }), ""},
		"nonsense":     {greeted(func(_ *pgproto3.Backend, c net.Conn) { _, _ = c.Write([]byte(strings.Repeat("\xff", 1000))) }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTestProber(t, serve(t, test.handle))
			begin := time.Now()
			s, err := probe(t, p, time.Second)
			if err == nil {
				t.Fatalf("no error: %+v", s)
			}
			if !strings.Contains(err.Error(), test.want) || strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 700 {
				t.Errorf("%v, want %q", err, test.want)
			}
			if took := time.Since(begin); took > 3*time.Second {
				t.Errorf("took %v", took)
			}
			var m runtime.MemStats
			if runtime.ReadMemStats(&m); m.HeapAlloc > 200<<20 {
				t.Errorf("%d bytes of memory", m.HeapAlloc)
			}
		})
	}
}

// Numbers that no server has are left out.
func TestImpossibleNumbers(t *testing.T) {
	p := newTestProber(t, fake(t, "16.4", map[string]answer{
		"server_version":                  {columns: []string{"version", "max_connections"}, rows: [][]string{{"16.4", "NaN"}}},
		"pg_is_in_recovery() AS recovery": {columns: []string{"recovery", "lsn", "uptime", "delay"}, rows: [][]string{{"f", "x/y/z", "1e300", "-5"}}},
		"pg_stat_database":                {columns: []string{"connected", "blks_hit", "blks_read"}, rows: [][]string{{"t", "-1", "1e300"}, {"\xff\x00", "x", "NULL"}}},
	}))
	s, err := probe(t, p, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if s.Uptime < 0 || s.Delay < 0 {
		t.Errorf("uptime %v, delay %v", s.Uptime, s.Delay)
	}
	if _, ok := s.Get(blocksRead, "connected"); ok {
		t.Error("a negative number counts")
	}
}
