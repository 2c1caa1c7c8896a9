package toollog

import (
	"bytes"
	"io/fs"
	"os"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// runEntry is a run that was found in a log, and the files that it was in.
type runEntry struct {
	id, path string
	inodes   []inode
}

// recordedRun is a run that was found in a log, read from its directory.
type recordedRun struct {
	dir  rundir.Directory
	meta rundir.Meta
	size int64 // of the copy of its output
}

// maxRecorded bounds how many runs of a log are remembered.
const maxRecorded = 20

// Add adds a run that was found in a log. Runs are added in the order of their begin.
func (s *Set) Add(m *rundir.Meta) {
	e := runEntry{id: m.ID, path: m.Log.Path}
	for _, from := range append(slices.Clone(m.Log.Earlier), *m.Log) {
		e.inodes = append(e.inodes, inode{from.Device, from.Inode})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded = append(s.recorded, e)
	count, oldest := 0, 0
	for i, other := range slices.Backward(s.recorded) {
		if other.path == e.path {
			count, oldest = count+1, i
		}
	}
	if count > maxRecorded {
		s.recorded = slices.Delete(s.recorded, oldest, oldest+1)
	}
}

// recordedRuns returns the newest runs of a log, newest first: those with its path, and those whose last bytes are
// in the file with the inode. From now on these have its path: the file got another name.
func (s *Set) recordedRuns(path string, i inode) (runs []*recordedRun) {
	for _, e := range slices.Backward(s.entries()) {
		if e.path != path && !slices.Contains(e.inodes, i) {
			continue
		}
		r, err := s.loadRecorded(e.id)
		if err == nil && (e.path == path || r.isIn(path)) { // else it was removed
			runs = append(runs, r)
			s.rename(e.id, path)
		}
	}
	return runs
}

// isRecorded reports whether a file is one in which a run was found.
func (s *Set) isRecorded(path string) bool {
	info, err := os.Stat(path)
	return err == nil && slices.ContainsFunc(s.entries(), func(e runEntry) bool { return slices.Contains(e.inodes, inodeOf(info)) })
}

func (s *Set) rename(id, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.recorded, func(e runEntry) bool { return e.id == id }); i >= 0 {
		s.recorded[i].path = path
	}
}

func (s *Set) entries() []runEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.recorded)
}

func (s *Set) loadRecorded(id string) (*recordedRun, error) {
	r := &recordedRun{dir: rundir.At(s.opts.DataDir, id)}
	var err error
	if r.meta, err = r.dir.Load(); err != nil {
		return nil, err
	}
	if r.meta.Log == nil || !r.dir.MayFollowLog() {
		return nil, fs.ErrNotExist
	}
	info, err := os.Lstat(r.dir.Path(rundir.StdoutFile))
	if err != nil {
		return nil, err
	}
	r.size = info.Size()
	return r, nil
}

// restore sets where a follower continues, from the runs that earlier agents and followers found in the log. Older
// runs that had not ended are ended with what was read of them. i is the inode of the file that has the log's name.
func (s *Set) restore(f *follower, i inode) {
	runs := s.recordedRuns(f.path, i)
	for at, r := range slices.Backward(runs) {
		f.skipOld = false
		f.earlier = lastOf(append(f.earlier, r.passages(f.earlier)...), maxEarlier)
		switch {
		case r.meta.Ended():
		case at == 0:
			f.runs.resume = r
		default:
			s.end(r)
		}
	}
	if len(f.earlier) == 0 {
		return
	}
	last := &f.earlier[len(f.earlier)-1]
	for _, from := range []*rundir.LogSource{&last.source, runs[0].meta.Log} { // nothing may have been read of the newest
		last.inodes = append(last.inodes, inode{from.Device, from.Inode})
	}
	if info, err := os.Stat(runs[0].dir.Path(rundir.StdoutFile)); err == nil {
		f.lastWrite, f.lastRead = info.ModTime(), info.ModTime()
	}
}

// end ends a run with what was read of it. Whoever tracks ended runs reads its output and closes it.
func (s *Set) end(r *recordedRun) {
	_, err := r.dir.Update(func(m *rundir.Meta) {
		if m.Ended() {
			return
		}
		end := r.dir.LastWrite(m.StartedAt, m.Axis(clock.System).Ahead())
		m.EndedAt = &end
		m.Log.End = m.Log.Position(r.size)
		m.Conclude(rundir.Output{}) // until its output is read
	})
	if err != nil {
		s.report(r.meta.Log.Path, "can't end a run of the log", err)
	}
	s.opts.Tracker.Ended()
}

// followMoved follows the logs of runs that had not ended when an earlier agent stopped and whose files were
// renamed or are gone.
func (s *Set) followMoved() {
	for _, e := range slices.Backward(s.entries()) {
		r, err := s.loadRecorded(e.id)
		if s.follower(e.path) != nil || err != nil || r.meta.Ended() {
			continue
		}
		m := &r.meta
		if t := s.opts.Tools().ByName(m.Tool); t != nil {
			f := s.newFollower(e.path, Log{e.path, m.Tool, m.Labels, m.Selection, m.Generator}, t)
			s.add(f, inode{})
			s.start(f)
		}
	}
}

// passages returns what was read for the run, the newest file last. before is what was read of the log before.
func (r *recordedRun) passages(before []passage) (all []passage) {
	own, err := rundir.Open(r.dir.Path(rundir.StdoutFile))
	if err != nil {
		return nil
	}
	defer own.Close()
	last := *r.meta.Log
	last.End = last.Position(r.size)
	for _, from := range append(slices.Clone(last.Earlier), last) {
		if from.End < from.Offset || from.End == from.Offset && from.Gap != string(fileEdited) {
			continue
		}
		begin := from.Copied - from.Offset // of the file in the copy
		p := passage{source: from, end: from.End}
		p.tail = readUpTo(own, begin+max(from.Offset, from.End-blockSize), min(from.End-from.Offset, blockSize))
		p.findHead(readUpTo(own, from.Copied, min(from.End, rundir.HeadSize)-from.Offset), append(slices.Clone(before), all...))
		all = append(all, p)
	}
	return all
}

// findHead sets the first bytes of a file from those that the run's copy has, read. Those before are a hole or were
// read for an earlier run; the digest shows which.
func (p *passage) findHead(read []byte, before []passage) {
	offset := min(p.source.Offset, rundir.HeadSize)
	starts := [][]byte{make([]byte, offset)}
	for _, earlier := range before {
		starts = append(starts, earlier.head[:min(int64(len(earlier.head)), offset)])
	}
	for _, start := range starts {
		head := start
		if int64(len(start)) == p.source.Offset {
			head = slices.Concat(start, read)
		}
		if offset == 0 || p.source.SameHead(bytes.NewReader(head)) {
			p.head = head
			return
		}
	}
}

// isIn reports whether a file has all that was read for the run.
func (r *recordedRun) isIn(path string) bool {
	file, err := follow.OpenFile(path)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	read := r.passages(nil)
	if err != nil || len(read) == 0 {
		return false
	}
	return read[len(read)-1].relate(file, info.Size(), func(int64) bool { return false }) == continues
}
