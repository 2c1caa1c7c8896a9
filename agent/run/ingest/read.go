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

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Read reads a run from its directory with the parser of live runs. If its tool is unknown, it reads
// only run.json. The error matches fs.ErrNotExist if there is no such run; after any other error about
// the output, the Snapshot has what could be read.
func Read(ctx context.Context, dir rundir.Directory, tools tool.Set) (Snapshot, error) {
	meta, err := dir.Load()
	if err != nil {
		return Snapshot{}, err
	}
	f := NewFeed(tools.ByName(meta.Tool), &meta)
	err = f.ReadAll(ctx, dir)
	f.Close(time.Now())
	return f.Snapshot(meta, time.Now()), err
}

// ReadAll reads a run's output as far as it exists now.
func (f *Feed) ReadAll(ctx context.Context, dir rundir.Directory) error {
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
	return errors.Join(err, f.ReadLatencies(ctx, dir))
}

// readSection parses r as one stream to its end, or until done returns an error.
func (f *Feed) readSection(done func() error, stream tool.Stream, r *io.SectionReader) error {
	lines := bufio.NewReaderSize(r, int(min(r.Size()+1, follow.DefaultMaxLine)))
	for n := 0; ; n++ {
		if n%1000 == 0 && done() != nil {
			return done()
		}
		text, err := lines.ReadSlice('\n')
		cut := errors.Is(err, bufio.ErrBufferFull)
		if terminated := bytes.HasSuffix(text, []byte("\n")); len(text) > 0 && (terminated || cut || !f.Growing) {
			f.line(tool.Line{Stream: stream, Text: follow.Text(bytes.TrimSuffix(text, []byte("\n"))), Cut: cut}, time.Time{}, false)
		}
		for errors.Is(err, bufio.ErrBufferFull) && done() == nil {
			_, err = lines.ReadSlice('\n')
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
