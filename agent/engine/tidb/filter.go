package tidb

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine is the longest line that is read; longer ones are dropped.
const maxLine = 64 << 10

// filter is an exposition in Prometheus' text format without the comments and
// the series whose names are not wanted.
type filter struct {
	in     *bufio.Reader
	wanted map[string]bool
	line   []byte // rest of the current line
	err    error
}

func newFilter(r io.Reader, wanted map[string]bool) *filter {
	return &filter{in: bufio.NewReaderSize(r, maxLine), wanted: wanted}
}

// Read implements io.Reader.
func (f *filter) Read(into []byte) (int, error) {
	for len(f.line) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		f.next()
	}
	n := copy(into, f.line)
	f.line = f.line[n:]
	return n, nil
}

// next takes the next line if it is wanted.
func (f *filter) next() {
	line, err := f.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = f.in.ReadSlice('\n')
		}
		line = nil
	}
	f.err = err
	if err != nil {
		return // the format ends each line; half a line is a broken answer
	}
	name := line
	if i := bytes.IndexAny(line, "{ \t"); i >= 0 {
		name = line[:i]
	}
	if f.wanted[string(name)] {
		f.line = line
	}
}
