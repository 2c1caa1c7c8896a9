// Package generator runs the generators of a group and follows them. It starts them on other
// machines, mirrors their run directories while they are written, and combines their output into
// the journal in the group's own run directory.
package generator

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/run/group"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// pollInterval is the interval for reading the generators' files.
	pollInterval = 100 * time.Millisecond
	// readAtOnce is the maximum number of bytes read from a file at once, and so the maximum length
	// of a line.
	readAtOnce = 1 << 20
	// startPatience is how long a generator without a run is awaited after the others have ended.
	startPatience = 30 * time.Second
)

// Follower combines the runs of a group's generators, which are in the group's data directory, into
// the group's run. At most one follower works for a group at a time.
type Follower struct {
	Dir rundir.Directory
	Log *slog.Logger
	// OnStart, if not nil, is called when the tools of all generators have started.
	OnStart func(*rundir.Group)

	patience time.Duration // 0: startPatience

	known   bool // OnStart was called
	meta    rundir.Meta
	journal *os.File
	members []*member
	in, out []byte // buffers for reading and for writing
}

// member is a generator as recorded in the journal.
type member struct {
	number         int
	dir            rundir.Directory
	stat           os.FileInfo // of run.json when it was last read
	meta           rundir.Meta
	found          bool
	started, ended bool
	late           bool
	problem        string // why its run can't be read; empty if it can be read
	outputs        [2]*output
	reported       time.Time // time of its last output
}

// output is one of a generator's two outputs. lines is the number of lines in the journal, offset
// the place where the next one begins.
type output struct {
	name   string
	mark   group.Mark
	lines  int
	offset int64
	placed bool // offset is known
}

// ErrFollowed is returned by Run if another process combines the group.
var ErrFollowed = errors.New("another process follows the group")

// Run combines the runs until all have ended or ctx is done. It continues where an earlier process
// stopped, even if that was killed.
func (f *Follower) Run(ctx context.Context) error {
	if f.Log == nil {
		f.Log = slog.New(slog.DiscardHandler)
	}
	lock, err := f.Dir.Lock(rundir.ToolLock, false)
	if errors.Is(err, rundir.ErrLocked) {
		return ErrFollowed
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if f.meta, err = f.Dir.Load(); err != nil {
		return err
	}
	if !f.meta.IsGroup() {
		return fmt.Errorf("run %s is no group", f.Dir.ID())
	}
	if f.meta.IsCopy() {
		return fmt.Errorf("group %s is recorded by %s", f.Dir.ID(), f.meta.Mirror.Host)
	}
	if f.meta.Ended() {
		return nil
	}
	if err := f.resume(); err != nil {
		return fmt.Errorf("read the journal of group %s: %w", f.Dir.ID(), err)
	}
	defer f.journal.Close()
	var silent time.Time // since when only generators without a run are missing
	for {
		over, absent, err := f.step()
		if err != nil { // such as a full disk: retried
			f.Log.Error("can't follow the group", "group", f.Dir.ID(), "err", err)
		}
		if !over {
			silent = time.Time{}
		} else if silent.IsZero() {
			silent = time.Now()
		}
		if over && err == nil && (!absent || time.Since(silent) > cmp.Or(f.patience, startPatience)) {
			err := f.conclude()
			if err == nil {
				return nil
			}
			f.Log.Error("can't record the end of the group", "group", f.Dir.ID(), "err", err)
		}
		if err := clock.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// resume reads how much of each generator is in the journal, and removes an incomplete last line.
func (f *Follower) resume() error {
	f.members = nil
	for i := range f.meta.Group.Generators {
		m := &member{number: i + 1, reported: time.Now()}
		m.dir = f.Dir.Sibling(rundir.GeneratorID(f.meta.Group.Name, i+1))
		m.outputs = [2]*output{{name: rundir.StdoutFile, mark: group.Stdout}, {name: rundir.StderrFile, mark: group.Stderr}}
		f.members = append(f.members, m)
	}
	var err error
	if f.journal, err = f.Dir.OpenOutput(rundir.StdoutFile); err != nil {
		return err
	}
	old, err := rundir.Open(f.Dir.Path(rundir.StdoutFile))
	if err != nil {
		return err
	}
	defer old.Close()
	info, err := old.Stat()
	if err != nil {
		return err
	}
	lines := follow.NewScanner(old, 0, info.Size())
	for {
		line, err := lines.Next(context.Background()) // up to the end of a file on this machine
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case line.Unterminated:
			return f.journal.Truncate(line.Offset)
		}
		f.applyWritten(line.Text)
	}
}

// applyWritten applies a line that is already in the journal.
func (f *Follower) applyWritten(line []byte) {
	n, mark, text, ok := group.Split(line)
	if !ok || n > len(f.members) {
		return
	}
	m := f.members[n-1]
	switch {
	case mark == group.Stdout:
		m.outputs[0].lines++
	case mark == group.Stderr:
		m.outputs[1].lines++
	case string(text) == group.End:
		m.ended = true
	case bytes.HasPrefix(text, []byte(group.Start)):
		m.started = true
	}
}

// step reads new data. over: all generators with a run have ended. absent: some generators have no
// readable run. The error concerns the group's own run.
func (f *Follower) step() (over, absent bool, err error) {
	over = true
	f.out = f.out[:0]
	var ended []*member
	for _, m := range f.members {
		if m.ended {
			if !m.found {
				_ = f.reload(m) // the journal has all of it
			}
			continue
		}
		complete, err := f.read(m)
		switch {
		case err != nil: // of this generator only: the others continue
			if m.problem != err.Error() {
				f.Log.Error("can't read the run of a generator", "group", f.Dir.ID(), "run", m.dir.ID(), "err", err)
			}
			m.problem, absent = err.Error(), true
		case !m.found:
			absent = true
		case complete && m.meta.Closed():
			f.out = group.AppendLine(f.out, m.number, group.Control, []byte(group.End))
			ended = append(ended, m)
			continue
		default:
			m.problem, over = "", false
		}
		f.markLate(m)
	}
	if len(f.out) > 0 {
		if err := f.write(); err != nil {
			return false, false, err
		}
	}
	for _, m := range ended {
		m.ended = true
	}
	return over, absent, f.record()
}

// write appends to the journal. After an error the complete lines in the file are the state.
func (f *Follower) write() error {
	_, err := f.journal.Write(f.out)
	if err != nil {
		f.journal.Close()
		err = errors.Join(err, f.resume())
	}
	return err
}

// reload reads a generator's run.json if it has changed.
func (f *Follower) reload(m *member) error {
	info, err := os.Lstat(m.dir.Path(rundir.MetaFile))
	if err == nil && m.found && os.SameFile(info, m.stat) && info.ModTime().Equal(m.stat.ModTime()) && info.Size() == m.stat.Size() {
		return nil
	}
	m.found = false
	meta, err := m.dir.Load()
	switch g := meta.Group; {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case g == nil || g.Name != f.meta.Group.Name || g.Generator != m.number:
		return fmt.Errorf("run %s is not generator %d of group %s", m.dir.ID(), m.number, f.meta.Group.Name)
	case !f.Dir.MayShow(m.dir):
		return fmt.Errorf("run %s belongs to another user than group %s", m.dir.ID(), f.meta.Group.Name)
	}
	m.found, m.stat, m.meta = true, info, meta
	return nil
}

// read adds a generator's new lines to f.out. complete: its outputs were read to their ends.
func (f *Follower) read(m *member) (complete bool, err error) {
	if err := f.reload(m); err != nil || !m.found {
		return false, err
	}
	if !m.started && (m.meta.PID != 0 || m.meta.Ended() && !m.meta.EndedBeforeStart()) {
		f.out = group.AppendStart(f.out, m.number, f.startSeconds(m))
		m.started, m.reported = true, time.Now()
	}
	complete = true
	for _, o := range m.outputs {
		whole, err := f.readOutput(m, o)
		if err != nil {
			return false, err
		}
		complete = complete && whole
	}
	return complete && m.meta.Ended(), nil
}

// startSeconds returns how many seconds after the group a generator's tool started, by this
// machine's clock.
func (f *Follower) startSeconds(m *member) float64 {
	seconds := m.meta.StartedAt.Sub(f.meta.StartedAt).Seconds()
	if at := m.number - 1; at < len(f.meta.Group.Members) {
		if offset := f.meta.Group.Members[at].ClockOffsetSeconds; offset != nil {
			seconds -= *offset
		}
	}
	return seconds
}

// readOutput adds the new complete lines of one output and, after the end of the run, a last line
// without a line end. whole: everything was read.
func (f *Follower) readOutput(m *member, o *output) (whole bool, err error) {
	file, err := rundir.Open(m.dir.Path(o.name))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	if !o.placed {
		if o.offset, err = afterLines(file, o.lines); err != nil {
			return false, err
		}
		o.placed = true
	}
	if f.in == nil {
		f.in = make([]byte, readAtOnce)
	}
	n, err := file.ReadAt(f.in, o.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	buf := f.in[:n]
	for len(buf) > 0 {
		line, rest, found := bytes.Cut(buf, []byte("\n"))
		if !found && n < readAtOnce && !m.meta.Ended() {
			break // still being written
		}
		if !found && n == readAtOnce && len(line) < readAtOnce {
			break // next time
		}
		f.out = group.AppendLine(f.out, m.number, o.mark, clip(follow.Text(line)))
		size := int64(len(line))
		if found {
			size++
		}
		o.offset, o.lines, buf = o.offset+size, o.lines+1, rest
		m.reported, m.late = time.Now(), false
	}
	return n < readAtOnce && len(buf) == 0, nil
}

// clip shortens a line so that readers do not cut it.
func clip(line []byte) []byte { return line[:min(len(line), follow.DefaultMaxLine-16)] }

// afterLines returns the offset after the first n lines of a file. The last one may have no line end.
func afterLines(file *os.File, n int) (at int64, err error) {
	lines := follow.NewScanner(file, 0, math.MaxInt64)
	for range n {
		line, err := lines.Next(context.Background()) // up to the end of a file on this machine
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		at = line.Offset + line.Size
	}
	return at, nil
}

// markLate marks a generator that has not printed for long while others have, so that their intervals
// do not wait for it.
func (f *Follower) markLate(m *member) {
	interval := max(f.meta.ReportIntervalSeconds, m.meta.ReportIntervalSeconds)
	if m.late || interval <= 0 {
		return
	}
	patience := time.Duration((2*interval + 0.5) * float64(time.Second))
	for _, other := range f.members {
		if other.started && other.reported.Sub(m.reported) > patience {
			m.late = true
			f.out = group.AppendLine(f.out, m.number, group.Control, []byte(group.Late))
			return
		}
	}
}

// record writes new facts about the generators to run.json.
func (f *Follower) record() error {
	changed := false
	for _, m := range f.members {
		known := rundir.Member{}
		if at := m.number - 1; at < len(f.meta.Group.Members) {
			known = f.meta.Group.Members[at]
		}
		changed = changed || m.started && m.found && known.StartSeconds == nil || m.ended && m.found && known.Outcome == ""
	}
	if !changed {
		return nil
	}
	meta, err := f.Dir.Update(func(meta *rundir.Meta) {
		if len(meta.Group.Members) < meta.Group.Generators {
			meta.Group.Members = append(meta.Group.Members, make([]rundir.Member, meta.Group.Generators-len(meta.Group.Members))...)
		}
		for _, m := range f.members {
			if !m.found {
				continue
			}
			o := &meta.Group.Members[m.number-1]
			if m.started && o.StartSeconds == nil {
				seconds := f.startSeconds(m)
				o.StartSeconds = &seconds
			}
			if m.ended {
				o.Outcome, o.Reason = m.meta.Outcome, m.meta.Reason
			}
		}
	})
	if err != nil {
		return err
	}
	f.meta = meta
	if f.OnStart != nil && !f.known && len(meta.Group.Members) > 0 &&
		!slices.ContainsFunc(meta.Group.Members, func(m rundir.Member) bool { return m.StartSeconds == nil }) {
		f.known = true
		f.OnStart(meta.Group)
	}
	return nil
}

// conclude records the end of the group.
func (f *Follower) conclude() error {
	_, err := f.Dir.Update(func(meta *rundir.Meta) {
		end, code := meta.StartedAt, 0
		for _, m := range f.members {
			if at := m.number - 1; (m.problem != "" || !m.found) && at < len(meta.Group.Members) {
				meta.Group.Members[at].Leave(m.problem)
				code = max(code, 1)
				continue
			}
			if m.meta.EndedAt != nil {
				last := m.meta.EndedAt.Add(-time.Duration((m.meta.StartedAt.Sub(f.meta.StartedAt).Seconds() - f.startSeconds(m)) * float64(time.Second)))
				if last.After(end) {
					end = last
				}
			}
			if m.meta.ExitCode != nil && *m.meta.ExitCode != 0 {
				code = *m.meta.ExitCode
			}
			if m.meta.Outcome != rundir.Succeeded && code == 0 {
				code = 1
			}
		}
		end = end.UTC()
		meta.EndedAt, meta.ExitCode = &end, &code
		meta.Conclude(rundir.Output{})
	})
	return err
}
