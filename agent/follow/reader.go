// Package follow reads files that other programs are still writing: complete
// lines as they come, through rotation and truncation, with bounded memory
// whatever is in the file.
package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// DefaultMaxLine is the longest line that is delivered whole.
	DefaultMaxLine = 1 << 20
	// DefaultPoll is how often a file is checked if there is no event.
	DefaultPoll = 250 * time.Millisecond

	chunk       = 64 << 10
	fingerprint = 256
)

// Options of a Reader. The zero value polls and starts at the beginning.
type Options struct {
	Offset   int64         // where to start; must be at the beginning of a line
	MaxLine  int           // bytes; 0 means DefaultMaxLine
	Poll     time.Duration // 0 means DefaultPoll
	Notifier *Notifier     // nil: polling only
	// Direct: path is a regular file and no symbolic link, as a run's output is.
	Direct bool
}

// Line is one line of a followed file.
type Line struct {
	// Text is without its line end; valid until the next call of Next.
	Text []byte
	// Offset is where the line begins in its file.
	Offset int64
	// Cut: the line was longer than MaxLine, Text is its beginning.
	Cut bool
	// Unterminated: the file ended, was replaced or truncated before a line
	// end came.
	Unterminated bool
	// Generation counts the files read under this name, from 0: it grows when
	// the file was replaced or truncated.
	Generation int
}

// Reader follows one file. It is used by one goroutine; only Finish may be
// called from another.
//
// What it can't see: bytes that are written and truncated away between two
// looks, and a rewrite that leaves the last bytes before the present offset
// exactly as they were.
type Reader struct {
	path string
	opts Options
	file *os.File

	buf        []byte // read and not yet delivered: buf[start:]
	start      int
	scanned    int   // bytes of buf[start:] known to hold no newline
	offset     int64 // of buf[start] in the file
	generation int
	discarding bool   // inside a line that was already delivered cut
	last       []byte // the last bytes consumed, to notice a rewrite
	atEnd      bool   // the last read reached the file's end: it may have been rewritten since

	wake   <-chan struct{}
	cancel func()

	finish     chan struct{}
	finishOnce sync.Once
}

// Open starts to follow path, which must exist.
func Open(path string, opts Options) (*Reader, error) {
	if opts.MaxLine <= 0 {
		opts.MaxLine = DefaultMaxLine
	}
	if opts.Poll <= 0 {
		opts.Poll = DefaultPoll
	}
	f, err := opts.open(path)
	if err != nil {
		return nil, fmt.Errorf("follow: %w", err)
	}
	r := &Reader{path: path, opts: opts, file: f, offset: opts.Offset, finish: make(chan struct{})}
	if _, err := f.Seek(opts.Offset, io.SeekStart); err != nil {
		f.Close()
		return nil, fmt.Errorf("follow %s: %w", path, err)
	}
	r.cancel = func() {}
	if opts.Notifier != nil {
		r.wake, r.cancel = opts.Notifier.Subscribe(filepath.Dir(path))
	}
	return r, nil
}

func (o *Options) open(path string) (*os.File, error) {
	if !o.Direct {
		return os.Open(path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) // a named pipe must not block
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", path))
	}
	return f, nil
}

// Finish is called when the writer has ended: Next delivers what is in the file, an
// unterminated last line included, and then returns io.EOF.
func (r *Reader) Finish() { r.finishOnce.Do(func() { close(r.finish) }) }

// Close ends the reading.
func (r *Reader) Close() error {
	r.cancel()
	return r.file.Close()
}

// Offset is where the next line begins.
func (r *Reader) Offset() int64 { return r.offset }

// Next returns the next line and waits for it until ctx is done. io.EOF comes
// only after Finish.
func (r *Reader) Next(ctx context.Context) (Line, error) {
	for {
		if line, ok := r.line(); ok {
			return line, nil
		}
		finished := r.finished() // asked before the read: what came before Finish is read
		if r.atEnd && !r.unchanged() {
			if line, ok := r.rest(); ok {
				return line, r.restart()
			}
			if err := r.restart(); err != nil {
				return Line{}, err
			}
		}
		n, err := r.fill()
		if err != nil {
			return Line{}, err
		}
		if n > 0 {
			continue
		}
		if finished {
			if line, ok := r.rest(); ok {
				return line, nil
			}
			return Line{}, io.EOF
		}
		replaced, err := r.replaced()
		if err != nil {
			return Line{}, err
		}
		if replaced {
			if line, ok := r.rest(); ok {
				return line, r.restart()
			}
			if err := r.restart(); err != nil {
				return Line{}, err
			}
			continue
		}
		if !r.Idle() {
			continue // the look at the name found more bytes of the old file
		}
		if err := r.wait(ctx); err != nil {
			return Line{}, err
		}
	}
}

// ErrQuiet is returned by NextWithin if no line came in time.
var ErrQuiet = errors.New("no new line")

// NextWithin is Next, but returns ErrQuiet if no line comes within d. With d 0 it
// waits as long as Next.
func (r *Reader) NextWithin(ctx context.Context, d time.Duration) (Line, error) {
	if d <= 0 {
		return r.Next(ctx)
	}
	if line, ok := r.line(); ok {
		return line, nil
	}
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	line, err := r.Next(limited)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = ErrQuiet
	}
	return line, err
}

// Idle reports whether all complete lines that were in the file at the last
// look have been delivered.
func (r *Reader) Idle() bool {
	return r.start+r.scanned >= len(r.buf)
}

func (r *Reader) finished() bool {
	select {
	case <-r.finish:
		return true
	default:
		return false
	}
}

// wait waits for a sign that the file has changed.
func (r *Reader) wait(ctx context.Context) error {
	t := time.NewTimer(r.opts.Poll)
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

// fill reads more of the present file.
func (r *Reader) fill() (int, error) {
	if r.start > 0 {
		n := copy(r.buf, r.buf[r.start:])
		r.buf, r.start = r.buf[:n], 0
	}
	if cap(r.buf)-len(r.buf) < chunk {
		grown := make([]byte, len(r.buf), 2*cap(r.buf)+chunk)
		copy(grown, r.buf)
		r.buf = grown
	}
	n, err := r.file.Read(r.buf[len(r.buf):cap(r.buf)])
	r.atEnd = n < cap(r.buf)-len(r.buf)
	r.buf = r.buf[:len(r.buf)+n]
	if err != nil && !errors.Is(err, io.EOF) {
		return n, fmt.Errorf("read %s: %w", r.path, err)
	}
	return n, nil
}

// line takes the next complete or overlong line out of the buffer.
func (r *Reader) line() (Line, bool) {
	for {
		rest := r.buf[r.start:]
		i := bytes.IndexByte(rest[r.scanned:], '\n')
		if i < 0 {
			r.scanned = len(rest)
			if r.discarding {
				r.consume(len(rest))
				return Line{}, false
			}
			if len(rest) > r.opts.MaxLine {
				line := Line{Text: rest[:r.opts.MaxLine], Offset: r.offset, Cut: true, Generation: r.generation}
				r.consume(len(rest))
				r.discarding = true
				return line, true
			}
			return Line{}, false
		}
		end := r.scanned + i
		line := Line{Text: rest[:end], Offset: r.offset, Generation: r.generation}
		r.consume(end + 1)
		if r.discarding {
			r.discarding = false
			continue
		}
		if end > r.opts.MaxLine {
			line.Text, line.Cut = line.Text[:r.opts.MaxLine], true
		}
		return line, true
	}
}

// rest takes an unterminated last line out of the buffer.
func (r *Reader) rest() (Line, bool) {
	rest := r.buf[r.start:]
	if len(rest) == 0 || r.discarding {
		r.consume(len(rest))
		return Line{}, false
	}
	line := Line{Text: rest, Offset: r.offset, Unterminated: true, Generation: r.generation}
	r.consume(len(rest))
	return line, true
}

// consume moves past the first n bytes of the buffer and remembers the last
// of them. The bytes stay in place until the next fill.
func (r *Reader) consume(n int) {
	taken := r.buf[r.start : r.start+n]
	if n >= fingerprint {
		r.last = append(r.last[:0], taken[n-fingerprint:]...)
	} else {
		if over := len(r.last) + n - fingerprint; over > 0 {
			r.last = r.last[:copy(r.last, r.last[over:])]
		}
		r.last = append(r.last, taken...)
	}
	r.start += n
	r.offset += int64(n)
	r.scanned = 0
}

// replaced reports whether the name belongs to another file now, or the file
// became shorter.
func (r *Reader) replaced() (bool, error) {
	now, err := os.Stat(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil // removed, or between rename and create: keep what we have
	}
	if err != nil {
		return false, fmt.Errorf("follow: %w", err)
	}
	mine, err := r.file.Stat()
	if err != nil {
		return false, fmt.Errorf("follow %s: %w", r.path, err)
	}
	if !os.SameFile(now, mine) {
		// The writer may have added to the old file after our last read.
		n, err := r.fill()
		return n == 0, err
	}
	return now.Size() < r.offset+int64(len(r.buf)-r.start), nil
}

// unchanged reports whether the last bytes consumed are still in the file.
func (r *Reader) unchanged() bool {
	if len(r.last) == 0 {
		return true
	}
	seen := make([]byte, len(r.last))
	n, err := r.file.ReadAt(seen, r.offset-int64(len(r.last)))
	if err != nil && n < len(seen) {
		return errors.Is(err, io.EOF) // shorter: noticed by its size next time
	}
	return bytes.Equal(seen, r.last)
}

// restart reads the present file of that name from its beginning.
func (r *Reader) restart() error {
	f, err := r.opts.open(r.path)
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	r.file.Close()
	r.file = f
	// rest may have handed out a part of buf: leave it alone.
	r.buf, r.start, r.scanned = nil, 0, 0
	r.offset, r.discarding, r.last = 0, false, r.last[:0]
	r.generation++
	return nil
}
