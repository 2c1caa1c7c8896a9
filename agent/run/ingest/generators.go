package ingest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/group"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// GeneratorsOf joins the logs of one run's generators: logs whose paths differ only in what
// {generator} of the pattern matches.
func GeneratorsOf(logs []Log, pattern *PathLabels) []Log {
	var joined []Log
	at := map[string]int{}
	for _, l := range logs {
		run, ok := pattern.withoutGenerator(l.Path)
		if !ok {
			joined = append(joined, l)
			continue
		}
		run = l.Tool.Name + " " + run
		if i, known := at[run]; known {
			joined[i].Generators = append(joined[i].Generators, l.Path)
			continue
		}
		at[run] = len(joined)
		joined = append(joined, l)
	}
	return joined
}

// journal merges the logs of the generators line by line into the journal of their group, a new
// file in the data directory. It returns the only part of the group.
func (im *Import) journal(ctx context.Context, logs []generatorLog) (path string, p *Part, err error) {
	p = &Part{}
	for _, log := range logs {
		parts, err := splitFile(ctx, log.path, im.Tool)
		if err != nil {
			return "", nil, err
		}
		if len(parts) != 1 {
			return "", nil, fmt.Errorf("the log of a generator must have one run, and %s has %d", log.name, len(parts))
		}
		p.Seconds = max(p.Seconds, parts[0].Seconds)
		abs, err := filepath.Abs(log.name)
		if err != nil {
			return "", nil, err
		}
		var meta rundir.Meta
		meta.Conclude(parts[0].Feed.Output())
		p.members = append(p.members, rundir.Member{Log: abs, Outcome: meta.Outcome, Reason: meta.Reason})
		if began := parts[0].Began; !began.IsZero() && (p.Began.IsZero() || began.Before(p.Began)) {
			p.Began = began
		}
	}
	if err := os.MkdirAll(im.DataDir, 0o755); err != nil {
		return "", nil, fmt.Errorf("create data directory: %w", err)
	}
	out, err := os.CreateTemp(im.DataDir, ".journal-")
	if err != nil {
		return "", nil, fmt.Errorf("write journal: %w", err)
	}
	err = writeJournal(ctx, out, logs)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = im.followJournal(ctx, out.Name(), p, len(logs))
	}
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(out.Name()))
	}
	return out.Name(), p, nil
}

func (im *Import) followJournal(ctx context.Context, path string, p *Part, generators int) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	p.End = info.Size()
	p.Feed = NewFeed(im.Tool, &rundir.Meta{Origin: rundir.Origin{Group: &rundir.Group{Generators: generators}}})
	over := make(chan struct{})
	close(over)
	if err := p.Feed.Follow(ctx, path, tool.Stdout, nil, over); err != nil {
		return err
	}
	p.Feed.Close(p.Began)
	return nil
}

func writeJournal(ctx context.Context, w io.Writer, generators []generatorLog) error {
	out := bufio.NewWriter(w)
	logs := make([]*bufio.Scanner, len(generators))
	for i, generator := range generators {
		in, err := follow.OpenFile(generator.path)
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		defer in.Close()
		logs[i] = bufio.NewScanner(in)
		logs[i].Buffer(nil, 2*follow.DefaultMaxLine)
		_, _ = out.Write(group.AppendStart(nil, i+1, 0)) // out keeps the error
	}
	for left := len(logs); left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, lines := range logs {
			switch {
			case lines == nil:
			case lines.Scan():
				line := lines.Bytes()
				_, _ = out.Write(group.AppendLine(nil, i+1, group.Stdout, line[:min(len(line), follow.DefaultMaxLine-16)]))
			default:
				if err := lines.Err(); err != nil {
					return fmt.Errorf("read log %s: %w", generators[i].name, err)
				}
				_, _ = out.Write(group.AppendLine(nil, i+1, group.Control, []byte(group.End)))
				logs[i] = nil
				left--
			}
		}
	}
	return out.Flush()
}
