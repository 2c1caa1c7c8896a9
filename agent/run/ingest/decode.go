package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrBeingWritten is returned for a binary log that another program is writing.
var ErrBeingWritten = errors.New("another program is writing it")

// decode writes the text of a binary log into a temporary file in the data directory. It reads a copy, so that it holds
// no lock on a file that a benchmark may be using. Without a binary log it returns no path.
func (im *Import) decode(ctx context.Context, log *os.File) (path string, err error) {
	if im.Tool.Decode == nil {
		return "", nil
	}
	head := make([]byte, binaryHead)
	if n, _ := log.ReadAt(head, 0); !isBinary(head[:n]) { // a shorter file is read whole
		return "", nil
	}
	if err := os.MkdirAll(im.DataDir, 0o755); err != nil {
		return "", fmt.Errorf("create data directory: %w", err)
	}
	whole, err := im.temporary(func(w *os.File) error { return copyQuiet(w, log) })
	if err != nil {
		return "", fmt.Errorf("copy %s: %w", im.Path, err)
	}
	defer os.Remove(whole)
	if path, err = im.temporary(func(w *os.File) error { return im.Tool.Decode(ctx, whole, w) }); err != nil {
		return "", fmt.Errorf("read %s: %w", im.Path, err)
	}
	return path, nil
}

// temporary creates a file in the data directory. If write fails, it removes the file.
func (im *Import) temporary(write func(*os.File) error) (path string, err error) {
	w, err := os.CreateTemp(im.DataDir, ".import-")
	if err != nil {
		return "", err
	}
	if err = errors.Join(write(w), w.Close()); err != nil {
		return "", errors.Join(err, os.Remove(w.Name()))
	}
	return w.Name(), nil
}

// copyQuiet copies a log that nobody writes meanwhile, according to its time and length, and to the journal of a
// transaction that SQLite keeps beside its file.
func copyQuiet(w io.Writer, log *os.File) error {
	before, err := log.Stat()
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, io.NewSectionReader(log, 0, before.Size())); err != nil {
		return err
	}
	after, err := os.Stat(log.Name())
	if err != nil {
		return err
	}
	if !os.SameFile(before, after) || before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
		return ErrBeingWritten
	}
	for _, suffix := range []string{"-journal", "-wal"} {
		if journal, err := os.Stat(log.Name() + suffix); err == nil && journal.Size() > 0 {
			return ErrBeingWritten
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
