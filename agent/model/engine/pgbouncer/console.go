package pgbouncer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

const (
	// closeTimeout limits the farewell to a proxy that has stopped reading.
	closeTimeout = time.Second
	// longestMessage is the largest message in bytes.
	longestMessage = 1 << 20
)

// console is the connection to the admin console. It speaks the simple protocol, the only one that the console has.
type console struct {
	target    *engine.Target
	config    *pgconn.Config
	budget    engine.Budget
	connected func(net.Conn)
	// dials permits a connection. The driver would open others to cancel statements.
	dials    atomic.Bool
	pg       *pgconn.PgConn
	commands uint64
}

func newConsole(t *engine.Target, connected func(net.Conn)) (*console, error) {
	c := &console{target: t, connected: connected}
	// All that the driver would take from the environment or the home folder is set.
	config, err := pgconn.ParseConfig("host=localhost port=6432 user=benchwatch password=none dbname=pgbouncer sslmode=disable " +
		"passfile=/dev/null target_session_attrs=any connect_timeout=0")
	if err != nil {
		return nil, fmt.Errorf("pgbouncer: %w", err)
	}
	host, port, err := net.SplitHostPort(t.Address)
	if err != nil { // a socket
		host = "localhost"
	}
	if number, err := strconv.ParseUint(port, 10, 16); err == nil {
		config.Port = uint16(number)
	}
	config.Host, config.User, config.Password = host, t.User, string(t.Password)
	config.Fallbacks, config.ValidateConnect, config.KerberosSrvName = nil, nil, ""
	config.RuntimeParams = map[string]string{"application_name": "benchwatch"}
	if t.TLS != nil {
		config.TLSConfig = t.TLS
	} else if err == nil && !engine.IsLoopback(host) {
		config.RequireAuth = "!password" // none in plain text over a network
	}
	config.MaxProtocolMessageBodyLen = longestMessage
	config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{host}, nil }
	config.DialFunc = c.dial
	c.config = config
	return c, nil
}

// dial opens the network connection; the driver's own address is not used.
func (c *console) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if !c.dials.Load() {
		return nil, errors.New("no second connection")
	}
	network := "tcp"
	if strings.HasPrefix(c.target.Address, "/") {
		network = "unix"
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, c.target.Address)
	if err != nil {
		return nil, err
	}
	c.connected(conn)
	return c.budget.Conn(conn), nil
}

// connect opens the connection, unless it is open.
func (c *console) connect(ctx context.Context) (err error) {
	if c.pg != nil {
		return nil
	}
	c.dials.Store(true)
	defer c.dials.Store(false)
	c.pg, err = pgconn.ConnectConfig(ctx, c.config)
	return err
}

// close ends the connection.
func (c *console) close() error {
	if c.pg == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := c.pg.Close(ctx)
	c.pg = nil
	return err
}

// row is a row of an answer: values by column. A version without a column has no value.
type row map[string]string

func (r row) number(column string) (float64, bool) {
	n, err := strconv.ParseFloat(r[column], 64)
	return n, err == nil && n >= 0
}

// show returns the answer to SHOW what.
func (c *console) show(ctx context.Context, what string) ([]row, error) {
	c.commands++
	results, err := c.pg.Exec(ctx, "SHOW "+what).ReadAll()
	if err = c.budget.Check(err); err != nil {
		return nil, err
	}
	var rows []row
	for _, result := range results {
		for _, values := range result.Rows {
			r := row{}
			for i, v := range values {
				if v != nil && i < len(result.FieldDescriptions) {
					r[result.FieldDescriptions[i].Name] = strings.ToValidUTF8(string(v), "?")
				}
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}
