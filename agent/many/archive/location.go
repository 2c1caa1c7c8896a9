package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/go-kit/log"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/thanos-io/objstore/providers/azure"
	"github.com/thanos-io/objstore/providers/s3"

	"github.com/benchwatch/benchwatch/agent/base/secret"
)

// location is an archive's address.
type location struct {
	scheme string // s3, gs, azure or file
	bucket string // empty for file
	prefix string // "" or ending in a slash; for file the path of the folder
	query  url.Values
}

// options of an address, by scheme. None is a secret.
var options = map[string][]string{
	"s3":    {"endpoint", "region"},
	"gs":    {"endpoint"},
	"azure": {"account", "endpoint"},
	"file":  nil,
}

// CheckURL returns what is wrong with the address of an archive. It connects to
// nothing and reads no file.
func CheckURL(text string) error {
	l, err := parse(text)
	if err == nil && l.scheme == "file" && secret.FileExists(l.prefix) == nil {
		err = errors.New("is a file: expected a folder")
	}
	return err
}

// parse never repeats the address in an error: it may contain a secret.
func parse(text string) (location, error) {
	if filepath.IsAbs(text) {
		return location{scheme: "file", prefix: filepath.Clean(text)}, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return location{}, errors.New("is not an address such as s3://bucket/prefix")
	}
	allowed, known := options[u.Scheme]
	switch {
	case !known:
		return location{}, errors.New("expected s3://bucket/prefix, gs://bucket/prefix, azure://container/prefix or an absolute path")
	case u.User != nil:
		return location{}, errors.New("contains a user or password; credentials come from the environment or from credentials_file")
	case u.Fragment != "":
		return location{}, errors.New("contains a #")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return location{}, errors.New("has options that can't be read")
	}
	for name := range query {
		if !slices.Contains(allowed, name) {
			return location{}, fmt.Errorf("has an unknown option %s: %s:// has %s", name, u.Scheme, cmp.Or(strings.Join(allowed, " and "), "none"))
		}
	}
	if u.Scheme == "file" {
		if u.Host != "" || !filepath.IsAbs(u.Path) {
			return location{}, errors.New("is not the absolute path of a folder: expected file:///folder")
		}
		return location{scheme: "file", prefix: filepath.Clean(u.Path)}, nil
	}
	if u.Host == "" || u.Port() != "" {
		return location{}, fmt.Errorf("has no name of a bucket: expected %s://bucket/prefix", u.Scheme)
	}
	if e := query.Get("endpoint"); e != "" && u.Scheme != "azure" {
		if _, _, err := endpointOf(e); err != nil || !strings.Contains(e, "://") {
			return location{}, errNoEndpoint
		}
	}
	if u.Scheme == "azure" && query.Get("account") == "" {
		return location{}, errors.New("has no storage account: expected azure://container/prefix?account=NAME")
	}
	prefix := strings.TrimPrefix(path.Clean("/"+u.Path), "/")
	if prefix != "" {
		prefix += "/"
	}
	return location{u.Scheme, u.Host, prefix, query}, nil
}

var errNoEndpoint = errors.New("has an endpoint that is no http:// or https:// address")

// endpointOf splits http://host:port; without a scheme it is https.
func endpointOf(text string) (host string, insecure bool, err error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return "", false, errNoEndpoint
	}
	return u.Host, u.Scheme == "http", nil
}

// name is the address without its options, for people.
func (l location) name() string {
	if l.scheme == "file" {
		return l.prefix
	}
	return l.scheme + "://" + path.Join(l.bucket, l.prefix)
}

// key distinguishes archives.
func (l location) key() string {
	return digest([]byte(l.scheme + "\n" + l.bucket + "\n" + l.prefix + "\n" + l.query.Encode()))[:16]
}

// googleEndpoint speaks S3 with HMAC keys. Google's own client would double the size
// of the program.
const googleEndpoint = "https://storage.googleapis.com"

// open returns the bucket. It connects to nothing yet.
func (l location) open(credentialsFile string) (bucket, error) {
	switch l.scheme {
	case "file":
		return folder(l.prefix), nil
	case "azure":
		return l.openAzure(credentialsFile)
	}
	c := s3.DefaultConfig
	c.Bucket, c.Region = l.bucket, cmp.Or(l.query.Get("region"), os.Getenv("AWS_REGION"))
	endpoint := cmp.Or(l.query.Get("endpoint"), os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	if l.scheme == "gs" {
		endpoint = cmp.Or(l.query.Get("endpoint"), googleEndpoint)
	}
	switch {
	case endpoint != "":
		c.Region = cmp.Or(c.Region, "us-east-1") // such servers have one, and it need not be asked for
	case c.Region != "":
		endpoint = "https://s3." + c.Region + ".amazonaws.com"
	default:
		endpoint = "https://s3.amazonaws.com"
	}
	var err error
	if c.Endpoint, c.Insecure, err = endpointOf(endpoint); err != nil {
		return nil, fmt.Errorf("archive %s: the address %w", l.name(), err)
	}
	c.HTTPConfig.Transport = transport(s3Tags)
	c.MaxRetries = 1 // repeated by patient
	c.DisableMultipart = true
	key, err := l.keys(credentialsFile)
	if err != nil {
		return nil, err
	}
	c.AccessKey, c.SecretKey, c.SessionToken = key.AccessKeyID, key.SecretAccessKey, key.SessionToken
	b, err := s3.NewBucketWithConfig(log.NewNopLogger(), c, "benchwatch", nil)
	if err != nil {
		return nil, fmt.Errorf("archive %s: %w", l.name(), cause(err))
	}
	return store{b, l.prefix}, nil
}

// transport has no limit to how long a server may be silent: requests have one. tags
// bounds a page of a listing, in elements of XML.
func transport(tags int) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = listWorkers
	t.IdleConnTimeout = 10 * time.Second
	t.DisableCompression = true // of objects that are compressed already
	t.MaxResponseHeaderBytes = 64 << 10
	return &bounded{t, tags}
}

const (
	// s3Tags and azureTags are more than a page of a listing has: 1000 and 5000 objects.
	s3Tags, azureTags = 30_000, 400_000
	// maxPage bounds such a page, in bytes, and maxAnswer any answer.
	maxPage, maxAnswer = 8 << 20, 2*maxStored + 1<<20
)

// errLongAnswer is returned for an answer that is longer than any right one.
var errLongAnswer = errors.New("it sends more than was requested")

// errNoStore is returned for an answer that is no listing, such as the page of a proxy.
var errNoStore = errors.New("the answer is not that of an object store")

// bounded ends answers that are too long. The decoder of the library has no limit.
type bounded struct {
	http.RoundTripper
	tags int
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body := &boundedBody{Reader: response.Body, Closer: response.Body, left: maxAnswer, tags: math.MaxInt}
	if query := r.URL.Query(); query.Has("list-type") || query.Get("comp") == "list" {
		body.left, body.tags = maxPage, b.tags
		if response.StatusCode == http.StatusOK {
			begin := bufio.NewReader(response.Body)
			text, err := begin.Peek(512)
			if err != nil && !errors.Is(err, io.EOF) {
				response.Body.Close()
				return nil, err
			}
			if !bytes.Contains(text, []byte("<ListBucketResult")) && !bytes.Contains(text, []byte("<EnumerationResults")) {
				response.Body.Close()
				return nil, errNoStore
			}
			body.Reader = begin
		}
	}
	response.Body = body
	return response, nil
}

type boundedBody struct {
	io.Reader
	io.Closer
	left, tags int
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.left -= n
	if b.tags < math.MaxInt {
		b.tags -= bytes.Count(p[:n], []byte("<"))
	}
	if b.left < 0 || b.tags < 0 {
		return 0, errLongAnswer
	}
	return n, err
}

// ErrNoCredentials is returned if neither the environment nor a file has the keys of a
// bucket.
var ErrNoCredentials = errors.New("no credentials")

// keys returns the keys of S3. The zero value leaves them to the machine's role.
func (l location) keys(file string) (credentials.Value, error) {
	if file != "" {
		text, err := secret.ReadFile(file)
		if err != nil {
			return credentials.Value{}, fmt.Errorf("archive: credentials file: %w", err)
		}
		v := parseKeys(string(text), cmp.Or(os.Getenv("AWS_PROFILE"), "default"))
		if v.AccessKeyID == "" || v.SecretAccessKey == "" {
			return v, fmt.Errorf("%w: archive %s: %s has no aws_access_key_id and aws_secret_access_key below [default]", ErrNoCredentials, l.name(), file)
		}
		return v, nil
	}
	for _, p := range []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}} {
		v, err := p.RetrieveWithCredContext(nil)
		if err == nil && v.AccessKeyID != "" && v.SecretAccessKey != "" {
			return v, nil
		}
	}
	if l.scheme == "s3" && hasRole() {
		return credentials.Value{}, nil
	}
	return credentials.Value{}, fmt.Errorf("%w: archive %s: neither the environment nor a file has the keys of the bucket", ErrNoCredentials, l.name())
}

// parseKeys reads the keys of a profile in the format of ~/.aws/credentials.
func parseKeys(text, profile string) (v credentials.Value) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSpace(strings.TrimSuffix(name, "]"))
		}
		name, value, _ := strings.Cut(line, "=")
		if section != profile {
			continue
		}
		switch value = strings.Trim(strings.TrimSpace(value), `"'`); strings.TrimSpace(name) {
		case "aws_access_key_id":
			v.AccessKeyID = value
		case "aws_secret_access_key":
			v.SecretAccessKey = value
		case "aws_session_token":
			v.SessionToken = value
		}
	}
	return v
}

// hasRole reports whether this is a machine or a container of Amazon's, which can get
// keys from there. Elsewhere that would be asked for in vain, for long.
func hasRole() bool {
	for _, name := range []string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_WEB_IDENTITY_TOKEN_FILE"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	vendor, err := os.ReadFile("/sys/devices/virtual/dmi/id/sys_vendor")
	return err == nil && strings.HasPrefix(string(vendor), "Amazon")
}

// openAzure takes the account's key from the environment or a connection string from a
// file; without them the identity of the machine is used.
func (l location) openAzure(credentialsFile string) (bucket, error) {
	c := azure.DefaultConfig
	c.ContainerName, c.StorageAccountName = l.bucket, l.query.Get("account")
	c.Endpoint = cmp.Or(l.query.Get("endpoint"), c.Endpoint)
	c.HTTPConfig.Transport = transport(azureTags)
	c.StorageAccountKey = os.Getenv("AZURE_STORAGE_KEY")
	if text := os.Getenv("AZURE_STORAGE_CONNECTION_STRING"); text != "" {
		c.StorageConnectionString, c.StorageAccountKey = text, ""
	}
	if credentialsFile != "" {
		text, err := secret.ReadFile(credentialsFile)
		if err != nil {
			return nil, fmt.Errorf("archive: credentials file: %w", err)
		}
		c.StorageConnectionString, c.StorageAccountKey = strings.TrimSpace(string(text)), ""
	}
	b, err := azure.NewBucketWithConfig(log.NewNopLogger(), c, "benchwatch", nil)
	if err != nil { // could quote the connection string
		return nil, fmt.Errorf("%w: archive %s: the connection string, key or identity can't be used", ErrNoCredentials, l.name())
	}
	return store{b, l.prefix}, nil
}

func azureStatus(err error) int {
	if response, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return response.StatusCode
	}
	return 0
}

func azureCode(err error) string {
	if response, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return response.ErrorCode
	}
	return ""
}
