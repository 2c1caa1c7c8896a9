package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Folders of an archive.
const (
	indexFolder = "index/"
	runsFolder  = "runs/"
)

const (
	// maxIndex is the maximum size of an index object in bytes. Indexes larger than usualIndex are
	// read one at a time, and maxLarge limits their total size.
	maxIndex   = 2 << 20
	usualIndex = 128 << 10
	maxLarge   = 32 << 20
	// maxFiles is the maximum number of files in a run, maxRun their maximum total size in bytes.
	maxFiles = 100
	maxRun   = 4 << 30
)

// Entry is a version of a run in the archive, as a listing shows it.
type Entry struct {
	// ID is the id of the run. Several machines may use the same id: Origin distinguishes their
	// runs.
	ID     string
	Origin string
	// Content changes with the uploaded content: a marker set later creates another version.
	Content string
	// Uploaded is when the version became visible.
	Uploaded time.Time
}

// Name returns the name of the run within the archive: its id and origin.
func (e Entry) Name() string { return e.ID + separator + e.Origin }

// separator cannot occur in an id.
const separator = "~"

// hashLength is the number of digits of a hash in a name.
const hashLength = 16

func (e Entry) object() string {
	return indexFolder + e.ID + separator + e.Origin + separator + e.Content + ".json"
}

// folder returns the folder with the objects of the run's files.
func (e Entry) folder() string { return runsFolder + e.Name() + "/" }

// entryOf returns the entry of an index object; ok is false for any other object.
func entryOf(o object) (e Entry, ok bool) {
	name, found := strings.CutSuffix(strings.TrimPrefix(o.name, indexFolder), ".json")
	parts := strings.Split(name, separator)
	if !found || len(parts) != 3 || rundir.CheckID(parts[0]) != nil || !isHash(parts[1], hashLength) || !isHash(parts[2], hashLength) {
		return Entry{}, false
	}
	return Entry{parts[0], parts[1], parts[2], o.changed}, true
}

func isHash(s string, length int) bool {
	if len(s) != length {
		return false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Index is the object that makes a run visible. It is written last.
type Index struct {
	Entry `json:"-"`
	Meta  rundir.Meta `json:"-"`
	// Row contains the run's values for lists.
	Row   review.Row `json:"-"`
	Files []File     `json:"files"`
}

// File is a file of a run directory.
type File struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	// SHA256 of the file, in hexadecimal.
	SHA256 string `json:"sha256"`
	// Omitted: the file was left out.
	Omitted bool `json:"omitted,omitempty"`
	// Parts are the objects with the file's content, in order.
	Parts []Part `json:"parts,omitempty"`
}

// Part is a piece of a file, stored as an object that is named after its own hash.
type Part struct {
	// SHA256 of the object's bytes.
	SHA256 string `json:"sha256"`
	// Size is the size of the piece and Stored the size of the object, both in bytes.
	Size   int64 `json:"size"`
	Stored int64 `json:"stored"`
	// Compressed: the object is compressed with zstd.
	Compressed bool `json:"zstd,omitempty"`
}

func (p Part) object(e Entry) string {
	name := e.folder() + p.SHA256
	if p.Compressed {
		name += ".zst"
	}
	return name
}

// Stored returns the total size of the run's objects in bytes.
func (x *Index) Stored() (n int64) {
	for _, f := range x.Files {
		for _, p := range f.Parts {
			n += p.Stored
		}
	}
	return n
}

// Omits reports whether files were left out.
func (x *Index) Omits() bool {
	return slices.ContainsFunc(x.Files, func(f File) bool { return f.Omitted })
}

// indexFormat is the version of the format of index objects.
const indexFormat = 1

// body is the part of an index object that its checksum covers.
type body struct {
	Format int             `json:"format"`
	Run    json.RawMessage `json:"run"` // run.json
	Row    json.RawMessage `json:"row"`
	Files  []File          `json:"files"`
}

// sealed is an index object.
type sealed struct {
	SHA256 string          `json:"sha256"` // checksum of Index
	Index  json.RawMessage `json:"index"`
}

func encodeIndex(run []byte, row *review.Row, files []File) ([]byte, error) {
	rowText, err := json.Marshal(row)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, run); err != nil {
		return nil, err
	}
	inner, err := json.Marshal(body{indexFormat, compact.Bytes(), rowText, files})
	if err != nil {
		return nil, err
	}
	return json.Marshal(sealed{digest(inner), inner})
}

// ErrDamaged is wrapped by errors about runs whose objects differ from what was uploaded.
var ErrDamaged = errors.New("damaged in the archive")

// decodeIndex checks everything on which other code relies, since others can write to the archive.
func decodeIndex(e Entry, data []byte) (*Index, error) {
	damaged := func(format string, args ...any) (*Index, error) {
		return nil, fmt.Errorf("run %s is %w: its index %s", e.ID, ErrDamaged, fmt.Sprintf(format, args...))
	}
	var outer sealed
	if err := json.Unmarshal(data, &outer); err != nil {
		return damaged("is no JSON")
	}
	if digest(outer.Index) != outer.SHA256 {
		return damaged("does not match its checksum")
	}
	var in body
	if err := json.Unmarshal(outer.Index, &in); err != nil {
		return damaged("can't be read: %v", err)
	}
	if in.Format != indexFormat {
		return nil, fmt.Errorf("run %s was archived by a newer version of benchwatch", e.ID)
	}
	meta, err := rundir.ParseMeta(e.ID, in.Run)
	if err != nil {
		return damaged("has a damaged %s", rundir.MetaFile)
	}
	if !meta.Closed() {
		return damaged("describes a run that is not closed")
	}
	if len(in.Files) > maxFiles {
		return damaged("has more than %d files", maxFiles)
	}
	if !slices.ContainsFunc(in.Files, func(f File) bool { return f.Name == rundir.MetaFile && !f.Omitted }) {
		return damaged("has no %s", rundir.MetaFile)
	}
	x := &Index{Entry: e, Meta: meta, Files: in.Files}
	total := int64(0)
	for _, f := range in.Files {
		if !isFile(f.Name) || f.Size < 0 || !isHash(f.SHA256, 2*sha256.Size) {
			return damaged("has a file that can't be")
		}
		size := int64(0)
		for _, p := range f.Parts {
			if !isHash(p.SHA256, 2*sha256.Size) || p.Size <= 0 || p.Size > partSize || p.Stored <= 0 || p.Stored > maxStored {
				return damaged("has a part that can't be")
			}
			size += p.Size
		}
		if size != f.Size && !f.Omitted {
			return damaged("has parts that do not make %s", f.Name)
		}
		if total += size; total > maxRun || int64(len(f.Parts)) > maxRun/partSize {
			return damaged("has more than %d GiB", maxRun>>30)
		}
	}
	if x.Row, err = review.RestoreRow(in.Row, &meta); err != nil {
		return damaged("has damaged values: %v", err)
	}
	return x, nil
}

// isFile reports whether a file of a run can have this name. Hidden files are locks and files of
// one machine.
func isFile(name string) bool {
	return name != "" && name[0] != '.' && len(name) <= 100 && path.Base(name) == name && !strings.ContainsAny(name, "/\\\x00\n")
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
