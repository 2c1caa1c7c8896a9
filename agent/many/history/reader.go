// Package history reads the runs of a data directory as rows, and finds levels of a measure over
// months.
package history

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Counts reports whether a run belongs in a history: it succeeded and did more than fill or empty
// tables.
func Counts(m *rundir.Meta) bool {
	return m.Outcome == rundir.Succeeded && !m.IsPreparation()
}

// MaxRuns is the maximum number of runs that a Reader returns: the newest ones.
const MaxRuns = 10_000

// Reader reads the runs of a data directory. It reads each ended run once.
type Reader struct {
	dataDir string
	only    []string
	tools   func() tool.Set

	mu   sync.Mutex
	runs map[string]*run // by id
}

// run is what the reader keeps of one run.
type run struct {
	size   int64 // size of run.json
	at     time.Time
	meta   rundir.Meta
	row    *review.Row // nil: not read
	whole  bool        // row includes observed values
	failed bool        // it can't be read
}

// NewReader returns a reader of all runs, or only of those with these ids.
func NewReader(dataDir string, only []string, tools func() tool.Set) *Reader {
	return &Reader{dataDir: dataDir, only: only, tools: tools, runs: map[string]*run{}}
}

// Query selects runs.
type Query struct {
	// Wanted selects runs by their facts, in addition to Counts; nil: all.
	Wanted func(*rundir.Meta) bool
	// Observed: rows include the observed values of servers and machines.
	Observed bool
	// Newest is the maximum number of returned runs; 0: MaxRuns.
	Newest int
}

// Rows returns the runs, oldest first, and how many older ones were left out. It leaves out
// unreadable runs, too.
func (r *Reader) Rows(ctx context.Context, q Query) (rows []review.Row, older int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.list(); err != nil {
		return nil, 0, err
	}
	var chosen []string
	for id, kept := range r.runs {
		if Counts(&kept.meta) && (q.Wanted == nil || q.Wanted(&kept.meta)) {
			chosen = append(chosen, id)
		}
	}
	slices.SortFunc(chosen, func(a, b string) int { return r.runs[a].meta.StartedAt.Compare(r.runs[b].meta.StartedAt) })
	newest := q.Newest
	if newest <= 0 || newest > MaxRuns {
		newest = MaxRuns
	}
	older = max(0, len(chosen)-newest)
	for _, id := range chosen[older:] {
		kept := r.runs[id]
		if kept.failed {
			continue
		}
		if kept.row == nil || q.Observed && !kept.whole {
			row, err := r.read(ctx, id, q.Observed)
			if ctx.Err() != nil {
				return nil, 0, ctx.Err()
			}
			if err != nil {
				kept.failed = true
				continue
			}
			kept.row, kept.whole = &row, q.Observed
		}
		rows = append(rows, *kept.row)
	}
	return rows, older, nil
}

// list updates the list of runs. A changed run.json is read again.
func (r *Reader) list() error {
	ids, err := rundir.List(r.dataDir)
	if err != nil {
		return err
	}
	if len(r.only) > 0 {
		ids = slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(r.only, id) })
	}
	there := map[string]bool{}
	for _, id := range ids {
		info, err := os.Stat(rundir.At(r.dataDir, id).Path(rundir.MetaFile))
		if err != nil {
			continue
		}
		if known := r.runs[id]; known == nil || known.size != info.Size() || !known.at.Equal(info.ModTime()) {
			meta, err := rundir.At(r.dataDir, id).Load()
			if err != nil {
				continue
			}
			r.runs[id] = &run{size: info.Size(), at: info.ModTime(), meta: meta}
		}
		there[id] = true
	}
	maps.DeleteFunc(r.runs, func(id string, _ *run) bool { return !there[id] })
	return nil
}

func (r *Reader) read(ctx context.Context, id string, observed bool) (review.Row, error) {
	dir := rundir.At(r.dataDir, id)
	if !observed {
		snap, err := ingest.Read(ctx, dir, r.tools())
		return review.NewRow(&snap), err
	}
	h, err := record.Read(ctx, dir, r.tools())
	if err != nil {
		return review.Row{}, err
	}
	if errors.Is(h.Damage.Output, fs.ErrPermission) {
		return review.Row{}, h.Damage.Output
	}
	return review.NewObservedRow(h).WithoutDetails(), nil
}

// Settings returns the settings of a run's servers, nil if none were recorded.
func (r *Reader) Settings(id string) map[string]string {
	return SettingsIn(rundir.At(r.dataDir, id))
}

// OthersIn returns the share of the CPU of its tool's machine that other programs took during the run in a directory,
// unknown if that was not recorded.
func OthersIn(ctx context.Context, dir rundir.Directory, tools tool.Set) float64 {
	h, err := record.Read(ctx, dir, tools)
	if err != nil {
		return series.Unknown()
	}
	row := review.NewObservedRow(h)
	share, _ := row.OtherPrograms()
	return share
}

// SettingsIn returns the settings of the servers of the run in a directory, nil if none were
// recorded.
func SettingsIn(dir rundir.Directory) map[string]string {
	recorded, err := record.ReadSettings(dir)
	if err != nil {
		return nil
	}
	return review.SettingsOf(recorded)
}

// KindOf returns the facts that separate runs into series: KindFacts and others.
func KindOf(others []string) []string {
	by := slices.Clone(KindFacts)
	for _, name := range others {
		if !slices.Contains(by, name) {
			by = append(by, name)
		}
	}
	return by
}
