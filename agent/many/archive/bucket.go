package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/thanos-io/objstore"
)

// bucket is what an archive needs of an object store. Names of objects have the
// prefix of the archive. Objects appear whole or not at all.
type bucket interface {
	put(ctx context.Context, name string, data []byte) error
	// get returns an object of at most limit bytes. The error is errNoObject if
	// there is none.
	get(ctx context.Context, name string, limit int64) ([]byte, error)
	has(ctx context.Context, name string) (bool, error)
	// list calls each for the objects below a folder, without the prefix.
	list(ctx context.Context, folder string, each func(object)) error
	remove(ctx context.Context, name string) error
}

// object is one object of a listing.
type object struct {
	name    string
	changed time.Time
}

var (
	// ErrUnavailable is wrapped by errors of the object store itself, which concern
	// every run: it does not exist, does not answer, is full or refuses.
	ErrUnavailable = errors.New("archive is unavailable")
	errNoObject    = errors.New("no such object")
	// errNotObject is returned for a single object that is something else.
	errNotObject = errors.New("can't be read")
	errTooMany   = errors.New("it lists too many objects")
	errTooLong   = errors.New("object is longer than recorded")
)

// store is an archive's bucket in a service that objstore knows.
type store struct {
	objstore.Bucket
	prefix string
}

func (s store) put(ctx context.Context, name string, data []byte) error {
	return s.Upload(ctx, s.prefix+name, bytes.NewReader(data))
}

func (s store) get(ctx context.Context, name string, limit int64) ([]byte, error) {
	r, err := s.Get(ctx, s.prefix+name)
	if err != nil {
		if s.IsObjNotFoundErr(err) {
			return nil, errNoObject
		}
		if errors.Is(err, io.EOF) { // of an empty object, or of the connection
			if a, about := s.Attributes(ctx, s.prefix+name); about == nil && a.Size == 0 {
				return nil, nil
			}
		}
		return nil, err
	}
	defer r.Close()
	data, err := readAtMost(r, limit)
	if err != nil && s.IsObjNotFoundErr(err) {
		return nil, errNoObject
	}
	return data, err
}

func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errTooLong
	}
	return data, err
}

func (s store) has(ctx context.Context, name string) (bool, error) {
	return s.Exists(ctx, s.prefix+name)
}

func (s store) list(ctx context.Context, folder string, each func(object)) error {
	return s.IterWithAttributes(ctx, s.prefix+folder, func(o objstore.IterObjectAttributes) error {
		changed, _ := o.LastModified()
		if name, ok := strings.CutPrefix(o.Name, s.prefix); ok { // else it was not asked for
			each(object{strings.Clone(name), changed})
		}
		return ctx.Err()
	}, objstore.WithRecursiveIter(), objstore.WithUpdatedAt())
}

func (s store) remove(ctx context.Context, name string) error {
	err := s.Delete(ctx, s.prefix+name)
	if err != nil && s.IsObjNotFoundErr(err) {
		return nil
	}
	return err
}

const (
	// maxListing bounds a listing in memory, in bytes: 300,000 objects.
	maxListing = 48 << 20
	// listedSize is about what an object takes beside its name.
	listedSize = 64
)

// patience is how an archive waits for its bucket.
type patience struct {
	// request is how long one request may take, in which at most maxStored bytes are
	// moved.
	request time.Duration
	// tries is how often a request is made that fails in a way that may pass.
	tries int
	// pause is the time before the second try; it doubles.
	pause time.Duration
}

var usualPatience = patience{request: 30 * time.Second, tries: 4, pause: 500 * time.Millisecond}

// patient is a bucket whose requests end, are repeated if that may help, and whose
// errors are clear.
type patient struct {
	bucket
	patience
	name string // of the bucket, for errors
}

func (p *patient) put(ctx context.Context, name string, data []byte) error {
	return p.try(ctx, func(ctx context.Context) error { return p.bucket.put(ctx, name, data) })
}

func (p *patient) get(ctx context.Context, name string, limit int64) (data []byte, err error) {
	err = p.try(ctx, func(ctx context.Context) (err error) {
		data, err = p.bucket.get(ctx, name, limit)
		return err
	})
	return data, err
}

func (p *patient) has(ctx context.Context, name string) (found bool, err error) {
	err = p.try(ctx, func(ctx context.Context) (err error) {
		found, err = p.bucket.has(ctx, name)
		return err
	})
	return found, err
}

func (p *patient) list(ctx context.Context, folder string, each func(object)) error {
	var found []object
	err := p.try(ctx, func(ctx context.Context) error {
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		found = found[:0]
		size := 0
		err := p.bucket.list(ctx, folder, func(o object) {
			if size += len(o.name) + listedSize; size > maxListing {
				stop(errTooMany)
				return
			}
			found = append(found, o)
		})
		if errors.Is(context.Cause(ctx), errTooMany) {
			return errTooMany
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, o := range found {
		each(o)
	}
	return nil
}

func (p *patient) remove(ctx context.Context, name string) error {
	return p.try(ctx, func(ctx context.Context) error { return p.bucket.remove(ctx, name) })
}

func (p *patient) try(ctx context.Context, do func(context.Context) error) error {
	pause := p.pause
	for n := 1; ; n++ {
		err := p.once(ctx, do)
		switch {
		case err == nil, ctx.Err() != nil, errors.Is(err, errNoObject), errors.Is(err, errNotObject), errors.Is(err, errTooLong):
			return err
		case n == p.tries || !mayPass(err):
			return p.explain(err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		pause *= 2
	}
}

func (p *patient) once(ctx context.Context, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, p.request)
	defer cancel()
	return do(limited)
}

// answer returns what the server answered; the zero value if it did not.
func answer(err error) minio.ErrorResponse {
	var response minio.ErrorResponse
	errors.As(err, &response)
	return response
}

// mayPass reports whether the same request can succeed later: the server did not
// answer, or is overloaded.
func mayPass(err error) bool {
	status := answer(err).StatusCode
	if status == 0 {
		status = azureStatus(err)
	}
	switch {
	case status == http.StatusInsufficientStorage, isFull(err):
		return false
	case status != 0:
		return status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
	}
	var path *fs.PathError
	return !errors.Is(err, errTooMany) && !errors.Is(err, errLongAnswer) && !errors.Is(err, errNoStore) && !errors.As(err, &path) && !errors.Is(err, os.ErrPermission)
}

// isFull reports whether there is no space: services have codes of their own for it.
func isFull(err error) bool {
	switch a := answer(err); a.Code {
	case "XMinioStorageFull", "QuotaExceeded", "ServiceQuotaExceeded", "InsufficientStorage", "StorageFull":
		return true
	default:
		return a.StatusCode == http.StatusInsufficientStorage || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	}
}

// explain returns one line for a person. It has nothing of the request, whose headers
// are signed with a secret.
func (p *patient) explain(err error) error {
	a := answer(err)
	code := a.Code
	if code == "" {
		code = azureCode(err)
	}
	var timeout net.Error
	why := ""
	switch {
	case isFull(err):
		why = "no space left"
	case errors.Is(err, errTooMany), errors.Is(err, errLongAnswer), errors.Is(err, errNoStore):
		why = cause(err).Error()
	case code == "NoSuchBucket" || code == "ContainerNotFound":
		why = "the bucket does not exist"
	case errors.Is(err, errNoFolder):
		why = "the folder does not exist"
	case code == "AccessDenied" || code == "AllAccessDisabled" || code == "AuthorizationPermissionMismatch" || a.StatusCode == http.StatusForbidden && code == "":
		why = "access denied: the account lacks the right, or its keys are wrong"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		why = "not writable"
	case code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch" || code == "AuthenticationFailed" || code == "ExpiredToken":
		why = "the credentials are refused (" + code + ")"
	case code == "MethodNotAllowed" || code == "InvalidBucketState":
		why = "the bucket is read-only"
	case a.StatusCode >= 500:
		why = fmt.Sprintf("the server answers %d %s", a.StatusCode, http.StatusText(a.StatusCode))
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		why = fmt.Sprintf("no answer within %v", p.request)
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "nothing is listening there"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		strings.HasPrefix(cause(err).Error(), "Connection closed by foreign host"): // minio's error for io.EOF
		why = "the connection broke"
	case code != "":
		why = fmt.Sprintf("the server answers %d %s", a.StatusCode, code)
	default:
		why = cause(err).Error()
	}
	return fmt.Errorf("%w: %s: %s", ErrUnavailable, p.name, why)
}

// cause is the innermost error: those around it quote the whole request.
func cause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
