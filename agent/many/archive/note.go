package archive

import (
	"encoding/json"
	"io"
	"maps"
	"os"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

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
