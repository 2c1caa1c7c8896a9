package ingest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/benchwatch/benchwatch/agent/follow"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// Read reads what is known of a run from its directory, with the same parser that
// reads it live. With a nil t that is only what is in run.json. The error matches
// fs.ErrNotExist if there is no such run; after any other error about the output
// the Snapshot has what could be read.
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

// ReadAll reads a run's output as far as it exists now.
func (f *Feed) ReadAll(ctx context.Context, dir rundir.Directory, meta *rundir.Meta) error {
	if meta.Log != nil {
		return f.readPart(ctx, dir, meta.Log)
	}
	done := make(chan struct{})
	close(done)
	var err error
	for _, s := range []struct {
		name   string
		stream tool.Stream
	}{{rundir.StdoutFile, tool.Stdout}, {rundir.StderrFile, tool.Stderr}} {
		e := f.Follow(ctx, dir.Path(s.name), s.stream, nil, done)
		if errors.Is(e, fs.ErrPermission) {
			return fmt.Errorf("the output of another user is not readable: %w", fs.ErrPermission)
		}
		err = errors.Join(err, e)
	}
	return err
}

// readPart reads the part of a user's log file that is this run.
func (f *Feed) readPart(ctx context.Context, dir rundir.Directory, src *rundir.LogSource) error {
	if !dir.MayFollowLog() {
		return fmt.Errorf("log file %s is named by another user's run: not read", src.Path)
	}
	if now, err := rundir.Identify(src.Path); err != nil || now.Device != src.Device || now.Inode != src.Inode {
		return fmt.Errorf("log file %s was replaced since it was followed", src.Path)
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

// readSection parses what r holds, to its end.
func (f *Feed) readSection(r *io.SectionReader) error {
	lines := bufio.NewReaderSize(r, int(min(r.Size()+1, follow.DefaultMaxLine)))
	for {
		text, err := lines.ReadSlice('\n')
		cut := errors.Is(err, bufio.ErrBufferFull)
		if len(text) > 0 {
			f.line(tool.Line{Text: bytes.TrimSuffix(text, []byte("\n")), Cut: cut}, time.Time{}, false)
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		if errors.Is(err, io.EOF) {
			f.Close(time.Time{})
			return nil
		}
		if err != nil {
			return err
		}
	}
}
