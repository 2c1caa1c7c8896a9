package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"
)

// bucket is what an archive needs from an object store. Objects appear completely or not at all. It
// consists of functions: an interface would keep all methods of its implementations in the program,
// and the S3 library has hundreds.
type bucket struct {
	put func(ctx context.Context, name string, data []byte) error
	// get returns an object of at most limit bytes. errNoObject, errNotObject and errTooLong
	// concern only this object.
	get func(ctx context.Context, name string, limit int64) ([]byte, error)
	// list calls each for the objects below a folder until each returns an error.
	list func(ctx context.Context, folder string, each func(object) error) error
}

// object is one object of a listing.
type object struct {
	name    string
	changed time.Time
}

var (
	// ErrUnavailable is wrapped by errors of the object store itself, which concern every run: it
	// does not exist, does not answer, is full, or refuses.
	ErrUnavailable = errors.New("archive is unavailable")
	errNoObject    = errors.New("no such object")
	// errNotObject is returned for an object that is something else.
	errNotObject = errors.New("can't be read")
	errTooLong   = errors.New("object is longer than recorded")
	errTooMany   = errors.New("it lists too many objects")
)

const (
	// maxListing limits the memory of a listing in bytes: 250,000 objects.
	maxListing = 48 << 20
	// listedSize is approximately the memory of an object besides its name while the list grows.
	listedSize = 128
)

// guard limits the listings of a bucket and turns its errors into messages for people.
func guard(b bucket, name string, timeout time.Duration) bucket {
	return bucket{
		put: func(ctx context.Context, object string, data []byte) error {
			return explain(ctx, b.put(ctx, object, data), name, timeout)
		},
		get: func(ctx context.Context, object string, limit int64) ([]byte, error) {
			data, err := b.get(ctx, object, limit)
			return data, explain(ctx, err, name, timeout)
		},
		list: func(ctx context.Context, folder string, each func(object) error) error {
			size := 0
			return explain(ctx, b.list(ctx, folder, func(o object) error {
				if size += len(o.name) + listedSize; size > maxListing {
					return errTooMany
				}
				return each(o)
			}), name, timeout)
		},
	}
}

const (
	isFull   = "no space left"
	isDenied = "access denied: the account lacks the right, or its keys are wrong"
	isLocked = "the bucket is read-only"
)

// reasons explain error codes of S3. Services use different codes for a full store.
var reasons = map[string]string{
	"NoSuchBucket": "the bucket does not exist",
	"AccessDenied": isDenied, "AllAccessDisabled": isDenied,
	"MethodNotAllowed": isLocked, "InvalidBucketState": isLocked,
	"XMinioStorageFull": isFull, "QuotaExceeded": isFull, "ServiceQuotaExceeded": isFull, "InsufficientStorage": isFull, "StorageFull": isFull,
	"InvalidAccessKeyId":    "the credentials are refused (InvalidAccessKeyId)",
	"SignatureDoesNotMatch": "the credentials are refused (SignatureDoesNotMatch)",
	"ExpiredToken":          "the credentials are refused (ExpiredToken)",
}

// explain returns one line for people. It contains nothing of the request, whose headers are signed
// with a secret.
func explain(ctx context.Context, err error, bucket string, patience time.Duration) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, errNoObject) || errors.Is(err, errNotObject) || errors.Is(err, errTooLong) {
		return err
	}
	var response minio.ErrorResponse
	errors.As(err, &response)
	why := reasons[response.Code]
	var timeout net.Error
	switch {
	case why != "":
	case response.StatusCode == http.StatusInsufficientStorage, errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		why = isFull
	case response.StatusCode == http.StatusForbidden && response.Code == "":
		why = isDenied
	case response.StatusCode >= 500:
		why = fmt.Sprintf("the server answers %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	case response.StatusCode != 0 && response.Code != "":
		why = fmt.Sprintf("the server answers %d %s", response.StatusCode, response.Code)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		why = "not writable"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		why = fmt.Sprintf("no answer within %v", patience)
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "nothing is listening there"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		strings.HasPrefix(cause(err).Error(), "Connection closed by foreign host"): // minio's error for io.EOF
		why = "the connection broke"
	default:
		why = cause(err).Error()
	}
	return fmt.Errorf("%w: %s: %s", ErrUnavailable, bucket, why)
}

// cause returns the innermost error, since the errors around it quote the whole request.
func cause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errTooLong
	}
	return data, err
}
