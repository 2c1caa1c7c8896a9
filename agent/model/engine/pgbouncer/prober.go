package pgbouncer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

// processName is the name of PgBouncer's binary.
const processName = "pgbouncer"

// configInterval is the time between two readings of the limits in the configuration.
const configInterval = 30 * time.Second

// prober samples one PgBouncer.
type prober struct {
	target  engine.Target
	console *console
	process proxy.Process
	version string // empty: not asked since the last error
	config  engine.Settings
	readAt  time.Time // when config was read
	net     netTimes
}

func newProber(t engine.Target) (*prober, error) {
	p := &prober{target: t, net: netTimes{}}
	clients := t.Options[proxy.OptionAddress]
	if clients == "" && !strings.HasPrefix(t.Address, "/") {
		clients = t.Address
	}
	p.process = proxy.Process{Program: processName, PIDFile: t.Options[proxy.OptionPIDFile], Clients: clients, Search: true}
	var err error
	p.console, err = newConsole(&p.target, p.process.Connected)
	return p, err
}

// Close ends the connection.
func (p *prober) Close() error { return p.console.close() }

// Probe reads the console and the process.
func (p *prober) Probe(ctx context.Context) (*engine.Status, error) {
	p.console.budget.Renew()
	s, err := p.probe(ctx)
	if err != nil {
		p.version = ""
		_ = p.console.close() // its error says nothing more
		return nil, p.explain(ctx, err)
	}
	return s, nil
}

func (p *prober) probe(ctx context.Context) (*engine.Status, error) {
	if err := p.console.connect(ctx); err != nil {
		return nil, err
	}
	begin := time.Now()
	rows, err := p.console.show(ctx, "VERSION")
	if err != nil {
		return nil, err
	}
	s := &engine.Status{Flavour: "pgbouncer", Role: proxy.Role, RoundTrip: time.Since(begin)}
	if len(rows) > 0 {
		p.version = strings.TrimPrefix(rows[0]["version"], "PgBouncer ")
	}
	if p.version == "" {
		return nil, errNoVersion
	}
	s.Version = p.version
	if time.Since(p.readAt) >= configInterval {
		if err := p.readConfig(ctx); err != nil {
			return nil, err
		}
	}
	pools := &pools{Status: s, config: p.config, net: p.net}
	for _, part := range []struct {
		what string
		to   *[]row
	}{{"DATABASES", &pools.databases}, {"POOLS", &pools.pools}, {"STATS", &pools.stats}} {
		if *part.to, err = p.console.show(ctx, part.what); err != nil {
			return nil, err
		}
	}
	shown := pools.set()
	s.Set(engine.AgentStatementsTotal, float64(p.console.commands))
	p.process.Sample(s, shown, time.Now())
	return s, nil
}

var errNoVersion = errors.New("it has no version")

// settingNames are the settings that are recorded. None of them can contain a secret.
var settingNames = []string{
	"pool_mode", "default_pool_size", "min_pool_size", "reserve_pool_size", "reserve_pool_timeout", "max_client_conn", "max_db_connections",
	"max_db_client_connections", "max_user_connections", "max_user_client_connections", "server_round_robin", "server_reset_query",
	"server_reset_query_always", "server_check_delay", "server_lifetime", "server_idle_timeout",
	"server_connect_timeout", "server_login_retry", "query_timeout", "query_wait_timeout", "transaction_timeout",
	"idle_transaction_timeout", "client_idle_timeout", "max_prepared_statements", "max_packet_size", "pkt_buf", "sbuf_loopcnt",
	"listen_backlog", "so_reuseport", "tcp_defer_accept", "tcp_keepalive", "client_tls_sslmode", "server_tls_sslmode",
	"ignore_startup_parameters", "track_extra_parameters", "auth_type", "disable_pqexec", "peer_id",
}

func (p *prober) readConfig(ctx context.Context) error {
	rows, err := p.console.show(ctx, "CONFIG")
	if err != nil {
		return err
	}
	all := map[string]string{}
	for _, r := range rows {
		all[r["key"]] = r["value"]
	}
	p.config, p.readAt = engine.Settings{}, time.Now()
	for _, name := range settingNames {
		if value, ok := all[name]; ok {
			p.config[name] = value
		}
	}
	return nil
}

// Settings implements engine.Configured.
func (p *prober) Settings(ctx context.Context) (engine.Settings, error) {
	if p.console.pg == nil {
		return nil, errors.New("pgbouncer: not connected")
	}
	if err := p.readConfig(ctx); err != nil {
		return nil, err
	}
	out := engine.Settings{}
	maps.Copy(out, p.config)
	databases, err := p.console.show(ctx, "DATABASES")
	for _, d := range databases[:min(len(databases), proxy.MaxBackends)] {
		for _, name := range []string{"pool_size", "pool_mode", "reserve_pool", "reserve_pool_size", "max_connections"} {
			if value := d[name]; value != "" && value != "0" && d["name"] != ownDatabase {
				out[d["name"]+" "+name] = value
			}
		}
	}
	return out, err
}

// explain turns an error into one line with a remedy.
func (p *prober) explain(ctx context.Context, err error) error {
	var refused *pgconn.PgError
	at := p.target.Address
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &refused) && strings.Contains(refused.Message, "SSL required"):
		return engine.Explain(err, "pgbouncer: %s accepts only TLS (client_tls_sslmode): set tls of the target", at)
	case errors.As(err, &refused):
		return engine.Explain(err, "pgbouncer: the admin console at %s refused: %s; user must be one of stats_users or admin_users, "+
			"with its password in auth_file", at, refused.Message)
	case errors.Is(err, syscall.EACCES):
		return engine.Explain(err, "pgbouncer: permission denied at the socket %s", at)
	case errors.Is(err, fs.ErrNotExist):
		return engine.Explain(err, "pgbouncer: there is no socket %s", at)
	case errors.Is(err, errNoVersion):
		return engine.Explain(err, "pgbouncer: %s is not PgBouncer's admin console", at)
	}
	if explained := engine.ExplainConnection(at, err); explained != nil {
		return fmt.Errorf("pgbouncer: %w", explained)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("pgbouncer: %s: %w", at, op)
	}
	return engine.Explain(err, "pgbouncer: %s: %v", at, err)
}
