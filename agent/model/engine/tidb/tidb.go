// Package tidb reads what a TiDB server reports beyond MySQL's protocol. Its SHOW GLOBAL STATUS has
// nine rows and no load counters; the counters are on its status port, in Prometheus' format.
// Prometheus itself scrapes TiKV and PD.
package tidb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

const (
	// optionStatusAddress is the server's status port: host:port, or http(s)://host:port. The
	// default is the port in the cluster's own tables if the user has PROCESS, otherwise port 10080
	// of the server's host.
	optionStatusAddress = "status_address"
	defaultStatusPort   = "10080"

	metricsPath, infoPath = "/metrics", "/info"
)

// settingNames are the relevant variables on TiDB, where MySQL's variables have no effect.
var settingNames = []string{
	"tidb_txn_mode", "tidb_enable_async_commit", "tidb_enable_1pc", "tidb_guarantee_linearizability", "tidb_rc_read_check_ts",
	"tidb_mem_quota_query", "tidb_server_memory_limit", "tidb_executor_concurrency", "tidb_distsql_scan_concurrency", "tidb_index_lookup_concurrency",
	"tidb_enable_prepared_plan_cache", "tidb_session_plan_cache_size", "tidb_replica_read", "tidb_isolation_read_engines",
	"tidb_tso_client_batch_max_wait_time", "tidb_enable_tso_follower_proxy", "tidb_store_batch_size",
	"transaction_isolation", "autocommit", "max_connections",
}

// Detail reads the status port and the cluster's tables.
type Detail struct {
	client   *http.Client // nil: not used yet
	metrics  metrics
	members  members
	sessions sessions
}

// New returns the detail for one prober.
func New() mysql.Detail { return &Detail{} }

// Needs implements mysql.Detail.
func (*Detail) Needs() mysql.Needs {
	return mysql.Needs{
		Settings: settingNames,
		ReadSettings: func(server *mysql.Server, variables mysql.Values, out engine.Settings) {
			if server.Flavour == "tidb" {
				mysql.Copy(settingNames, variables, out)
			}
		},
		Options: engine.OptionChecks{optionStatusAddress: func(address string) error {
			if _, err := statusURL(address); err != nil {
				return fmt.Errorf("not host:port or http(s)://host:port: %w", err)
			}
			return nil
		}},
	}
}

// Close ends the connection to the status port.
func (d *Detail) Close() error {
	if d.client != nil {
		d.client.CloseIdleConnections()
	}
	return nil
}

// Read implements mysql.Detail.
func (d *Detail) Read(ctx context.Context, q mysql.Querier, tick *mysql.Tick, out *engine.Status) error {
	if tick.Server.Flavour != "tidb" {
		return nil
	}
	out.NoData = true
	now := time.Now()
	if err := d.members.read(ctx, q, now, out); err != nil {
		return err
	}
	if err := d.sessions.read(ctx, q, tick.Target, d.members.denied, out); err != nil {
		return err
	}
	address, err := d.statusURL(tick.Target)
	if err != nil {
		out.Missing = append(out.Missing, err.Error())
		return nil
	}
	if d.client == nil {
		d.client = newClient(tick.Target)
	}
	d.metrics.read(ctx, d.client, address, now, out)
	return nil
}

// statusURL returns the URL of the server's metrics.
func (d *Detail) statusURL(t *engine.Target) (string, error) {
	address := t.Options[optionStatusAddress]
	if address == "" {
		host, _, err := net.SplitHostPort(t.Address)
		if err != nil { // a unix socket
			host = "127.0.0.1"
		}
		address = net.JoinHostPort(host, d.members.statusPort(t.Address))
	}
	u, err := statusURL(address)
	if err != nil {
		return "", fmt.Errorf("status port %s: %w", address, err)
	}
	return u, nil
}

// statusURL returns the URL of the metrics at an address. Its errors do not repeat the address,
// which may contain a password by mistake.
func statusURL(address string) (string, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("unknown scheme")
	}
	if u.User != nil {
		return "", errors.New("the status port has no logins")
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		return "", errors.New("no port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); host == "" || err != nil || n == 0 {
		return "", errors.New("no host, or no port")
	}
	return u.Scheme + "://" + u.Host + metricsPath, nil
}

// newClient returns a client that keeps one connection. It does not request compression, which
// would cost the server more than the bytes are worth.
func newClient(t *engine.Target) *http.Client {
	transport := &http.Transport{
		DialContext:        (&net.Dialer{Timeout: fetchTimeout}).DialContext,
		DisableCompression: true,
		MaxConnsPerHost:    1,
		IdleConnTimeout:    time.Minute,
	}
	if t.TLS != nil {
		transport.TLSClientConfig = t.TLS.Clone()
	}
	return &http.Client{
		Transport: transport,
		Timeout:   fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}
