// Package retention is the rule by which old runs are removed, for the agent and for `benchwatch runs rm`.
//
// A [Rule] names the runs beyond its limits. Some of them are kept in spite of it: a [Plan] says which, and why. Its
// Remove checks that again for each run at the moment of its removal.
package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/archive"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Rule has the limits of a data directory. 0 means no limit.
type Rule struct {
	// MaxAge is how long ago a run may have been closed. A run from elsewhere, imported or fetched from an archive,
	// counts from its arrival.
	MaxAge time.Duration
	// MaxCount is the number of runs, MaxSize their space on the disk in bytes, both counted from the newest run.
	MaxCount int
	MaxSize  int64
}

// Reason is the limit that a run is beyond.
type Reason string

const (
	Age   Reason = "age"
	Count Reason = "count"
	Size  Reason = "size"
	// Chosen: All applies.
	Chosen Reason = "chosen"
)

// Reasons are all limits.
var Reasons = []Reason{Age, Count, Size}

// Labels that keep a run, unless their value is no, false or 0.
const (
	KeepLabel     = "keep"
	BaselineLabel = "baseline"
)

// Options say to which runs a rule applies.
type Options struct {
	DataDir string
	Rule
	// Wanted chooses the runs that the limits count; nil: all.
	Wanted func(*rundir.Meta) bool
	// All: every wanted run is beyond the limits.
	All bool
	// Archive is the configured archive, without which runs need not be uploaded.
	Archive *archive.Archive
	// CopiedFor is how long after a run was closed peers would send it again.
	CopiedFor time.Duration
	Now       time.Time
}

// Run is a run beyond a limit.
type Run struct {
	Dir  rundir.Directory
	Meta rundir.Meta
	// At is when it was closed or, if it came from elsewhere, arrived.
	At time.Time
	// Bytes is its space on the disk.
	Bytes  int64
	Beyond Reason
	// Kept is why it stays nevertheless; empty: it is to be removed.
	Kept string
}

// Plan has the runs beyond the limits, the oldest first.
type Plan struct {
	Runs    []Run
	keeping *keeping
}

// New makes a plan, and removes nothing. Folders that are no runs, or whose run.json is damaged, are neither counted
// nor planned. It fails if the archive can't be asked.
func New(ctx context.Context, o Options) (*Plan, error) {
	ids, err := rundir.List(o.DataDir)
	if err != nil {
		return nil, err
	}
	var all []Run
	for _, id := range ids {
		dir := rundir.At(o.DataDir, id)
		meta, err := dir.Load()
		if err != nil || !dir.Within(o.DataDir) {
			continue
		}
		all = append(all, Run{Dir: dir, Meta: meta, At: closedAt(dir, &meta)})
	}
	wanted := slices.Clone(all)
	if o.Wanted != nil {
		wanted = slices.DeleteFunc(wanted, func(r Run) bool { return !o.Wanted(&r.Meta) })
	}
	slices.SortFunc(wanted, func(a, b Run) int { return cmp.Or(b.At.Compare(a.At), strings.Compare(b.Meta.ID, a.Meta.ID)) })
	beyond, err := o.apply(ctx, wanted)
	if err != nil || len(beyond) == 0 {
		return &Plan{}, err
	}
	k, err := newKeeping(ctx, &o, all)
	if err != nil {
		return nil, err
	}
	for i := range beyond {
		beyond[i].Kept = k.reason(beyond[i].Dir, &beyond[i].Meta)
	}
	slices.Reverse(beyond)
	return &Plan{beyond, k}, ctx.Err()
}

// closedAt returns when a run was closed or, if it came from elsewhere, arrived. An open run is as old as its start.
func closedAt(dir rundir.Directory, m *rundir.Meta) time.Time {
	at := m.StartedAt
	if m.Closed() {
		at = *m.ClosedAt
	}
	if m.Import != nil || dir.Adopted() {
		if info, err := os.Lstat(dir.Path(rundir.MetaFile)); err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at
}

// apply returns the runs beyond the limits. runs are the newest first.
func (o *Options) apply(ctx context.Context, runs []Run) (beyond []Run, err error) {
	var size int64
	for i := range runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := &runs[i]
		if o.MaxSize > 0 {
			r.Bytes = r.Dir.Size()
			size += r.Bytes
		}
		switch {
		case o.All:
			r.Beyond = Chosen
		case o.MaxAge > 0 && o.Now.Sub(r.At) > o.MaxAge:
			r.Beyond = Age
		case o.MaxCount > 0 && i >= o.MaxCount:
			r.Beyond = Count
		case o.MaxSize > 0 && size > o.MaxSize && i > 0: // the newest run stays, however large it is
			r.Beyond = Size
		default:
			continue
		}
		if o.MaxSize == 0 {
			r.Bytes = r.Dir.Size()
		}
		beyond = append(beyond, *r)
	}
	return beyond, nil
}

// keeping knows what else a run of a data directory is needed for.
type keeping struct {
	options *Options
	holds   func(rundir.Directory) bool // nil: no archive
	open    map[string]bool             // groups that are not closed
	sweeps  map[string]string           // the sweep that a run is part of
	logs    map[string]string           // the newest run of each log
}

func newKeeping(ctx context.Context, o *Options, all []Run) (k *keeping, err error) {
	k = &keeping{options: o, open: map[string]bool{}, logs: map[string]string{}, sweeps: sweep.Ongoing(o.DataDir)}
	if o.Archive != nil {
		if k.holds, err = o.Archive.Holds(ctx); err != nil {
			return nil, fmt.Errorf("which runs are uploaded is unknown, so none is removed: %w", err)
		}
	}
	newest := map[string]time.Time{}
	for i := range all {
		m := &all[i].Meta
		if m.Group != nil && !m.Closed() {
			k.open[m.Group.Name] = true
		}
		if m.Log != nil && !m.StartedAt.Before(newest[m.Log.Path]) {
			newest[m.Log.Path], k.logs[m.Log.Path] = m.StartedAt, m.ID
		}
	}
	return k, nil
}

// logInUse is how long after its last change a log file may still be written.
const logInUse = 24 * time.Hour

// reason returns why a run is kept, whatever the limits are; empty: for no reason.
func (k *keeping) reason(dir rundir.Directory, m *rundir.Meta) string {
	switch {
	case !m.Closed() || dir.Busy(m):
		return "it is not closed"
	case !dir.MayRemove():
		return "it belongs to another user"
	case m.Group != nil && k.open[m.Group.Name]:
		return "its group is not closed"
	case labelled(m, KeepLabel):
		return "it is labelled " + KeepLabel
	case labelled(m, BaselineLabel):
		return "it is a baseline"
	case k.sweeps[m.ID] != "":
		return "sweep " + k.sweeps[m.ID] + " is not over"
	case k.isPosition(m):
		return "an agent continues its log from it"
	case m.IsCopy() && k.options.Now.Sub(*m.ClosedAt) <= k.options.CopiedFor:
		return "its peer would send it again"
	case k.holds != nil && m.Replay == nil && !k.holds(dir): // replays are not archived
		return "it is not in the archive"
	}
	return ""
}

// labelled reports whether a run has a label that is not switched off.
func labelled(m *rundir.Meta, name string) bool {
	value, ok := m.Labels[name]
	return ok && !slices.Contains([]string{"no", "false", "0"}, strings.ToLower(value))
}

// isPosition reports whether an agent that starts would continue the run's log from it: the newest run of a log that
// is still written or, since a short file is recognised by all its bytes, any run of it.
func (k *keeping) isPosition(m *rundir.Meta) bool {
	if m.Log == nil || k.logs[m.Log.Path] != m.ID && m.Log.HeadSize >= rundir.HeadSize {
		return false
	}
	info, err := os.Stat(m.Log.Path)
	return err == nil && k.options.Now.Sub(info.ModTime()) <= logInUse
}

// errKept is returned for a run that is needed after all.
var errKept = errors.New("kept")

// Remove removes the runs that are not kept, the oldest first, and calls done after each. A run that was changed, is
// being changed or is gone since the plan was made stays as it is. The error has each run that could not be removed, and
// ctx's error.
func (p *Plan) Remove(ctx context.Context, done func(Run)) error {
	var failed []error
	for i := range p.Runs {
		r := &p.Runs[i]
		if r.Kept != "" {
			continue
		}
		if ctx.Err() != nil {
			return errors.Join(append(failed, ctx.Err())...)
		}
		err := r.Dir.RemoveIf(func(m *rundir.Meta) error {
			if p.keeping.reason(r.Dir, m) != "" || !m.StartedAt.Equal(r.Meta.StartedAt) {
				return errKept
			}
			return nil
		})
		switch {
		case err == nil:
			done(*r)
		case errors.Is(err, errKept), errors.Is(err, rundir.ErrLocked), r.Dir.Removed():
		default:
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// Count returns how many runs are to be removed.
func (p *Plan) Count() (n int) {
	for i := range p.Runs {
		if p.Runs[i].Kept == "" {
			n++
		}
	}
	return n
}

func (p *Plan) firstKept() *Run {
	return &p.Runs[slices.IndexFunc(p.Runs, func(r Run) bool { return r.Kept != "" })]
}
