package generator

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/benchwatch/benchwatch/agent/rundir"
)

// Mirror is a copy of a generator's run directory. It is resumed by what it has: files
// are only appended to, and run.json, which comes last, is replaced in one step.
type Mirror struct {
	dir  rundir.Directory
	from rundir.Mirror
	meta string // hash of the run.json that it has
}

// errForeign is returned for a run of the same id that is another one.
var errForeign = errors.New("is another run of the same id")

// errGone is returned for a run that the other machine does not have any more.
var errGone = errors.New("was removed there")

// abandon ends the copy of a run of which nothing more will come.
func (m *Mirror) abandon(reason string) error {
	_, err := m.dir.Update(func(meta *rundir.Meta) {
		now := time.Now().UTC()
		if meta.EndedAt == nil {
			meta.EndedAt = &now
		}
		meta.Outcome, meta.Reason, meta.ClosedAt = rundir.Lost, reason, &now
	})
	return err
}

// update takes what is new. over: the run is closed, and the copy complete.
func (m *Mirror) update(ctx context.Context, s *session) (over bool, err error) {
	for {
		if err := os.MkdirAll(filepath.Dir(string(m.dir)), 0o755); err != nil {
			return false, err
		}
		r := request{Run: m.dir.ID(), Sizes: map[string]int64{}, Meta: m.meta}
		for _, name := range mirroredFiles {
			info, err := os.Stat(m.dir.Path(name))
			if err == nil {
				r.Sizes[name] = info.Size()
			} else if !errors.Is(err, fs.ErrNotExist) {
				return false, err
			}
		}
		a, err := s.ask(ctx, &r)
		if err != nil {
			return false, err
		}
		if a.Gone {
			return false, fmt.Errorf("run %s %w", r.Run, errGone)
		}
		if len(a.Meta) > 0 || m.exists() {
			if over, err = m.take(&a); err != nil {
				return false, err
			}
		}
		if !a.More {
			return over, nil
		}
	}
}

func (m *Mirror) exists() bool {
	_, err := os.Stat(m.dir.Path(rundir.MetaFile))
	return err == nil
}

// take writes what is new.
func (m *Mirror) take(a *answer) (over bool, err error) {
	var meta rundir.Meta
	if len(a.Meta) > 0 {
		if err := json.Unmarshal(a.Meta, &meta); err != nil {
			return false, fmt.Errorf("run %s: damaged run.json: %w", m.dir.ID(), err)
		}
		if meta.ID != m.dir.ID() {
			return false, fmt.Errorf("run %s: %w", m.dir.ID(), errForeign)
		}
		meta.Mirror = &m.from
	}
	if !m.exists() {
		if err := m.create(&meta); err != nil {
			return false, err
		}
	} else if len(a.Meta) > 0 {
		old, err := m.dir.Load()
		if err != nil {
			return false, err
		}
		if old.Mirror == nil || old.PID != 0 && old.PID != meta.PID || old.BootID != "" && old.BootID != meta.BootID {
			return false, fmt.Errorf("run %s: %w", m.dir.ID(), errForeign)
		}
	}
	for _, p := range a.Files {
		if err := m.add(p); err != nil {
			return false, err
		}
	}
	if len(a.Meta) > 0 && !a.More {
		if _, err := m.dir.Update(func(old *rundir.Meta) { *old = meta }); err != nil {
			return false, err
		}
		m.meta = hash(a.Meta)
	}
	return meta.Closed() && !a.More, nil
}

// create makes the copy's directory, without what the other side's processes need.
func (m *Mirror) create(meta *rundir.Meta) error {
	tmp := rundir.Directory(filepath.Join(filepath.Dir(string(m.dir)), ".new-"+rand.Text()))
	if err := os.Mkdir(string(tmp), 0o755); err != nil {
		return fmt.Errorf("copy run %s: %w", meta.ID, err)
	}
	defer os.RemoveAll(string(tmp))
	for _, name := range []string{rundir.StdoutFile, rundir.StderrFile} {
		f, err := tmp.OpenOutput(name)
		if err != nil {
			return err
		}
		f.Close()
	}
	first := *meta
	first.EndedAt, first.ClosedAt = nil, nil // the files come first
	if err := rundir.Replace(tmp.Path(rundir.MetaFile), 0o644, func(w io.Writer) error { return json.NewEncoder(w).Encode(first) }); err != nil {
		return err
	}
	if err := os.Rename(string(tmp), string(m.dir)); err != nil {
		return fmt.Errorf("copy run %s: %w", meta.ID, err)
	}
	return nil
}

// add appends to a file.
func (m *Mirror) add(p part) error {
	known := false
	for _, name := range mirroredFiles {
		known = known || name == p.Name
	}
	if !known {
		return fmt.Errorf("run %s: unexpected file %q", m.dir.ID(), p.Name)
	}
	open := rundir.OpenRecord
	if p.Name == rundir.StdoutFile || p.Name == rundir.StderrFile {
		open = func(string) (*os.File, error) { return m.dir.OpenOutput(p.Name) }
	}
	f, err := open(m.dir.Path(p.Name))
	if err != nil {
		return err
	}
	_, err = f.Write(p.Data)
	return errors.Join(err, f.Close())
}
