package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Reason is why a file of a folder is not imported, as the end of a sentence about such files.
type Reason string

// The reasons, in the order in which they are reported.
const (
	Unmatched    Reason = "not matching --label-from"
	Binary       Reason = "with binary content, such as archives"
	UTF16        Reason = "with UTF-16 text, which is to be converted to UTF-8"
	SourceCode   Reason = "with source code, SQL, a document or a table"
	Unrecognised Reason = "in which no tool's output was recognised"
	WithoutRun   Reason = "in which a tool's output, but no run was recognised"
	NotBeside    Reason = "of monitoring programs or with a server's status that belong to no imported log"
	NotRegular   Reason = "of another type, such as symbolic links"
)

// Reasons are all reasons.
var Reasons = []Reason{Unmatched, Binary, UTF16, SourceCode, Unrecognised, WithoutRun, NotBeside, NotRegular}

// Folder is what a search of a folder found. Hidden files and folders are not searched.
type Folder struct {
	Logs []Log
	// Beside are files that may belong to logs.
	Beside []string
	// Left counts the files that are not imported.
	Left map[Reason]int

	paths map[string]bool // of Logs
}

// Has reports whether a log was found in the folder.
func (f *Folder) Has(path string) bool { return f.paths[path] }

// Search searches a folder and its subfolders for logs, in the order of their paths. With named,
// all logs are that tool's. A pattern, if not nil, must match. isBeside reports whether a file is
// not a log but may belong to one.
func Search(path string, tools tool.Set, named *tool.Tool, pattern *PathLabels, isBeside func(path string) bool) (*Folder, error) {
	f := &Folder{Left: map[Reason]int{}, paths: map[string]bool{}}
	err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		hidden := file != path && strings.HasPrefix(d.Name(), ".")
		switch {
		case err != nil:
			return err
		case hidden && d.IsDir():
			return fs.SkipDir
		case hidden || d.IsDir():
			return nil
		case !d.Type().IsRegular():
			f.Left[NotRegular]++
			return nil
		case isBeside(file):
			f.Beside = append(f.Beside, file)
			return nil
		}
		if pattern != nil {
			if _, ok := pattern.Match(file); !ok {
				f.Left[Unmatched]++
				return nil
			}
		}
		found, reason, err := recogniseIn(file, tools, named)
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			f.Left[reason]++
		default:
			f.Logs = append(f.Logs, Log{Path: file, Tool: found[0], Others: found[1:]})
			f.paths[file] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	return f, nil
}

// recogniseIn returns the tools that wrote a file in a folder, or why the file is not a log.
func recogniseIn(path string, tools tool.Set, named *tool.Tool) ([]*tool.Tool, Reason, error) {
	head, err := Head(path)
	switch {
	case err != nil:
		return nil, "", err
	case follow.IsUTF16(head):
		return nil, UTF16, nil
	case isBinary(head):
		if t := tools.Sniff(head); t != nil && t.Decode != nil && (named == nil || named == t) {
			return []*tool.Tool{t}, "", nil
		}
		return nil, Binary, nil
	case isSource(path, head):
		return nil, SourceCode, nil
	case named != nil:
		return []*tool.Tool{named}, "", nil
	}
	if found := tools.SniffAll(head); len(found) > 0 {
		return found, "", nil
	}
	for _, t := range tools {
		if t.SideFile != nil {
			if run, kind := t.SideFile(filepath.Base(path), head); run != "" && kind == tool.SideOther {
				return []*tool.Tool{t}, "", nil
			}
		}
	}
	return nil, Unrecognised, nil
}

// binaryHead bytes from the start of any archive include a zero byte: tar's header has 512 bytes. A
// log can contain zeros too, after a crash of the machine, but does not begin with them.
const binaryHead = 512

func isBinary(head []byte) bool { return bytes.IndexByte(head[:min(len(head), binaryHead)], 0) >= 0 }

// sourceNames are suffixes of files that quote or match the output of tools, or create their input.
// No tool writes such files.
var sourceNames = []string{
	".bash", ".c", ".cc", ".cpp", ".css", ".go", ".h", ".hpp", ".htm", ".html", ".ipynb", ".java", ".js", ".kt", ".lua", ".md", ".markdown", ".php",
	".pl", ".plot", ".pm", ".ps1", ".py", ".r", ".rb", ".rs", ".rst", ".scala", ".sh", ".sql", ".t", ".tcl", ".tex", ".ts", ".tsv", ".xml", ".yaml", ".yml",
}

func isSource(path string, head []byte) bool {
	return slices.Contains(sourceNames, strings.ToLower(filepath.Ext(path))) || bytes.HasPrefix(head, []byte("#!"))
}

// sniffed is how many bytes of a log show which tool wrote it.
const sniffed = 64 << 10

// Recognise returns the tools that a log's content indicates, the most certain one first; none if unknown. The error may
// be follow.ErrNotRegular or follow.ErrUTF16.
func Recognise(path string, tools tool.Set) ([]*tool.Tool, error) {
	head, err := Head(path)
	if err != nil {
		return nil, err
	}
	if follow.IsUTF16(head) {
		return nil, fmt.Errorf("read log %s: %w", path, follow.ErrUTF16)
	}
	return tools.SniffAll(head), nil
}

// Head returns the beginning of a log, as much as shows which tool wrote it. The error may be follow.ErrNotRegular.
func Head(path string) ([]byte, error) {
	f, err := follow.OpenFile(path)
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	head := make([]byte, min(info.Size(), sniffed))
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("read log: %w", err)
	}
	return head[:n], nil
}
