package ingest

import (
	"context"
	"io"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Backlog is what a log has already when it is opened: lines written at unknown times.
type Backlog struct {
	// Written is when the last of it was written, and End where it ends.
	Written time.Time
	End     int64
	parts   []*Part
	starts  []Start
}

// ReadBacklog finds the runs that a log has from offset to its end. written is when it was changed last.
func ReadBacklog(
	ctx context.Context, log *io.SectionReader, t *tool.Tool, offset int64, written time.Time,
) (Backlog, error) {
	b := Backlog{Written: written, End: log.Size()}
	if offset >= log.Size() {
		return b, nil
	}
	var err error
	if b.parts, err = SplitLog(ctx, log, t, offset, time.Time{}); err == nil {
		b.starts = Starts(b.parts, time.Time{}, Start{}, written)
	}
	return b, err
}

// LastRun is where the last run in the backlog begins; false without one.
func (b *Backlog) LastRun() (offset int64, ok bool) {
	if len(b.parts) == 0 {
		return 0, false
	}
	return b.parts[len(b.parts)-1].Offset, true
}

// Start is when the run to which the byte at an offset belongs began; false if that byte is before the first run. An
// estimated start follows from when the log was written.
func (b *Backlog) Start(offset int64) (start time.Time, estimated, ok bool) {
	for i, p := range b.parts {
		if offset >= p.Offset {
			start, estimated, ok = b.starts[i].At, b.starts[i].Source.IsEstimated(), true
		}
	}
	return start, estimated, ok
}
