// Package archive keeps closed runs in an object store or a shared folder, where the machines of a
// team write and read them.
//
// A run is a number of objects below runs/, each named after the hash of its content, and an index
// object below index/ that is written last: without it nothing is visible. Objects never change, so
// writers do not disturb each other, and an interrupted upload continues with the missing objects.
package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Options of an Archive.
type Options struct {
	URL string
	// CredentialsFile contains the keys of the bucket; empty: the environment has them.
	CredentialsFile string
	// OmitOutput leaves out the tool's output; its summary is in the index.
	OmitOutput bool
	// Plain stores files uncompressed; otherwise they are compressed with zstd.
	Plain bool
	// CacheDir keeps objects that were read; empty: DefaultCacheDir.
	CacheDir string
	// Timeout limits one request, which moves at most 4 MiB; 0: 30 s.
	Timeout time.Duration
	Tools   tool.Set
	// Pause is called from time to time while runs are read and uploaded, and returns when that may
	// continue; nil: always. Its error ends the work.
	Pause func(context.Context) error
}

func (o *Options) pause(ctx context.Context) error {
	if o.Pause == nil {
		return ctx.Err()
	}
	return o.Pause(ctx)
}

// Archive is one archive. Its methods are safe for concurrent use.
type Archive struct {
	Options
	bucket bucket
	name   string
	key    string

	large      sync.Mutex
	largeBytes int64 // size of the large index objects read so far
}

// Open returns an archive without connecting to it.
func Open(opts Options) (*Archive, error) {
	l, err := parse(opts.URL)
	if err != nil {
		return nil, fmt.Errorf("address of the archive: %w", err)
	}
	opts.Timeout = cmp.Or(opts.Timeout, 30*time.Second)
	b := openFolder(l.prefix)
	if l.scheme != "file" {
		if b, err = openS3(l, opts.CredentialsFile, newTransport(opts.Timeout)); err != nil {
			return nil, err
		}
	}
	if opts.CacheDir == "" {
		opts.CacheDir = DefaultCacheDir()
	}
	return &Archive{Options: opts, bucket: guard(b, l.name(), opts.Timeout), name: l.name(), key: l.key()}, nil
}

// Name returns the address without its options.
func (a *Archive) Name() string { return a.name }

// DefaultCacheDir returns the folder for cached runs unless the configuration names another one.
func DefaultCacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("benchwatch-%d", os.Geteuid()))
	}
	return filepath.Join(dir, "benchwatch", "archive")
}

// listWorkers is the number of index objects read concurrently: 5000 take 3.2 s at 20 ms each.
const listWorkers = 32

// versions returns all versions of all runs, sorted by id. It reads no index.
func (a *Archive) versions(ctx context.Context) ([]Entry, error) {
	var found []object // smaller than entries, if there are too many
	err := a.bucket.list(ctx, indexFolder, func(o object) error { found = append(found, o); return nil })
	if err != nil {
		return nil, err
	}
	var all []Entry
	for _, o := range found {
		if e, ok := entryOf(o); ok {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.object(), b.object()) })
	return all, nil
}

// Entries returns the newest version of each run, sorted by id.
func (a *Archive) Entries(ctx context.Context) ([]Entry, error) {
	all, err := a.versions(ctx)
	var kept []Entry
	for _, e := range all {
		if n := len(kept) - 1; n >= 0 && kept[n].Name() == e.Name() {
			if e.Uploaded.After(kept[n].Uploaded) {
				kept[n] = e
			}
			continue
		}
		kept = append(kept, e)
	}
	return kept, err
}

// Indexes returns the indexes of entries, in their order, from the cache or the archive. A cached
// file has the time of its object, so a later upload with the same name is read again. An error
// that concerns one run is passed to problem, and the other runs continue; the returned error
// concerns the archive or ctx.
func (a *Archive) Indexes(ctx context.Context, entries []Entry, problem func(error)) ([]*Index, error) {
	cache, err := a.cacheFolder("index")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	found := make([]*Index, len(entries))
	problems := make([]error, len(entries))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(listWorkers, len(entries)) {
		workers.Go(func() {
			for i := range next {
				found[i], problems[i] = a.readIndex(ctx, cache, entries[i])
				if errors.Is(problems[i], ErrUnavailable) {
					stop(problems[i])
				}
			}
		})
	}
	for i := range entries {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for _, err := range problems {
		if err != nil {
			problem(err)
		}
	}
	return slices.DeleteFunc(found, func(x *Index) bool { return x == nil }), nil
}

func (a *Archive) readIndex(ctx context.Context, cache string, e Entry) (*Index, error) {
	file := filepath.Join(cache, path.Base(e.object()))
	if x := cachedIndex(file, e); x != nil {
		return x, nil
	}
	x, data, err := a.fetchIndex(ctx, e)
	if err == nil {
		storeIndex(file, e, data)
	}
	return x, err
}

func (a *Archive) fetchIndex(ctx context.Context, e Entry) (*Index, []byte, error) {
	data, err := a.bucket.get(ctx, e.object(), usualIndex)
	if errors.Is(err, errTooLong) {
		data, err = a.getLarge(ctx, e.object())
	}
	switch {
	case errors.Is(err, errNoObject):
		return nil, nil, fmt.Errorf("run %s is no longer in the archive: %w", e.ID, err)
	case err != nil:
		return nil, nil, damagedObject(e, "its index", err)
	}
	x, err := decodeIndex(e, data)
	return x, data, err
}

// damagedObject returns the error for an object of a run that can't be read: damage, unless the
// archive itself can't be read.
func damagedObject(e Entry, what string, err error) error {
	switch {
	case errors.Is(err, errNoObject):
		return fmt.Errorf("run %s is %w: %s is missing", e.ID, ErrDamaged, what)
	case errors.Is(err, errTooLong):
		return fmt.Errorf("run %s is %w: %s is too long", e.ID, ErrDamaged, what)
	case errors.Is(err, errNotObject):
		return fmt.Errorf("run %s is %w: %s %w", e.ID, ErrDamaged, what, err)
	}
	return err
}

// getLarge reads a large index object. It reads one at a time, and limits their total size.
func (a *Archive) getLarge(ctx context.Context, name string) ([]byte, error) {
	a.large.Lock()
	defer a.large.Unlock()
	if a.largeBytes > maxLarge {
		return nil, errTooLong
	}
	data, err := a.bucket.get(ctx, name, maxIndex)
	a.largeBytes += int64(len(data))
	return data, err
}

// List returns the indexes of the newest versions of all runs, see Indexes.
func (a *Archive) List(ctx context.Context, problem func(error)) ([]*Index, error) {
	entries, err := a.Entries(ctx)
	if err != nil {
		return nil, err
	}
	return a.Indexes(ctx, entries, problem)
}

// ErrNoRun is wrapped by the error for a name that matches no run or several runs.
var ErrNoRun = errors.New("no such run")

// Find returns the entry called name: an id, an id with ~ and an origin, or a unique prefix of one
// of these.
func Find(entries []Entry, name string) (Entry, error) {
	var exact, begin []Entry
	for _, e := range entries {
		switch {
		case e.Name() == name:
			return e, nil
		case e.ID == name:
			exact = append(exact, e)
		case name != "" && strings.HasPrefix(e.Name(), name):
			begin = append(begin, e)
		}
	}
	if len(exact) > 0 {
		begin = exact
	}
	switch len(begin) {
	case 0:
		return Entry{}, fmt.Errorf("%w: %s is not in the archive", ErrNoRun, name)
	case 1:
		return begin[0], nil
	}
	if len(exact) > 0 {
		return Entry{}, fmt.Errorf("%w: %d machines have a run %s: name %s or %s",
			ErrNoRun, len(exact), name, begin[0].Name(), begin[1].Name())
	}
	return Entry{}, fmt.Errorf("%w: %d runs begin with %s; the first two are %s and %s",
		ErrNoRun, len(begin), name, begin[0].Name(), begin[1].Name())
}
