package archive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

const (
	// amazonEndpoint is replaced by the endpoint of the bucket's region. googleEndpoint accepts S3
	// requests with HMAC keys.
	amazonEndpoint, googleEndpoint = "https://s3.amazonaws.com", "https://storage.googleapis.com"
	// tries is how often the library sends a request that fails temporarily.
	tries = 4
)

// openS3 returns a bucket on any server with the S3 API. It does not connect.
func openS3(l location, credentialsFile string, transport http.RoundTripper) (bucket, error) {
	region := cmp.Or(l.query.Get("region"), os.Getenv("AWS_REGION"))
	endpoint := cmp.Or(l.query.Get("endpoint"), os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	if l.scheme == "gs" {
		endpoint = cmp.Or(l.query.Get("endpoint"), googleEndpoint)
	}
	if endpoint != "" {
		region = cmp.Or(region, "us-east-1") // such servers have only one, which need not be requested
	}
	host, insecure, err := endpointOf(cmp.Or(endpoint, amazonEndpoint))
	if err != nil {
		return bucket{}, fmt.Errorf("archive %s: the address %w", l.name(), err)
	}
	keys, err := l.keys(credentialsFile)
	if err != nil {
		return bucket{}, err
	}
	client, err := minio.New(host,
		&minio.Options{Creds: keys, Secure: !insecure, Region: region, Transport: transport, MaxRetries: tries})
	if err != nil {
		return bucket{}, fmt.Errorf("archive %s: %w", l.name(), cause(err))
	}
	return bucket{
		put: func(ctx context.Context, name string, data []byte) error {
			options := minio.PutObjectOptions{DisableMultipart: true}
			_, err := client.PutObject(ctx, l.bucket, l.prefix+name, bytes.NewReader(data), int64(len(data)), options)
			return err
		},
		get: func(ctx context.Context, name string, limit int64) ([]byte, error) {
			r, _, _, err := minio.Core{Client: client}.GetObject(ctx, l.bucket, l.prefix+name, minio.GetObjectOptions{})
			if err != nil {
				if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
					err = errNoObject
				}
				return nil, err
			}
			defer r.Close()
			return readAtMost(r, limit)
		},
		list: func(ctx context.Context, folder string, each func(object) error) error {
			options := minio.ListObjectsOptions{Prefix: l.prefix + folder, Recursive: true}
			for o := range client.ListObjectsIter(ctx, l.bucket, options) {
				if o.Err != nil {
					return o.Err
				}
				name, requested := strings.CutPrefix(o.Key, l.prefix)
				if !requested {
					continue
				}
				if err := each(object{name, o.LastModified}); err != nil {
					return err
				}
			}
			return ctx.Err()
		},
	}, nil
}

const (
	// maxPage limits a page of a listing in bytes, maxTags in XML elements: a page has 1000
	// objects. maxAnswer limits any other answer.
	maxPage, maxTags = 8 << 20, 30_000
	maxAnswer        = 2*maxStored + 1<<20
)

var (
	// errLongAnswer is returned for an answer that is too long to be correct.
	errLongAnswer = errors.New("it sends more than was requested")
	// errNoStore is returned for an answer that is not a listing, such as a proxy's error page.
	errNoStore = errors.New("the answer is not from an object store")
)

// transport limits the time of requests and the size of answers, since the library limits neither.
type transport struct {
	http.RoundTripper
	timeout time.Duration
}

func newTransport(timeout time.Duration) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = listWorkers
	t.IdleConnTimeout = 10 * time.Second
	t.DisableCompression = true // objects are already compressed
	t.MaxResponseHeaderBytes = 64 << 10
	return &transport{t, timeout}
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), t.timeout)
	response, err := t.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	body := answer{io.LimitReader(response.Body, maxAnswer), response.Body, cancel}
	if r.URL.Query().Has("list-type") && response.StatusCode == http.StatusOK {
		defer body.Close()
		page, err := readAtMost(body, maxPage)
		if err := checkPage(page, err); err != nil {
			return nil, err
		}
		body = answer{bytes.NewReader(page), http.NoBody, cancel}
	}
	response.Body = body
	return response, nil
}

// checkPage keeps anything but a page of a listing away from the library's decoder.
func checkPage(page []byte, err error) error {
	switch {
	case err != nil && !errors.Is(err, errTooLong):
		return err
	case !bytes.Contains(page[:min(len(page), 512)], []byte("<ListBucketResult")):
		return errNoStore
	case err != nil, bytes.Count(page, []byte("<")) > maxTags:
		return errLongAnswer
	}
	return nil
}

// answer is the body of an answer. Closing it ends the request.
type answer struct {
	io.Reader
	body io.Closer
	end  context.CancelFunc
}

// Close implements io.Closer.
func (a answer) Close() error {
	defer a.end()
	return a.body.Close()
}
