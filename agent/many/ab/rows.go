package ab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// Rows returns the runs of the blocks by the block's index. In a toggled run each block counts as a run, without the
// seconds that carry over. Blocks without a value, control blocks and blocks that lead in are left out. read returns
// the record of a run; the error is about the records that it can't return.
func (p *Plan) Rows(ctx context.Context, blocks []Block, read func(run string) (*record.History, error)) (map[int]review.Row, error) {
	rows, failed := map[int]review.Row{}, map[string]error{}
	var h *record.History
	previous := ""
	for i := range blocks {
		b := &blocks[i]
		if b.Round < 0 || b.Arm == Control || b.Measured == nil || failed[b.Run] != nil {
			continue
		}
		var err error
		if b.Run != previous {
			h, err = read(b.Run)
			previous = b.Run
		}
		of := h
		if err == nil && p.Toggle != nil {
			of, err = h.Excerpt(ctx, p.Toggle.counted(h, b))
		}
		if err != nil {
			failed[b.Run] = fmt.Errorf("run %s: %w", b.Run, err)
			continue
		}
		row := review.NewObservedRow(of)
		if p.Toggle != nil {
			row.Labels = maps.Clone(row.Labels)
			if row.Labels == nil {
				row.Labels = map[string]string{}
			}
			maps.Copy(row.Labels, p.values(b.Arm))
		}
		rows[i] = row
	}
	var all []error
	for _, err := range failed {
		all = append(all, err)
	}
	return rows, errors.Join(all...)
}

// counted returns the part of the run's axis in which a block counts.
func (t *Toggle) counted(h *record.History, b *Block) series.Span {
	from := h.Elapsed(b.Began)
	return series.Span{From: from + math.Max(t.CarryOverSeconds, h.Intervals.Lengths.Median()), To: from + b.Seconds}
}
