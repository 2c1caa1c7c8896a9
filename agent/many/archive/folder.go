package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// errNoFolder is returned if the folder of an archive does not exist. It is not created, since a
// file system may not be mounted.
var errNoFolder = errors.New("the folder does not exist")

// folder is an archive in a directory, such as one that machines share.
type folder string

func openFolder(path string) bucket {
	f := folder(path)
	return bucket{f.put, f.get, f.list}
}

func (f folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

func (f folder) exists(ctx context.Context) error {
	info, err := os.Stat(string(f))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNoFolder
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a folder", string(f))
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

func (f folder) put(ctx context.Context, name string, data []byte) error {
	if err := f.exists(ctx); err != nil {
		return err
	}
	path := f.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := f.checkPath(name); err != nil {
		return err
	}
	return rundir.Replace(path, 0o644, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

func (f folder) get(ctx context.Context, name string, limit int64) ([]byte, error) {
	if err := f.exists(ctx); err != nil {
		return nil, err
	}
	if err := f.checkPath(name); err != nil {
		return nil, err
	}
	r, err := rundir.Open(f.path(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNoObject
	case errors.Is(err, syscall.EIO), errors.Is(err, syscall.ESTALE), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return nil, err // error of the archive
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errNotObject, cause(err))
	}
	defer r.Close()
	return readAtMost(r, limit)
}

// checkPath returns an error if a folder on the path to an object is a link: users who can write to
// the archive must not lead others out of it.
func (f folder) checkPath(name string) error {
	for i, c := range name {
		if c != '/' {
			continue
		}
		if info, err := os.Lstat(f.path(name[:i])); err == nil && !info.IsDir() {
			return fmt.Errorf("%w: %s is no folder", errNotObject, f.path(name[:i]))
		}
	}
	return nil
}

func (f folder) list(ctx context.Context, below string, each func(object) error) error {
	if err := f.exists(ctx); err != nil {
		return err
	}
	return filepath.WalkDir(f.path(below), func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case !d.Type().IsRegular() || strings.HasPrefix(d.Name(), "."): // being written
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		name, err := filepath.Rel(string(f), path)
		if err != nil {
			return err
		}
		return each(object{filepath.ToSlash(name), info.ModTime()})
	})
}
