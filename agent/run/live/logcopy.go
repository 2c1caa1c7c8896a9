package live

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// logCopy has what was read of a log since the end of its last run: in memory until a run begins,
// then in the output file of the run's directory. Offsets are in the stream of everything that was
// read, which continues when the log is rotated.
//
// One goroutine uses it; sync may be called from another.
type logCopy struct {
	previous   io.ReaderAt // the previous run, from 0 on; may be nil
	start, end int64
	joined     int64  // how many of the last bytes are not in any file: 1 after endLine added a newline
	pending    []byte // the bytes from start on, while there is no file

	mu    sync.Mutex
	file  *os.File
	dirty bool
}

// maxPending bounds the bytes in memory. It is more than a run can print before its first report.
const maxPending = 4 << 20

// errCopy is returned if the copy can't be written, as when the disk is full.
var errCopy = errors.New("can't copy the log")

// append adds the bytes that were read at the offset, except those that it already has.
func (c *logCopy) append(at int64, p []byte) error {
	c.joined = 0
	if known := c.end - at; known > 0 {
		p = p[min(known, int64(len(p))):]
	}
	if c.file == nil {
		c.pending = append(c.pending, p...)
		c.end += int64(len(p))
		c.forget(c.end - maxPending)
		return nil
	}
	n, err := c.file.Write(p)
	c.end += int64(n)
	c.mu.Lock()
	c.dirty = true
	c.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%w: %w", errCopy, err)
	}
	return nil
}

// endLine terminates an incomplete last line: what follows is not part of it.
func (c *logCopy) endLine() error {
	var last [1]byte
	if c.end == c.start || c.joined > 0 {
		return nil
	}
	if _, err := c.ReadAt(last[:], c.end-1); err != nil {
		return err
	}
	if last[0] == '\n' {
		return nil
	}
	err := c.append(c.end, []byte("\n"))
	if err == nil {
		c.joined = 1
	}
	return err
}

// forget drops what was read before the offset and belongs to no run.
func (c *logCopy) forget(before int64) {
	if n := before - c.start; c.file == nil && n > 0 {
		n = min(n, int64(len(c.pending)))
		c.pending = c.pending[:copy(c.pending, c.pending[n:])]
		c.start += n
	}
}

// ReadAt reads the bytes of the current run or of the previous one.
func (c *logCopy) ReadAt(p []byte, at int64) (int, error) {
	switch {
	case at < c.start && c.previous != nil:
		n, err := c.previous.ReadAt(p[:min(int64(len(p)), c.start-at)], at)
		if n == len(p) || err != nil && !errors.Is(err, io.EOF) || at+int64(n) < c.start {
			return n, err
		}
		m, err := c.ReadAt(p[n:], at+int64(n))
		return n + m, err
	case at < c.start || at >= c.end:
		return 0, io.EOF
	case c.file != nil:
		return c.file.ReadAt(p, at-c.start)
	}
	n := copy(p, c.pending[at-c.start:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// slice returns the bytes between two offsets.
func (c *logCopy) slice(from, to int64) ([]byte, error) {
	if from >= to {
		return nil, nil
	}
	p := make([]byte, to-from)
	n, err := c.ReadAt(p, from)
	if n == len(p) {
		err = nil
	}
	return p, err
}

// attach continues in the file of a run that began at the offset. The file has all bytes so far.
func (c *logCopy) attach(file *os.File, offset int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.file, c.start, c.pending, c.dirty = file, offset, nil, true
}

// cut ends the current run at the offset. It returns the run's file, to be synced and closed, or
// nil without one. What was read after the offset is kept.
func (c *logCopy) cut(end int64) (*os.File, error) {
	c.mu.Lock()
	file := c.file
	c.mu.Unlock()
	if file == nil {
		c.forget(end)
		return nil, nil
	}
	rest, err := c.slice(end, c.end)
	if err == nil {
		err = file.Truncate(end - c.start)
	}
	if err != nil {
		return file, fmt.Errorf("end the copy of a log: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.previous = nil
	c.file, c.start, c.pending = nil, end, rest
	return file, nil
}

// sync writes the copy to disk if necessary.
func (c *logCopy) sync() {
	c.mu.Lock()
	file := c.file
	due := c.dirty && file != nil
	c.dirty = false
	c.mu.Unlock()
	if due {
		_ = file.Sync() // if closed meanwhile, it was synced then; after any other error the log is read again
	}
}

func (c *logCopy) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file != nil {
		c.file.Close()
		c.file = nil
	}
}
