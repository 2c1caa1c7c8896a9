package atlasproxy

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

// ioTimeout limits the close of a connection to a proxy that has stopped reading, which the tick's
// deadline does not limit.
const ioTimeout = 5 * time.Second

// program is the name of Atlas's binary.
const program = "mysql-proxy"

// prober samples one proxy through one admin connection and, on this machine, procfs.
type prober struct {
	target     engine.Target
	admin      *sql.DB
	version    string // empty: not asked since the last error
	statements uint64
	process    proxy.Process
}

func newProber(t engine.Target) (*prober, error) {
	p := &prober{target: t}
	p.process = proxy.Process{
		Program: program, PIDFile: t.Options[proxy.OptionPIDFile], Clients: t.Options[proxy.OptionAddress],
	}

	cfg := driver.NewConfig()
	cfg.User, cfg.Passwd = t.User, string(t.Password)
	cfg.Net, cfg.Addr = "tcp", t.Address
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = ioTimeout, ioTimeout, ioTimeout
	cfg.Logger = &driver.NopLogger{}
	cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			p.process.Connected(conn)
		}
		return conn, err
	}
	// Set nothing else: character sets, session variables and time zones make the driver send SET,
	// which the admin interface refuses.
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("atlas: %w", err)
	}
	p.admin = sql.OpenDB(connector)
	p.admin.SetMaxOpenConns(1)
	return p, nil
}

// Close ends the connection.
func (p *prober) Close() error { return p.admin.Close() }

// Probe reads the states of the backends (one statement) and the process.
func (p *prober) Probe(ctx context.Context) (*engine.Status, error) {
	if p.version == "" {
		rows, err := p.query(ctx, "SELECT VERSION")
		if err != nil {
			return nil, p.explain(err)
		}
		if len(rows) > 0 {
			p.version = rows[0].Text("version")
		}
		if p.version == "" {
			return nil, p.notAdmin("it has no version")
		}
	}
	rows, err := p.query(ctx, "SELECT * FROM backends")
	if err != nil {
		p.version = ""
		return nil, p.explain(err)
	}
	s := &engine.Status{Version: p.version, Flavour: "atlas", Role: proxy.Role}
	backends := make([]proxy.Backend, len(rows))
	for i, row := range rows {
		backends[i] = proxy.Backend{Address: row.Text("address"), State: row.Text("state"), Role: row.Text("type")}
	}
	proxy.SetBackends(s, states, backends)
	s.Members = proxy.Members(backends, "")
	s.Set(engine.AgentStatementsTotal, float64(p.statements))
	p.process.Sample(s, backends, time.Now())
	return s, nil
}

// query returns the rows of an answer. The statement has to be one that the admin interface accepts
// letter by letter. It has no arguments, since the driver would prepare a statement with arguments.
func (p *prober) query(ctx context.Context, statement string) ([]mysql.Row, error) {
	p.statements++
	rows, err := p.admin.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has its error
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var answer []mysql.Row
	for rows.Next() {
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range into {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		answer = append(answer, mysql.NewRow(columns, values))
	}
	return answer, rows.Err()
}

// errAccessDenied is error 1045 of the MySQL protocol.
const errAccessDenied = 1045

// explain turns an error into one line with a remedy.
func (p *prober) explain(err error) error {
	var answer *driver.MySQLError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &answer) && answer.Number == errAccessDenied:
		return engine.Explain(err, "atlas: login refused (%s): user and password are admin-username and admin-password of Atlas", answer.Message)
	case errors.As(err, &answer):
		return p.notAdmin(answer.Message)
	}
	if explained := engine.ExplainConnection(p.target.Address, err); explained != nil {
		err = explained
	} else {
		err = fmt.Errorf("%s: %w", p.target.Address, err)
	}
	return fmt.Errorf("atlas: %w", err)
}

func (p *prober) notAdmin(why string) error {
	return engine.Explain(nil, "atlas: %s is not Atlas's admin interface (%s): set address to its admin-address, not to the port for clients", p.target.Address, why)
}
