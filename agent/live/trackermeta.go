package live

import (
	"errors"
	"io/fs"
	"os"

	"github.com/benchwatch/benchwatch/agent/rundir"
)

// setMeta takes over what run.json says now.
func (t *tracker) setMeta(meta rundir.Meta) {
	t.mu.Lock()
	t.meta = meta
	t.mu.Unlock()
	t.opts.Changed()
}

// reload takes over what the wrapper wrote into run.json; false if the run was
// removed.
func (t *tracker) reload() bool {
	// It is looked at after each line of the tool, and seldom new.
	file, err := os.Stat(t.dir.Path(rundir.MetaFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err == nil && t.metaFile != nil && os.SameFile(file, t.metaFile) &&
		file.ModTime().Equal(t.metaFile.ModTime()) && file.Size() == t.metaFile.Size() {
		return true
	}
	meta, err := t.dir.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		t.fault("read run.json", err)
		return true
	}
	t.metaFile = file
	t.setMeta(meta)
	return true
}
