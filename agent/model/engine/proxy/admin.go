package proxy

import (
	"context"
	"database/sql"
	"net"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// ioTimeout limits the close of a connection to a proxy that has stopped reading, which the tick's deadline does not
// limit.
const ioTimeout = 5 * time.Second

// Admin is the connection to an admin interface that speaks the MySQL protocol, but understands only a few statements.
type Admin struct {
	db *sql.DB
	// Statements counts the statements that were sent.
	Statements uint64
}

// OpenAdmin returns an Admin for the target's address. It does not connect. connected is called with each connection;
// budget bounds the answers.
func OpenAdmin(t *engine.Target, budget *engine.Budget, connected func(net.Conn)) (*Admin, error) {
	cfg := driver.NewConfig()
	cfg.User, cfg.Passwd = t.User, string(t.Password)
	cfg.Net, cfg.Addr = "tcp", t.Address
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = ioTimeout, ioTimeout, ioTimeout
	cfg.Logger = &driver.NopLogger{}
	cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		connected(conn)
		return budget.Conn(conn), nil
	}
	// Set nothing else: character sets, session variables and time zones make the driver send SET,
	// which an admin interface refuses.
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	a := &Admin{db: sql.OpenDB(connector)}
	a.db.SetMaxOpenConns(1)
	return a, nil
}

// Close ends the connection.
func (a *Admin) Close() error { return a.db.Close() }

// Query returns the rows of an answer. The statement has to be one that the admin interface accepts letter by letter.
// It has no arguments, since the driver would prepare a statement with arguments.
func (a *Admin) Query(ctx context.Context, statement string) ([]mysql.Row, error) {
	a.Statements++
	rows, err := a.db.QueryContext(ctx, statement)
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

// Denied is the number of the MySQL protocol's error for a refused login.
const Denied = 1045
