package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/many/mirror"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// requestTime limits a request including its answer.
const requestTime = 10 * time.Second

// Config is the configuration of a peer.
type Config struct {
	// Name is the label `peer` of its metrics.
	Name string
	// Identity is the text of the peer's keys in the configuration file.
	Identity string
	// URL is the address of its page.
	URL string
	// User is sent with the result of Password; empty: no authentication.
	User     string
	Password func() (string, error)
	// TLS is nil if the system's certificates are used.
	TLS *tls.Config
	// Output: copy the tools' output, too.
	Output bool
	// Metrics: this agent serves the metrics of the peer's runs.
	Metrics bool
	// MaxAge is how long ago a run may have been closed to be copied completely.
	MaxAge time.Duration
}

// equal reports whether a peer can continue with the other configuration. Passwords and client
// certificates are read on each use.
func (c *Config) equal(o *Config) bool {
	roots := func(c *Config) *x509.CertPool {
		if c.TLS == nil {
			return nil
		}
		return c.TLS.RootCAs
	}
	return c.Identity == o.Identity && roots(c).Equal(roots(o))
}

// client sends requests to one peer over HTTP, one at a time. It implements mirror.Source.
type client struct {
	Config
	http *http.Client
}

func newClient(c Config) *client {
	return &client{Config: c, http: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: c.TLS, MaxConnsPerHost: 1, MaxIdleConns: 1, IdleConnTimeout: time.Minute, DisableCompression: true,
			TLSHandshakeTimeout: requestTime, ResponseHeaderTimeout: requestTime, MaxResponseHeaderBytes: 64 << 10,
		},
		// The configuration names the address, and the password is only for this address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// get sends a request and decodes the answer, which may be a refusal.
func (c *client) get(ctx context.Context, path, query string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.URL, "/")+path+"?"+query, nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "benchwatch/"+version.Version)
	if c.User != "" {
		password, err := c.Password()
		if err != nil {
			return &mirror.AwayError{Err: err}
		}
		request.SetBasicAuth(c.User, password)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return &mirror.AwayError{Err: explain(request.URL.Host, err)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mirror.LongestAnswer+1))
	switch {
	case err != nil:
		return &mirror.AwayError{Err: explain(request.URL.Host, err)}
	case len(body) > mirror.LongestAnswer:
		return fmt.Errorf("the answer has more than %d MiB", mirror.LongestAnswer>>20)
	case response.StatusCode != http.StatusOK:
		return refused(response.StatusCode, body)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("the answer does not come from an agent: %w", err)
	}
	return nil
}

// explain returns an error that helps the user.
func explain(address string, err error) error {
	if inner, ok := errors.AsType[*url.Error](err); ok { // it repeats the address
		err = inner.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", requestTime)
	}
	if explained := engine.ExplainConnection(address, err); explained != nil {
		return explained
	}
	return err
}

// refused returns why an answer is unexpected.
func refused(status int, body []byte) error {
	var r refusal
	_ = json.Unmarshal(body, &r) // another server sends no such body
	switch {
	case status == http.StatusUnauthorized:
		return &mirror.AwayError{Err: errors.New("the password is refused: set user and password_file of the peer")}
	case status >= 500:
		return &mirror.AwayError{Err: fmt.Errorf("the answer is %d %s", status, http.StatusText(status))}
	case r.Gone:
		return mirror.ErrGone
	case r.Error != "":
		return errors.New(table.Clip(table.Plain(r.Error), 200))
	case status == http.StatusNotFound:
		return errors.New("there is no agent that serves its runs to peers: check the address, or upgrade it")
	}
	return fmt.Errorf("the answer is %d %s", status, http.StatusText(status))
}

// List implements mirror.Source.
func (c *client) List(ctx context.Context, recent time.Duration) (mirror.List, error) {
	var l mirror.List
	query := url.Values{"closed": {strconv.FormatInt(int64(recent.Seconds()), 10)}}
	if err := c.get(ctx, listPath, query.Encode(), &l); err != nil {
		return mirror.List{}, err
	}
	l.Version = table.Clip(table.Plain(l.Version), 40)
	switch {
	case l.Format != mirror.Format:
		return mirror.List{}, fmt.Errorf("benchwatch %s there and %s here do not understand each other: install the same version", l.Version, version.Version)
	case c.Output && !l.Output:
		return mirror.List{}, errors.New("it serves no output of tools, since it asks for no password; set basic_auth_users or client certificates in its --web.config.file, or `output: false` here")
	}
	l.Scraped = !c.Metrics
	return l, nil
}

// News implements mirror.Source.
func (c *client) News(ctx context.Context, run string, have *mirror.Have) (n mirror.News, err error) {
	text, err := json.Marshal(have)
	if err != nil {
		return n, err
	}
	err = c.get(ctx, listPath+"/"+url.PathEscape(run), url.Values{"have": {string(text)}}.Encode(), &n)
	if errors.Is(err, mirror.ErrGone) {
		return mirror.News{Gone: true}, nil
	}
	return n, err
}
