// Package grafana makes requests to the HTTP API of Grafana. The error of a request classifies the
// failure for the next attempt.
package grafana

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// RequestTimeout is generous, because Grafana may still carry out a request that timed out.
const RequestTimeout = 20 * time.Second

// MaxAnswer bounds an answer, in bytes.
const MaxAnswer = 4 << 20

// Client makes requests to one Grafana. It is safe for concurrent use.
type Client struct {
	// HTTP makes the requests. It does not follow redirects: a redirect means a wrong address or a
	// login page, and a secret goes only to the configured address.
	HTTP *http.Client

	base           *url.URL
	tokenFile      string
	user, password string
}

// New returns a client for the Grafana at address, which may have a path. It reads the token from
// tokenFile at each request, so a new token takes effect immediately; without a file it sends none.
// The error reports an address that can't belong to a Grafana.
func New(address, tokenFile string) (*Client, error) {
	base, err := url.Parse(address)
	if err != nil {
		// url.Error repeats the URL, which may contain a password.
		return nil, errors.New("grafana url can't be read: use http://host:port or https://host/path")
	}
	switch {
	case base.User != nil:
		return nil, errors.New("grafana url holds a user name or password; leave them out and give a service account's token in a file")
	case base.Scheme != "http" && base.Scheme != "https":
		return nil, fmt.Errorf("grafana url begins with %q: use http or https", base.Scheme+":")
	case base.Hostname() == "":
		return nil, errors.New("grafana url has no host: use http://host:port")
	case base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("grafana url has a query or fragment: give the address of Grafana's home page only")
	}
	return &Client{base: base, tokenFile: tokenFile, HTTP: &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// NewLogin is like New, but the client logs in as a user.
func NewLogin(address, user, password string) (*Client, error) {
	c, err := New(address, "")
	if err == nil {
		c.user, c.password = user, password
	}
	return c, err
}

// Address returns Grafana's address without a trailing slash.
func (c *Client) Address() string { return strings.TrimRight(c.base.String(), "/") }

// TokenFile returns the path of the token's file; empty without one.
func (c *Client) TokenFile() string { return c.tokenFile }

// Close closes idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// logIn adds the login to a request and returns the secret in it.
func (c *Client) logIn(r *http.Request) (string, error) {
	if c.user != "" {
		r.SetBasicAuth(c.user, c.password)
		return c.password, nil
	}
	if c.tokenFile == "" {
		return "", nil
	}
	token, err := secret.ReadToken(c.tokenFile)
	if err == nil {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return token, err
}

// Do makes one request. The body is in as JSON, or empty if in is nil. The answer is decoded into
// out, unless out is nil. Errors are *RequestError.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	var content bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&content).Encode(in); err != nil {
			return &RequestError{Problem: Refused, Err: err}
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Address()+path, &content)
	if err != nil {
		return &RequestError{Problem: NotGrafana, Err: err}
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "benchwatch/"+version.Version)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	login, err := c.logIn(req)
	if err != nil {
		return &RequestError{Problem: Unauthorised, Err: err}
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return unreachableError(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, MaxAnswer+1))
	redactor := secret.New(login)
	switch {
	case res.StatusCode/100 != 2:
		return statusError(res, data, redactor)
	case err != nil:
		return unreachableError(err)
	case len(data) > MaxAnswer:
		return &RequestError{Problem: NotGrafana, Message: fmt.Sprintf("the answer is longer than %d bytes", MaxAnswer)}
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		kind := table.Clip(redactor.Text(res.Header.Get("Content-Type")), 60)
		return &RequestError{Problem: NotGrafana, Message: "unexpected answer of the type " + kind, Err: err}
	}
	return nil
}
