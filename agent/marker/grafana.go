package marker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/secret"
)

const (
	// requestTimeout is generous: a create that is given up may still be
	// carried out, and nobody waits for a marker.
	requestTimeout = 20 * time.Second
	maxAnswer      = 4 << 20 // bytes
	maxFound       = 1000
)

// Grafana is the part of Grafana's HTTP API that markers need: annotations of
// the organisation that the token belongs to. It is safe for concurrent use.
type Grafana struct {
	base  *url.URL
	token Token
	http  *http.Client
}

// NewGrafana returns a client for the Grafana at rawURL, which may have a path.
// A nil transport is the usual one.
func NewGrafana(rawURL string, token Token, transport http.RoundTripper) (*Grafana, error) {
	base, err := url.Parse(rawURL)
	if err != nil {
		// url.Error repeats the URL, which may hold a password.
		return nil, errors.New("grafana url can't be read: use http://host:port or https://host/path")
	}
	switch {
	case base.User != nil:
		return nil, errors.New("grafana url holds a user name or password: leave them out and give a service account's token in a file")
	case base.Scheme != "http" && base.Scheme != "https":
		return nil, fmt.Errorf("grafana url begins with %q: use http or https", base.Scheme+":")
	case base.Host == "" || base.Hostname() == "":
		return nil, errors.New("grafana url has no host: use http://host:port")
	case base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("grafana url has a query or fragment: give the address of Grafana's home page only")
	}
	if transport == nil {
		transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	return &Grafana{
		base:  base,
		token: token,
		http: &http.Client{
			Transport: transport,
			// A redirect is a wrong address or a login page: the token goes
			// nowhere but where the user said.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Close gives back idle connections.
func (g *Grafana) Close() { g.http.CloseIdleConnections() }

// find returns what Grafana has under a marker's identity, oldest first.
func (g *Grafana) find(ctx context.Context, m *Marker) ([]annotation, error) {
	from, to := window(m)
	found, err := g.search(ctx, m, url.Values{
		"tags": {identityTag(m.ID)},
		"from": {strconv.FormatInt(from.UnixMilli(), 10)},
		"to":   {strconv.FormatInt(to.UnixMilli(), 10)},
	})
	if err != nil || len(found) > 0 {
		return found, err
	}
	// Grafana writes an annotation and its tags in two steps. When the second
	// one failed, the annotation is there but can't be searched by tag; it still
	// carries its tags. Updating it completes it.
	ms := strconv.FormatInt(m.Start.UnixMilli(), 10)
	found, err = g.search(ctx, m, url.Values{"from": {ms}, "to": {ms}})
	for i := range found {
		found[i].Text = "" // differs from what is wanted
	}
	return found, err
}

func (g *Grafana) search(ctx context.Context, m *Marker, query url.Values) ([]annotation, error) {
	query.Set("type", "annotation")
	query.Set("limit", strconv.Itoa(maxFound))
	var all, found []annotation
	if err := g.do(ctx, http.MethodGet, "find", "", query, nil, &all); err != nil {
		return nil, err
	}
	for _, a := range all {
		// Grafana may list one twice when it has many dashboards.
		same := func(other annotation) bool { return other.ID == a.ID }
		if a.ID > 0 && slices.Contains(a.Tags, identityTag(m.ID)) && !slices.ContainsFunc(found, same) {
			found = append(found, a)
		}
	}
	slices.SortFunc(found, func(a, b annotation) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

// create adds an annotation and returns its id.
func (g *Grafana) create(ctx context.Context, a annotation) (int64, error) {
	var answer struct {
		ID int64 `json:"id"`
	}
	if err := g.do(ctx, http.MethodPost, "create", "", nil, a, &answer); err != nil {
		return 0, err
	}
	if answer.ID <= 0 {
		return 0, &requestError{op: "create", problem: notGrafana, message: "the answer has no id"}
	}
	return answer.ID, nil
}

// update replaces an annotation's text, tags and times.
func (g *Grafana) update(ctx context.Context, id int64, a annotation) error {
	if a.TimeEnd == 0 {
		a.TimeEnd = a.Time // Grafana keeps a time that is left out
	}
	var answer struct{}
	return g.do(ctx, http.MethodPatch, "update", strconv.FormatInt(id, 10), nil, a, &answer)
}

// remove deletes an annotation.
func (g *Grafana) remove(ctx context.Context, id int64) error {
	var answer struct{}
	return g.do(ctx, http.MethodDelete, "delete", strconv.FormatInt(id, 10), nil, nil, &answer)
}

// do makes one request. Errors are *requestError.
func (g *Grafana) do(ctx context.Context, method, op, sub string, query url.Values, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	token, err := g.token.Read()
	if err != nil {
		return &requestError{op: op, problem: unauthorised, err: err}
	}
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return &requestError{op: op, problem: refused, err: err}
		}
		content = bytes.NewReader(data)
	}
	target := *g.base
	target.Path = path.Join("/", target.Path, "api/annotations", sub)
	target.RawPath = ""
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, target.String(), content)
	if err != nil {
		return &requestError{op: op, problem: notGrafana, err: err}
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "benchwatch/"+version.Version)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := g.http.Do(req)
	if err != nil {
		return unreachableError(op, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if res.StatusCode/100 != 2 {
		return statusError(op, res, data, secret.New(token))
	}
	if err != nil {
		return unreachableError(op, err)
	}
	if len(data) > maxAnswer {
		return &requestError{op: op, problem: notGrafana, message: fmt.Sprintf("the answer is longer than %d bytes", maxAnswer)}
	}
	if err := json.Unmarshal(data, answer); err != nil {
		kind := res.Header.Get("Content-Type")
		return &requestError{op: op, problem: notGrafana,
			message: fmt.Sprintf("the answer is no annotation but %s", secret.New(token).Text(Cut(plain(kind), 60))), err: err}
	}
	return nil
}
