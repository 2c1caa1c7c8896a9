package mysql

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// toggle is how variables are switched while a run goes on.
var toggle = &engine.Switch{
	Form: "SET GLOBAL name = {v}",
	Setting: func(statement string) (string, bool) {
		m := setGlobal.FindStringSubmatch(statement)
		if m == nil {
			return "", false
		}
		return m[1], true
	},
	Read:    readSetting,
	Execute: execute,
}

var (
	setGlobal = regexp.MustCompile(`(?is)^\s*SET\s+GLOBAL\s+([a-z0-9_.]+)\s*=\s*(.+?)\s*;?\s*$`)
	// part is an assignment of a value that lists several, such as wsrep_provider_options.
	part = regexp.MustCompile(`^['"]([a-z0-9_.]+)\s*=\s*(.+?);?['"]$`)
)

// readSetting implements engine.Switch. If a variable lists several options, it reads the option's value.
func readSetting(ctx context.Context, t engine.Target, statement string) (value, restore string, err error) {
	m := setGlobal.FindStringSubmatch(statement)
	if value, err = variable(ctx, t, m[1]); err != nil {
		return "", "", err
	}
	if option := part.FindStringSubmatch(m[2]); option != nil {
		v, ok := optionOf(value, option[1])
		if !ok {
			return "", "", fmt.Errorf("%s has no %s", m[1], option[1])
		}
		return v, "SET GLOBAL " + m[1] + "='" + option[1] + "=" + v + "'", nil
	}
	if execute(ctx, t, "SELECT @@SESSION."+m[1]) == nil {
		return "", "", fmt.Errorf("each connection copies %s when it begins, so that a switch does not reach the tool's: set it by --before of blocks with runs of their own", m[1])
	}
	return value, "SET GLOBAL " + m[1] + " = " + literal(value), nil
}

// literal returns a value as an SQL literal.
func literal(value string) string {
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return value
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(value) + "'"
}

// optionOf returns an option of a list such as "gcs.fc_limit = 16; gcs.fc_factor = 1.0".
func optionOf(list, name string) (string, bool) {
	for one := range strings.SplitSeq(list, ";") {
		key, value, ok := strings.Cut(one, "=")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// execute runs a statement on a server, on its own connection.
func execute(ctx context.Context, t engine.Target, statement string) error {
	return once(ctx, t, func(c *conn) error { return c.execute(ctx, statement) })
}

// variable returns a global variable of a server, whose name has nothing to quote. It is an error if
// the server does not have it.
func variable(ctx context.Context, t engine.Target, name string) (value string, err error) {
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
