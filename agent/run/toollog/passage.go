package toollog

import (
	"bytes"
	"io"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// passage is the part of a file that was read, from its beginning to end. It is recognised in any file that has the
// same content, whatever the file's name and inode.
type passage struct {
	source  rundir.LogSource // has a digest of the first bytes if head is unknown
	head    []byte           // the first bytes, up to rundir.HeadSize
	tail    []byte           // the last bytes, up to blockSize
	from    int64            // content has the bytes from here to end
	end     int64            // 0: nothing was read
	content io.ReaderAt
	inodes  []inode // of the files in which an earlier agent read it
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
	sameHead := p.source.HeadSize == 0 || p.source.SameHead(file)
	if len(p.head) > 0 {
		sameHead = equalAt(file, 0, p.head)
	}
	if sameHead && size >= p.end && equalAt(file, p.end-int64(len(p.tail)), p.tail) {
		return continues
	}
	same := p.common(file, min(size, p.end))
	switch {
	case same == size:
		return beginning
	case same == 0 || !hasReports(same):
		return different
	}
	return altered
}

// common is how many of the first bytes of a file were read, up to size. Bytes that are unknown count as equal if
// those before them are.
func (p *passage) common(file io.ReaderAt, size int64) int64 {
	at := samePrefix(p.head, readUpTo(file, 0, int64(len(p.head))))
	switch {
	case len(p.head) == 0 && p.source.SameHead(file):
		at = p.source.HeadSize
	case at < int64(len(p.head)) || at == 0 && p.from > 0:
		return min(at, size)
	}
	for at = max(at, p.from); at < size; {
		block := readUpTo(p.content, at, min(64<<10, size-at))
		n := samePrefix(block, readUpTo(file, at, int64(len(block))))
		at += n
		if n == 0 || n < int64(len(block)) {
			break
		}
	}
	return min(at, size)
}

// isBefore reports whether a reader that continues after the passage found its last bytes there: the file may have
// been rewritten since it was compared.
func (p *passage) isBefore(r *follow.Reader) bool {
	n := min(len(p.tail), len(r.Last()))
	return bytes.Equal(p.tail[len(p.tail)-n:], r.Last()[len(r.Last())-n:])
}

// withoutContent returns a copy that needs no file.
func (p *passage) withoutContent() passage {
	kept := *p
	if len(kept.tail) == 0 {
		at := max(p.from, p.end-blockSize)
		kept.tail = readUpTo(p.content, at, p.end-at)
	}
	kept.head, kept.tail = bytes.Clone(kept.head), bytes.Clone(kept.tail)
	kept.content, kept.from = nil, kept.end
	return kept
}

// shifted reads content at other offsets: its byte 0 is at base.
type shifted struct {
	content io.ReaderAt
	base    int64
}

func (r shifted) ReadAt(p []byte, at int64) (int, error) { return r.content.ReadAt(p, r.base+at) }

// readUpTo reads n bytes, or fewer at the end of the file.
func readUpTo(r io.ReaderAt, at, n int64) []byte {
	if r == nil || n <= 0 {
		return nil
	}
	p := make([]byte, n)
	m, _ := r.ReadAt(p, at) // an error counts as the end
	return p[:m]
}

func equalAt(file io.ReaderAt, at int64, want []byte) bool {
	return bytes.Equal(readUpTo(file, at, int64(len(want))), want)
}

func samePrefix(a, b []byte) int64 {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return int64(n)
}
