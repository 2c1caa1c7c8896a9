package run

import (
	"context"
	"time"

	"github.com/benchwatch/benchwatch/agent/tool"
)

// CloseOrphan closes a run that nobody is left to close: the tool is gone, and so are
// its wrapper and any observer. As for one that an agent finds, its output tells the
// result: it succeeded if the tool came to its own summary, else it is lost. A run that
// is busy, closed or held in a log file is left as it is.
func (d Directory) CloseOrphan(ctx context.Context, t *tool.Tool) (Meta, error) {
	meta, err := d.Load()
	if err != nil || meta.Closed() || meta.Log != nil || d.Busy(&meta) {
		return meta, err
	}
	f := newFeed(t, &meta)
	if err := f.readAll(ctx, d, &meta); err != nil {
		return meta, err
	}
	f.close(time.Now())
	if err := ctx.Err(); err != nil {
		return meta, err
	}
	return d.Update(func(m *Meta) {
		if m.Closed() || d.Busy(m) {
			return // taken up by somebody meanwhile
		}
		if !m.Ended() {
			end := lastWrite(d, m.StartedAt)
			m.EndedAt = &end
			m.Result, m.Reason = Lost, "nobody saw the tool's exit status"
		}
		switch {
		case f.state.failed != "" && m.Result != Interrupted:
			m.Result, m.Reason = Failed, f.state.failed
		case m.Result == Lost && f.state.summary != nil:
			m.Result, m.Reason = Succeeded, ""
		}
		now := time.Now().UTC()
		m.ClosedAt = &now
	})
}
