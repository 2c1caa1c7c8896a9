package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

const (
	// ioTimeout limits the close of a connection to a server that has stopped reading, which the
	// tick's deadline does not limit.
	ioTimeout = 5 * time.Second
	// refreshEvery is the interval for reading the server's variables again, and for trying refused
	// statements again.
	refreshEvery = time.Minute
)

// conn is one connection and what it revealed about the server.
type conn struct {
	*session
	server     *Server
	refreshed  time.Time
	refused    map[string]error // by statement
	headers    []header         // of the answers with rows
	statements *uint64          // sent by the prober so far
}

// newConnector returns a connector, without connecting. p records how far an attempt gets, for error
// messages. The driver's defaults matter: it never sends a password in plain text or a file that a
// server requests.
func newConnector(t engine.Target, p *progress, budget *engine.Budget) (*connector, error) {
	connects := &connector{}
	cfg := driver.NewConfig()
	cfg.User = t.User
	cfg.Passwd = string(t.Password)
	cfg.Net, cfg.Addr = "tcp", t.Address
	if strings.HasPrefix(t.Address, "/") {
		cfg.Net = "unix"
	} else if _, _, err := net.SplitHostPort(t.Address); err != nil {
		return nil, fmt.Errorf("address %q is neither host:port nor the path of a socket", t.Address)
	}
	if t.TLS != nil {
		cfg.TLS, cfg.AllowFallbackToPlaintext = t.TLS.Clone(), t.TLSOptional
	}
	if t.TLSOptional && cfg.Net == "unix" {
		cfg.TLS = nil // client libraries prefer TLS only over a network
	}
	if t.Hearsay {
		cfg.Passwd, cfg.TLS = "", nil // the challenge has them
	}
	cfg.Timeout = ioTimeout // the session sets the deadlines of reading and writing
	cfg.ConnectionAttributes = "program_name:benchwatch"
	cfg.Logger = &driver.NopLogger{}
	cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		*p = progress{at: dialling}
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		p.at = greeting
		if !t.Hearsay {
			connects.dialled = &greetingConn{Conn: budget.Conn(c), foreign: &p.foreign, progress: p, budget: budget}
			return connects.dialled, nil
		}
		login := challenge{target: &t}
		in, err := login.login(ctx, budget.Conn(c))
		if err != nil {
			_ = c.Close()
			return nil, err
		}
		p.encrypted = login.encrypted
		connects.dialled = &greetingConn{Conn: in, foreign: &p.foreign, budget: budget, spoken: true, encrypted: login.encrypted, above: true}
		return connects.dialled, nil
	}
	var err error
	connects.Connector, err = driver.NewConnector(cfg)
	return connects, err
}

// encrypted reports whether the connection has TLS.
func (c *conn) encrypted() bool {
	g, ok := c.net.(*greetingConn)
	return ok && g.encrypted
}

// Rows implements Querier.
func (c *conn) Rows(ctx context.Context, statement string) ([]Row, error) {
	if err := c.refused[statement]; err != nil {
		return nil, err
	}
	var answer []Row
	err := c.query(ctx, statement, func(rows sqldriver.Rows) (err error) {
		answer, err = readRows(rows, c.header(rows.Columns()))
		return err
	})
	if Refused(err) {
		c.refused[statement] = err
	}
	return answer, err
}

// mostHeaders bounds the headers that a connection keeps. A tick has a few statements.
const mostHeaders = 16

// header returns the header of an answer. Each tick has the same statements.
func (c *conn) header(columns []string) header {
	for _, h := range c.headers {
		if slices.Equal(h.names, columns) {
			return h
		}
	}
	h := newHeader(columns)
	if len(c.headers) == mostHeaders {
		c.headers = c.headers[:0]
	}
	c.headers = append(c.headers, h)
	return h
}

// values runs a SHOW statement with two columns.
func (c *conn) values(ctx context.Context, statement string, into Values) error {
	return c.query(ctx, statement, func(rows sqldriver.Rows) error {
		if n := len(rows.Columns()); n != 2 {
			return fmt.Errorf("expected 2 columns, found %d", n)
		}
		var text []byte
		return eachRow(rows, func(row []sqldriver.Value) error {
			if row[1] != nil { // NULL means no value
				text = appendText(text[:0], row[0])
				name := len(text)
				text = appendText(text, row[1])
				into[string(text[:name])] = string(text[name:])
			}
			return nil
		})
	})
}

func (c *conn) query(ctx context.Context, statement string, read func(sqldriver.Rows) error) error {
	*c.statements++
	err := c.session.query(ctx, statement, read)
	if err != nil {
		return fmt.Errorf("%s: %w", short(statement), err)
	}
	return nil
}

// show returns a SHOW statement for these names only. For MariaDB 10.11 with Galera this takes 0.43
// ms of CPU instead of 0.65 ms for the whole list, and a seventh of the bytes.
func show(what string, names []string) string {
	slices.Sort(names)
	return "SHOW GLOBAL " + what + " WHERE Variable_name IN ('" + strings.Join(slices.Compact(names), "','") + "')"
}

// short returns the beginning of a statement, to name it in an error.
func short(statement string) string {
	statement, _, _ = strings.Cut(statement, " WHERE")
	if len(statement) > 60 {
		statement = statement[:60] + "…"
	}
	return statement
}

// ErrUnknownStatement is a server's error for a statement that it does not support.
var ErrUnknownStatement error = &driver.MySQLError{Number: 1064, Message: "You have an error in your SQL syntax"}

// Refused reports whether the server refused a statement permanently, because a right is missing or
// the object does not exist. The connection is still usable.
func Refused(err error) bool { return Denied(err) || Unsupported(err) }

// FirstSupported returns the answer to a statement or, if the server does not support it, to its
// other name.
func FirstSupported(ctx context.Context, q Querier, statement, other string) ([]Row, error) {
	rows, err := q.Rows(ctx, statement)
	if Unsupported(err) {
		return q.Rows(ctx, other)
	}
	return rows, err
}

// Optional returns err unless the server refused the statement permanently. If a right is missing,
// it adds missing to out.
func Optional(err error, out *engine.Status, missing string) error {
	switch {
	case Denied(err):
		out.Missing = append(out.Missing, missing)
		return nil
	case Unsupported(err):
		return nil
	}
	return err
}

// Denied reports whether a right is missing for a statement.
func Denied(err error) bool {
	return hasNumber(err,
		1044, // no access to database
		1142, // no SELECT on table
		1143, // no SELECT on column
		1227, // no global privilege
		1370, // no EXECUTE on routine
	)
}

// Unsupported reports whether the statement, table or variable does not exist on the server.
func Unsupported(err error) bool {
	return hasNumber(err,
		1049, // unknown database
		1054, // unknown column
		1064, // syntax error
		1109, // unknown table in information_schema
		1146, // no such table
		1193, // unknown system variable
		1235, // not supported by this server
		1305, // unknown function
		1238, // variable has another scope
		1289, // feature is disabled
		3167, // disabled, see show_compatibility_56
	)
}

func hasNumber(err error, numbers ...uint16) bool {
	var refusal *driver.MySQLError
	return errors.As(err, &refusal) && slices.Contains(numbers, refusal.Number)
}

// greetingConn checks the first bytes from a server, which the driver would take for the length of
// a packet and then wait for megabytes that never come. It also checks the number of columns of
// each answer, for which the driver allocates memory before reading them. Within TLS it can't, but
// then the server is trusted.
type greetingConn struct {
	net.Conn
	greeted  bool
	progress *progress
	foreign  *string // receives the first bytes of another kind of server

	budget *engine.Budget
	// spoken: the client has sent its first packet, which requests TLS if the connection is encrypted.
	spoken, encrypted bool
	above             bool   // within TLS: what is read and written here is not encrypted
	asked             bool   // the next bytes begin the answer to a statement
	head              []byte // its first bytes
}

// sslRequest is the length of the packet with which a client requests TLS. A login is longer.
const sslRequest = 4 + 32

// Write implements net.Conn.
func (c *greetingConn) Write(b []byte) (int, error) {
	if !c.encrypted && !c.spoken && len(b) == sslRequest {
		c.encrypted = true
		if c.progress != nil {
			c.progress.encrypted = true
		}
	}
	c.spoken = true
	if (!c.encrypted || c.above) && len(b) > 4 && b[3] == 0 && b[4] == 3 { // COM_QUERY
		c.asked, c.head = true, c.head[:0]
	}
	return c.Conn.Write(b)
}

// allots reports whether the answer with these first bytes has fewer than 65,536 columns. Tables
// have at most 4096.
func (c *greetingConn) allots(b []byte) bool {
	const length = 5 // packet header and first byte of the number
	c.head = append(c.head, b[:min(len(b), length-len(c.head))]...)
	if len(c.head) < length {
		return true
	}
	c.asked = false
	return c.head[4] != 0xfd && c.head[4] != 0xfe
}

// Read implements net.Conn.
func (c *greetingConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if c.asked && !c.allots(into[:n]) {
		c.budget.Spend()
		return 0, engine.ErrTooMuch
	}
	if c.greeted || n == 0 {
		return n, err
	}
	c.greeted = true
	if greets(into[:n]) {
		return n, err
	}
	begin, _, _ := strings.Cut(string(into[:n]), "\n")
	*c.foreign = strings.TrimSpace(begin[:min(len(begin), 40)])
	return 0, errors.New("not a MySQL server")
}

// greets reports whether these bytes can begin a server's greeting: a packet of less than 64 kB
// with number 0, and a protocol version (10, formerly 9) or an error.
func greets(b []byte) bool {
	return (len(b) < 3 || b[2] == 0) && (len(b) < 4 || b[3] == 0) &&
		(len(b) < 5 || b[4] == 10 || b[4] == 9 || b[4] == 0xff)
}
