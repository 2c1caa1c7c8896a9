package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/document"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// output is the file that a document is written to.
type output struct {
	file    string
	all     bool // also what a text usually leaves out
	format  string
	formats []string
}

// extensions are the formats of file extensions that are not named like their format.
var extensions = map[string]string{"htm": "html", "md": "markdown", "txt": text}

// declareFormat adds --format. If neither the flag nor the file's extension gives a format, it stays empty.
func (o *output) declareFormat(cmd command, help string, formats ...string) {
	o.formats = formats
	cmd.choice(&o.format, "format", "FORMAT", help, formats...)
}

func (o *output) declare(cmd command) {
	cmd.text(&o.file, "output,o", "FILE", "File to write; it is replaced only when it is complete (default: standard output)")
}

func (o *output) declareAll(cmd command) {
	cmd.toggle(&o.all, "all", "Print everything; also rows, columns and sections that are usually left out of the text")
}

// check returns an error if the file can't be written, before the work is done. Without --format, it takes the format
// from the file's extension.
func (o *output) check() error {
	if o.file == "" || o.file == "-" {
		return nil
	}
	if extension := strings.TrimPrefix(filepath.Ext(o.file), "."); o.format == "" && len(o.formats) > 0 && extension != "" {
		extension = strings.ToLower(extension)
		if o.format = cmp.Or(extensions[extension], extension); !slices.Contains(o.formats, o.format) {
			return &exitError{Status: exitUsage, Err: fmt.Errorf("%s: no format has this ending", o.file), Hint: o.endings()}
		}
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

// endings says how a file chooses a format.
func (o *output) endings() string {
	usual := map[string]string{"markdown": "md", text: "txt"}
	var all []string
	for _, format := range o.formats {
		all = append(all, "."+cmp.Or(usual[format], format))
	}
	return "use " + strings.Join(all, ", ") + " or --format"
}

// screen is the terminal that the output goes to; zero for a file.
func (o *output) screen(s Streams) terminal.Terminal {
	var t terminal.Terminal
	if o.file == "" || o.file == "-" {
		t = terminal.Of(s.Out)
	}
	t.All = o.all
	return t
}

// document writes the output of write, or nothing if write fails.
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

// page writes a page as text, Markdown or HTML.
func (o *output) page(w io.Writer, s Streams, p *document.Page) error {
	p.Made, p.Version = time.Now(), version.Version
	return p.Write(w, o.format, o.screen(s))
}

// through returns streams whose output a pager shows, with less as git starts it; an empty command is
// no pager.
func (s Streams) through(pager string) Streams {
	if pager != "" {
		s.Out = pagedWriter{s, pager}
	}
	return s
}

type pagedWriter struct {
	Streams
	pager string
}

// Write shows a whole document.
func (p pagedWriter) Write(data []byte) (int, error) {
	cmd := exec.Command("sh", "-c", p.pager)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(data), p.Out, p.Err
	cmd.Env = append([]string{"LESS=FRX"}, os.Environ()...)
	interrupt := make(chan os.Signal, 1) // Ctrl-C is the pager's
	signal.Notify(interrupt, os.Interrupt)
	defer signal.Stop(interrupt)
	if err := cmd.Run(); err != nil {
		return 0, withHint(fmt.Errorf("run the pager %s: %w", p.pager, err), "set PAGER to another one, or unset it")
	}
	return len(data), nil
}

// averaging is the flag that decides which value represents repeated runs.
type averaging struct{ mean bool }

func (a *averaging) declare(cmd command) {
	cmd.toggle(&a.mean, "mean", "Use means of repeated runs in the figures and their table instead of medians")
}

func (a averaging) average() compare.Average {
	if a.mean {
		return compare.ByMean
	}
	return compare.ByMedian
}

// writeFigure writes the first figure as a standalone file.
func writeFigure(w io.Writer, plots []*report.Plot) error {
	if len(plots) == 0 {
		return withHint(errors.New("nothing varies: there is no figure"), "name what is along the axis with --x")
	}
	return plots[0].WriteSVG(w)
}
