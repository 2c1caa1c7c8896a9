package live

import (
	"context"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// CloseOrphan closes a run whose tool, wrapper and observer have all ended, and returns its
// run.json. It leaves alone a run that is in use, closed or part of a log file, a group, and a copy
// of another machine's run.
func CloseOrphan(ctx context.Context, d rundir.Directory, tools tool.Set) (rundir.Meta, error) {
	meta, err := d.Load()
	if err != nil || meta.Closed() || meta.Log != nil || meta.Mirror != nil || meta.IsGroup() || d.Busy(&meta) {
		return meta, err
	}
	f := ingest.NewFeed(tools.ByName(meta.Tool), &meta)
	if err := f.ReadAll(ctx, d); err != nil {
		return meta, err
	}
	f.Close(meta.Axis(clock.System).Now())
	if err := ctx.Err(); err != nil {
		return meta, err
	}
	return d.Update(func(m *rundir.Meta) {
		if m.Closed() || d.Busy(m) {
			return // another process took it in the meantime
		}
		if !m.Ended() {
			end := d.LastWrite(m.StartedAt, m.Axis(clock.System).Ahead())
			m.EndedAt = &end
		}
		m.Conclude(f.Output())
		now := m.Axis(clock.System).Now().UTC()
		m.ClosedAt = &now
	})
}
