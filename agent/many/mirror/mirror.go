// Package mirror copies run directories from other machines while they are recorded. It contains
// the protocol for requesting new data, the copy of one run, and the Copier, which keeps the copies
// of all runs of a machine.
package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// copyLock is held while data is added to a copy.
const copyLock = ".mirror.lock"

// maxRun is the maximum total size of a copy's files in bytes: weeks of any tool.
const maxRun = 4 << 30

// Errors of Update.
var (
	// ErrForeign is returned for a different run with the same id.
	ErrForeign = errors.New("is another run of the same id")
	// ErrGone is returned for a run that no longer exists on the other machine.
	ErrGone = errors.New("was removed there")
	// ErrReplaced is returned for a file that changed in other ways than by appending.
	ErrReplaced = errors.New("was replaced there")
	// ErrRefused is returned for content that no run has, or too much of it.
	ErrRefused = errors.New("is refused")
	// ErrMoved is returned if another process added data to the copy meanwhile.
	ErrMoved = errors.New("has changed meanwhile")
)

// Mirror is a copy of a run that another machine records. Its content is enough to resume it: files
// only grow, and run.json, which comes last, is replaced atomically.
type Mirror struct {
	Dir rundir.Directory
	// From is recorded in the copy's run.json.
	From rundir.Mirror
	// Files are the names of the files to copy.
	Files []string

	meta   string // hash of its run.json
	closed bool   // according to that run.json
}

// Progress is the result of an Update.
type Progress struct {
	// Bytes is the number of bytes received for files.
	Bytes int
	// More: there is more to take. Over: the run is closed and the copy is complete.
	More, Over bool
}

// Update takes new data, at most one part of each file.
func (m *Mirror) Update(ctx context.Context, from Source) (Progress, error) {
	if err := os.MkdirAll(filepath.Dir(string(m.Dir)), 0o755); err != nil {
		return Progress{}, err
	}
	have, total, err := m.have()
	if err != nil {
		return Progress{}, err
	}
	n, err := from.News(ctx, m.Dir.ID(), have)
	if err != nil {
		return Progress{}, err
	}
	p := Progress{More: n.More}
	for _, part := range n.Files {
		p.Bytes += len(part.Data)
	}
	switch {
	case n.Gone:
		return p, m.problem(ErrGone)
	case slices.Contains(m.Files, n.Replaced):
		return p, fmt.Errorf("run %s: %s: %w", m.Dir.ID(), n.Replaced, ErrReplaced)
	case total+int64(p.Bytes) > maxRun:
		return p, m.refuse("its files have more than %d GiB", maxRun>>30)
	case len(n.Meta) == 0 && have.Meta == "":
		return p, m.refuse("%s is missing", rundir.MetaFile)
	}
	var added int
	if added, err = m.take(&n, have); err != nil {
		return p, err
	}
	if n.More && added == 0 { // it would be requested again at once
		return p, m.refuse("it has more, and sends none of it")
	}
	p.Over = m.closed && !n.More
	return p, nil
}

func (m *Mirror) problem(err error) error { return fmt.Errorf("run %s %w", m.Dir.ID(), err) }

func (m *Mirror) refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", m.problem(ErrRefused), fmt.Errorf(format, args...))
}

// have describes the copy, and returns the total size of its files.
func (m *Mirror) have() (*Have, int64, error) {
	if !m.exists() {
		m.meta = ""
	}
	have, total := &Have{Files: map[string]Held{}, Meta: m.meta}, int64(0)
	for _, name := range m.Files {
		h, err := heldIn(m.Dir.Path(name))
		if err != nil {
			return nil, 0, err
		}
		have.Files[name], total = h, total+h.Size
	}
	return have, total, nil
}

// heldIn describes a whole file; it returns a zero Held if the file does not exist.
func heldIn(path string) (Held, error) {
	f, err := rundir.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Held{}, nil
	}
	if err != nil {
		return Held{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Held{}, err
	}
	return contentOf(f, info.Size())
}

func (m *Mirror) exists() bool {
	_, err := os.Lstat(m.Dir.Path(rundir.MetaFile))
	return err == nil
}

// isOf reports whether a local run is a copy from the same machine.
func (m *Mirror) isOf(meta *rundir.Meta) bool {
	return meta.Mirror != nil && meta.Mirror.Host == m.From.Host && meta.Mirror.Peer == m.From.Peer
}

// Abandon ends a copy that will get no more data, for a reason. It does not change a run that is
// not this copy.
func (m *Mirror) Abandon(reason string) error {
	if !m.exists() {
		return nil
	}
	_, err := m.Dir.Update(func(meta *rundir.Meta) {
		if !m.isOf(meta) || meta.Closed() {
			return
		}
		now := time.Now().UTC()
		if meta.EndedAt == nil {
			meta.EndedAt = &now
		}
		meta.ClosedAt = &now
		meta.Conclude(rundir.Output{Missing: reason})
	})
	return err
}

// take writes new data. added is the number of bytes added to files.
func (m *Mirror) take(n *News, have *Have) (added int, err error) {
	var meta rundir.Meta
	closed := m.closed
	if len(n.Meta) > 0 {
		if meta, err = rundir.ParseMeta(m.Dir.ID(), n.Meta); err != nil {
			return 0, m.refuse("%w", err)
		}
		m.adapt(&meta)
		closed = meta.Closed()
	}
	if !m.exists() {
		if err := m.create(&meta); err != nil {
			return 0, err
		}
	}
	// Another process or peer may add data to the copy.
	lock, err := m.Dir.Lock(copyLock, true)
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	if len(n.Meta) > 0 {
		old, err := m.Dir.Load()
		if err != nil {
			return 0, err
		}
		if old.Mirror == nil || !old.SameRun(&meta) {
			return 0, m.problem(ErrForeign)
		}
	}
	for _, p := range n.Files {
		if !closed {
			p.Data = wholeLines(p.Data)
		}
		if err := m.add(p, have.Files[p.Name].Size); err != nil {
			return 0, err
		}
		added += len(p.Data)
	}
	if len(n.Meta) > 0 && !n.More {
		if _, err := m.Dir.Update(func(old *rundir.Meta) { *old = meta }); err != nil {
			return 0, err
		}
		m.meta, m.closed = Hash(n.Meta), closed
	}
	return added, nil
}

// adapt turns the facts of a run into the facts of its copy, which must not name files or processes
// of this machine.
func (m *Mirror) adapt(meta *rundir.Meta) {
	from := m.From
	meta.Mirror = &from
	if meta.Log != nil {
		if meta.ClockStartedAt == nil { // times in a log start with the run
			at := meta.StartedAt
			meta.ClockStartedAt = &at
		}
		from.Log, meta.Log = meta.Log.Identity(), nil
	}
	if g := meta.Group; g != nil {
		g.Wrapper = nil
	}
}

// wholeLines removes an incomplete last line, since its writer may take it back after a crash. A
// line longer than a part is taken in pieces.
func wholeLines(data []byte) []byte {
	end := bytes.LastIndexByte(data, '\n') + 1
	if end == 0 && len(data) == PartSize {
		return data
	}
	return data[:end]
}

// create creates the copy's directory, without what belongs to the processes of the other side.
func (m *Mirror) create(meta *rundir.Meta) error {
	err := m.Dir.Make(func(tmp rundir.Directory) error {
		for _, name := range Outputs {
			f, err := tmp.OpenOutput(name)
			if err != nil {
				return err
			}
			f.Close()
		}
		first := *meta
		first.EndedAt, first.ClosedAt = nil, nil // the files come first
		return rundir.Replace(tmp.Path(rundir.MetaFile), 0o644, func(w io.Writer) error { return json.NewEncoder(w).Encode(first) })
	})
	if err != nil {
		return fmt.Errorf("copy run %s: %w", meta.ID, err)
	}
	return nil
}

// add appends to a file of the given size.
func (m *Mirror) add(p Part, size int64) error {
	switch {
	case len(p.Data) == 0:
		return nil
	case !slices.Contains(m.Files, p.Name):
		return m.refuse("unexpected file %.100q", p.Name)
	case len(p.Data) > PartSize:
		return m.refuse("%s has more than was asked for", p.Name)
	}
	open := rundir.OpenRecord
	if slices.Contains(Outputs, p.Name) {
		open = func(string) (*os.File, error) { return m.Dir.OpenOutput(p.Name) }
	}
	f, err := open(m.Dir.Path(p.Name))
	if err != nil {
		return err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.Size() != size:
		err = fmt.Errorf("run %s: %s %w", m.Dir.ID(), p.Name, ErrMoved)
	default:
		_, err = f.Write(p.Data)
	}
	return errors.Join(err, f.Close())
}
