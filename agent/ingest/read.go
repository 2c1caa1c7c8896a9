package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/benchwatch/benchwatch/agent/follow"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// Read reads what is known of a run from its directory, with the same parser
// that reads it live. t may be nil: then there is only what run.json says.
func Read(ctx context.Context, dir rundir.Directory, t *tool.Tool) (Snapshot, error) {
	meta, err := dir.Load()
	if err != nil {
		return Snapshot{}, err
	}
	f := NewFeed(t, &meta)
	err = f.ReadAll(ctx, dir, &meta)
	f.Close(time.Now())
	return f.Snapshot(meta, time.Now()), err
}

// readAll reads a run's output as far as it is there now.
func (f *Feed) ReadAll(ctx context.Context, dir rundir.Directory, meta *rundir.Meta) error {
	if meta.Log != nil {
		return f.ReadLog(ctx, meta.Log)
	}
	done := make(chan struct{})
	close(done)
	var err error
	for _, s := range []struct {
		name   string
		stream tool.Stream
	}{{rundir.StdoutFile, tool.Stdout}, {rundir.StderrFile, tool.Stderr}} {
		if e := f.Read(ctx, dir.Path(s.name), s.stream, follow.Options{}, done); e != nil {
			err = errors.Join(err, e)
		}
	}
	return err
}

// readLog reads the part of a user's log file that is this run.
func (f *Feed) ReadLog(ctx context.Context, src *rundir.LogSource) error {
	if now, err := rundir.Identify(src.Path); err != nil || now.Device != src.Device || now.Inode != src.Inode {
		return fmt.Errorf("log file %s is not the one that was followed any more", src.Path)
	}
	r, err := follow.Open(src.Path, follow.Options{Offset: src.Offset})
	if err != nil {
		return err
	}
	defer r.Close()
	r.Finish()
	for {
		l, err := r.Next(ctx)
		if errors.Is(err, io.EOF) || err == nil && (l.Generation > 0 || src.End > 0 && l.Offset >= src.End) {
			return nil
		}
		if err != nil {
			return err
		}
		if l.Unterminated && f.Growing {
			return nil
		}
		f.line(tool.Line{Text: l.Text, Cut: l.Cut}, time.Now(), false)
	}
}
