package toollog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// entry is a file that may be read next.
type entry struct {
	inode
	path       string
	named      bool // it has the log's name; otherwise it is named like a rotated file
	compressed bool
	size       int64
	changed    time.Time // the last write
	rotations  int       // since it had the name, by its name now; 0: unknown

	// Set by compare.
	file     *os.File
	relation relation // to what was read
	gap      gap      // before the file
	at       int64    // where to continue
	first    []byte   // what is there if nothing of the file was read, up to blockSize
}

// errChanged means that names or contents changed during a check.
var errChanged = errors.New("the files changed meanwhile")

// listFiles returns the log's files, oldest first. If a file has the log's name, it is the last.
func listFiles(path string) ([]entry, error) {
	now, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	beside, err := follow.Rotated(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var files []entry
	for _, r := range beside {
		if now == nil || !os.SameFile(now, r.Info) { // else it is the log under two names
			e := newEntry(r.Path, r.Info)
			e.compressed, e.rotations = r.Compressed, follow.RotationNumber(path, r.Path)
			files = append(files, e)
		}
	}
	slices.SortStableFunc(files, func(a, b entry) int { // a file system's clock may tick every 4 ms only
		return cmp.Or(a.changed.Compare(b.changed), cmp.Compare(b.rotations, a.rotations))
	})
	if now != nil && now.Mode().IsRegular() {
		e := newEntry(path, now)
		e.named = true
		files = append(files, e)
	}
	return files, nil
}

func newEntry(path string, info fs.FileInfo) entry {
	return entry{inode: inodeOf(info), path: path, size: info.Size(), changed: info.ModTime()}
}

// search finds the file to read next, after all of the open one was read; nil without one. The caller closes the
// entry's file. The error is errChanged if the files changed meanwhile.
func (f *follower) search(ctx context.Context) (next *entry, err error) {
	files, err := listFiles(f.path)
	if err == nil {
		next, err = f.choose(ctx, files)
	}
	if err == nil && next != nil {
		var again []entry
		again, err = listFiles(f.path)
		same := slices.EqualFunc(files, again, func(a, b entry) bool {
			return a.inode == b.inode && a.path == b.path && a.size <= b.size
		})
		if err == nil && (!same || f.open != nil && f.open.reader.Check() != nil) {
			err = errChanged
		}
	}
	if err != nil {
		next = nil
	}
	for i := range files {
		if e := &files[i]; e != next && e.file != nil {
			e.file.Close()
		}
	}
	return next, err
}

// choose decides which of the files is next: the rest of a copy of what was read, or the first file after it that has
// something. After a loss only the file that has the log's name is certain not to have been read.
func (f *follower) choose(ctx context.Context, files []entry) (*entry, error) {
	read := f.passage()
	first, missing, err := f.place(ctx, files, &read)
	for i := first; i < len(files) && err == nil; i++ {
		e := &files[i]
		if e.compressed && missing == "" {
			missing = fileCompressed
		}
		if e.compressed || missing != "" && !e.named || f.set.isRead(e.inode, f) {
			continue
		}
		err = f.compare(ctx, e, &read)
		switch {
		case err != nil:
		case e.named && e.relation == continues:
			return e, nil
		case e.named && e.relation == altered:
			e.gap = fileEdited
			return e, nil
		case e.relation != beginning && e.relation != altered && e.size > e.at:
			e.gap = missing
			return e, nil
		}
	}
	return nil, err
}

// place returns the index of the first file that may be next, and why lines before it may be missing. What was read is
// in the open file, else in the oldest copy of it, else in a compressed file with the same time.
func (f *follower) place(ctx context.Context, files []entry, read *passage) (int, gap, error) {
	if f.open != nil {
		if i := slices.IndexFunc(files, func(e entry) bool { return e.inode == f.open.inode() }); i >= 0 {
			return i + 1, "", nil
		}
	}
	if read.end == 0 { // a new log
		if n := len(files); n > 0 && files[n-1].named {
			return n - 1, "", nil
		}
		return len(files), "", nil
	}
	for i := range files {
		e := &files[i]
		if e.compressed || f.set.isRead(e.inode, f) {
			continue
		}
		if err := f.compare(ctx, e, read); err != nil {
			return 0, "", err
		}
		// An older file may begin with the same few bytes.
		isSure := e.named || e.at >= blockSize || slices.Contains(read.inodes, e.inode) || !e.changed.Before(f.lastWrite)
		if e.relation == continues && (isSure || f.hasReports(ctx, e.file, e.at)) {
			return i, "", nil
		}
	}
	if f.open == nil {
		return 0, fileTruncated, nil
	}
	if i := slices.IndexFunc(files, func(e entry) bool { return e.compressed && e.changed.Equal(f.lastWrite) }); i >= 0 {
		return i + 1, "", nil
	}
	return 0, fileRemoved, nil
}

// compare opens a file and relates it to what was read.
func (f *follower) compare(ctx context.Context, e *entry, read *passage) (err error) {
	if e.file != nil {
		return nil
	}
	if e.file, err = follow.OpenFile(e.path); errors.Is(err, fs.ErrNotExist) {
		return errChanged
	} else if err != nil {
		return err
	}
	info, err := e.file.Stat()
	if err != nil {
		return err
	}
	if inodeOf(info) != e.inode || info.Size() < e.size {
		return errChanged
	}
	e.size, e.changed = info.Size(), info.ModTime()
	hasReports := func(n int64) bool { return f.hasReports(ctx, e.file, n) }
	e.relation = read.relate(e.file, e.size, hasReports)
	for i := range f.earlier {
		earlier := &f.earlier[i]
		if e.relation == different && earlier.relate(e.file, e.size, hasReports) != different && hasReports(min(e.size, earlier.end)) {
			e.relation = altered // an earlier file has returned
		}
	}
	switch e.relation {
	case continues:
		e.at = read.end
	case beginning, altered:
		e.at = e.size
	case different:
		if e.at, err = follow.FirstData(ctx, e.file, 0); e.at == e.size {
			e.at, e.size = 0, 0 // nothing but NULs: it is being written
		}
		e.first = readUpTo(e.file, e.at, min(blockSize, e.size-e.at))
	}
	return err
}

// hasReports reports whether the first n bytes of a file have a report of the tool in a whole line.
func (f *follower) hasReports(ctx context.Context, file *os.File, n int64) bool {
	end, err := lastLineStart(file, min(n, follow.DefaultMaxLine))
	if err != nil {
		return false
	}
	parts, err := ingest.SplitLog(ctx, io.NewSectionReader(file, 0, end), f.runs.tool, 0, time.Time{})
	return err == nil && slices.ContainsFunc(parts, func(p *ingest.Part) bool {
		return p.Seconds > 0 || p.Snapshot().Summary != nil
	})
}

// lastLineStart is the offset after the last complete line before size.
func lastLineStart(file io.ReaderAt, size int64) (int64, error) {
	tail := make([]byte, min(size, 64<<10))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return 0, fmt.Errorf("log file: %w", err)
	}
	return size - int64(len(tail)) + int64(bytes.LastIndexByte(tail, '\n')+1), nil
}

// inode identifies a file of this machine.
type inode struct{ device, number uint64 }

func inodeOf(info fs.FileInfo) inode {
	s, _ := rundir.InodeOf(info)
	return inode{s.Device, s.Inode}
}

// source is the file that is read.
type source struct {
	reader   *follow.Reader
	id       rundir.LogSource
	head     []byte   // the file's first bytes, as far as they were read
	start    int64    // where reading began
	base     int64    // where the file's first byte is in the stream
	relation relation // to what was read before, when it was opened
	// isFinished: it was found as a rotated file, so the tool does not write it.
	isFinished bool
}

func (s *source) inode() inode { return inode{s.id.Device, s.id.Inode} }

// identify updates the digest of the file's first bytes.
func (s *source) identify() { _ = s.id.IdentifyHead(bytes.NewReader(s.head)) } // reads from memory

// isUsed reports whether anything was read of the file, or is not to be read because it was read before.
func (s *source) isUsed() bool { return s.reader.End() > s.start || s.relation == altered }
