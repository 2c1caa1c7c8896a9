package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Show copies a run's two output files to out and errw while they grow, until finish is closed
// and both are read to their ends. If a writer fails (a closed terminal), Show drops it and the
// other continues. It reads both at each change, so lines appear in the order in which they were
// written, except for lines of the same instant.
func Show(ctx context.Context, dir rundir.Directory, out, errw io.Writer, log *slog.Logger, finish <-chan struct{}) error {
	outputs := []*shown{{name: rundir.StderrFile, to: errw}, {name: rundir.StdoutFile, to: out}}
	for _, m := range outputs {
		f, err := os.Open(dir.Path(m.name))
		if err != nil {
			return fmt.Errorf("show the tool's output: %w", err)
		}
		defer f.Close()
		m.from = f
	}
	var wake <-chan struct{}
	if notifier, err := follow.NewNotifier(log); err == nil { // otherwise polling is enough
		var running sync.WaitGroup
		defer running.Wait()
		var stop, cancel context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		running.Go(func() { notifier.Run(ctx) })
		wake, cancel = notifier.Subscribe(string(dir), rundir.StdoutFile, rundir.StderrFile)
		defer cancel()
	}
	tick := time.NewTicker(follow.DefaultPoll)
	defer tick.Stop()
	for {
		last := false
		select {
		case <-finish:
			last = true
		default:
		}
		for _, m := range outputs {
			if err := m.copy(); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-finish:
		case <-wake:
		case <-tick.C:
		}
	}
}

// shown is a file and its destination.
type shown struct {
	name string
	from *os.File
	to   io.Writer
	buf  [16 << 10]byte
}

// copy copies new data.
func (m *shown) copy() error {
	for m.to != nil {
		n, err := m.from.Read(m.buf[:])
		if n > 0 {
			if _, werr := m.to.Write(m.buf[:n]); werr != nil {
				m.to = nil
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("show the tool's output: %w", err)
		}
	}
	return nil
}
