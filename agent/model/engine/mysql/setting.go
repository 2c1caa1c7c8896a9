package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// Execute runs a statement on a server, on a connection of its own.
func Execute(ctx context.Context, t engine.Target, statement string) error {
	return once(ctx, t, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, statement)
		return err
	})
}

// Variable returns a global variable of a server, whose name has nothing to quote. It is an error if
// the server does not have it.
func Variable(ctx context.Context, t engine.Target, name string) (value string, err error) {
	err = once(ctx, t, func(c *sql.Conn) error {
		var key string
		err := c.QueryRowContext(ctx, show("VARIABLES", []string{name})).Scan(&key, &value)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("the server has no variable %s", name)
		}
		return err
	})
	return value, err
}

// once connects, uses the connection and closes it.
func once(ctx context.Context, t engine.Target, use func(*sql.Conn) error) error {
	p, budget := &progress{}, &engine.Budget{}
	budget.Renew()
	pool, err := newPool(t, p, budget)
	if err != nil {
		return err
	}
	defer pool.Close()
	c, err := pool.Conn(ctx)
	if err != nil {
		return engine.ExplainConnection(t.Address, err)
	}
	defer c.Close()
	return use(c)
}
