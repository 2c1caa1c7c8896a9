package mysql

import (
	"context"
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// Execute runs a statement on a server, on its own connection.
func Execute(ctx context.Context, t engine.Target, statement string) error {
	return once(ctx, t, func(c *conn) error { return c.execute(ctx, statement) })
}

// Variable returns a global variable of a server, whose name has nothing to quote. It is an error if
// the server does not have it.
func Variable(ctx context.Context, t engine.Target, name string) (value string, err error) {
	err = once(ctx, t, func(c *conn) error {
		found := Values{}
		if err := c.values(ctx, show("VARIABLES", []string{name}), found); err != nil {
			return err
		}
		for _, value = range found {
			return nil
		}
		return fmt.Errorf("the server has no variable %s", name)
	})
	return value, err
}

// once connects, uses the connection and closes it.
func once(ctx context.Context, t engine.Target, use func(*conn) error) error {
	p, budget := &progress{}, &engine.Budget{}
	budget.Renew()
	connects, err := newConnector(t, p, budget)
	if err != nil {
		return err
	}
	s, err := connects.connect(ctx)
	if err != nil {
		return engine.ExplainConnection(t.Address, err)
	}
	defer s.Close()
	return use(&conn{session: s, statements: new(uint64)})
}
