package host

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

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
	return f.readFrom(fd, path)
}

// halfPage is the length of a read after which a file may have more content: the kernel fills a page of 4 KiB with
// whole lines, and each line of the files that are read in parts is shorter than half of it.
const halfPage = 2048

func (f *files) readFrom(fd int, path string) ([]byte, error) {
	f.buffer = f.buffer[:0]
	for {
		f.buffer = slices.Grow(f.buffer, 8<<10)
		n, err := unix.Pread(fd, f.buffer[len(f.buffer):cap(f.buffer)], int64(len(f.buffer)))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		default:
			f.buffer = f.buffer[:len(f.buffer)+n]
			if n < halfPage {
				return f.buffer, nil
			}
		}
	}
}

// openFiles are files that are read at each tick. They stay open, since opening and closing one takes longer than
// reading it. The file of a process or control group that has ended can't be read any more, even if there is a
// new one with its number or name.
type openFiles struct {
	files
	open  map[string]*openFile
	round int
}

type openFile struct {
	*os.File
	round int // of the last read
}

// opened is how many files stay open in the whole process.
var opened atomic.Int64

// mostOpen bounds the files that stay open: at most an eighth of what the process may have open, which
// it needs for connections and records.
var mostOpen = sync.OnceValue(func() int64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int64(min(512, limit.Cur/8))
})

// close closes a file that has stayed open.
func (f *openFiles) close(path string, file *openFile) {
	file.Close()
	delete(f.open, path)
	opened.Add(-1)
}

// read returns the content of a file, valid until the next call.
func (f *openFiles) read(path string) (data []byte, err error) {
	err = f.use(path, func(file *os.File) (err error) {
		data, err = f.readFrom(int(file.Fd()), path)
		return err
	})
	return data, err
}

// links returns the number of links to a folder: in most file systems, two more than it has folders.
func (f *openFiles) links(path string) (int, error) {
	var stat unix.Stat_t
	err := f.use(path, func(folder *os.File) error { return unix.Fstat(int(folder.Fd()), &stat) })
	return int(stat.Nlink), err
}

// names returns the names in a folder.
func (f *openFiles) names(path string) (names []string, err error) {
	err = f.use(path, func(folder *os.File) (err error) {
		if _, err = folder.Seek(0, io.SeekStart); err == nil {
			names, err = folder.Readdirnames(-1)
		}
		return err
	})
	return names, err
}

// use calls read with the open file. If that fails, it opens the file again.
func (f *openFiles) use(path string, read func(*os.File) error) error {
	if known := f.open[path]; known != nil {
		if err := read(known.File); err == nil {
			known.round = f.round
			return nil
		}
		f.close(path, known)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	file := &openFile{os.NewFile(uintptr(fd), path), f.round}
	if err = read(file.File); err != nil || opened.Load() >= mostOpen() {
		file.Close()
		return err
	}
	opened.Add(1)
	if f.open == nil {
		f.open = map[string]*openFile{}
	}
	f.open[path] = file
	return nil
}

// closeUnread closes the files that were not read since the previous call.
func (f *openFiles) closeUnread() {
	for path, file := range f.open {
		if file.round != f.round {
			f.close(path, file)
		}
	}
	f.round++
}

// Close closes all files. They can be read again.
func (f *openFiles) Close() {
	f.round++
	f.closeUnread()
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
	at := -1 // of the name in its line
	for line := range bytes.Lines(data) {
		if !bytes.HasPrefix(line, []byte(prefix)) {
			continue
		}
		i := 0
		for field := range bytes.FieldsSeq(line) {
			if i == at {
				return firstNumber(field)
			}
			if at < 0 && string(field) == name {
				at = i
				break
			}
			i++
		}
		if at < 0 || i < at {
			return 0, false
		}
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
