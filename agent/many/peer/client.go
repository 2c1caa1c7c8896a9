package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/many/mirror"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// requestTime is how long a request may take with its answer.
	requestTime = 10 * time.Second
	// maxList and maxMeta bound what is read of a list of runs and of a run.json.
	maxList = 8 << 20
	maxMeta = 1 << 20
	// overlap is how many bytes before the new ones are compared with those that the
	// copy has, when a copy is resumed.
	overlap = 512
)

// Config is a peer.
type Config struct {
	// Name is the label `peer` of its metrics.
	Name string
	// URL is the address of its page.
	URL string
	// User is sent with what Password returns; empty: none is.
	User     string
	Password func() (string, error)
	// TLS is nil for the certificates of the system.
	TLS *tls.Config
	// Output: the tools' output is copied too.
	Output bool
	// Metrics: this agent serves the metrics of the peer's runs.
	Metrics bool
	// MaxAge is how long ago a run may have been closed that is copied whole.
	MaxAge time.Duration
}

// awayError is one of the peer, not of one of its runs.
type awayError struct{ error }

func (e *awayError) Unwrap() error { return e.error }

// client asks one peer, one question at a time.
type client struct {
	Config
	http *http.Client
	// received counts the bytes of files.
	received func(int)
}

func newClient(c Config, received func(int)) *client {
	return &client{Config: c, received: received, http: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: c.TLS, MaxConnsPerHost: 1, MaxIdleConns: 1, IdleConnTimeout: time.Minute, DisableCompression: true,
			TLSHandshakeTimeout: requestTime, ResponseHeaderTimeout: requestTime, MaxResponseHeaderBytes: 64 << 10,
		},
		// The configuration names the address, and the password is for that.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// get sends a request and returns the answer with at most limit bytes of its body.
func (c *client) get(ctx context.Context, path string, header http.Header, limit int64) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.URL, "/")+path, nil)
	if err != nil {
		return nil, nil, err
	}
	if header != nil {
		request.Header = header
	}
	request.Header.Set("User-Agent", "benchwatch/"+version.Version)
	if c.User != "" {
		password, err := c.Password()
		if err != nil {
			return nil, nil, &awayError{err}
		}
		request.SetBasicAuth(c.User, password)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, nil, &awayError{explain(request.URL.Host, err)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	switch {
	case err != nil:
		return nil, nil, &awayError{explain(request.URL.Host, err)}
	case int64(len(body)) > limit:
		return nil, nil, fmt.Errorf("an answer has more than %d bytes", limit)
	}
	return response, body, nil
}

// explain returns what a user can act upon.
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

// refused returns why an answer is not what was asked for.
func refused(response *http.Response, body []byte) error {
	var r refusal
	_ = json.Unmarshal(body, &r) // of another server it is none
	switch {
	case response.StatusCode == http.StatusUnauthorized:
		return &awayError{errors.New("the password is refused: set user and password_file of the peer")}
	case response.StatusCode >= 500:
		return &awayError{fmt.Errorf("the answer is %d %s", response.StatusCode, http.StatusText(response.StatusCode))}
	case r.Error != "":
		return errors.New(table.Clip(table.Plain(r.Error), 200))
	case response.StatusCode == http.StatusNotFound:
		return errors.New("there is no agent that serves its runs to peers: check the address, or upgrade it")
	}
	return fmt.Errorf("the answer is %d %s", response.StatusCode, http.StatusText(response.StatusCode))
}

// list returns the open runs, and those that were closed within recent.
func (c *client) list(ctx context.Context, recent time.Duration) (list, error) {
	path := listPath
	if recent > 0 {
		path += "?closed=" + strconv.FormatInt(int64(recent.Seconds()), 10)
	}
	response, body, err := c.get(ctx, path, nil, maxList) //nolint:bodyclose // get reads and closes it
	if err != nil {
		return list{}, err
	}
	if response.StatusCode != http.StatusOK {
		return list{}, refused(response, body)
	}
	var l list
	if err := json.Unmarshal(body, &l); err != nil {
		return list{}, errors.New("the answer is not that of an agent")
	}
	l.Version = table.Clip(table.Plain(l.Version), 40)
	if l.Format != format {
		return list{}, fmt.Errorf("benchwatch %s there and %s here do not understand each other: install the same version", l.Version, version.Version)
	}
	for _, e := range l.Runs {
		if err := rundir.CheckID(e.ID); err != nil {
			return list{}, fmt.Errorf("the list of runs is damaged: %w", err)
		}
	}
	return l, nil
}

// meta returns a run.json unless it has the hash known. The error matches
// fs.ErrNotExist if the peer has no such run.
func (c *client) meta(ctx context.Context, id, known string) ([]byte, error) {
	response, body, err := c.get(ctx, filePath(id, rundir.MetaFile), http.Header{"If-None-Match": {`"` + known + `"`}}, maxMeta) //nolint:bodyclose // get reads and closes it
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode == http.StatusNotModified:
		return nil, nil
	case response.StatusCode == http.StatusNotFound && isOurs(body):
		return nil, fmt.Errorf("run %s: %w", id, fs.ErrNotExist)
	case response.StatusCode != http.StatusOK:
		return nil, refused(response, body)
	case !json.Valid(body):
		return nil, fmt.Errorf("run %s: %s is damaged", id, rundir.MetaFile)
	}
	return body, nil
}

func isOurs(body []byte) bool {
	var r refusal
	return json.Unmarshal(body, &r) == nil && r.Error == noSuchRun
}

func filePath(id, name string) string { return listPath + "/" + id + "/" + name }

// source is one run of a peer.
type source struct {
	*client
	files []string
	// tags are those of the files, by name: another one is another file.
	tags map[string]string
	// sizes are those in the last list, nil if the run was not in it.
	sizes map[string]int64
}

// News implements mirror.Source. The run.json is asked for first, so that the files are
// complete when it shows the end.
func (s *source) News(ctx context.Context, dir rundir.Directory, have *mirror.Have) (mirror.News, error) {
	meta, err := s.meta(ctx, dir.ID(), have.Meta)
	if errors.Is(err, fs.ErrNotExist) {
		return mirror.News{Gone: true}, nil
	}
	if err != nil {
		return mirror.News{}, err
	}
	var n mirror.News
	for _, name := range s.files {
		size, listed := s.sizes[name]
		if meta == nil && listed && size == have.Sizes[name] {
			continue
		}
		p, more, err := s.part(ctx, dir, name, have.Sizes[name])
		if err != nil {
			return mirror.News{}, fmt.Errorf("run %s: %s: %w", dir.ID(), name, err)
		}
		if len(p.Data) > 0 {
			n.Files = append(n.Files, p)
		}
		n.More = n.More || more
	}
	if !n.More || have.Meta == "" {
		n.Meta = meta
	}
	return n, nil
}

// part returns the next bytes of a file. The first time they begin with some that the
// copy has: if these differ, it is not the same file.
func (s *source) part(ctx context.Context, dir rundir.Directory, name string, at int64) (p mirror.Part, more bool, err error) {
	p = mirror.Part{Name: name, Offset: at}
	header, from := http.Header{}, at
	var before []byte
	if tag := s.tags[name]; tag != "" {
		header.Set("If-Match", tag)
	} else if at > 0 {
		from = max(0, at-overlap)
		if before, err = readAt(dir, name, from, at-from); err != nil {
			return p, false, err
		}
	}
	header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, at+mirror.PartSize-1))
	response, body, err := s.get(ctx, filePath(dir.ID(), name), header, mirror.PartSize+overlap) //nolint:bodyclose // get reads and closes it
	if err != nil {
		return p, false, err
	}
	first, total := int64(0), int64(0)
	switch response.StatusCode {
	case http.StatusPartialContent:
		if first, total, err = contentRange(response.Header.Get("Content-Range")); err != nil || first != from || total < from+int64(len(body)) {
			return p, false, errors.New("the answer is not the part that was asked for")
		}
	case http.StatusOK:
		if at > 0 || len(body) > 0 {
			return p, false, errors.New("the answer is not the part that was asked for")
		}
		return p, false, nil // an empty file
	case http.StatusRequestedRangeNotSatisfiable: // there is nothing after what the copy has
		if _, total, err = contentRange(response.Header.Get("Content-Range")); err != nil || total < at {
			return p, false, mirror.ErrReplaced
		}
		return p, false, nil
	case http.StatusPreconditionFailed:
		return p, false, mirror.ErrReplaced
	case http.StatusNotFound:
		if at > 0 {
			return p, false, mirror.ErrReplaced
		}
		return p, false, nil // none yet
	default:
		return p, false, refused(response, body)
	}
	if len(body) < len(before) || !bytes.Equal(body[:len(before)], before) {
		return p, false, mirror.ErrReplaced
	}
	if p.Data = body[len(before):]; len(p.Data) == 0 && at < total { // would be asked for again at once
		return p, false, errors.New("the answer is not the part that was asked for")
	}
	s.tags[name] = response.Header.Get("ETag")
	s.received(len(p.Data))
	return p, at+int64(len(p.Data)) < total, nil
}

func readAt(dir rundir.Directory, name string, offset, n int64) ([]byte, error) {
	f, err := rundir.Open(dir.Path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, n)
	_, err = f.ReadAt(data, offset)
	return data, err
}

// contentRange reads "bytes 0-99/1234" and "bytes */1234".
func contentRange(text string) (first, total int64, err error) {
	text, ok := strings.CutPrefix(text, "bytes ")
	part, size, found := strings.Cut(text, "/")
	if !ok || !found {
		return 0, 0, errors.New("no range")
	}
	if total, err = strconv.ParseInt(size, 10, 64); err != nil || part == "*" {
		return 0, total, err
	}
	begin, _, _ := strings.Cut(part, "-")
	first, err = strconv.ParseInt(begin, 10, 64)
	return first, total, err
}
