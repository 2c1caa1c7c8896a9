// Package proxysql samples ProxySQL 2 and 3 through its admin interface (port 6032): hostgroups, connections, errors,
// limits, and its process if it runs on this machine.
//
// It was written after ProxySQL's documentation and tested on answers composed after it: no ProxySQL was available. The
// agent reads tables of the schema stats and of the runtime configuration, never those with users and passwords.
package proxysql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

// processName is the name of ProxySQL's binary.
const processName = "proxysql"

// Engine is ProxySQL.
var Engine = &engine.Engine{Name: "proxysql", DefaultPort: "6032", Proxy: true, ClientOption: proxy.OptionAddress, Open: open}

var _ = cause.Declare(cause.Explanation{
	Engine: Engine.Name, Programs: []string{processName},
	Settings: map[cause.Limit]string{cause.Connections: "mysql-max_connections"},
	Advice: map[cause.Limit]string{
		cause.ProxyThread: "raise mysql-threads, or repeat without the proxy: if the throughput rises, this was the cause",
	},
	Causes: proxy.Causes(proxy.Setting{
		Name: "max_connections", Test: "raise max_connections of the servers (mysql_servers)",
	}),
})

// open checks the target's settings.
func open(t engine.Target, _ *slog.Logger) (engine.Prober, error) {
	if _, _, err := net.SplitHostPort(t.Address); err != nil {
		return nil, fmt.Errorf("proxysql: address %q is not host:port of the admin interface (admin-mysql_ifaces)", t.Address)
	}
	if t.TLS != nil {
		return nil, errors.New("proxysql: TLS to the admin interface is not supported; remove tls from this target")
	}
	if err := (engine.OptionChecks{proxy.OptionAddress: proxy.CheckAddress, proxy.OptionPIDFile: nil}).Check(&t); err != nil {
		return nil, fmt.Errorf("proxysql: %w", err)
	}
	p := &prober{target: t}
	p.process = proxy.Process{
		Program: processName, PIDFile: t.Options[proxy.OptionPIDFile], Clients: t.Options[proxy.OptionAddress], Search: true,
	}
	var err error
	if p.admin, err = proxy.OpenAdmin(&p.target, &p.budget, p.process.Connected); err != nil {
		return nil, fmt.Errorf("proxysql: %w", err)
	}
	return p, nil
}

// prober samples one ProxySQL.
type prober struct {
	target  engine.Target
	budget  engine.Budget
	admin   *proxy.Admin
	process proxy.Process
	version string // empty: not asked since the last error
}

// Close ends the connection.
func (p *prober) Close() error { return p.admin.Close() }

// The statements. Their columns exist in 2.0 and later.
const (
	versionText = "SELECT variable_value FROM global_variables WHERE variable_name = 'admin-version'"
	globalText  = "SELECT Variable_Name, Variable_Value FROM stats.stats_mysql_global"
	poolText    = "SELECT hostgroup, srv_host, srv_port, status, ConnUsed, ConnFree, ConnOK, ConnERR, Queries, " +
		"Bytes_data_sent, Bytes_data_recv, Latency_us FROM stats.stats_mysql_connection_pool"
	serversText = "SELECT hostgroup_id, hostname, port, weight, max_connections FROM runtime_mysql_servers"
)

// Probe reads the admin interface and the process.
func (p *prober) Probe(ctx context.Context) (*engine.Status, error) {
	p.budget.Renew()
	s, err := p.probe(ctx)
	if err != nil {
		p.version = ""
		return nil, p.explain(err)
	}
	return s, nil
}

func (p *prober) probe(ctx context.Context) (*engine.Status, error) {
	if p.version == "" {
		rows, err := p.admin.Query(ctx, versionText)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 || rows[0].Text("variable_value") == "" {
			return nil, errNotAdmin
		}
		p.version = rows[0].Text("variable_value")
	}
	h := &hostgroups{Status: &engine.Status{Version: p.version, Flavour: "proxysql", Role: proxy.Role}}
	for _, part := range []struct {
		text string
		to   *[]mysql.Row
	}{{globalText, &h.global}, {poolText, &h.pool}, {serversText, &h.servers}} {
		var err error
		if *part.to, err = p.admin.Query(ctx, part.text); err != nil {
			return nil, err
		}
	}
	shown := h.set()
	h.Set(engine.AgentStatementsTotal, float64(p.admin.Statements))
	p.process.Sample(h.Status, shown, time.Now())
	return h.Status, nil
}

var errNotAdmin = errors.New("it has no admin-version")

// settingsText has no variable with a login in it.
const settingsText = "SELECT variable_name, variable_value FROM global_variables WHERE variable_name IN (" +
	"'mysql-threads', 'mysql-max_connections', 'mysql-multiplexing', 'mysql-connection_max_age_ms', 'mysql-free_connections_pct', " +
	"'mysql-connect_timeout_server', 'mysql-connect_retries_on_failure', 'mysql-query_retries_on_failure', 'mysql-poll_timeout', " +
	"'mysql-shun_on_failures', 'mysql-shun_recovery_time_sec', 'mysql-max_transaction_time', 'mysql-default_query_timeout', " +
	"'mysql-auto_increment_delay_multiplex', 'mysql-connection_delay_multiplex_ms', 'mysql-have_ssl', 'mysql-server_version', " +
	"'mysql-query_cache_size_MB', 'mysql-session_idle_ms', 'mysql-session_idle_show_processlist')"

// Settings implements engine.Configured.
func (p *prober) Settings(ctx context.Context) (engine.Settings, error) {
	rows, err := p.admin.Query(ctx, settingsText)
	if err != nil {
		return nil, p.explain(err)
	}
	out := engine.Settings{}
	for _, r := range rows {
		out[r.Text("variable_name")] = r.Text("variable_value")
	}
	return out, nil
}

// explain turns an error into one line with a remedy.
func (p *prober) explain(err error) error {
	var answer *driver.MySQLError
	at := p.target.Address
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &answer) && answer.Number == proxy.Denied:
		return engine.Explain(err, "proxysql: login refused (%s): user and password are one of admin-stats_credentials or admin-admin_credentials",
			answer.Message)
	case errors.As(err, &answer), errors.Is(err, errNotAdmin):
		return engine.Explain(err, "proxysql: %s is not ProxySQL's admin interface (%v): set address to one of admin-mysql_ifaces, "+
			"not to the port for clients", at, err)
	}
	if err = p.budget.Check(err); errors.Is(err, engine.ErrTooMuch) {
		return engine.Explain(err, "proxysql: %s: %v", at, err)
	}
	if explained := engine.ExplainConnection(at, err); explained != nil {
		return fmt.Errorf("proxysql: %w", explained)
	}
	return fmt.Errorf("proxysql: %s: %w", at, err)
}
