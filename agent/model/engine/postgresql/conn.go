package postgresql

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

const (
	// closeTimeout limits the farewell to a server that has stopped reading.
	closeTimeout = time.Second
	// longestMessage is the largest message in bytes. A setting or the text of a statement is shorter.
	longestMessage = 1 << 20
	// mostRows limits the rows of an answer.
	mostRows = 20_000
	// lockTimeout: the views need locks only on catalogs, which a VACUUM FULL of the catalog can hold.
	lockTimeout = 100 * time.Millisecond
	// shortestTimeout is the least time for a statement, even if connecting took long.
	shortestTimeout = 100 * time.Millisecond
)

// stage is how far connecting has got.
type stage int

const (
	dialling stage = iota // no connection yet
	greeting              // connected, not logged in
	asking                // logged in
)

// connector opens connections to one server.
type connector struct {
	target *engine.Target
	config *pgconn.Config
	budget *engine.Budget
	at     stage
	// dials permits a connection. The driver would open others to cancel statements.
	dials atomic.Bool
	raw   net.Conn // the last connection
	// pooled: between agent and server is a pooler that changes the server's session between
	// transactions.
	pooled bool
}

func newConnector(t *engine.Target, budget *engine.Budget) (*connector, error) {
	c := &connector{target: t, budget: budget}
	// All that the driver would take from the environment or the home folder is set.
	config, err := pgconn.ParseConfig("host=localhost port=5432 user=benchwatch password=none dbname=postgres sslmode=disable " +
		"passfile=/dev/null target_session_attrs=any connect_timeout=0")
	if err != nil {
		return nil, fmt.Errorf("postgresql: %w", err)
	}
	host, port, err := net.SplitHostPort(t.Address)
	if err != nil { // a socket
		host, port = "localhost", "5432"
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("postgresql: address %q has no port number", t.Address)
	}
	config.Host, config.Port = host, uint16(number)
	config.User, config.Password = t.User, string(t.Password)
	config.Database = cmp.Or(t.Options[OptionDatabase], defaultDatabase)
	config.Fallbacks, config.ValidateConnect, config.KerberosSrvName = nil, nil, ""
	if t.TLS != nil && !isSocket(t) {
		config.TLSConfig = t.TLS.Clone()
		config.TLSConfig.ServerName = cmp.Or(config.TLSConfig.ServerName, host)
	}
	if !isSocket(t) && (t.TLS == nil || t.TLS.InsecureSkipVerify || t.Hearsay) {
		config.RequireAuth = "!password" // none in plain text to a server that may be another one
	}
	config.MaxProtocolMessageBodyLen = longestMessage
	config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{host}, nil }
	config.DialFunc = c.dial
	config.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
		return &loginConn{Conn: conn, at: &c.at}, nil
	}
	c.config = config
	return c, nil
}

func isSocket(t *engine.Target) bool { return strings.HasPrefix(t.Address, "/") }

// dial opens the network connection; the driver's own address is not used.
func (c *connector) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if !c.dials.Load() {
		return nil, errors.New("no second connection")
	}
	network := "tcp"
	if isSocket(c.target) {
		network = "unix"
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, c.target.Address)
	if err != nil {
		return nil, err
	}
	c.at, c.raw = greeting, conn
	return c.budget.Conn(conn), nil
}

// connect opens a connection. A pooler refuses parameters that it does not know, and a session behind
// it belongs to others after each transaction: then nothing is set.
func (c *connector) connect(ctx context.Context) (*pgconn.PgConn, error) {
	c.dials.Store(true)
	defer c.dials.Store(false)
	for {
		c.at = dialling
		c.config.RuntimeParams = c.parameters(ctx)
		pg, err := pgconn.ConnectConfig(ctx, c.config)
		if err == nil {
			c.at = asking
			return pg, nil
		}
		switch {
		case code(err) == protocolViolation && !c.pooled:
			c.pooled = true
		case c.config.TLSConfig != nil && c.target.TLSOptional && strings.Contains(err.Error(), noTLS):
			c.config.TLSConfig = nil
		default:
			return nil, err
		}
	}
}

// noTLS is in the driver's error if the server does not offer TLS.
const noTLS = "server refused TLS connection"

// parameters are the settings of the session. Names come in the server's own encoding: a
// conversion could fail.
func (c *connector) parameters(ctx context.Context) map[string]string {
	if c.pooled {
		return map[string]string{"application_name": appName}
	}
	timeout := time.Second
	if deadline, ok := ctx.Deadline(); ok {
		timeout = time.Until(deadline)
	}
	return map[string]string{
		"application_name": appName, "client_encoding": "SQL_ASCII", "search_path": "pg_catalog",
		"default_transaction_read_only": "on", "jit": "off", "max_parallel_workers_per_gather": "0", "DateStyle": "ISO", "TimeZone": "UTC",
		"statement_timeout": milliseconds(max(timeout, shortestTimeout)), "lock_timeout": milliseconds(lockTimeout),
	}
}

// appName is the name of the agent's sessions.
const appName = "benchwatch"

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// loginConn refuses a server that lets the login take minutes of CPU, by a number of SCRAM's
// iterations. PostgreSQL's own number is 4096.
type loginConn struct {
	net.Conn
	at *stage
}

// mostIterations is the length of the largest accepted number, in digits.
const mostIterations = 6

// Read implements net.Conn.
func (c *loginConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if *c.at == greeting {
		if _, iterations, found := bytes.Cut(into[:n], []byte(",i=")); found {
			digits := bytes.IndexFunc(iterations, func(r rune) bool { return r < '0' || r > '9' })
			if digits > mostIterations || digits < 0 && len(iterations) > mostIterations {
				return 0, errors.New("the server asks for too many iterations of SCRAM")
			}
		}
	}
	return n, err
}

// statement is a query with the function that reads each row of its answer.
type statement struct {
	name string
	text string
	// missing is what the user does not see if the server refuses the statement.
	missing string
	read    func(row)
}

// row is a row of an answer, valid until its reader returns.
type row struct {
	columns *[]string
	values  [][]byte
}

func (r row) bytes(name string) []byte {
	for i, column := range *r.columns {
		if column == name && i < len(r.values) {
			return r.values[i]
		}
	}
	return nil
}

// text returns a column; empty for NULL.
func (r row) text(name string) string {
	return strings.ToValidUTF8(string(r.bytes(name)), "?")
}

// number returns a column; false for NULL and what is no number.
func (r row) number(name string) (float64, bool) {
	b := r.bytes(name)
	if b == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(b), 64)
	return v, err == nil
}

// is reports whether a column is true.
func (r row) is(name string) bool { return string(r.bytes(name)) == "t" }

// conn is a connection with its prepared statements.
type conn struct {
	connector *connector
	pg        *pgconn.PgConn
	raw       net.Conn
	prepared  map[string]*prepared // by name
	// refused are the statements that are left out, hides is what the user does not see without them.
	refused map[string]*pgconn.PgError
	hides   map[string]string
	// commits, rollbacks and statements are the agent's own.
	commits, rollbacks, statements float64
}

// prepared is a statement that the server knows.
type prepared struct {
	text        string
	description *pgconn.StatementDescription
	columns     []string
}

// ask runs statements in one round trip and one transaction. If the server refuses a statement, ask
// repeats the later ones in a second round trip, and leaves the refused one out from now on, until
// forget is called.
func (c *conn) ask(ctx context.Context, all []statement) error {
	pending := slices.DeleteFunc(slices.Clone(all), func(s statement) bool { return c.refused[s.name] != nil })
	for tries := 2*len(pending) + 2; len(pending) > 0; tries-- {
		answered, err := c.pipeline(ctx, pending)
		if err == nil {
			return nil
		}
		refusal, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || isFatal(refusal) || answered >= len(pending) || tries == 0 {
			return err
		}
		failed := &pending[answered]
		switch refusal.Code {
		case unknownStatement, duplicateStatement:
			c.connector.pooled = true
			clear(c.prepared)
			pending = pending[answered:]
			continue
		case featureNotSupported: // also: the columns of a view have changed
			if p := c.prepared[failed.name]; p != nil && p.description != nil && strings.Contains(refusal.Message, "cached plan") {
				return err
			}
		}
		c.refused[failed.name], c.hides[failed.name] = refusal, failed.missing
		delete(c.prepared, failed.name)
		pending = pending[answered+1:]
	}
	return nil
}

// pipeline sends statements and reads their answers up to the first error. It returns the number of
// statements that were answered.
func (c *conn) pipeline(ctx context.Context, all []statement) (answered int, err error) {
	err = c.within(ctx, func(ctx context.Context) error {
		p := c.pg.StartPipeline(ctx)
		for i := range all {
			c.send(p, &all[i])
		}
		if err := p.Sync(); err != nil {
			return err
		}
		c.statements += float64(len(all))
		answered, err = c.receive(p, all)
		if closeErr := p.Close(); err == nil {
			err = closeErr
		}
		if err == nil {
			c.commits++
		} else {
			c.rollbacks++
		}
		return err
	})
	return answered, err
}

// mark is in the agent's own statements, which are left out of the statements of a run.
const mark = "/*benchwatch*/"

func (c *conn) send(p *pgconn.Pipeline, s *statement) {
	text := strings.Replace(s.text, "SELECT", "SELECT "+mark, 1)
	if c.connector.pooled {
		p.SendQueryParams(text, nil, nil, nil, nil)
		return
	}
	known := c.prepared[s.name]
	if known != nil && known.text == s.text && known.description != nil {
		p.SendQueryStatement(known.description, nil, nil, nil)
		return
	}
	if known != nil {
		p.SendDeallocate(s.name)
	}
	c.prepared[s.name] = &prepared{text: s.text}
	p.SendPrepare(s.name, text, nil)
	p.SendQueryPrepared(s.name, nil, nil, nil)
}

func (c *conn) receive(p *pgconn.Pipeline, all []statement) (answered int, err error) {
	for {
		result, err := p.GetResults()
		if err != nil {
			return answered, err
		}
		switch result := result.(type) {
		case *pgconn.StatementDescription:
			if known := c.prepared[result.Name]; known != nil {
				known.description, known.columns = result, columnsOf(result.Fields)
			}
		case *pgconn.ResultReader:
			if answered >= len(all) {
				return answered, errors.New("more answers than statements")
			}
			if err := c.rows(result, &all[answered]); err != nil {
				return answered, err
			}
			answered++
		case *pgconn.PipelineSync, nil:
			return answered, nil
		}
	}
}

func (c *conn) rows(result *pgconn.ResultReader, s *statement) error {
	var columns []string
	if known := c.prepared[s.name]; known != nil && known.columns != nil {
		columns = known.columns
	} else {
		columns = columnsOf(result.FieldDescriptions())
	}
	for n := 0; result.NextRow(); n++ {
		if n >= mostRows {
			return engine.ErrTooMuch
		}
		s.read(row{&columns, result.Values()})
	}
	_, err := result.Close()
	return err
}

func columnsOf(fields []pgconn.FieldDescription) []string {
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].Name
	}
	return names
}

// ping is an exchange in which the server has nothing to do.
func (c *conn) ping(ctx context.Context) error {
	return c.within(ctx, func(ctx context.Context) error {
		p := c.pg.StartPipeline(ctx)
		return errors.Join(p.Sync(), p.Close())
	})
}

// within calls use with a context for the driver, which would start a goroutine for each context that
// can end. Instead, the network connection has the context's deadline.
func (c *conn) within(ctx context.Context, use func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	deadline, limited := ctx.Deadline()
	if err := c.raw.SetDeadline(deadline); err != nil { // the zero time is no deadline
		return net.ErrClosed
	}
	defer func() { _ = c.raw.SetDeadline(time.Time{}) }() // it would wake the process
	stop := context.AfterFunc(ctx, func() { _ = c.raw.SetDeadline(time.Unix(1, 0)) })
	err := use(context.WithoutCancel(ctx))
	switch {
	case !stop(): // the deadline may be set at any time
		_ = c.raw.Close()
		if err == nil || code(err) == "" {
			err = ctx.Err()
		}
	case err != nil && code(err) == "" && limited && !time.Now().Before(deadline): // the driver hides the cause
		err = context.DeadlineExceeded
	}
	return err
}

// nodename returns the name of this machine if the server is on it, which the server itself does not report. The process
// that serves this connection then has the connection's port in its title.
func (c *conn) nodename() string {
	title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", c.pg.PID()))
	if err != nil || !bytes.HasPrefix(title, []byte("postgres")) {
		return ""
	}
	client := "[local]"
	if !isSocket(c.connector.target) {
		_, port, err := net.SplitHostPort(c.raw.LocalAddr().String())
		if err != nil {
			return ""
		}
		client = "(" + port + ")"
	}
	if !bytes.Contains(title, []byte(client)) {
		return ""
	}
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// close ends the connection, in at most closeTimeout.
func (c *conn) close() {
	if c.pg.IsClosed() { // after an error; the driver's own goroutine ends with the connection
		_ = c.raw.Close()
		<-c.pg.CleanupDone()
		return
	}
	_ = c.raw.SetDeadline(time.Now().Add(closeTimeout))
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = c.pg.Close(ctx)
	_ = c.raw.Close()
}
