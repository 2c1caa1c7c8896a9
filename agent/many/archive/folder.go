package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/benchwatch/benchwatch/agent/base/follow"
)

// errNoFolder is returned if the folder of an archive does not exist. It is not created, since a
// file system may not be mounted.
var errNoFolder = errors.New("the folder does not exist")

// folder is an archive in a directory, such as one that machines share. Users who can write to it
// must not lead others out of it: every path is opened below an os.Root.
type folder string

func openFolder(path string) bucket {
	f := folder(path)
	return bucket{f.put, f.get, f.list}
}

func (f folder) open(ctx context.Context) (*os.Root, error) {
	root, err := os.OpenRoot(string(f))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNoFolder
	case errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("%s is not a folder", string(f))
	case err == nil && ctx.Err() != nil:
		root.Close()
		return nil, ctx.Err()
	}
	return root, err
}

func (f folder) put(ctx context.Context, name string, data []byte) error {
	root, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer root.Close()
	dir, base := path.Split(name)
	if err := root.MkdirAll(path.Clean(dir), 0o755); err != nil {
		return err
	}
	written := fmt.Sprintf("%s.%s.%s", dir, base, rand.Text())
	file, err := root.OpenFile(written, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Chmod(0o644) // regardless of the umask
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = root.Rename(written, name)
	}
	if err != nil {
		_ = root.Remove(written)
	}
	return err
}

func (f folder) get(ctx context.Context, name string, limit int64) ([]byte, error) {
	root, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	r, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		defer r.Close()
		err = checkFile(r)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNoObject
	case errors.Is(err, syscall.EIO), errors.Is(err, syscall.ESTALE), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return nil, err // error of the archive
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errNotObject, cause(err))
	}
	return readAtMost(r, limit)
}

func checkFile(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	return errors.Join(err, follow.CheckHole(f))
}

func (f folder) list(ctx context.Context, below string, each func(object) error) error {
	root, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), path.Clean(below), func(name string, d fs.DirEntry, err error) error {
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
		return each(object{name, info.ModTime()})
	})
}
