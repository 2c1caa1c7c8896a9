package rundir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// HeadSize is how many of a log file's first bytes identify it; a shorter file is identified by all
// of them.
const HeadSize = 4 << 10

// Identify returns what identifies a log file: its inode, even after a rename, and its content,
// even after a copy.
func Identify(file *os.File) (LogSource, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return LogSource{}, fmt.Errorf("log file %s: %w", file.Name(), err)
	}
	s := LogSource{Path: file.Name(), Device: uint64(st.Dev), Inode: st.Ino} //nolint:unconvert // uint32 on some platforms
	return s, s.IdentifyHead(file)
}

// IdentifyHead updates the digest to the file's current first bytes, unless the file was rewritten.
func (s *LogSource) IdentifyHead(file io.ReaderAt) error {
	if s.HeadSize == HeadSize {
		return nil
	}
	head, err := readAt(file, 0, HeadSize)
	if err != nil {
		return fmt.Errorf("log file %s: %w", s.Path, err)
	}
	if known := s.HeadSize; int64(len(head)) > known && (known == 0 || digest(head[:known]) == s.Head) {
		s.Head, s.HeadSize = digest(head), int64(len(head))
	}
	return nil
}

// InodeOf returns the inode's identity, and when the inode last changed.
func InodeOf(info os.FileInfo) (s LogSource, at time.Time) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Device, s.Inode = uint64(st.Dev), st.Ino //nolint:unconvert // uint32 on some platforms
		at = changed(st)
	}
	return s, at
}

// SameFile reports whether both have the same inode, which a later file may reuse.
func (s *LogSource) SameFile(o *LogSource) bool { return s.Device == o.Device && s.Inode == o.Inode }

// SameHead reports whether a file has the first bytes of s.
func (s *LogSource) SameHead(file io.ReaderAt) bool {
	head, err := readAt(file, 0, s.HeadSize)
	return err == nil && s.HeadSize > 0 && int64(len(head)) == s.HeadSize && digest(head) == s.Head
}

// Position is the offset in the log that corresponds to the end of a copy of this size.
func (s *LogSource) Position(size int64) int64 { return s.Offset + size - s.Copied }

// readAt reads n bytes, or fewer at the end of the file.
func readAt(r io.ReaderAt, at, n int64) ([]byte, error) {
	p := make([]byte, n)
	m, err := r.ReadAt(p, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return p[:m], err
}

func digest(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}

// Identity distinguishes the part of a log file from all other parts on its machine, even after a
// rotation.
func (s *LogSource) Identity() string {
	if len(s.Earlier) > 0 {
		s = &s.Earlier[0]
	}
	return fmt.Sprintf("%d:%d:%d", s.Device, s.Inode, s.Offset)
}
