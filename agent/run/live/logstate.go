package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// logState is where a follower is between the files that have, had and get the log's
// name. Each look observes the files and decides what to do next.
//
//	following   the open file has the name: it is read
//	finishing   it has the name no more: it is read to its end while it is written
//	superseded  it is an earlier file or a copy of one: it is read to its end
//	missing     what was read is not in the open file any more
//	detached    as finishing, but another follower reads the file that has the name
//
// A file that was read is recognised by its content (passage), so a name or an inode
// may move on at any time. The rotations and how they are handled:
//
//	rename, create       following → finishing → following the new file
//	several renames      … → superseded, for each file between, oldest first → following
//	copytruncate         following → missing → superseded, the copy's rest → following
//	several of these     the same, for each copy
//	before the first     following → superseded, the copy → following
//	byte was read
//	truncated, reused    following → missing → following from the beginning, with a gap
//	mv, sed -i, rsync    following → finishing → following the copy at the same position
//	cp, rsync --inplace  following → missing, while the file is a beginning of what was read
//	cut within its end   following → missing → following after what is left
//	no agent meanwhile   missing at the start; what was read is in the run's directory
//
// What can't be known, such as the content of a removed file, is recorded as a gap.
type logState int

const (
	following logState = iota
	finishing
	superseded
	missing
	detached
)

// candidate is a file that may be read next.
type candidate struct {
	file     *os.File
	named    bool     // it has the log's name; otherwise it is in the same folder
	relation relation // to what was read
	at       int64    // where reading continues
	tail     []byte   // what was read last before at, if it continues
	size     int64
	changed  time.Time // the last write
	number   int       // of rotations since, by its name; 0: unknown
}

// observation is the state of the files at one check.
type observation struct {
	state      logState
	read       bool         // the open file was read to its end
	usage      follow.Usage // of the open file; unknown if not needed
	changed    time.Time    // the last write to it
	kept       bool         // it, a copy or its compressed form still exists in the folder
	compressed bool         // a later file was compressed
	files      []candidate  // oldest first; without files that have nothing new
}

// move is the decision after a check.
type move struct {
	to     *candidate // nil: stay
	detach bool       // the name belongs to another log's file
	state  logState   // in the new file
	gap    string     // why lines before it may be missing
}

// Reasons why lines may be missing.
const (
	gapRemoved    = "the file that was read is gone, and perhaps others that came after it"
	gapTruncated  = "the file was truncated or rewritten, and there is no copy of it"
	gapCompressed = "a file was compressed before it was read"
	gapEdited     = "the file was cut or edited"
)

// decide decides which file is read next. No other code does.
func decide(o *observation) (m move) {
	if o.state == detached || o.state == following || !o.read {
		return move{}
	}
	var named, copied, between *candidate
	for i := range o.files {
		c := &o.files[i]
		switch {
		case c.named:
			named = c
		case c.relation == continues && copied == nil:
			copied = c
		case c.relation == differs && between == nil && !c.changed.Before(o.changed):
			between = c
		}
	}
	gap := ""
	switch {
	case o.compressed:
		gap = gapCompressed
	case o.state == missing && copied == nil:
		gap = gapTruncated
	case o.state != missing && !o.kept:
		gap = gapRemoved
	}
	// Another process may write to the open file. Without /proc, only a later file in the folder
	// shows that the tool has moved on.
	busy := o.state == finishing && o.usage != follow.Unused
	switch {
	case named != nil && named.relation == continues && (!busy || o.usage == follow.Unknown && named.size > named.at):
		return move{to: named}
	case o.state == missing && copied != nil:
		return move{to: copied, state: superseded}
	case o.usage == follow.Written && o.state == finishing, busy && between == nil:
		return move{detach: named != nil && named.relation == differs && named.size > 0}
	case copied != nil && copied.size > copied.at:
		return move{to: copied, state: superseded}
	case between != nil:
		return move{to: between, state: superseded, gap: gap}
	case named == nil || named.relation == prefix || named.size == 0:
		return move{}
	case named.relation == cut || named.relation == edited:
		gap = cmp.Or(gap, gapEdited)
	}
	return move{to: named, gap: gap}
}

// observe checks the open file and, if it was read and may have been rotated, the files that may be
// next. The caller closes the observation.
func (f *logFile) observe(ctx context.Context) (o observation, err error) {
	info, err := f.reader.File().Stat()
	if err != nil {
		return o, fmt.Errorf("log file: %w", err)
	}
	if err := f.reader.Check(); errors.Is(err, follow.ErrRewritten) && f.state != detached {
		f.state = missing
	} else if err != nil {
		return o, err
	}
	now, missed := os.Stat(f.path)
	f.named = missed == nil && os.SameFile(now, info)
	switch {
	case f.state == missing || f.state == detached:
	case f.named:
		f.state = following
	case f.state == following:
		f.state = finishing
	}
	// Only a file with content is entered. If nothing was read of the file and it is empty, it was
	// truncated meanwhile, and its content may be in a copy.
	emptied := f.state == following && f.reader.End() == 0 && info.Size() == 0 && len(f.earlier) > 0
	if emptied {
		f.state = superseded
	}
	if f.state != missing && !emptied {
		f.lastWrite = info.ModTime()
	}
	o.state, o.changed = f.state, f.lastWrite
	o.read = f.state == missing || f.reader.Idle() && f.reader.End() >= info.Size()
	if !o.read || f.state == following || f.state == detached {
		return o, nil
	}
	if f.state == finishing {
		o.usage = f.usageNow()
	}
	s, _ := rundir.InodeOf(info)
	stat, _ := info.Sys().(*syscall.Stat_t)
	o.kept = f.state != missing && stat != nil && stat.Nlink > 0
	if !f.findCandidates(ctx, inode{s.Device, s.Inode}, &o) || f.state != missing && f.reader.Check() != nil {
		o.close(nil)
		o.files, o.read = nil, false // names or contents changed meanwhile: check again
	}
	return o, nil
}

// findCandidates opens the files that may be read next. It returns false if names changed
// meanwhile.
func (f *logFile) findCandidates(ctx context.Context, open inode, o *observation) bool {
	read := f.passage()
	names, packed := follow.Rotated(f.path)
	infos := map[string]os.FileInfo{}
	seen := map[inode]bool{}
	for _, path := range append([]string{f.path}, names...) {
		file, err := follow.OpenFile(path)
		if err != nil {
			continue
		}
		info, err := file.Stat()
		s, _ := rundir.InodeOf(info)
		i := inode{s.Device, s.Inode}
		c := candidate{file: file, named: path == f.path, number: follow.RotationNumber(f.path, path)}
		if err == nil {
			infos[path] = info
			c.size, c.changed = info.Size(), info.ModTime()
		}
		if err != nil || seen[i] || i == open && f.state != missing || f.watcher.logs.reads(i, f) || !f.compare(ctx, &read, &c) {
			file.Close()
		} else {
			o.kept = o.kept || c.relation == continues && !c.named
			o.files = append(o.files, c)
		}
		seen[i] = true
	}
	for _, changed := range packed {
		o.kept = o.kept || changed.Equal(o.changed)
		o.compressed = o.compressed || changed.After(o.changed)
	}
	slices.SortStableFunc(o.files, func(a, b candidate) int { // a file system's clock may tick every 4 ms only
		return cmp.Or(a.changed.Compare(b.changed), cmp.Compare(b.number, a.number))
	})
	again, _ := follow.Rotated(f.path)
	for path, info := range infos {
		if now, err := os.Stat(path); err != nil || !os.SameFile(now, info) || now.Size() < info.Size() {
			return false
		}
	}
	return slices.Equal(names, again)
}

// compare sets the candidate's relation to what was read; false if it has nothing new.
func (f *logFile) compare(ctx context.Context, read *passage, c *candidate) bool {
	reports := func(n int64) bool { // in whole lines: banners repeat, intervals do not
		end, err := lastLineStart(c.file, min(n, follow.DefaultMaxLine))
		if err != nil {
			return false
		}
		parts, err := ingest.SplitLog(ctx, io.NewSectionReader(c.file, 0, end), f.tool, 0, time.Time{})
		return err == nil && slices.ContainsFunc(parts, func(p *ingest.Part) bool { return p.Seconds > 0 || p.Snapshot().Summary != nil })
	}
	c.relation, c.at = read.relate(c.file, c.size, reports)
	c.tail = read.tail
	if c.relation == cut {
		if at, err := lastLineStart(c.file, c.at); err == nil {
			c.at = at
		}
	}
	for i := len(f.earlier) - 1; i >= 0 && c.relation == differs; i-- {
		r, at := f.earlier[i].relate(c.file, c.size, reports)
		if (r == continues || r == prefix) && reports(at) {
			c.relation, c.at, c.tail = r, at, f.earlier[i].tail
			if !c.named {
				return false
			}
		}
	}
	if c.relation != differs { // a file that shares only a few bytes, and no report, may be older
		return c.named || c.relation == continues && (read.end >= blockSize || reports(c.at) || !c.changed.Before(f.lastWrite))
	}
	at, err := follow.FirstData(ctx, c.file, 0)
	if c.at = at; at == c.size {
		c.size = 0 // nothing but NULs: it is being written
	}
	return err == nil && (c.named || at < c.size)
}

// close closes the files except one.
func (o *observation) close(except *os.File) {
	for _, c := range o.files {
		if c.file != except {
			c.file.Close()
		}
	}
}

// passage is what was read of the open file, or before the follower began.
func (f *logFile) passage() passage {
	switch {
	case f.lost != nil:
		return *f.lost
	case f.state == missing:
		from := max(f.position, f.copy.start-f.base)
		return passage{head: f.head, tail: f.reader.Last(), from: from, end: f.reader.End(), content: offsetReader{f.copy, f.base}}
	}
	return passage{head: f.head, tail: f.reader.Last(), end: f.reader.End(), content: f.reader.File()}
}
