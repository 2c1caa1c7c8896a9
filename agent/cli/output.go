package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/alecthomas/kingpin/v2"
)

// output is where a document goes.
type output struct{ file *string }

func addOutput(cmd *kingpin.CmdClause) output {
	return output{cmd.Flag("output", "File to write, replaced only when it is complete (default: standard output)").Short('o').PlaceHolder("FILE").String()}
}

// check tells whether the file can be written at all, before the work is done.
func (o *output) check() error {
	if *o.file == "" || *o.file == "-" {
		return nil
	}
	if info, err := os.Stat(*o.file); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory: name a file", *o.file)
	}
	info, err := os.Stat(filepath.Dir(*o.file))
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("write: %s is not a directory", filepath.Dir(*o.file))
	}
	return nil
}

// document prepares a document in memory, so that an error leaves nothing, and
// writes it.
func (o *output) document(s Streams, print func(io.Writer) error) error {
	var b bytes.Buffer
	if err := print(&b); err != nil {
		return err
	}
	return o.stream(s, func(w io.Writer) error {
		_, err := w.Write(b.Bytes())
		return err
	})
}

// stream lets print write to the file, which gets its name when all is
// written, or to standard output.
func (o *output) stream(s Streams, print func(io.Writer) error) error {
	if *o.file == "" || *o.file == "-" {
		return print(s.Out)
	}
	if info, err := os.Stat(*o.file); err == nil && !info.Mode().IsRegular() { // a device or a pipe
		f, err := os.OpenFile(*o.file, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		err = print(f)
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		return err
	}
	return writeWhole(*o.file, print)
}

// writeWhole writes beside path and renames.
func writeWhole(path string, print func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	defer os.Remove(f.Name()) // fails after the rename, which is right
	err = print(f)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
