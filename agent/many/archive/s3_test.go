package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// remote is an S3 server within a synctest bubble. It answers each request after a delay, and
// counts requests.
type remote struct {
	delay   time.Duration
	objects map[string][]byte // by key
	// fail answers the first requests.
	fail func(n int) (*http.Response, error)

	mu                              sync.Mutex
	lists, gets, atOnce, mostAtOnce int
}

// RoundTrip implements http.RoundTripper.
func (r *remote) RoundTrip(q *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.atOnce++
	r.mostAtOnce = max(r.mostAtOnce, r.atOnce)
	query := q.URL.Query()
	if query.Has("list-type") {
		r.lists++
	} else {
		r.gets++
	}
	n := r.lists + r.gets
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.atOnce--
		r.mu.Unlock()
	}()
	if r.fail != nil {
		if response, err := r.fail(n); response != nil || err != nil {
			return response, err
		}
	}
	select {
	case <-time.After(r.delay):
	case <-q.Context().Done():
		return nil, q.Context().Err()
	}
	if query.Has("list-type") {
		return respond(http.StatusOK, r.page(query.Get("prefix"), query.Get("continuation-token"))), nil
	}
	data, ok := r.objects[strings.TrimPrefix(q.URL.Path, "/bucket/")]
	if !ok {
		return respond(http.StatusNotFound, nil), nil
	}
	return respond(http.StatusOK, data), nil
}

func respond(status int, body []byte) *http.Response {
	header := http.Header{"Last-Modified": {"Sat, 21 Nov 2026 14:03:00 GMT"}, "Etag": {`"x"`}, "Content-Length": {strconv.Itoa(len(body))}}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}
}

// page returns a page of 1000 objects, selected by the token.
func (r *remote) page(prefix, token string) []byte {
	from, _ := strconv.Atoi(token)
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(r.objects)) {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	end := min(from+1000, len(keys))
	var b bytes.Buffer
	fmt.Fprintf(&b, "<ListBucketResult><IsTruncated>%t</IsTruncated><NextContinuationToken>%d</NextContinuationToken>", end < len(keys), end)
	for _, key := range keys[from:end] {
		fmt.Fprintf(&b, "<Contents><Key>%s</Key><LastModified>2026-11-21T14:03:00.000Z</LastModified></Contents>", key)
	}
	b.WriteString("</ListBucketResult>")
	return b.Bytes()
}

func newRemoteArchive(t *testing.T, r *remote) *Archive {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	l, err := parse("s3://bucket/team?endpoint=http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	const timeout = 30 * time.Second
	b, err := openS3(l, "", &transport{r, timeout})
	if err != nil {
		t.Fatal(err)
	}
	options := Options{CacheDir: t.TempDir(), Tools: registry.Tools}
	return &Archive{Options: options, bucket: guard(b, l.name(), timeout), name: l.name(), key: l.key()}
}

// TestListMany guards that the first listing of 2,000 runs takes less than 2 s at 20 ms per
// request, by concurrent requests, and that the next one reads no index.
func TestListMany(t *testing.T) {
	const runs = 2000
	a := newArchive(t, t.TempDir())
	dir := newRun(t, t.TempDir(), "one", "gen1")
	push(t, a, dir)
	x := list(t, a)[0]
	run, err := os.ReadFile(dir.Path(rundir.MetaFile))
	if err != nil {
		t.Fatal(err)
	}
	r := &remote{delay: 20 * time.Millisecond, objects: map[string][]byte{}}
	for i := range runs {
		e := x.Entry
		e.ID = fmt.Sprintf("run%d", i)
		data, err := encodeIndex(bytes.Replace(run, []byte(`"one"`), []byte(strconv.Quote(e.ID)), 1), &x.Row, x.Files)
		if err != nil {
			t.Fatal(err)
		}
		r.objects["team/"+e.object()] = data
	}
	b := newRemoteArchive(t, r)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if n := len(list(t, b)); n != runs {
			t.Errorf("%d runs", n)
		}
		if took := time.Since(began); took > 2*time.Second || r.lists != runs/1000 || r.gets != runs || r.mostAtOnce != listWorkers {
			t.Errorf("%v, %d lists and %d indexes read, at most %d at once", took, r.lists, r.gets, r.mostAtOnce)
		}
		r.lists, r.gets = 0, 0
		if n := len(list(t, b)); n != runs || r.lists != runs/1000 || r.gets != 0 {
			t.Errorf("from the cache: %d runs, %d lists and %d indexes read", n, r.lists, r.gets)
		}
	})
}

// TestRepeatedRequests guards that a temporary failure is retried, and that a permanent failure or
// a missing answer gives one clear error.
func TestRepeatedRequests(t *testing.T) {
	for name, tt := range map[string]struct {
		fail     func(n int) (*http.Response, error)
		delay    time.Duration
		requests int
		want     string
	}{
		"busy for a moment": {requests: 3, fail: func(n int) (*http.Response, error) {
			if n > 2 {
				return nil, nil
			}
			return respond(http.StatusServiceUnavailable, []byte("<Error><Code>SlowDown</Code></Error>")), nil
		}},
		"cut for a moment": {requests: 2, fail: func(n int) (*http.Response, error) {
			if n > 1 {
				return nil, nil
			}
			return nil, io.ErrUnexpectedEOF
		}},
		"no bucket": {requests: 1, want: "s3://bucket/team: the bucket does not exist", fail: func(int) (*http.Response, error) {
			return respond(http.StatusNotFound, []byte("<Error><Code>NoSuchBucket</Code></Error>")), nil
		}},
		"silent": {requests: tries, delay: time.Hour, want: "s3://bucket/team: no answer within 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &remote{delay: tt.delay, fail: tt.fail}
			a := newRemoteArchive(t, r)
			synctest.Test(t, func(t *testing.T) {
				entries, err := a.Entries(context.Background())
				if tt.want == "" && (err != nil || len(entries) != 0) || tt.want != "" && (!errors.Is(err, ErrUnavailable) || !strings.HasSuffix(err.Error(), tt.want)) {
					t.Errorf("%v, %v", entries, err)
				}
				if r.lists != tt.requests {
					t.Errorf("%d requests", r.lists)
				}
			})
		})
	}
}
