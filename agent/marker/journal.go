package marker

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Read returns the markers of a queue file in the order in which they were
// added. A file that is not there has none. Damaged lines are left out.
func Read(path string) ([]State, error) {
	j := newJournal(path)
	if _, err := j.refresh(); err != nil {
		return nil, err
	}
	states := make([]State, len(j.states))
	for i, s := range j.states {
		states[i] = *s
	}
	return states, nil
}

// journal reads a queue file as it grows.
type journal struct {
	path string
	ledger
	info    os.FileInfo // of the file that was read; nil: none
	offset  int64       // of the first byte that is not applied for good
	damaged int         // lines that could not be read
}

func newJournal(path string) *journal {
	return &journal{path: path, ledger: newLedger()}
}

// refresh applies what was appended since. A file that was replaced or has
// become shorter is read anew. It reports whether anything was read.
func (j *journal) refresh() (bool, error) {
	f, err := os.Open(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		changed := j.info != nil
		*j = *newJournal(j.path)
		return changed, nil
	}
	if err != nil {
		return false, fmt.Errorf("read markers: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("read markers: %w", err)
	}
	if j.info != nil && os.SameFile(info, j.info) && info.Size() == j.info.Size() {
		return false, nil
	}
	if j.info != nil && (!os.SameFile(info, j.info) || info.Size() < j.offset) {
		*j = *newJournal(j.path)
	}
	if _, err := f.Seek(j.offset, io.SeekStart); err != nil {
		return false, fmt.Errorf("read markers: %w", err)
	}
	// Up to the size of a moment ago: what comes later is seen as growth.
	if err := j.read(io.LimitReader(f, info.Size()-j.offset)); err != nil {
		return false, fmt.Errorf("read markers from %s: %w", j.path, err)
	}
	j.info = info
	return true, nil
}

// read applies the lines of r, which begins at j.offset. A last line without
// its end is applied if it is whole, and read again the next time.
func (j *journal) read(r io.Reader) error {
	br := bufio.NewReaderSize(r, maxLine)
	tooLong := 0 // bytes of a line, in front of those that ReadSlice returns
	for {
		line, err := br.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			tooLong += len(line)
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		ended := err == nil
		if text := bytes.TrimSpace(line); len(text) > 0 || tooLong > 0 {
			e, parseErr := parseEntry(text)
			switch {
			case tooLong == 0 && parseErr == nil:
				j.apply(e)
			case ended:
				j.damaged++
			}
		}
		if !ended {
			return nil
		}
		j.offset += int64(tooLong + len(line))
		tooLong = 0
	}
}
