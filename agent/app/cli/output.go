package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// output is the file that a document is written to.
type output struct{ file string }

func (o *output) declare(cmd command) {
	cmd.text(&o.file, "output,o", "FILE", "File to write, replaced only when it is complete (default: standard output)")
}

// check returns an error if the file can't be written, before the work is done.
func (o *output) check() error {
	if o.file == "" || o.file == "-" {
		return nil
	}
	if info, err := os.Stat(o.file); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory: name a file", o.file)
	}
	info, err := os.Stat(filepath.Dir(o.file))
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("write: %s is not a directory", filepath.Dir(o.file))
	}
	return nil
}

// screen is the terminal that is written to, none for a file.
func (o *output) screen(s Streams) terminal.Terminal {
	if o.file == "" || o.file == "-" {
		return terminal.Of(s.Out)
	}
	return terminal.Terminal{}
}

// document writes what write writes, nothing if it fails.
func (o *output) document(s Streams, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return o.stream(s, func(w io.Writer) error {
		_, err := w.Write(b.Bytes())
		return err
	})
}

// stream lets write write to standard output or to the file, which is replaced
// when everything is written.
func (o *output) stream(s Streams, write func(io.Writer) error) error {
	if o.file == "" || o.file == "-" {
		return write(s.Out)
	}
	if info, err := os.Stat(o.file); err == nil && !info.Mode().IsRegular() { // a device or a pipe
		f, err := os.OpenFile(o.file, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		err = write(f)
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		return err
	}
	if err := rundir.Replace(o.file, 0o644, write); err != nil {
		return fmt.Errorf("write %s: %w", o.file, err)
	}
	return nil
}
