package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// partSize is the part of a file in one object: an interruption costs at most this much.
	partSize = 4 << 20
	// maxStored is larger than a part that does not compress.
	maxStored = partSize + partSize/8
)

// ErrOpen is returned for a run that is not closed, since more will be written.
var ErrOpen = errors.New("the run is not closed yet")

// Pushed is the result of Push.
type Pushed struct {
	Entry
	// Existed: the run already was in the archive.
	Existed bool
	// Objects is the number of uploaded objects, Bytes their size.
	Objects int
	Bytes   int64
}

// Push uploads a closed run unless the archive has it. known are names of existing index objects;
// nil: Push looks them up. An error that wraps ErrUnavailable concerns the archive, any other error
// the run.
func (a *Archive) Push(ctx context.Context, dir rundir.Directory, known map[string]bool) (Pushed, error) {
	if n, ok := a.noted(dir); ok && known[n.Object] {
		e, _ := entryOf(object{name: n.Object})
		return Pushed{Entry: e, Existed: true}, nil
	}
	done := Pushed{Entry: Entry{ID: dir.ID()}}
	before, err := stamps(dir)
	if err == nil {
		err = a.push(ctx, dir, before, known, &done)
	}
	switch {
	case err == nil:
		_ = a.note(dir, done.Entry, before) // without the note the run is just read again
	case !errors.Is(err, ErrUnavailable) && ctx.Err() == nil:
		err = fmt.Errorf("archive run %s: %w", dir.ID(), err)
	}
	return done, err
}

// push uploads the missing parts of the run's files, then the index.
func (a *Archive) push(ctx context.Context, dir rundir.Directory, sizes map[string]stamp, known map[string]bool, done *Pushed) error {
	run, err := readFile(dir, rundir.MetaFile)
	if err != nil {
		return err
	}
	meta, err := rundir.ParseMeta(dir.ID(), run)
	if err != nil {
		return err
	}
	total := int64(0)
	for name, s := range sizes {
		if !a.omits(name) {
			total += s.Size
		}
	}
	switch {
	case !meta.Closed():
		return ErrOpen
	case total > maxRun:
		return fmt.Errorf("its files have more than %d GiB", maxRun>>30)
	}
	done.Origin = origin(&meta)
	there := map[string]bool{}
	err = a.bucket.list(ctx, done.folder(), func(o object) error { there[o.name] = true; return nil })
	if err != nil {
		return err
	}
	var files []File
	content := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		f, err := a.pushFile(ctx, dir, name, run, there, done)
		if err != nil {
			return err
		}
		files = append(files, f)
		fmt.Fprintf(content, "%s %d %s %t\n", f.Name, f.Size, f.SHA256, f.Omitted)
	}
	done.Content = hex.EncodeToString(content.Sum(nil))[:hashLength]
	if done.Existed = known[done.object()]; known == nil {
		_, _, err := a.fetchIndex(ctx, done.Entry)
		if errors.Is(err, ErrUnavailable) {
			return err
		}
		done.Existed = err == nil // a damaged one is replaced
	}
	if done.Existed {
		return nil
	}
	return a.pushIndex(ctx, dir, run, files, done)
}

// pushIndex uploads the index of the run, after which it is in the archive.
func (a *Archive) pushIndex(ctx context.Context, dir rundir.Directory, run []byte, files []File, done *Pushed) error {
	snap, err := ingest.Read(ctx, dir, a.Tools)
	if err != nil {
		return err
	}
	row := review.NewRow(&snap)
	index, err := encodeIndex(run, &row, files)
	if err == nil && len(index) > maxIndex {
		err = errors.New("its index would be too long")
	}
	if err == nil {
		err = a.pause(ctx)
	}
	if err == nil {
		err = a.bucket.put(ctx, done.object(), index)
	}
	return err
}

// pushFile uploads the missing parts of a file. run is the content of run.json, which the index
// contains as well.
func (a *Archive) pushFile(ctx context.Context, dir rundir.Directory,
	name string, run []byte, there map[string]bool, done *Pushed) (File, error) {
	file := File{Name: name, Omitted: a.omits(name)}
	var r io.Reader = bytes.NewReader(run)
	if name != rundir.MetaFile {
		f, err := rundir.Open(dir.Path(name))
		if err != nil {
			return file, err
		}
		defer f.Close()
		r = f
	}
	whole, piece := sha256.New(), make([]byte, partSize)
	for {
		if err := a.pause(ctx); err != nil {
			return file, err
		}
		n, err := io.ReadFull(r, piece)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return file, err
		}
		if n == 0 || file.Size > maxRun {
			break
		}
		whole.Write(piece[:n])
		file.Size += int64(n)
		if file.Omitted {
			continue
		}
		part, data := a.newPart(piece[:n])
		file.Parts = append(file.Parts, part)
		object := part.object(done.Entry)
		if there[object] {
			continue
		}
		if err := a.bucket.put(ctx, object, data); err != nil {
			return file, err
		}
		there[object] = true
		done.Objects++
		done.Bytes += part.Stored
	}
	file.SHA256 = hex.EncodeToString(whole.Sum(nil))
	return file, nil
}

// newPart returns the part for a piece, and its object.
func (a *Archive) newPart(piece []byte) (Part, []byte) {
	part, data := Part{Size: int64(len(piece))}, piece
	if !a.Plain {
		if packed := compress(piece); len(packed) < len(piece) {
			part.Compressed, data = true, packed
		}
	}
	part.SHA256, part.Stored = digest(data), int64(len(data))
	return part, data
}

func (a *Archive) omits(name string) bool { return a.OmitOutput && isOutput(name) }

// origin distinguishes runs with the same id from different machines or times.
func origin(m *rundir.Meta) string {
	facts := []string{m.Generator, m.StartedAt.UTC().Format(time.RFC3339Nano), m.BootID, strconv.Itoa(m.PID)}
	if m.Import != nil {
		facts = append(facts, m.Import.SHA256)
	}
	return digest([]byte(strings.Join(facts, "\n")))[:hashLength]
}

func isOutput(name string) bool { return name == rundir.StdoutFile || name == rundir.StderrFile }

// filesOf returns the names of the files that are archived, sorted.
func filesOf(dir rundir.Directory) ([]string, error) {
	entries, err := os.ReadDir(string(dir))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && isFile(e.Name()) {
			names = append(names, e.Name())
		}
	}
	if len(names) > maxFiles {
		return nil, fmt.Errorf("%s has %d files: no run has more than %d", dir, len(names), maxFiles)
	}
	return names, nil // ReadDir sorts
}

// readFile reads a small file of a run.
func readFile(dir rundir.Directory, name string) ([]byte, error) {
	f, err := rundir.Open(dir.Path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAtMost(f, maxIndex)
}

// One encoder with the memory of one goroutine: an agent rarely compresses, and a benchmark runs
// beside it.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
	if err != nil {
		panic(err) // the options are constant
	}
	return e
})

var encoding sync.Mutex

func compress(data []byte) []byte {
	encoding.Lock()
	defer encoding.Unlock()
	return encoder().EncodeAll(data, nil)
}

var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(2*partSize))
	if err != nil {
		panic(err)
	}
	return d
})

// piece returns the content of a part from its object.
func (p Part) piece(data []byte) ([]byte, error) {
	if int64(len(data)) != p.Stored || digest(data) != p.SHA256 {
		return nil, errors.New("does not match its checksum")
	}
	if p.Compressed {
		unpacked, err := decoder().DecodeAll(data, make([]byte, 0, p.Size))
		if err != nil {
			return nil, fmt.Errorf("can't be unpacked: %w", err)
		}
		data = unpacked
	}
	if int64(len(data)) != p.Size {
		return nil, errors.New("has another length than recorded")
	}
	return data, nil
}

// Known returns the names of the index objects, for Push.
func (a *Archive) Known(ctx context.Context) (map[string]bool, error) {
	all, err := a.versions(ctx)
	known := map[string]bool{}
	for _, e := range all {
		known[e.object()] = true
	}
	return known, err
}

// noteFile is a file in the directory of an archived run.
const noteFile = ".archive.json"

// note describes what was archived, so that an agent need not read the run again to see that it is
// unchanged.
type note struct {
	Archive string           `json:"archive"` // the archive's key
	Object  string           `json:"object"`
	Files   map[string]stamp `json:"files"`
}

type stamp struct {
	Size    int64 `json:"size"`
	Changed int64 `json:"changed"` // Unix time in nanoseconds
}

func stamps(dir rundir.Directory) (map[string]stamp, error) {
	names, err := filesOf(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]stamp{}
	for _, name := range names {
		info, err := os.Lstat(dir.Path(name))
		if err != nil {
			return nil, err
		}
		all[name] = stamp{info.Size(), info.ModTime().UnixNano()}
	}
	return all, nil
}

// Holds asks the archive which runs it has. The result reports whether it has a run with the files that its directory
// has now, as far as they are archived. It asks the archive only once.
func (a *Archive) Holds(ctx context.Context) (func(rundir.Directory) bool, error) {
	there := map[string]bool{}
	err := a.bucket.list(ctx, indexFolder, func(o object) error { there[o.name] = true; return nil })
	if err != nil {
		return nil, err
	}
	return func(dir rundir.Directory) bool {
		n, ok := a.noted(dir)
		return ok && there[n.Object]
	}, nil
}

// note records that a run is in the archive with these files.
func (a *Archive) note(dir rundir.Directory, e Entry, files map[string]stamp) error {
	return rundir.Replace(dir.Path(noteFile), 0o644, func(w io.Writer) error {
		return json.NewEncoder(w).Encode(note{a.key, e.object(), files})
	})
}

// noted returns the note of a run that has not changed since.
func (a *Archive) noted(dir rundir.Directory) (n note, ok bool) {
	data, err := readFile(dir, noteFile)
	if err != nil || json.Unmarshal(data, &n) != nil || n.Archive != a.key {
		return note{}, false
	}
	files, err := stamps(dir)
	return n, err == nil && maps.Equal(files, n.Files)
}
