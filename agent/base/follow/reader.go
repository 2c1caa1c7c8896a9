// Package follow reads files that other programs are still writing: complete lines as they arrive,
// with bounded memory for any content. It detects that a file was rewritten or its name given to
// another file.
package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/base/clock"
)

const (
	// DefaultMaxLine is the longest line that is delivered whole.
	DefaultMaxLine = 1 << 20
	// DefaultPoll is how often a file is checked if events may be missing; with events,
	// notifiedPoll covers lost ones.
	DefaultPoll  = 250 * time.Millisecond
	notifiedPoll = time.Second

	chunk       = 64 << 10
	fingerprint = 1 << 10
)

// Options of a Reader. The zero value polls and starts at the beginning.
type Options struct {
	Offset   int64         // where to start; must be at the beginning of a line
	MaxLine  int           // bytes; 0: DefaultMaxLine
	Poll     time.Duration // 0: DefaultPoll, a second if events come
	Notifier *Notifier     // nil: polling only
	// Direct: path is not a symbolic link and keeps its name, as a run's output does.
	Direct bool
	// Copy, if not nil, gets each byte before the line that contains it is returned. If it fails,
	// Next returns the error, and Copy gets the same bytes again later.
	Copy func(offset int64, p []byte) error
}

var (
	// ErrQuiet is returned by NextWithin if no line came in time.
	ErrQuiet = errors.New("no new line")
	// ErrRewritten is returned by Next if bytes that were read are no longer in the file: it was
	// truncated or rewritten. Restart continues.
	ErrRewritten = errors.New("the file was truncated or rewritten")
	// ErrNotRegular is returned for files that can't be followed: named pipes, devices, sockets and
	// folders.
	ErrNotRegular = errors.New("not a regular file")
)

// Reader follows one file, even if it is renamed or removed. Only one goroutine may use it, except
// for Finish.
//
// It does not detect bytes that are written and truncated away between two checks, nor a rewrite
// that keeps the last bytes before the current offset.
type Reader struct {
	path string
	opts Options
	file *os.File

	lines lines
	last  []byte // the last bytes read, to detect a rewrite

	wake   <-chan struct{}
	cancel func()

	finish     chan struct{}
	finishOnce sync.Once
}

// OpenFile opens a regular file for reading. The error is ErrNotRegular for anything else. It does
// not open such files: that could block, or make a program that writes to a pipe fail.
func OpenFile(path string) (*os.File, error) { return openFile(path, 0) }

func openFile(path string, flag int) (*os.File, error) {
	info, err := os.Stat(path)
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		failed.Op = "open"
	}
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info.Mode())
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|flag, 0) // it must not block if the file was replaced meanwhile
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// TooManyOpen reports whether a file was not opened only because this process or the machine has too
// many files open.
func TooManyOpen(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }

// ErrUTF16 is returned for text that no tool's parser reads.
var ErrUTF16 = errors.New("the text is UTF-16\nhint: convert it: iconv -f UTF-16 -t UTF-8")

// IsUTF16 reports whether a text that begins with head is UTF-16, from its byte order mark or two
// ASCII characters.
func IsUTF16(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return true
	}
	if len(head) < 4 {
		return false
	}
	ascii := func(a, b byte) bool { return a == 0 && b >= ' ' && b < 0x7f }
	return ascii(head[0], head[1]) && ascii(head[2], head[3]) || ascii(head[1], head[0]) && ascii(head[3], head[2])
}

func notRegular(path string, mode os.FileMode) error {
	kind := "a special file"
	switch {
	case mode.IsDir():
		kind = "a folder"
	case mode&os.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&os.ModeSocket != 0:
		kind = "a socket"
	case mode&os.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("%s is %s, %w", path, kind, ErrNotRegular)
}

// Open starts to follow path, which must exist. The error may be ErrNotRegular.
func Open(path string, opts Options) (*Reader, error) {
	flag := 0
	if opts.Direct {
		flag = unix.O_NOFOLLOW
	}
	f, err := openFile(path, flag)
	if err != nil {
		return nil, fmt.Errorf("follow: %w", err)
	}
	if opts.Direct {
		if err := CheckHole(f); err != nil {
			f.Close()
			return nil, fmt.Errorf("follow: %w", err)
		}
	}
	return NewReader(f, opts)
}

const (
	// largeFile is a size in bytes that takes noticeable time to read.
	largeFile = 256 << 20
	// mostCompressed is more than any file system's compression of text.
	mostCompressed = 200
)

// CheckHole returns an error for a large file with hardly any bytes on the disk. Creating one costs
// nothing, and reading it would take hours.
func CheckHole(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Size > largeFile && st.Blocks*512 < st.Size/mostCompressed {
		return fmt.Errorf("%s has a hole: only %d of its %d bytes are on the disk", f.Name(), st.Blocks*512, st.Size)
	}
	return nil
}

// NewReader follows an open file. Close closes it.
func NewReader(file *os.File, opts Options) (*Reader, error) {
	if opts.MaxLine <= 0 {
		opts.MaxLine = DefaultMaxLine
	}
	switch {
	case opts.Poll > 0:
	case opts.Notifier != nil && opts.Direct: // with a link, the events of the file's own folder are missing
		opts.Poll = notifiedPoll
	default:
		opts.Poll = DefaultPoll
	}
	r := &Reader{path: file.Name(), opts: opts, file: file, finish: make(chan struct{})}
	if err := r.Restart(opts.Offset); err != nil {
		file.Close()
		return nil, err
	}
	r.cancel = func() {}
	if opts.Notifier != nil {
		var files []string // any file: it may be renamed, or be in another folder
		if opts.Direct {
			files = []string{filepath.Base(r.path)}
		}
		r.wake, r.cancel = opts.Notifier.Subscribe(filepath.Dir(r.path), files...)
	}
	return r, nil
}

// Restart continues at offset, such as 0 after ErrRewritten. It drops what was read and not
// returned.
func (r *Reader) Restart(offset int64) error { return r.Resume(offset, nil) }

// Resume is like Restart, but within a line that begins at offset and whose first bytes, begun,
// were read before. The error is ErrRewritten if the file does not have them.
func (r *Reader) Resume(offset int64, begun []byte) error {
	r.lines = lines{max: r.opts.MaxLine, chunk: chunk, offset: offset, buf: bytes.Clone(begun), returns: bytes.IndexByte(begun, '\r') >= 0}
	end := r.lines.end()
	r.last = make([]byte, min(end, fingerprint))
	n, err := r.file.ReadAt(r.last, end-int64(len(r.last)))
	same := min(len(begun), len(r.last))
	switch {
	case n < len(r.last) && !errors.Is(err, io.EOF):
		return fmt.Errorf("follow %s: %w", r.path, err)
	case n < len(r.last), !bytes.Equal(r.last[len(r.last)-same:], begun[len(begun)-same:]):
		return fmt.Errorf("follow %s: %w", r.path, ErrRewritten)
	}
	return nil
}

// Finish is called after the writer has ended: Next delivers the rest of the file, including an
// unterminated last line, and then returns io.EOF.
func (r *Reader) Finish() { r.finishOnce.Do(func() { close(r.finish) }) }

// Close closes the file.
func (r *Reader) Close() error {
	r.cancel()
	return r.file.Close()
}

// File is the followed file.
func (r *Reader) File() *os.File { return r.file }

// Offset is where the next line begins.
func (r *Reader) Offset() int64 { return r.lines.offset }

// End is the position up to which the file was read.
func (r *Reader) End() int64 { return r.lines.end() }

// Idle reports whether all lines that were complete at the last check have been delivered.
func (r *Reader) Idle() bool { return r.lines.idle() }

// Last are the last bytes that were read, at most 1 KiB.
func (r *Reader) Last() []byte { return r.last }

// Next returns the next line, waiting for it until ctx is done. The error is io.EOF after Finish,
// and may be ErrRewritten.
func (r *Reader) Next(ctx context.Context) (line Line, err error) {
	for {
		if r.lines.next(&line) {
			return line, nil
		}
		line, err = r.Poll(ctx)
		if !errors.Is(err, ErrQuiet) {
			return line, err
		}
		if err := r.Wait(ctx); err != nil {
			return Line{}, err
		}
	}
}

// Poll returns the next line that is already in the file. The error is ErrQuiet if there is none;
// other errors are as for Next.
func (r *Reader) Poll(ctx context.Context) (line Line, err error) {
	for {
		if r.lines.next(&line) {
			return line, nil
		}
		if err := ctx.Err(); err != nil {
			return Line{}, err
		}
		finished := r.finished() // checked before reading, so everything written before Finish is read
		n, err := r.fill()
		switch {
		case err != nil:
			return Line{}, err
		case n > 0:
		case finished:
			if line, ok := r.lines.rest(); ok {
				return line, nil
			}
			return Line{}, io.EOF
		default:
			return Line{}, ErrQuiet
		}
	}
}

// NextWithin is like Next, but returns ErrQuiet if no line comes within d; with d 0 it waits
// without a limit.
func (r *Reader) NextWithin(ctx context.Context, d time.Duration) (line Line, err error) {
	if d <= 0 {
		return r.Next(ctx)
	}
	if r.lines.next(&line) {
		return line, nil
	}
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	line, err = r.Next(limited)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = ErrQuiet
	}
	return line, err
}

func (r *Reader) finished() bool {
	select {
	case <-r.finish:
		return true
	default:
		return false
	}
}

// Wait waits until the file may have changed, or ctx is done.
func (r *Reader) Wait(ctx context.Context) error {
	t := time.NewTimer(clock.Next(r.opts.Poll))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.finish:
	case <-r.wake:
	case <-t.C:
	}
	return nil
}

// fill reads more of the file.
func (r *Reader) fill() (int, error) {
	space := r.lines.space()
	n, err := r.file.ReadAt(space, r.lines.end())
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read %s: %w", r.path, err)
	}
	// Checking after the read ensures that new content is never mistaken for more of the old.
	if err := r.check(n); err != nil || n == 0 {
		return 0, err
	}
	if r.opts.Copy != nil {
		if err := r.opts.Copy(r.lines.end(), space[:n]); err != nil {
			return 0, err
		}
	}
	r.remember(space[:n])
	r.lines.take(n)
	return n, nil
}

// Check returns ErrRewritten unless the file still has the last bytes read.
func (r *Reader) Check() error { return r.check(0) }

// check returns ErrRewritten unless the file still has the last bytes read and, if no more could be
// read, ends there.
func (r *Reader) check(n int) error {
	if n == 0 {
		info, err := r.file.Stat()
		if err != nil {
			return fmt.Errorf("follow: %w", err)
		}
		if info.Size() < r.lines.end() {
			return ErrRewritten
		}
	}
	if len(r.last) == 0 {
		return nil
	}
	var seen [fingerprint]byte
	now := seen[:len(r.last)]
	m, err := r.file.ReadAt(now, r.lines.end()-int64(len(now)))
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", r.path, err)
	}
	if m < len(now) || !bytes.Equal(now, r.last) {
		return ErrRewritten
	}
	return nil
}

func (r *Reader) remember(p []byte) {
	if len(p) >= fingerprint {
		r.last = append(r.last[:0], p[len(p)-fingerprint:]...)
		return
	}
	if over := len(r.last) + len(p) - fingerprint; over > 0 {
		r.last = r.last[:copy(r.last, r.last[over:])]
	}
	r.last = append(r.last, p...)
}
