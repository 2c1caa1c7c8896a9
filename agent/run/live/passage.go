package live

import (
	"bytes"
	"io"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// passage is the part of a file that was read, from its beginning to end. Another file with the
// same content is recognised whatever its name and inode.
type passage struct {
	source  rundir.LogSource // has a digest of the first bytes if head is unknown
	head    []byte           // the first bytes, up to rundir.HeadSize
	tail    []byte           // the last bytes
	from    int64            // content has the bytes from here to end
	end     int64
	content io.ReaderAt
}

// relation is how a file relates to a passage.
type relation int

const (
	// differs: nothing identifies a run.
	differs relation = iota
	// continues: the file has the whole passage.
	continues
	// prefix: the file is a beginning of the passage. Either it is being restored or a new file
	// begins with the same lines; the following bytes decide.
	prefix
	// cut: the file shares a beginning that has reports, and is shorter than the passage.
	cut
	// edited: the file shares a beginning that has reports, but is not shorter.
	edited
)

// blockSize is how many bytes are compared before a position.
const blockSize = 1 << 10

// relate compares a file of the given size with the passage and returns where to continue reading.
// reports returns whether the first n bytes of the file contain a report.
func (p *passage) relate(file io.ReaderAt, size int64, reports func(n int64) bool) (relation, int64) {
	n := min(size, p.end)
	switch {
	case p.end == 0:
		return differs, 0
	case !p.sameHead(file, n) || !p.sameBlock(file, n) || !p.sameHole(file, n):
	case n == p.end:
		return continues, n
	default:
		return prefix, n
	}
	same := p.common(file, size)
	switch {
	case same == 0 || !reports(same):
		return differs, 0
	case size < p.end:
		return cut, same
	}
	return edited, size
}

// sameHead reports whether the first n bytes are equal, as far as they are known.
func (p *passage) sameHead(file io.ReaderAt, n int64) bool {
	if len(p.head) > 0 {
		return equalAt(file, 0, p.head[:min(n, int64(len(p.head)))])
	}
	return p.source.HeadSize == 0 || p.source.SameHead(file)
}

// sameBlock reports whether the bytes before n are equal. Bytes that can't be compared count as
// equal if the whole head is known.
func (p *passage) sameBlock(file io.ReaderAt, n int64) bool {
	at := max(p.from, n-blockSize)
	switch block := p.before(n); {
	case n == p.end && len(p.tail) > 0:
		return equalAt(file, n-int64(len(block)), block)
	case at >= n:
		known := int64(len(p.head))
		if known == 0 {
			known = p.source.HeadSize
		}
		return n <= known || max(known, p.source.HeadSize) == rundir.HeadSize
	default:
		return int64(len(block)) == n-at && equalAt(file, at, block)
	}
}

// before returns the bytes before n, as far as they are known.
func (p *passage) before(n int64) []byte {
	if n == p.end && len(p.tail) > 0 {
		return p.tail
	}
	at := max(p.from, n-blockSize)
	return readUpTo(p.content, at, n-at)
}

// sameHole reports whether the file's first data are at n if nothing but NULs is known before it. A writer without
// O_APPEND leaves them after each truncation, so many files begin with them: only where they end tells the files apart.
func (p *passage) sameHole(file io.ReaderAt, n int64) bool {
	if !isBlank(p.head) || !isBlank(p.before(n)) || len(p.head) == 0 && (p.source.HeadSize == 0 || !p.source.SameHead(nuls{})) {
		return true
	}
	around := readUpTo(file, n-1, 2)
	return len(around) > 0 && around[0] == 0 && (len(around) == 1 || around[1] != 0)
}

func isBlank(text []byte) bool { return len(bytes.TrimLeft(text, "\x00")) == 0 }

// nuls is a file that has nothing else.
type nuls struct{}

func (nuls) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

// common is how many bytes at the start of a file are equal.
func (p *passage) common(file io.ReaderAt, size int64) int64 {
	known := int64(len(p.head))
	same := samePrefix(p.head, readUpTo(file, 0, known))
	if known == 0 && p.source.SameHead(file) {
		same = p.source.HeadSize
	}
	if same < known || same == 0 && p.from > 0 {
		return same
	}
	at := max(same, p.from)
	for at < min(size, p.end) {
		block := readUpTo(p.content, at, min(64<<10, p.end-at))
		k := samePrefix(block, readUpTo(file, at, int64(len(block))))
		at += k
		if k == 0 || k < int64(len(block)) {
			break
		}
	}
	return min(at, size, p.end)
}

// follows reports whether a reader that continues after tail found these bytes there: the file may
// have been truncated and written again since it was compared.
func follows(r *follow.Reader, tail []byte) bool {
	n := min(len(tail), len(r.Last()))
	return bytes.Equal(tail[len(tail)-n:], r.Last()[len(r.Last())-n:])
}

// keep returns the passage without its content.
func (p *passage) keep() passage {
	kept := *p
	if len(kept.tail) == 0 {
		at := max(p.from, p.end-blockSize)
		kept.tail = readUpTo(p.content, at, max(0, p.end-at))
	}
	kept.head, kept.tail = bytes.Clone(kept.head), bytes.Clone(kept.tail)
	kept.content, kept.from = nil, kept.end
	return kept
}

// offsetReader reads content at shifted offsets: its byte 0 is at base.
type offsetReader struct {
	content io.ReaderAt
	base    int64
}

func (r offsetReader) ReadAt(p []byte, at int64) (int, error) {
	return r.content.ReadAt(p, r.base+at)
}

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
