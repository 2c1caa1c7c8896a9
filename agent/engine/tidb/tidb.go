// Package tidb reads what a TiDB server reports beyond MySQL's protocol. Its SHOW
// GLOBAL STATUS has nine rows and no counter of load; the counters are on its
// status port, in Prometheus' format. TiKV and PD are left to Prometheus, which
// scrapes them itself.
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

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/engine/mysql"
)

const (
	// optionStatusAddress is the server's status port: host:port, or
	// http(s)://host:port. The default is the port in the cluster's own tables,
	// if the user has PROCESS, or else port 10080 of the server's host.
	optionStatusAddress = "status_address"
	defaultStatusPort   = "10080"
)

// Detail reads the status port and the cluster's tables.
type Detail struct {
	client  *http.Client // nil: not used yet
	metrics metrics
	members members
}

// New returns the detail for one prober.
func New() mysql.Detail { return &Detail{} }

// Status implements mysql.Detail.
func (*Detail) Status() []string { return nil }

// Variables implements mysql.Detail.
func (*Detail) Variables() []string { return nil }

// Options implements mysql.Optioner.
func (*Detail) Options() []string { return []string{optionStatusAddress} }

// CheckOptions implements mysql.Optioner.
func (*Detail) CheckOptions(t *engine.Target) error {
	address := t.Options[optionStatusAddress]
	if address == "" {
		return nil
	}
	if _, err := statusURL(address); err != nil {
		return fmt.Errorf("option %s is neither host:port nor http(s)://host:port: %w", optionStatusAddress, err)
	}
	return nil
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
	now := time.Now()
	if err := d.members.read(ctx, q, now, out); err != nil {
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

// statusURL returns the URL of the metrics at an address. Its errors do not repeat
// the address, which may contain a password by mistake.
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
	return u.Scheme + "://" + u.Host + "/metrics", nil
}

// newClient returns a client that keeps one connection. It does not ask for
// compression, which would cost the server more than the bytes are worth.
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
