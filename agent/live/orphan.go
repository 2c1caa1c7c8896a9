package live

import (
	"context"
	"time"

	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// CloseOrphan closes a run that nobody is left to close: the tool is gone, and so are
// its wrapper and any observer. As for one that an agent finds, its output tells the
// result: it succeeded if the tool came to its own summary, else it is lost. A run that
// is busy, closed or held in a log file is left as it is.
func CloseOrphan(ctx context.Context, d rundir.Directory, t *tool.Tool) (rundir.Meta, error) {
	meta, err := d.Load()
	if err != nil || meta.Closed() || meta.Log != nil || d.Busy(&meta) {
		return meta, err
	}
	f := ingest.NewFeed(t, &meta)
	if err := f.ReadAll(ctx, d, &meta); err != nil {
		return meta, err
	}
	f.Close(time.Now())
	if err := ctx.Err(); err != nil {
		return meta, err
	}
	return d.Update(func(m *rundir.Meta) {
		if m.Closed() || d.Busy(m) {
			return // taken up by somebody meanwhile
		}
		if !m.Ended() {
			end := lastWrite(d, m.StartedAt)
			m.EndedAt = &end
			m.Result, m.Reason = rundir.Lost, "nobody saw the tool's exit status"
		}
		switch {
		case f.State.Failed != "" && m.Result != rundir.Interrupted:
			m.Result, m.Reason = rundir.Failed, f.State.Failed
		case m.Result == rundir.Lost && f.State.Summary != nil:
			m.Result, m.Reason = rundir.Succeeded, ""
		}
		now := time.Now().UTC()
		m.ClosedAt = &now
	})
}
