package postgresql

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// toggle is how settings are switched while a run goes on: in postgresql.auto.conf, which all sessions read again.
var toggle = &engine.Switch{
	Form: "ALTER SYSTEM SET name = {v}",
	Setting: func(statement string) (string, bool) {
		name := settingIn(statement)
		return name, name != ""
	},
	Read:    readSetting,
	Execute: alter,
}

var alterSystem = regexp.MustCompile(`(?is)^\s*ALTER\s+SYSTEM\s+SET\s+([a-z0-9_.]+)\s*(?:=|\sTO\s)\s*(.+?)\s*;?\s*$`)

// settingIn returns the setting that a statement changes; empty for other statements.
func settingIn(statement string) string {
	m := alterSystem.FindStringSubmatch(statement)
	if m == nil {
		return ""
	}
	return strings.ToLower(m[1])
}

// contexts are when a changed setting counts, by pg_settings.context, if a switch does not reach sessions that
// are open.
var contexts = map[string]string{
	"internal": "can't be changed", "postmaster": "needs a restart of the server: set it by --before of blocks with runs of their own",
	"superuser-backend": "counts for new connections only: set it by --before of blocks with runs of their own",
	"backend":           "counts for new connections only: set it by --before of blocks with runs of their own",
}

// readSetting implements engine.Switch. A setting that ALTER SYSTEM has set before gets this value again, any other one
// is reset.
func readSetting(ctx context.Context, t engine.Target, statement string) (value, restore string, err error) {
	name := settingIn(statement)
	err = once(ctx, t, func(c *conn) error {
		rows, err := c.rowsOf(ctx, "SELECT context, setting, current_setting(name), coalesce(sourcefile, '') LIKE '%postgresql.auto.conf', "+
			"pg_has_role('pg_read_all_settings', 'USAGE') FROM pg_settings WHERE name = '"+name+"'")
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fmt.Errorf("the server has no setting %s", name)
		}
		if why := contexts[rows[0][0]]; why != "" {
			return fmt.Errorf("%s %s", name, why)
		}
		if rows[0][4] != "t" { // otherwise the source is hidden
			return fmt.Errorf("permission denied to read the source of %s: GRANT pg_read_all_settings", name)
		}
		value, restore = rows[0][1], "ALTER SYSTEM RESET "+name
		if rows[0][3] == "t" {
			restore = "ALTER SYSTEM SET " + name + " = '" + strings.ReplaceAll(rows[0][2], "'", "''") + "'"
		}
		return nil
	})
	return value, restore, err
}

// alter runs a statement, and returns when the server has read its files again.
func alter(ctx context.Context, t engine.Target, statement string) error {
	return once(ctx, t, func(c *conn) error {
		before, err := c.rowsOf(ctx, "SELECT pg_conf_load_time()::text")
		if err != nil {
			return err
		}
		for _, text := range []string{statement, "SELECT pg_reload_conf()"} {
			if _, err := c.rowsOf(ctx, text); err != nil {
				return err
			}
		}
		poll := time.NewTicker(20 * time.Millisecond)
		defer poll.Stop()
		for {
			now, err := c.rowsOf(ctx, "SELECT pg_conf_load_time()::text")
			if err != nil || len(now) == 1 && len(before) == 1 && now[0][0] != before[0][0] {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-poll.C:
			}
		}
	})
}

// rowsOf runs a statement by the simple protocol and returns its rows.
func (c *conn) rowsOf(ctx context.Context, text string) (rows [][]string, err error) {
	err = c.within(ctx, func(ctx context.Context) error {
		results, err := c.pg.Exec(ctx, text).ReadAll()
		if err != nil {
			return err
		}
		for _, result := range results {
			for _, values := range result.Rows {
				row := make([]string, len(values))
				for i, v := range values {
					row[i] = string(v)
				}
				rows = append(rows, row)
			}
		}
		return nil
	})
	return rows, err
}

// once connects, uses the connection and closes it.
func once(ctx context.Context, t engine.Target, use func(*conn) error) error {
	budget := &engine.Budget{}
	budget.Renew()
	connects, err := newConnector(&t, budget)
	if err != nil {
		return err
	}
	pg, err := connects.connect(ctx)
	if err != nil {
		return explain(&t, connects.at, err)
	}
	c := &conn{connector: connects, pg: pg, raw: connects.raw, prepared: map[string]*prepared{}, refused: map[string]*pgconn.PgError{}, hides: map[string]string{}}
	defer c.close()
	return use(c)
}
