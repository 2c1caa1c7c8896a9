package follow

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// Line is one line of a followed file.
type Line struct {
	// Text is the line as a terminal would show it, without its line end; valid until the next call
	// of Next.
	Text []byte
	// Offset is where the line begins in its file, and Size its length there in bytes, including
	// the line end. If the line is Cut, Size counts the bytes that were read.
	Offset, Size int64
	// Cut: the line is longer than MaxLine, Text is its beginning.
	Cut bool
	// Unterminated: the file ended without a line end.
	Unterminated bool
}

// Text returns the relevant part of the line: without leading NULs, which a writer without O_APPEND
// leaves after a truncation, and from the last carriage return on, with which a progress display
// overwrites itself.
func Text(line []byte) []byte {
	line = trimNULs(line)
	if bytes.IndexByte(line, '\r') < 0 { // nearly always, and many times as fast as a search from the end
		return line
	}
	return line[bytes.LastIndexByte(bytes.TrimRight(line, "\r"), '\r')+1:]
}

func trimNULs(line []byte) []byte {
	for len(line) > 0 && line[0] == 0 {
		line = line[1:]
	}
	return line
}

// lines splits bytes into lines.
type lines struct {
	max        int
	chunk      int    // how many bytes to read at once
	buf        []byte // buf[start:] was read but not delivered
	returns    bool   // buf may hold carriage returns: one search for many lines
	start      int
	scanned    int   // bytes of buf[start:] known to hold no newline
	offset     int64 // of buf[start] in the file
	discarding bool  // inside a line that was already delivered cut
}

// space returns room for more bytes after those in the buffer.
func (l *lines) space() []byte {
	if l.start > 0 {
		n := copy(l.buf, l.buf[l.start:])
		l.buf, l.start = l.buf[:n], 0
		l.returns = bytes.IndexByte(l.buf, '\r') >= 0
	}
	if cap(l.buf)-len(l.buf) < l.chunk {
		grown := make([]byte, len(l.buf), 2*cap(l.buf)+l.chunk)
		copy(grown, l.buf)
		l.buf = grown
	}
	return l.buf[len(l.buf):cap(l.buf)]
}

// take adds the n bytes that were read into the space.
func (l *lines) take(n int) {
	before := len(l.buf)
	l.buf = l.buf[:before+n]
	l.returns = l.returns || bytes.IndexByte(l.buf[before:], '\r') >= 0
}

// text is Text for a line of the buffer.
func (l *lines) text(line []byte) []byte {
	if l.returns {
		return Text(line)
	}
	return trimNULs(line)
}

// end is the offset after the last byte that was taken.
func (l *lines) end() int64 { return l.offset + int64(len(l.buf)-l.start) }

// idle reports whether the buffer holds no complete line.
func (l *lines) idle() bool { return l.start+l.scanned >= len(l.buf) }

// next removes the next complete or overlong line from the buffer. It sets line in place, which is faster than a copy.
func (l *lines) next(line *Line) bool {
	for {
		rest := l.buf[l.start:]
		i := bytes.IndexByte(rest[l.scanned:], '\n')
		if i < 0 {
			return l.overlong(line)
		}
		end := l.scanned + i
		line.Offset, line.Size, line.Cut, line.Unterminated = l.offset, int64(end+1), end > l.max, false
		l.consume(end + 1)
		if l.discarding {
			l.discarding = false
			continue
		}
		line.Text = l.text(rest[:min(end, l.max)])
		return true
	}
}

// overlong removes the beginning of a line from the buffer that has only this line, if it is too long already.
func (l *lines) overlong(line *Line) bool {
	rest := l.buf[l.start:]
	l.scanned = len(rest)
	switch {
	case l.discarding:
		l.consume(len(rest))
		return false
	case len(rest) <= l.max:
		return false
	}
	*line = Line{Text: Text(rest[:l.max]), Offset: l.offset, Size: int64(len(rest)), Cut: true}
	l.consume(len(rest))
	l.discarding = true
	return true
}

// rest removes an unterminated last line from the buffer.
func (l *lines) rest() (Line, bool) {
	rest := l.buf[l.start:]
	if len(rest) == 0 || l.discarding {
		l.consume(len(rest))
		return Line{}, false
	}
	line := Line{Text: Text(rest), Offset: l.offset, Size: int64(len(rest)), Unterminated: true}
	l.consume(len(rest))
	return line, true
}

// consume moves past the first n bytes of the buffer. They stay in place until the next call of
// space.
func (l *lines) consume(n int) {
	l.start += n
	l.offset += int64(n)
	l.scanned = 0
}

// Scanner reads the lines of immutable content.
type Scanner struct {
	// Copy, if not nil, gets each byte before the line that contains it is returned.
	Copy    func(offset int64, p []byte) error
	content io.ReaderAt
	size    int64
	lines   lines
}

// NewScanner reads content from offset to size.
func NewScanner(content io.ReaderAt, offset, size int64) *Scanner {
	small := int(max(1, min(size-offset, chunk)))
	return &Scanner{content: content, size: size, lines: lines{max: DefaultMaxLine, chunk: small, offset: offset}}
}

// Next returns the next line. The error is io.EOF after the last one, which may be
// Unterminated.
func (s *Scanner) Next(ctx context.Context) (line Line, err error) {
	for {
		if s.lines.next(&line) {
			return line, nil
		}
		if err := ctx.Err(); err != nil {
			return Line{}, err
		}
		space, at := s.lines.space(), s.lines.end()
		n, err := s.content.ReadAt(space[:max(0, min(int64(len(space)), s.size-at))], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return Line{}, err
		}
		if n > 0 {
			if s.Copy != nil {
				if err := s.Copy(at, space[:n]); err != nil {
					return Line{}, err
				}
			}
			s.lines.take(n)
			continue
		}
		if line, ok := s.lines.rest(); ok {
			return line, nil
		}
		return Line{}, io.EOF
	}
}
