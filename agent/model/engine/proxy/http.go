package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// idleTimeout ends the connection to a proxy that is no longer sampled.
const idleTimeout = time.Minute

// Client reads a proxy's HTTP interface on one connection. It follows no redirect, and sends the login only to the
// target's address.
type Client struct {
	target *engine.Target
	scheme string
	http   *http.Client
	budget *engine.Budget
	// Connected is called with each new connection; may be nil.
	Connected func(net.Conn)
}

// NewClient returns a client for the target's address.
func NewClient(t *engine.Target, budget *engine.Budget) *Client {
	c := &Client{target: t, scheme: "http", budget: budget}
	if t.TLS != nil {
		c.scheme = "https"
	}
	c.http = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			MaxConnsPerHost: 1, MaxIdleConns: 1, IdleConnTimeout: idleTimeout, TLSClientConfig: t.TLS,
			DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				if c.Connected != nil {
					c.Connected(conn)
				}
				return budget.Conn(conn), nil
			},
		},
	}
	return c
}

// Close closes the connection.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// StatusError is an answer with another status than 200.
type StatusError struct {
	Status int
	Path   string
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: %d %s", e.Path, e.Status, http.StatusText(e.Status))
}

// Get returns the body at a path. For another status than 200 the error is a *StatusError.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.scheme+"://"+c.target.Address+path, nil)
	if err != nil {
		return nil, err
	}
	if c.target.User != "" {
		request.SetBasicAuth(c.target.User, string(c.target.Password))
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, c.budget.Check(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, longestBody+1))
	switch {
	case err != nil:
		return nil, c.budget.Check(err)
	case len(body) > longestBody:
		return nil, engine.ErrTooMuch
	case answer.StatusCode != http.StatusOK:
		return nil, &StatusError{answer.StatusCode, path}
	}
	return body, nil
}

// longestBody bounds a body in bytes; the budget bounds what all of a tick's answers have together.
const longestBody = 8 << 20

// Explain returns an error of one line for a failed request. wrong says what to set if the address has no such path.
func (c *Client) Explain(name, wrong string, err error) error {
	var status *StatusError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &status) && (status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden):
		return engine.Explain(err, "%s: %s refused the login (%d): set user and password_file of the target", name, c.target.Address, status.Status)
	case errors.As(err, &status):
		return engine.Explain(err, "%s: %s answered %d to %s: %s", name, c.target.Address, status.Status, status.Path, wrong)
	case errors.Is(err, engine.ErrTooMuch):
		return engine.Explain(err, "%s: %s: %v", name, c.target.Address, engine.ErrTooMuch)
	}
	if explained := engine.ExplainConnection(c.target.Address, err); explained != nil {
		return fmt.Errorf("%s: %w", name, explained)
	}
	return fmt.Errorf("%s: %s: %w", name, c.target.Address, err)
}
