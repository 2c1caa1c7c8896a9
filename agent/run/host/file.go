package host

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// tree is where the small files of a machine's kernel are read: on this machine, or copied from another.
type tree interface {
	// read returns the content of a file, valid until the next call.
	read(path string) ([]byte, error)
	// glob returns the sorted files and folders that match a pattern of package path.
	glob(pattern string) []string
}

// word returns the content of a small file without blanks around it; empty if it can't be read.
func word(t tree, path string) string {
	data, _ := t.read(path) // a file that is missing has no content
	return string(bytes.TrimSpace(data))
}

// files reads the small files of this machine's kernel, into one buffer. Package os takes three times as many
// system calls per file: it registers the file for polling, and begins with 512 bytes.
type files struct{ buffer []byte }

// read returns the content of a file, valid until the next call.
func (f *files) read(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	f.buffer = f.buffer[:0]
	for {
		f.buffer = slices.Grow(f.buffer, 8<<10)
		n, err := unix.Read(fd, f.buffer[len(f.buffer):cap(f.buffer)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return f.buffer, nil
		default:
			f.buffer = f.buffer[:len(f.buffer)+n]
		}
	}
}

// glob implements tree.
func (*files) glob(pattern string) []string {
	found, _ := filepath.Glob(pattern) // the patterns are valid
	return found
}

// number returns the number at the beginning of a file.
func number(t tree, path string) (float64, bool) {
	data, err := t.read(path)
	if err != nil {
		return 0, false
	}
	return firstNumber(data)
}

// named returns the number after a name and a separator in a line of a file.
func named(data []byte, name string) (float64, bool) {
	for line := range bytes.Lines(data) {
		if len(line) > len(name) && string(line[:len(name)]) == name {
			return firstNumber(line[len(name)+1:])
		}
	}
	return 0, false
}

// paired returns a value from a file whose lines come in pairs, one of names and one of values,
// both with the same prefix.
func paired(data []byte, prefix, name string) (float64, bool) {
	var names [][]byte
	for line := range bytes.Lines(data) {
		if !bytes.HasPrefix(line, []byte(prefix)) {
			continue
		}
		fields := bytes.Fields(line)
		if names == nil {
			names = fields
			continue
		}
		i := slices.IndexFunc(names, func(n []byte) bool { return string(n) == name })
		if i < 0 || i >= len(fields) {
			return 0, false
		}
		return firstNumber(fields[i])
	}
	return 0, false
}

// firstNumber returns the number at the beginning of a text.
func firstNumber(text []byte) (float64, bool) {
	text = bytes.TrimLeft(text, " \t")
	if end := bytes.IndexAny(text, " \n"); end >= 0 {
		text = text[:end]
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil
}
