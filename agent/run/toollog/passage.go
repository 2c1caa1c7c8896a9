package toollog

import (
	"bytes"
	"io"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// passage is the part of a file that was read, from its beginning to end. It is recognised in any file that has the
// same first and last bytes, whatever the file's name and inode.
type passage struct {
	source rundir.LogSource // has a digest of the first bytes if head is unknown
	head   []byte           // the first bytes, up to rundir.HeadSize
	tail   []byte           // the last bytes, up to blockSize
	end    int64            // 0: nothing was read
	inodes []inode          // of the files in which an earlier agent read it
}

// relation is how a file relates to a passage.
type relation int

const (
	different relation = iota
	continues          // the file has all that was read
	beginning          // what the file has was read: it is being written again, or another file begins with the same lines
	altered            // the file begins with reports that were read, and then differs
)

// blockSize is how many bytes before a position are compared.
const blockSize = 1 << 10

// relate compares a file with the passage. hasReports returns whether the first n bytes of the file have a report:
// banners repeat, reports do not.
func (p *passage) relate(file io.ReaderAt, size int64, hasReports func(n int64) bool) relation {
	if p.end == 0 {
		return different
	}
	head := int64(len(p.head))
	same := samePrefix(p.head, readUpTo(file, 0, head))
	if head == 0 {
		if head = p.source.HeadSize; p.source.SameHead(file) {
			same = head
		}
	}
	switch {
	case same == head && size >= p.end && bytes.Equal(readUpTo(file, p.end-int64(len(p.tail)), int64(len(p.tail))), p.tail):
		return continues
	case same == min(head, size) && size < p.end:
		return beginning
	case same == 0 || !hasReports(same):
		return different
	}
	return altered
}

// isBefore reports whether a reader that continues after the passage found its last bytes there: the file may have
// been rewritten since it was compared.
func (p *passage) isBefore(r *follow.Reader) bool {
	n := min(len(p.tail), len(r.Last()))
	return bytes.Equal(p.tail[len(p.tail)-n:], r.Last()[len(r.Last())-n:])
}

// readUpTo reads n bytes, or fewer at the end of the file.
func readUpTo(r io.ReaderAt, at, n int64) []byte {
	p := make([]byte, max(0, n))
	m, _ := r.ReadAt(p, at) // an error counts as the end
	return p[:m]
}

func samePrefix(a, b []byte) int64 {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return int64(n)
}
