package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Newest reads the samples of a run's servers or machines as they are recorded.
type Newest struct {
	path   string
	offset int64
	reader statusReader
	buffer []byte
}

// NewNewest returns a Newest of a record that has read nothing yet.
func NewNewest(path string) *Newest {
	n := &Newest{path: path}
	n.reader = statusReader{zero: time.Unix(0, 0), rows: math.MaxInt, targets: map[string]*readTarget{}}
	return n
}

// maxNewest is how many bytes are read at once.
const maxNewest = 4 << 20

// Read reads what has been recorded since it was called last. It returns the servers' rows,
// which are valid until the next call: those from Begin are new, and the one before
// is there for rates. A file that does not exist has none.
func (n *Newest) Read() ([]*ServerRows, error) {
	for _, s := range n.reader.servers {
		s.next()
	}
	file, err := rundir.Open(n.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	defer file.Close()
	if n.buffer == nil {
		n.buffer = make([]byte, LongestStatus)
	}
	for total := 0; total < maxNewest; {
		size, err := file.ReadAt(n.buffer, n.offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read status: %w", err)
		}
		end := bytes.LastIndexByte(n.buffer[:size], '\n') + 1
		if end == 0 {
			if size == len(n.buffer) { // no line is that long
				n.offset += int64(size)
				continue
			}
			break
		}
		for line := range bytes.Lines(n.buffer[:end]) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				n.reader.add(line)
			}
		}
		n.offset += int64(end)
		total += end
	}
	return n.reader.servers, nil
}
