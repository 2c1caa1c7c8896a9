package archive

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/benchwatch/benchwatch/agent/base/secret"
)

// location is an archive's address.
type location struct {
	scheme string // s3, gs or file
	bucket string // empty for file
	prefix string // "" or ending in a slash; for file the path of the folder
	query  url.Values
}

// options of an address, by scheme. They contain no secrets.
var options = map[string][]string{
	"s3":   {"endpoint", "region"},
	"gs":   {"endpoint"},
	"file": nil,
}

// CheckURL returns what is wrong with the address of an archive. It neither connects nor reads a
// file.
func CheckURL(text string) error {
	l, err := parse(text)
	if err == nil && l.scheme == "file" && secret.FileExists(l.prefix) == nil {
		err = errors.New("is a file: expected a folder")
	}
	return err
}

// parse never repeats the address in an error, since it may contain a secret.
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
		return location{}, errors.New("expected s3://bucket/prefix, gs://bucket/prefix or an absolute path")
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
			return location{}, fmt.Errorf("has an unknown option %s: %s:// has %s",
				name, u.Scheme, cmp.Or(strings.Join(allowed, " and "), "none"))
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
	if e := query.Get("endpoint"); e != "" {
		if _, _, err := endpointOf(e); err != nil || !strings.Contains(e, "://") {
			return location{}, errNoEndpoint
		}
	}
	prefix := strings.TrimPrefix(path.Clean("/"+u.Path), "/")
	if prefix != "" {
		prefix += "/"
	}
	return location{u.Scheme, u.Host, prefix, query}, nil
}

var errNoEndpoint = errors.New("has an endpoint that is no http:// or https:// address")

// endpointOf splits http://host:port. The default scheme is https.
func endpointOf(text string) (host string, insecure bool, err error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" &&
		u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return "", false, errNoEndpoint
	}
	return u.Host, u.Scheme == "http", nil
}

// name returns the address without its options, for people.
func (l location) name() string {
	if l.scheme == "file" {
		return l.prefix
	}
	return l.scheme + "://" + path.Join(l.bucket, l.prefix)
}

// key returns a text that distinguishes archives.
func (l location) key() string {
	return digest([]byte(l.scheme + "\n" + l.bucket + "\n" + l.prefix + "\n" + l.query.Encode()))[:16]
}

// ErrNoCredentials is returned if neither the environment nor a file contains the keys of a bucket.
var ErrNoCredentials = errors.New("no credentials")

// keys returns the keys of the bucket from the first source that has them.
func (l location) keys(file string) (*credentials.Credentials, error) {
	if file != "" {
		found, err := readKeys(file)
		if err == nil && found == nil {
			err = fmt.Errorf("%w: archive %s: %s has no aws_access_key_id and aws_secret_access_key below [default]",
				ErrNoCredentials, l.name(), file)
		}
		return found, err
	}
	if v, err := (&credentials.EnvAWS{}).Retrieve(); err == nil && v.AccessKeyID != "" && v.SecretAccessKey != "" {
		return credentials.NewStaticV4(v.AccessKeyID, v.SecretAccessKey, v.SessionToken), nil
	}
	home, _ := os.UserHomeDir()
	found, err := readKeys(cmp.Or(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), filepath.Join(home, ".aws", "credentials")))
	switch {
	case err == nil && found != nil:
		return found, nil
	case l.scheme == "s3" && hasRole():
		return credentials.NewIAM(""), nil
	}
	return nil, fmt.Errorf("%w: archive %s: neither the environment nor a file has the keys of the bucket", ErrNoCredentials, l.name())
}

// readKeys reads a profile from a file in the format of ~/.aws/credentials; nil if it lacks one of
// the keys.
func readKeys(file string) (*credentials.Credentials, error) {
	text, err := secret.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("archive: credentials file: %w", err)
	}
	profile, section := cmp.Or(os.Getenv("AWS_PROFILE"), "default"), ""
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSpace(strings.TrimSuffix(name, "]"))
		}
		if name, value, ok := strings.Cut(line, "="); ok && section == profile {
			values[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	id, key := values["aws_access_key_id"], values["aws_secret_access_key"]
	if id == "" || key == "" {
		return nil, nil
	}
	return credentials.NewStaticV4(id, key, values["aws_session_token"]), nil
}

// hasRole reports whether this machine or container belongs to Amazon, so that it can request keys.
// Elsewhere such a request takes long and fails.
func hasRole() bool {
	for _, name := range []string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_WEB_IDENTITY_TOKEN_FILE"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	vendor, err := os.ReadFile("/sys/devices/virtual/dmi/id/sys_vendor")
	return err == nil && strings.HasPrefix(string(vendor), "Amazon")
}
