package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/base/prefix"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/pattern"
)

// autoTool asks for the tool that the bytes look like.
const autoTool = "auto"

// sniffed is how many bytes are read to recognise a tool.
const sniffed = 64 << 10

func newParse() *cobra.Command {
	cmd := newCommand("parse", "Parse a tool's output into one JSON object per line.",
		"benchwatch parse sysbench.log")
	name, file, format, config := autoTool, "-", "", configFlags{}
	cmd.text(&name, "tool", "NAME", "Tool that wrote the output, or auto; auto recognises it from the first 64 KiB")
	cmd.argument(&file, "[FILE]", "Output of the tool (default: -, standard input)")
	addFormat(cmd, &format, jsonFormat)
	config.declare(cmd)
	return cmd.does(func(s Streams) error {
		c, err := config.load()
		if err != nil {
			return err
		}
		return parse(s, c.ToolSet(), name, file)
	})
}

// sniff reads from in until the tool is recognised, in ends or sniffed bytes are read. It returns the tool, nil if
// there is none, and a reader of in from its beginning.
func sniff(in io.Reader, tools tool.Set) (*tool.Tool, io.Reader) {
	head, buf := []byte{}, make([]byte, 4<<10)
	for len(head) < sniffed {
		n, err := in.Read(buf)
		head = append(head, buf[:n]...)
		if t := tools.Sniff(head); t != nil || err != nil {
			return t, io.MultiReader(bytes.NewReader(head), in)
		}
	}
	return nil, io.MultiReader(bytes.NewReader(head), in)
}

func parse(s Streams, tools tool.Set, name, file string) error {
	var t *tool.Tool
	if name != autoTool {
		if t = tools.ByName(name); t == nil {
			return unknownTool(name, tools)
		}
	}
	in, label := s.In, "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		in, label = f, file
	}
	r := bufio.NewReaderSize(in, sniffed)
	if t == nil {
		head, err := r.Peek(sniffed)
		if err != nil && !errors.Is(err, io.EOF) {
			if path, ok := errors.AsType[*fs.PathError](err); ok {
				err = path.Err
			}
			return fmt.Errorf("read %s: %w", label, err)
		}
		if follow.IsUTF16(head) {
			return fmt.Errorf("read %s: %w", label, follow.ErrUTF16)
		}
		found := tools.SniffAll(head)
		if len(found) == 0 {
			return withHint(fmt.Errorf("no benchmark tool's output recognised in %s", label), unrecognised(head, tools))
		}
		t = found[0]
		for _, other := range found[1:] {
			s.notice("%s also has output of %s, which --tool %s parses", label, other.Name, other.Name)
		}
	}
	n, err := parseLines(r, t, s.Out)
	switch {
	case err != nil:
		return fmt.Errorf("parse %s: %w", label, err)
	case n == 0:
		return fmt.Errorf("no output of %s in %s", t.Name, label)
	}
	return nil
}

// unrecognised is the hint about an output in which no tool was recognised. It quotes the first line, so that a reader
// sees what is in the way.
func unrecognised(head []byte, tools tool.Set) string {
	const name = "name the tool that wrote it with --tool"
	if known := pattern.Known(head); known != "" {
		return fmt.Sprintf("the pattern %q of docs/patterns-cookbook.md reads it: copy that into benchwatch.yml", known)
	}
	for _, t := range tools {
		for _, form := range t.Unread {
			if bytes.Contains(head, []byte(form.Text)) {
				return form.Why
			}
		}
	}
	var stripper prefix.Stripper
	for line := range bytes.Lines(head) {
		if text := bytes.TrimSpace(stripper.Strip(follow.Text(bytes.TrimRight(line, "\r\n"))).Text); len(text) > 0 {
			return fmt.Sprintf("its first line is %q: remove what other programs put before the tool's own lines, or %s",
				table.Clip(secret.Text(string(text)), 60), name)
		}
	}
	return name
}

// maxContainers bounds the containers of one log whose output is parsed.
const maxContainers = 64

// containerOutput is the output of one container in a log of several, or of the whole log.
type containerOutput struct {
	front *tool.Front
	runs  map[int]int // the number of each run in all outputs, by the parser's
}

// parseLines prints the reports that the parser of t finds in the lines of r, and returns their number.
func parseLines(r io.Reader, t *tool.Tool, out io.Writer) (n int, err error) {
	w := bufio.NewWriterSize(out, sniffed)
	var object []byte
	var current *containerOutput
	runs := 0
	emit := func(report *tool.Report) {
		if current.runs[report.Run] == 0 {
			runs++
			current.runs[report.Run] = runs
		}
		own := report.Run
		report.Run = current.runs[own]
		object = append(tool.AppendJSON(object[:0], report), '\n')
		report.Run = own
		w.Write(object) // the error stays in w
		n++
	}
	outputs, order := map[string]*containerOutput{}, []*containerOutput{}
	stripper := t.NewStripper()
	lines := follow.NewScanner(unhurried{r, w}, 0, math.MaxInt64)
	for {
		line, err := lines.Next(context.Background())
		if errors.Is(err, io.EOF) {
			for _, current = range order {
				current.front.Close(emit)
			}
			return n, w.Flush()
		}
		if err != nil {
			w.Flush() // what was understood is not lost
			return n, err
		}
		stripped := stripper.Strip(line.Text)
		if current = outputs[string(stripped.Source)]; current == nil {
			if len(order) == maxContainers {
				continue
			}
			current = &containerOutput{front: t.NewFront(tool.Description{}), runs: map[int]int{}}
			outputs[string(stripped.Source)], order = current, append(order, current)
		}
		current.front.ParseStripped(tool.Line{Cut: line.Cut}, stripped, emit)
	}
}

// unhurried is a stream as follow reads files: one part after the other. What was understood is printed before it
// waits for more.
type unhurried struct {
	io.Reader
	out *bufio.Writer
}

// ReadAt implements io.ReaderAt for the next part.
func (u unhurried) ReadAt(p []byte, _ int64) (int, error) {
	if err := u.out.Flush(); err != nil {
		return 0, err
	}
	return io.ReadAtLeast(u.Reader, p, 1)
}
