package marker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxLine is the longest line that a queue file may hold, in bytes.
const maxLine = 64 << 10

// Append puts a marker into the queue file at path, which is created if it is
// not there; its folder must exist. It returns the marker as stored, with an ID.
// A marker with the ID of an earlier one replaces that one's content; so does a
// Range of the same run. When Append returns, the marker is on disk. Several
// processes may append at once.
func Append(path string, m Marker) (Marker, error) {
	if m.ID == "" {
		m.ID = newID()
	}
	m, err := m.clean()
	if err != nil {
		return m, err
	}
	if !validID(m.ID) {
		return m, fmt.Errorf("marker's id %q: use lower-case letters, digits and '-'", m.ID)
	}
	return m, appendEntry(path, entry{Marker: &m})
}

// Put is Append for a marker with an ID of which the queue may know already: it
// writes nothing if the queue has the marker with this content, or has seen its
// end, and reports whether it wrote.
func Put(path string, m Marker) (bool, error) {
	m, err := m.clean()
	if err != nil {
		return false, err
	}
	states, err := Read(path)
	if err != nil {
		return false, err
	}
	for _, s := range states {
		if s.ID == m.ID && (s.version == m.version() || !s.End.IsZero() && m.End.IsZero()) {
			return false, nil
		}
	}
	_, err = Append(path, m)
	return err == nil, err
}

func appendEntry(path string, e entry) error {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil { // ends the line
		return fmt.Errorf("write marker: %w", err)
	}
	if line.Len() > maxLine {
		return fmt.Errorf("write marker: %d bytes are too many", line.Len())
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = create(path)
	}
	if err != nil {
		return fmt.Errorf("write marker: %w", err)
	}
	err = appendLine(f, line.Bytes())
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("write marker to %s: %w", path, err)
	}
	return nil
}

// create makes the queue file and sees to it that the folder's entry lasts.
func create(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync() // some file systems can't; the file itself is synced
		dir.Close()
	}
	return f, nil
}

// appendFile is what appendLine needs of an os.File opened with O_APPEND.
type appendFile interface {
	io.Writer
	io.ReaderAt
	io.Seeker
	Sync() error
}

// appendLine writes a line at the end of f in one write. A half line that a
// crash or a full disk left there is ended first. Writers need no lock: each
// looks afterwards whether its line really began a line, and writes it again
// if another's half line came in between.
func appendLine(f appendFile, line []byte) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	begins, err := beginsLine(f, end)
	if err != nil {
		return err
	}
	for range 3 {
		data := line
		if !begins {
			data = append([]byte{'\n'}, line...)
		}
		if _, err := f.Write(data); err != nil {
			return err
		}
		// Writing with O_APPEND leaves the offset behind what was written.
		if end, err = f.Seek(0, io.SeekCurrent); err != nil {
			return err
		}
		if !begins {
			break
		}
		if begins, err = beginsLine(f, end-int64(len(line))); err != nil {
			return err
		}
		if begins {
			break
		}
	}
	return f.Sync()
}

// beginsLine reports whether a line begins at offset.
func beginsLine(f io.ReaderAt, offset int64) (bool, error) {
	if offset <= 0 {
		return true, nil
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], offset-1); err != nil {
		return false, err
	}
	return b[0] == '\n', nil
}
