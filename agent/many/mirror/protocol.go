package mirror

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// Format is the version of the protocol: List, Have and News as JSON. Machines with different
	// versions do not copy from each other.
	Format = 2
	// LongestAnswer is the maximum size of a List or a News in bytes of JSON.
	LongestAnswer = 8 << 20
	// PartSize is the maximum number of bytes sent from one file. After a part of this size no
	// other file follows.
	PartSize = 256 << 10

	// endSize is the number of bytes at the end of a copied file that identify it.
	endSize = 512
	// maxFiles and maxRuns are limits that no run and no agent reaches.
	maxFiles = 100
	maxRuns  = 20_000
)

// Outputs are the files with the tool's output, Records what was recorded beside them, without
// markers. All of them only grow.
var (
	Outputs = []string{rundir.StdoutFile, rundir.StderrFile}
	Records = []string{rundir.StatusFile, rundir.LatenciesFile, host.File, record.SettingsFile, record.StatementsFile, record.StallsFile}
)

// Source is a machine that records runs.
type Source interface {
	// List returns the runs to copy that are open, or were closed within recent. An error concerns
	// the machine.
	List(ctx context.Context, recent time.Duration) (List, error)
	// News returns the data of a run that a copy lacks. The error is an AwayError if it concerns
	// the machine instead of the run.
	News(ctx context.Context, run string, have *Have) (News, error)
}

// AwayError is an error of a machine, not of one of its runs.
type AwayError struct{ Err error }

func (e *AwayError) Error() string { return e.Err.Error() }
func (e *AwayError) Unwrap() error { return e.Err }

// List is the runs of a machine.
type List struct {
	Format  int    `json:"format"`
	Version string `json:"version"`
	// Output: the data includes the tools' output.
	Output bool    `json:"output"`
	Runs   Entries `json:"runs"`
	// Scraped: the machine serves the metrics of its runs.
	Scraped bool `json:"-"`
}

// Entry is a run in a List. Changed and Sizes are absent if unknown.
type Entry struct {
	ID     string `json:"id"`
	Closed bool   `json:"closed,omitempty"`
	// Changed is when run.json was written, in nanoseconds.
	Changed int64 `json:"changed"`
	// Sizes are the sizes of existing files in bytes.
	Sizes map[string]int64 `json:"sizes"`
}

// Have describes a copy: each copied file, and the Hash of its run.json.
type Have struct {
	Files map[string]Held `json:"files"`
	Meta  string          `json:"meta,omitempty"`
}

// Held is the number of bytes in a copied file, and the Hash of the last of them, which reveals a
// different file with the same name.
type Held struct {
	Size int64  `json:"size"`
	End  string `json:"end,omitempty"`
}

// News is the data that a copy lacks. run.json comes last, when no file has more data: if it shows
// the end, the files are complete. For a new copy run.json also comes first.
type News struct {
	Files Parts           `json:"files,omitempty"`
	Meta  json.RawMessage `json:"meta,omitempty"`
	More  bool            `json:"more,omitempty"`
	// Gone: the run no longer exists.
	Gone bool `json:"gone,omitempty"`
	// Replaced is a file that does not begin with the content of the copy.
	Replaced string `json:"replaced,omitempty"`
}

// Part is the next bytes of a file after the end of the copy.
type Part struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// Parts is a received list with a limited length, since many empty elements would take several
// times the memory of their text.
type Parts []Part

// Entries is a received list of runs with a limited length.
type Entries []Entry

// UnmarshalJSON implements json.Unmarshaler.
func (p *Parts) UnmarshalJSON(text []byte) (err error) {
	*p, err = decode[Part](text, maxFiles)
	return err
}

// UnmarshalJSON implements json.Unmarshaler. It returns an error if an id is not valid.
func (e *Entries) UnmarshalJSON(text []byte) (err error) {
	if *e, err = decode[Entry](text, maxRuns); err != nil {
		return err
	}
	for _, run := range *e {
		if err := rundir.CheckID(run.ID); err != nil {
			return fmt.Errorf("the list of runs is damaged: %w", err)
		}
	}
	return nil
}

func decode[T any](text []byte, most int) ([]T, error) {
	in := json.NewDecoder(bytes.NewReader(text))
	if _, err := in.Token(); err != nil {
		return nil, err
	}
	var all []T
	for in.More() {
		if len(all) == most {
			return nil, fmt.Errorf("more than %d elements", most)
		}
		var next T
		if err := in.Decode(&next); err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	return all, nil
}

// Hash identifies the content of a run.json, or a part of a file.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// contentOf describes the first size bytes of a file; it returns a zero Held if the file is shorter.
func contentOf(f *os.File, size int64) (Held, error) {
	end := make([]byte, min(size, endSize))
	_, err := f.ReadAt(end, size-int64(len(end)))
	switch {
	case size == 0 || errors.Is(err, io.EOF):
		return Held{}, nil
	case err != nil:
		return Held{}, err
	}
	return Held{size, Hash(end)}, nil
}

// Read returns the data of a run directory that a copy lacks, restricted to the served files. Call
// it after reading meta.
func Read(dir rundir.Directory, meta *rundir.Meta, served []string, have *Have) (n News, err error) {
	raw, err := json.Marshal(meta)
	if err != nil {
		return News{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(have.Files)) {
		if !slices.Contains(served, name) {
			return News{}, fmt.Errorf("run %s: file %q is not served", dir.ID(), name)
		}
		if n.More {
			break
		}
		data, err := readAfter(dir.Path(name), have.Files[name])
		if errors.Is(err, ErrReplaced) {
			return News{Replaced: name}, nil
		}
		if err != nil {
			return News{}, err
		}
		if len(data) > 0 {
			n.Files = append(n.Files, Part{name, data})
		}
		n.More = len(data) == PartSize
	}
	if Hash(raw) != have.Meta && (!n.More || have.Meta == "") {
		n.Meta = raw
	}
	return n, nil
}

// readAfter returns at most PartSize bytes of a file after the end of the copy. The file need not
// exist yet.
func readAfter(path string, have Held) ([]byte, error) {
	if have.Size < 0 {
		return nil, ErrReplaced
	}
	f, err := rundir.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && have.Size == 0:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrReplaced
	case err != nil:
		return nil, err
	}
	defer f.Close()
	if begin, err := contentOf(f, have.Size); err != nil {
		return nil, err
	} else if begin != have {
		return nil, ErrReplaced
	}
	return io.ReadAll(io.NewSectionReader(f, have.Size, PartSize))
}

// Sizes returns the sizes of the existing files of a run.
func Sizes(dir rundir.Directory, names []string) map[string]int64 {
	sizes := map[string]int64{}
	for _, name := range names {
		if info, err := os.Lstat(dir.Path(name)); err == nil && info.Mode().IsRegular() {
			sizes[name] = info.Size()
		}
	}
	return sizes
}
