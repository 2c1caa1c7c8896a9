package toollog

import (
	"fmt"
	"io"
	"os"
)

// logCopy has what was read of a log since the end of its last run: in memory until a run begins, then in the
// output file of the run's directory. Offsets are in the stream of all that was read, which continues when the log
// is rotated.
type logCopy struct {
	start, end int64
	added      int64    // how many of the last bytes are not in any file: 1 after endLine added a newline
	pending    []byte   // the bytes from start on, while there is no file
	file       *os.File // of the current run
	dirty      bool     // the file has bytes that may not be on the disk
}

// maxPending bounds the bytes in memory. It is more than a run can print before its first report.
const maxPending = 4 << 20

// append adds the bytes that were read at an offset, except those that it already has. After an error it can be
// repeated.
func (c *logCopy) append(at int64, p []byte) error {
	c.added = 0
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
	c.dirty = true
	if err != nil {
		return fmt.Errorf("copy the log: %w", err)
	}
	return nil
}

// endLine ends an unfinished last line, because the next bytes come from another file.
func (c *logCopy) endLine() error {
	if c.end == c.start || c.added > 0 {
		return nil
	}
	if last, err := c.slice(c.end-1, c.end); err != nil || last[0] == '\n' {
		return err
	}
	err := c.append(c.end, []byte("\n"))
	if err == nil {
		c.added = 1
	}
	return err
}

// forget drops what was read before the offset and belongs to no run.
func (c *logCopy) forget(before int64) {
	if n := min(before-c.start, int64(len(c.pending))); c.file == nil && n > 0 {
		c.pending = c.pending[:copy(c.pending, c.pending[n:])]
		c.start += n
	}
}

// ReadAt reads the bytes from start to end.
func (c *logCopy) ReadAt(p []byte, at int64) (int, error) {
	switch {
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
	c.file, c.start, c.pending, c.dirty = file, offset, nil, true
}

// cut ends the current run at the offset. It returns the run's file, to be synced and closed, or nil without one.
// What was read after the offset is kept.
func (c *logCopy) cut(end int64) (*os.File, error) {
	file := c.file
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
	c.file, c.start, c.pending = nil, end, rest
	return file, nil
}
