// Package mirror copies run directories that other machines record, while they are
// written: what is new of one where it is recorded, and how a copy takes that.
package mirror

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/host"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// PartSize bounds what is sent of a file at a time.
const PartSize = 512 << 10

// copyLock is held while a copy is added to.
const copyLock = ".mirror.lock"

// maxFiles is more than there are files in a run.
const maxFiles = 100

// maxRun bounds the files of a copy together, in bytes: weeks of any tool.
const maxRun = 4 << 30

// Outputs are the files with what the tool printed, Records what was recorded beside
// them, without the markers. All of them are only appended to.
var (
	Outputs = []string{rundir.StdoutFile, rundir.StderrFile}
	Records = []string{rundir.StatusFile, rundir.LatenciesFile, host.File, record.SettingsFile, record.StatementsFile}
)

// Have is what a copy has: the sizes of its files, and the Hash of the run.json.
type Have struct {
	Sizes map[string]int64 `json:"sizes,omitempty"`
	Meta  string           `json:"meta,omitempty"`
}

// News is what a copy does not have. The run.json comes last, once no file has more:
// when it shows the end, the files are complete. Without a copy it comes first too.
type News struct {
	Files Parts           `json:"files,omitempty"`
	Meta  json.RawMessage `json:"meta,omitempty"`
	More  bool            `json:"more,omitempty"`
	// Gone: there is no such run any more.
	Gone bool `json:"gone,omitempty"`
}

// Part is what is new of a file, from an offset on.
type Part struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"`
}

// Parts is at most one of each file.
type Parts []Part

// UnmarshalJSON implements json.Unmarshaler. Empty parts would take many times the memory
// of their text.
func (p *Parts) UnmarshalJSON(text []byte) error {
	in := json.NewDecoder(bytes.NewReader(text))
	if _, err := in.Token(); err != nil {
		return err
	}
	for *p = nil; in.More(); {
		if len(*p) == maxFiles {
			return fmt.Errorf("more than %d files", maxFiles)
		}
		var one Part
		if err := in.Decode(&one); err != nil {
			return err
		}
		*p = append(*p, one)
	}
	return nil
}

// Source is where a run is recorded.
type Source interface {
	News(ctx context.Context, dir rundir.Directory, have *Have) (News, error)
}

// Errors of Update.
var (
	// ErrForeign is returned for a run of the same id that is another one.
	ErrForeign = errors.New("is another run of the same id")
	// ErrGone is returned for a run that the other machine does not have any more.
	ErrGone = errors.New("was removed there")
	// ErrReplaced is returned for a file that was not only appended to.
	ErrReplaced = errors.New("was replaced there")
	// ErrRefused is returned for something that no run has, or for too much of it.
	ErrRefused = errors.New("is refused")
	// ErrMoved is returned if another process added to the copy meanwhile.
	ErrMoved = errors.New("has changed meanwhile")
)

// Hash identifies the content of a run.json.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// Read returns what is new of files in a run directory. It is called after meta was
// read.
func Read(dir rundir.Directory, meta *rundir.Meta, names []string, have *Have) (News, error) {
	raw, err := json.Marshal(meta)
	if err != nil {
		return News{}, err
	}
	var n News
	for _, name := range names {
		data, more, err := readFrom(dir.Path(name), have.Sizes[name])
		if err != nil {
			return News{}, err
		}
		if len(data) > 0 {
			n.Files = append(n.Files, Part{name, have.Sizes[name], data})
		}
		n.More = n.More || more
	}
	if Hash(raw) != have.Meta && (!n.More || have.Meta == "") {
		n.Meta = raw
	}
	return n, nil
}

// readFrom returns the next bytes of a file, none if there is no such file. more: it has
// still others.
func readFrom(path string, offset int64) (data []byte, more bool, err error) {
	f, err := rundir.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	data, err = io.ReadAll(io.NewSectionReader(f, offset, PartSize))
	return data, len(data) == PartSize, err
}

// Mirror is a copy of a run that another machine records. It is resumed by what it has:
// files are only appended to, and run.json, which comes last, is replaced in one step.
type Mirror struct {
	Dir rundir.Directory
	// From is recorded in the copy's run.json.
	From rundir.Mirror
	// Files are the names of those that are copied.
	Files []string

	meta   string // hash of the run.json that it has
	closed bool   // by that
}

// Update takes what is new, a part of each file at most. more: there is more to take;
// over: the run is closed, and the copy complete.
func (m *Mirror) Update(ctx context.Context, from Source) (over, more bool, err error) {
	if err := os.MkdirAll(filepath.Dir(string(m.Dir)), 0o755); err != nil {
		return false, false, err
	}
	have := Have{Sizes: map[string]int64{}, Meta: m.meta}
	total := int64(0)
	for _, name := range m.Files {
		info, err := os.Lstat(m.Dir.Path(name))
		if err == nil {
			have.Sizes[name] = info.Size()
			total += info.Size()
		} else if !errors.Is(err, fs.ErrNotExist) {
			return false, false, err
		}
	}
	n, err := from.News(ctx, m.Dir, &have)
	if err != nil {
		return false, false, err
	}
	if n.Gone {
		return false, false, fmt.Errorf("run %s %w", m.Dir.ID(), ErrGone)
	}
	for _, p := range n.Files {
		total += int64(len(p.Data))
	}
	if total > maxRun {
		return false, false, fmt.Errorf("run %s %w: its files have more than %d GiB", m.Dir.ID(), ErrRefused, maxRun>>30)
	}
	if len(n.Meta) > 0 || m.exists() {
		over, err = m.take(&n)
	}
	return over, n.More, err
}

func (m *Mirror) exists() bool {
	_, err := os.Lstat(m.Dir.Path(rundir.MetaFile))
	return err == nil
}

// Abandon ends a copy that will get no more data. A run that is not this copy stays as it
// is.
func (m *Mirror) Abandon(reason string) error {
	if !m.exists() {
		return nil
	}
	_, err := m.Dir.Update(func(meta *rundir.Meta) {
		if meta.Mirror == nil || meta.Mirror.Host != m.From.Host || meta.Mirror.Peer != m.From.Peer {
			return
		}
		now := time.Now().UTC()
		if meta.EndedAt == nil {
			meta.EndedAt = &now
		}
		if !meta.Closed() {
			meta.Outcome, meta.Reason, meta.ClosedAt = rundir.Lost, reason, &now
		}
	})
	return err
}

// take writes what is new.
func (m *Mirror) take(n *News) (over bool, err error) {
	var meta rundir.Meta
	closed := m.closed
	if len(n.Meta) > 0 {
		if meta, err = rundir.ParseMeta(m.Dir.ID(), n.Meta); err != nil {
			return false, fmt.Errorf("%w: %w", ErrRefused, err)
		}
		m.adapt(&meta)
		closed = meta.Closed()
	}
	if !m.exists() {
		if err := m.create(&meta); err != nil {
			return false, err
		}
	}
	// Another process or peer may add to the copy.
	lock, err := m.Dir.Lock(copyLock, true)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if len(n.Meta) > 0 {
		old, err := m.Dir.Load()
		if err != nil {
			return false, err
		}
		if old.Mirror == nil || !old.SameRun(&meta) {
			return false, fmt.Errorf("run %s %w", m.Dir.ID(), ErrForeign)
		}
	}
	for _, p := range n.Files {
		if !closed {
			p.Data = wholeLines(p.Data)
		}
		if err := m.add(p); err != nil {
			return false, err
		}
	}
	if len(n.Meta) > 0 && !n.More {
		if _, err := m.Dir.Update(func(old *rundir.Meta) { *old = meta }); err != nil {
			return false, err
		}
		m.meta, m.closed = Hash(n.Meta), closed
	}
	return m.closed && !n.More, nil
}

// adapt changes the facts of a run to those of its copy, which names no file and no
// process of this machine.
func (m *Mirror) adapt(meta *rundir.Meta) {
	meta.Mirror = &m.From
	if meta.Log != nil {
		if meta.ClockStartedAt == nil { // times in a log begin with the run
			at := meta.StartedAt
			meta.ClockStartedAt = &at
		}
		from := m.From
		from.Log = meta.Log.Identity()
		meta.Mirror, meta.Log = &from, nil
	}
	if g := meta.Group; g != nil {
		own := *g
		own.Wrapper = nil
		meta.Group = &own
	}
}

// wholeLines cuts off a line that has no end yet: who writes the file may take it back
// after a crash. One that is longer than a part is taken in pieces.
func wholeLines(data []byte) []byte {
	if len(data) == PartSize && !slices.Contains(data, '\n') {
		return data
	}
	for i, b := range slices.Backward(data) {
		if b == '\n' {
			return data[:i+1]
		}
	}
	return nil
}

// create makes the copy's directory, without what the other side's processes need.
func (m *Mirror) create(meta *rundir.Meta) error {
	tmp := rundir.Directory(filepath.Join(filepath.Dir(string(m.Dir)), ".new-"+rand.Text()))
	if err := os.Mkdir(string(tmp), 0o755); err != nil {
		return fmt.Errorf("copy run %s: %w", meta.ID, err)
	}
	defer os.RemoveAll(string(tmp))
	for _, name := range Outputs {
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
	if err := os.Rename(string(tmp), string(m.Dir)); err != nil {
		return fmt.Errorf("copy run %s: %w", meta.ID, err)
	}
	return nil
}

// add appends to a file.
func (m *Mirror) add(p Part) error {
	if len(p.Data) == 0 {
		return nil
	}
	if !slices.Contains(m.Files, p.Name) {
		return fmt.Errorf("run %s %w: unexpected file %q", m.Dir.ID(), ErrRefused, p.Name)
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
	case info.Size() != p.Offset:
		err = fmt.Errorf("run %s: %s %w", m.Dir.ID(), p.Name, ErrMoved)
	default:
		_, err = f.Write(p.Data)
	}
	return errors.Join(err, f.Close())
}
