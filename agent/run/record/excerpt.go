package record

import (
	"context"
	"maps"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// ExcerptSlack is how far an interval may reach beyond the part of a run to which it belongs, in seconds: the axis of a
// tool's intervals is not exact.
const ExcerptSlack = 0.2

// Excerpt returns a part of the run as a run: its axis begins where the part begins, and the tool ends where the part
// ends. It has the intervals within the part, and their means instead of the tool's summary. Values that are only known
// for the whole run are absent: percentiles, messages, statements, drain. Settings that changed during the run are
// absent if the part is too short to contain a reading.
func (h *History) Excerpt(ctx context.Context, part series.Span) (*History, error) {
	e := &History{Zero: h.At(part.From), dir: h.dir, tool: h.tool, part: Whole, within: series.Span{To: part.To - part.From}}
	meta := h.Snapshot.Meta
	end := h.At(part.To)
	meta.StartedAt, meta.ClockStartedAt, meta.EndedAt = e.Zero, &e.Zero, &end
	if meta.Clock != nil {
		c := *meta.Clock
		c.Steps = slices.DeleteFunc(slices.Clone(c.Steps), func(s rundir.ClockStep) bool {
			at := h.Elapsed(s.At)
			return at < part.From || at > part.To
		})
		meta.Clock = &c
	}
	meta.Outcome, meta.Reason, meta.Drain = rundir.Succeeded, "", nil
	rows, previous := &ingest.Intervals{}, 0.0
	err := h.EachInterval(ctx, func(all *ingest.Intervals) error {
		for i, elapsed := range all.Elapsed {
			if previous >= part.From-ExcerptSlack && elapsed <= part.To+ExcerptSlack {
				rows.CopyRow(all, i, elapsed-part.From)
			}
			previous = elapsed
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	e.Intervals = newIntervals()
	e.Intervals.add(rows, Whole)
	e.Intervals.Settle()
	e.Snapshot = rows.Excerpt(meta, &h.Snapshot, h.tool.IncludesFailures(meta.Verb))
	e.Settings = h.Settings.during(h, part)
	if err := e.readHosts(ctx); err != nil {
		return nil, err
	}
	return e, e.ReadServers(ctx, nil)
}

// during returns the settings at the end of a part of a run.
func (all SettingsHistory) during(h *History, part series.Span) SettingsHistory {
	isRead := part.To-part.From > SettingsEvery.Seconds()+1
	var excerpt SettingsHistory
	for i := range all {
		t := TargetSettings{ServerSettings: all[i].ServerSettings}
		if h.Elapsed(t.At) > part.To {
			continue
		}
		t.Settings = maps.Clone(t.Settings)
		for _, c := range all[i].Changes {
			switch {
			case c.Name == VersionSetting:
			case !isRead || c.After == "":
				delete(t.Settings, c.Name)
			case h.Elapsed(c.At) <= part.To:
				t.Settings[c.Name] = c.After
			}
		}
		excerpt = append(excerpt, t)
	}
	return excerpt
}
