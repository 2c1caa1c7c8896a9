package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

const (
	// partSize is how much of a file is one object: what an interruption costs at most.
	partSize = 4 << 20
	// maxStored is longer than a part that does not compress.
	maxStored = partSize + partSize/8
)

// ErrOpen is returned for a run that is not closed: more would be written.
var ErrOpen = errors.New("the run is not closed yet")

// Pushed is what Push did.
type Pushed struct {
	Entry
	// Existed: the archive had the run already.
	Existed bool
	// Objects were uploaded, with Bytes.
	Objects int
	Bytes   int64
}

// Push uploads a closed run unless the archive has it. known are the index objects that
// are known to be there; nil: the archive is asked. An error that wraps ErrUnavailable
// concerns the archive, another one the run.
func (a *Archive) Push(ctx context.Context, dir rundir.Directory, known map[string]bool) (Pushed, error) {
	if n, ok := a.noted(dir); ok && !a.Repair && known[n.Object] {
		e, _ := entryOf(object{name: n.Object})
		return Pushed{Entry: e, Existed: true}, nil
	}
	before, err := stamps(dir)
	if err != nil {
		return Pushed{}, fmt.Errorf("archive run %s: %w", dir.ID(), err)
	}
	p, err := a.push(ctx, dir, known)
	if err == nil {
		_ = a.noteAs(dir, p.Entry, before) // without it the run is only read again
	}
	return p, err
}

func (a *Archive) push(ctx context.Context, dir rundir.Directory, known map[string]bool) (Pushed, error) {
	p, err := a.plan(ctx, dir)
	if err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("archive run %s: %w", dir.ID(), err)
		}
		return Pushed{}, err
	}
	done := Pushed{Entry: p.entry}
	there := map[string]bool{}
	if !a.Repair {
		if known != nil {
			done.Existed = known[p.entry.object()]
		} else if done.Existed, err = a.bucket.has(ctx, p.entry.object()); err != nil {
			return done, err
		}
		if done.Existed {
			return done, nil
		}
		if err := a.bucket.list(ctx, p.entry.folder(), func(o object) { there[o.name] = true }); err != nil {
			return done, err
		}
	}
	for i := range p.files {
		f := &p.files[i]
		if f.Omitted {
			continue
		}
		err := a.parts(dir, f, func(part Part, data []byte) error {
			name := part.object(p.entry)
			if there[name] {
				return nil
			}
			if err := a.pause(ctx); err != nil {
				return err
			}
			if err := a.bucket.put(ctx, name, data); err != nil {
				return err
			}
			there[name] = true
			done.Objects++
			done.Bytes += part.Stored
			return nil
		})
		if err != nil {
			if !errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
				err = fmt.Errorf("archive run %s: %w", dir.ID(), err)
			}
			return done, err
		}
	}
	if err := a.pause(ctx); err != nil {
		return done, err
	}
	row, err := a.row(ctx, dir, &p.meta)
	if err != nil {
		return done, fmt.Errorf("archive run %s: %w", dir.ID(), err)
	}
	index, err := encodeIndex(p.run, &row, p.files)
	if err == nil && len(index) > maxIndex {
		err = errors.New("its index would be too long")
	}
	if err != nil {
		return done, fmt.Errorf("archive run %s: %w", dir.ID(), err)
	}
	return done, a.bucket.put(ctx, p.entry.object(), index)
}

// row is what a list shows of the run.
func (a *Archive) row(ctx context.Context, dir rundir.Directory, meta *rundir.Meta) (report.Row, error) {
	snap, err := ingest.Read(ctx, dir, a.Tools.ByName(meta.Tool))
	if err != nil {
		return report.Row{}, err
	}
	return report.NewRow(&snap), nil
}

// plan is what is to be uploaded of a run.
type plan struct {
	entry Entry
	meta  rundir.Meta
	run   []byte // run.json
	files []File // without their parts
}

// plan reads all files of a run once, for their hashes.
func (a *Archive) plan(ctx context.Context, dir rundir.Directory) (plan, error) {
	var p plan
	names, err := filesOf(dir)
	if err != nil {
		return p, err
	}
	for _, name := range names {
		if name == rundir.MetaFile {
			if p.run, err = readFile(dir, name); err != nil {
				return p, err
			}
			if p.meta, err = rundir.ParseMeta(dir.ID(), p.run); err != nil {
				return p, err
			}
			p.files = append(p.files, File{Name: name, Size: int64(len(p.run)), SHA256: digest(p.run)})
			continue
		}
		f := File{Name: name, Omitted: a.OmitOutput && isOutput(name)}
		if f.Size, f.SHA256, err = hashFile(dir, name, func() error { return a.pause(ctx) }); err != nil {
			return p, err
		}
		p.files = append(p.files, f)
	}
	if p.run == nil {
		return p, fmt.Errorf("%s: %w", rundir.MetaFile, fs.ErrNotExist)
	}
	if !p.meta.Closed() {
		return p, ErrOpen
	}
	content, total := sha256.New(), int64(0)
	for _, f := range p.files {
		if total += f.Size; total > maxRun && !f.Omitted {
			return p, fmt.Errorf("its files have more than %d GiB", maxRun>>30)
		}
		fmt.Fprintf(content, "%s %d %s %t\n", f.Name, f.Size, f.SHA256, f.Omitted)
	}
	p.entry = Entry{ID: dir.ID(), Origin: origin(&p.meta), Content: hex.EncodeToString(content.Sum(nil))[:hashLength]}
	return p, nil
}

// origin distinguishes runs of the same id from different machines or times.
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

// readFile reads run.json, which is short.
func readFile(dir rundir.Directory, name string) ([]byte, error) {
	f, err := rundir.Open(dir.Path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAtMost(f, maxIndex)
}

// hashFile calls step before each MiB; nil: nothing.
func hashFile(dir rundir.Directory, name string, step func() error) (size int64, sum string, err error) {
	f, err := rundir.Open(dir.Path(name))
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	for err == nil {
		if step != nil {
			err = step()
		}
		if err == nil {
			var n int64
			n, err = io.CopyN(h, f, 1<<20)
			size += n
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return size, hex.EncodeToString(h.Sum(nil)), err
}

// errChanged is returned for a file that was written while it was uploaded. The next
// Push succeeds.
var errChanged = errors.New("changed while it was read")

// parts cuts a file into its parts, passes each to do, and records them.
func (a *Archive) parts(dir rundir.Directory, f *File, do func(Part, []byte) error) error {
	r, err := rundir.Open(dir.Path(f.Name))
	if err != nil {
		return err
	}
	defer r.Close()
	f.Parts = nil
	whole := sha256.New()
	limited := io.LimitReader(r, f.Size)
	buffer := bytes.Buffer{}
	for {
		buffer.Reset()
		n, err := io.CopyN(&buffer, limited, partSize)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			break
		}
		whole.Write(buffer.Bytes())
		part, data := Part{Size: n}, buffer.Bytes()
		if !a.Plain {
			if packed := compress(data); len(packed) < len(data) {
				part.Compressed, data = true, packed
			}
		}
		part.SHA256, part.Stored = digest(data), int64(len(data))
		f.Parts = append(f.Parts, part)
		if err := do(part, data); err != nil {
			return err
		}
	}
	if hex.EncodeToString(whole.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%s %w", f.Name, errChanged)
	}
	return nil
}

// One encoder with one goroutine's memory: an agent compresses seldom, beside a
// benchmark.
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

// piece returns the bytes of a part from its object.
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
	all, err := a.Versions(ctx)
	known := map[string]bool{}
	for _, e := range all {
		known[e.object()] = true
	}
	return known, err
}
