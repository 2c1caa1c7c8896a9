package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Run returns the directory of an archived run in the cache, after fetching what is missing or
// damaged there. Callers must not change it. An error wraps ErrDamaged if the archive's objects are
// damaged.
func (a *Archive) Run(ctx context.Context, x *Index) (rundir.Directory, error) {
	parent, err := a.cacheFolder(filepath.Join("runs", x.Origin+"-"+x.Content))
	if err != nil {
		return "", err
	}
	// Another process may fetch the same run.
	lock, err := rundir.Directory(parent).Lock(".lock", true)
	if err != nil {
		return "", fmt.Errorf("cache of the archive: %w", err)
	}
	defer lock.Close()
	dir := filepath.Join(parent, x.ID)
	if intact(rundir.Directory(dir), x) {
		return rundir.Directory(dir), nil
	}
	part := filepath.Join(parent, ".part")
	if err := os.MkdirAll(part, 0o700); err != nil {
		return "", fmt.Errorf("cache of the archive: %w", err)
	}
	for _, f := range x.Files {
		if f.Omitted {
			continue
		}
		if err := a.fetch(ctx, x, rundir.Directory(part), &f); err != nil {
			return "", err
		}
	}
	err = os.RemoveAll(dir) // damaged
	if err == nil {
		err = os.Rename(part, dir)
	}
	if err != nil {
		return "", fmt.Errorf("cache of the archive: %w", err)
	}
	return rundir.Directory(dir), nil
}

// Pull fetches a run into a data directory. existed: the run is already there. The error wraps
// rundir.ErrExists if another run there has the id.
func (a *Archive) Pull(ctx context.Context, x *Index, dataDir string) (dir rundir.Directory, existed bool, err error) {
	dir = rundir.At(dataDir, x.ID)
	if intact(dir, x) {
		return dir, true, nil
	}
	if _, err := os.Lstat(string(dir)); err == nil {
		return dir, false, fmt.Errorf("%w: %s, with another content; remove that or choose another --data-dir", rundir.ErrExists, x.ID)
	}
	// The cache lets an interrupted fetch continue.
	from, err := a.Run(ctx, x)
	if err != nil {
		return dir, false, err
	}
	dir, err = rundir.Adopt(dataDir, x.ID, func(to rundir.Directory) error {
		for _, f := range x.Files {
			if f.Omitted {
				continue
			}
			if err := copyFile(from, to, f.Name); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		if files, err := stamps(dir); err == nil {
			_ = a.note(dir, x.Entry, files)
		}
	}
	return dir, false, err
}

func copyFile(from, to rundir.Directory, name string) error {
	r, err := rundir.Open(from.Path(name))
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := create(to, name)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, io.LimitReader(r, maxRun))
	if err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}

// create opens a file of a run for appending.
func create(dir rundir.Directory, name string) (*os.File, error) {
	if isOutput(name) {
		return dir.OpenOutput(name)
	}
	return rundir.OpenRecord(dir.Path(name))
}

// fetch fetches a file of a run into a directory. It continues after the parts of an interrupted
// fetch, or starts over if these are damaged.
func (a *Archive) fetch(ctx context.Context, x *Index, dir rundir.Directory, f *File) error {
	w, err := create(dir, f.Name)
	if err != nil {
		return fmt.Errorf("write run %s: %w", x.ID, err)
	}
	defer w.Close()
	info, err := w.Stat()
	if err != nil {
		return fmt.Errorf("write run %s: %w", x.ID, err)
	}
	offset, first := int64(0), 0
	for first < len(f.Parts) && offset+f.Parts[first].Size <= info.Size() {
		offset += f.Parts[first].Size
		first++
	}
	if err := w.Truncate(offset); err != nil {
		return fmt.Errorf("write run %s: %w", x.ID, err)
	}
	for _, p := range f.Parts[first:] {
		data, err := a.bucket.get(ctx, p.object(x.Entry), p.Stored)
		if err != nil {
			return damagedObject(x.Entry, "a part of "+f.Name, err)
		}
		piece, err := p.piece(data)
		if err != nil {
			return fmt.Errorf("run %s is %w: a part of %s %w", x.ID, ErrDamaged, f.Name, err)
		}
		if _, err := w.Write(piece); err != nil {
			return fmt.Errorf("write run %s: %w", x.ID, err)
		}
	}
	sum, err := hashFile(dir, f.Name)
	switch {
	case err != nil:
		return fmt.Errorf("read run %s: %w", x.ID, err)
	case sum == f.SHA256:
		return nil
	case first == 0:
		return fmt.Errorf("run %s is %w: %s does not match its checksum", x.ID, ErrDamaged, f.Name)
	}
	if err := w.Truncate(0); err != nil {
		return fmt.Errorf("write run %s: %w", x.ID, err)
	}
	return a.fetch(ctx, x, dir, f)
}
