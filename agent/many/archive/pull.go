package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Run returns the directory of an archived run in the cache, and fetches what is
// missing or damaged there. The directory is to be read only. An error wraps ErrDamaged
// if the archive's objects are damaged.
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
	dir := rundir.Directory(filepath.Join(parent, x.ID))
	if intact(dir, x) {
		return dir, nil
	}
	part := filepath.Join(parent, ".part")
	if err := os.MkdirAll(part, 0o700); err != nil {
		return "", fmt.Errorf("cache of the archive: %w", err)
	}
	if err := a.fetch(ctx, x, rundir.Directory(part)); err != nil {
		return "", err
	}
	if err := place(part, string(dir)); err != nil {
		return "", fmt.Errorf("cache of the archive: %w", err)
	}
	return dir, nil
}

// Pull fetches a run into a data directory. existed: it is there already. The error
// wraps rundir.ErrExists if another run there has the id.
func (a *Archive) Pull(ctx context.Context, x *Index, dataDir string) (dir rundir.Directory, existed bool, err error) {
	dir = rundir.At(dataDir, x.ID)
	if intact(dir, x) {
		return dir, true, nil
	}
	if _, err := os.Lstat(string(dir)); err == nil {
		return dir, false, fmt.Errorf("%w: %s, with another content; remove that or choose another --data-dir", rundir.ErrExists, x.ID)
	}
	// By way of the cache, which continues what was interrupted.
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
		_ = a.note(dir, x.Entry)
	}
	return dir, false, err
}

func copyFile(from, to rundir.Directory, name string) error {
	r, err := rundir.Open(from.Path(name))
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := create(to, name, 0)
	if err != nil {
		return err
	}
	return errors.Join(copyTo(w, r), w.Close())
}

// create opens a file of a run to write it from an offset on.
func create(dir rundir.Directory, name string, from int64) (*os.File, error) {
	var f *os.File
	var err error
	if isOutput(name) {
		f, err = dir.OpenOutput(name)
	} else {
		f, err = rundir.OpenRecord(dir.Path(name))
	}
	if err == nil {
		if err = f.Truncate(from); err != nil {
			f.Close()
		}
	}
	return f, err
}

// fetch makes a directory have the files of a run, run.json last. It continues with
// what is there.
func (a *Archive) fetch(ctx context.Context, x *Index, dir rundir.Directory) error {
	names, err := filesOf(dir)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	var last *File
	for i := range x.Files {
		f := &x.Files[i]
		if f.Omitted {
			continue
		}
		wanted[f.Name] = true
		if f.Name == rundir.MetaFile {
			last = f
			continue
		}
		if err := a.fetchFile(ctx, x, dir, f); err != nil {
			return err
		}
	}
	for _, name := range names {
		if !wanted[name] {
			if err := os.Remove(dir.Path(name)); err != nil {
				return err
			}
		}
	}
	if last == nil {
		return fmt.Errorf("run %s is %w: it has no %s", x.ID, ErrDamaged, rundir.MetaFile)
	}
	return a.fetchFile(ctx, x, dir, last)
}

func (a *Archive) fetchFile(ctx context.Context, x *Index, dir rundir.Directory, f *File) error {
	have := int64(0)
	if info, err := os.Lstat(dir.Path(f.Name)); err == nil {
		have = info.Size()
	}
	for again := have > 0; ; again = false {
		if err := a.fetchParts(ctx, x, dir, f, have); err != nil {
			return err
		}
		size, sum, err := hashFile(dir, f.Name, nil)
		if err != nil {
			return err
		}
		if size == f.Size && sum == f.SHA256 {
			return nil
		}
		if !again {
			return fmt.Errorf("run %s is %w: %s does not match its checksum", x.ID, ErrDamaged, f.Name)
		}
		have = 0 // what was there is damaged
	}
}

// fetchParts continues a file after the whole parts of its first have bytes.
func (a *Archive) fetchParts(ctx context.Context, x *Index, dir rundir.Directory, f *File, have int64) error {
	offset, first := int64(0), 0
	for first < len(f.Parts) && offset+f.Parts[first].Size <= have {
		offset += f.Parts[first].Size
		first++
	}
	w, err := create(dir, f.Name, offset)
	if err != nil {
		return fmt.Errorf("write run %s: %w", x.ID, err)
	}
	defer w.Close()
	for _, p := range f.Parts[first:] {
		data, err := a.part(ctx, x, f, p)
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return fmt.Errorf("write run %s: %w", x.ID, err)
		}
	}
	return nil
}

// part returns the bytes of a part of a file.
func (a *Archive) part(ctx context.Context, x *Index, f *File, p Part) ([]byte, error) {
	data, err := a.bucket.get(ctx, p.object(x.Entry), p.Stored)
	switch {
	case errors.Is(err, errNoObject):
		return nil, fmt.Errorf("run %s is %w: a part of %s is missing", x.ID, ErrDamaged, f.Name)
	case errors.Is(err, errTooLong):
		return nil, fmt.Errorf("run %s is %w: a part of %s is too long", x.ID, ErrDamaged, f.Name)
	case errors.Is(err, errNotObject):
		return nil, fmt.Errorf("run %s is %w: a part of %s %w", x.ID, ErrDamaged, f.Name, err)
	case err != nil:
		return nil, err
	}
	piece, err := p.piece(data)
	if err != nil {
		return nil, fmt.Errorf("run %s is %w: a part of %s %w", x.ID, ErrDamaged, f.Name, err)
	}
	return piece, nil
}
