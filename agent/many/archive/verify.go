package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Verify reads every object of a run and compares it with its checksum. The errors are
// of the run and wrap ErrDamaged, or one wraps ErrUnavailable.
func (a *Archive) Verify(ctx context.Context, x *Index) []error {
	var problems []error
	for i := range x.Files {
		f := &x.Files[i]
		if f.Omitted {
			continue
		}
		whole, damaged := sha256.New(), false
		for _, p := range f.Parts {
			data, err := a.part(ctx, x, f, p)
			if err != nil {
				if !errors.Is(err, ErrDamaged) {
					return []error{err}
				}
				problems = append(problems, err)
				damaged = true
				continue
			}
			whole.Write(data)
		}
		if !damaged && hex.EncodeToString(whole.Sum(nil)) != f.SHA256 {
			problems = append(problems, fmt.Errorf("run %s is %w: %s does not match its checksum", x.ID, ErrDamaged, f.Name))
		}
	}
	return problems
}

// leftover is how old an object must be that no index names before Prune removes it:
// an upload may still be in progress.
const leftover = 24 * time.Hour

// Pruning is what Prune removes.
type Pruning struct {
	// Runs started before the limit.
	Runs []*Index
	// Superseded are old versions of runs that have a newer one.
	Superseded []Entry
	// Leftovers are objects of uploads that never ended.
	Leftovers []string
}

// Empty reports whether there is nothing to remove.
func (p *Pruning) Empty() bool { return len(p.Runs)+len(p.Superseded)+len(p.Leftovers) == 0 }

// PlanPrune returns what would be removed: runs that started before a time, unless it is
// zero, and what no run needs. Damaged runs stay with all their objects.
func (a *Archive) PlanPrune(ctx context.Context, before, now time.Time, problem func(error)) (*Pruning, error) {
	all, err := a.Versions(ctx)
	if err != nil {
		return nil, err
	}
	indexes, err := a.Indexes(ctx, all, problem)
	if err != nil {
		return nil, err
	}
	var plan Pruning
	current := map[Entry]bool{}
	for _, e := range newest(all) {
		current[e] = true
	}
	needed := map[string]bool{} // objects
	readable := map[Entry]bool{}
	keepFolder := map[string]bool{}
	for _, x := range indexes {
		readable[x.Entry] = true
		switch {
		case !before.IsZero() && x.Meta.StartedAt.Before(before):
			if current[x.Entry] {
				plan.Runs = append(plan.Runs, x)
			} else {
				plan.Superseded = append(plan.Superseded, x.Entry)
			}
			continue
		case !current[x.Entry] && now.Sub(x.Uploaded) > leftover:
			plan.Superseded = append(plan.Superseded, x.Entry)
			continue
		}
		for _, name := range x.objects() {
			needed[name] = true
		}
	}
	for _, e := range all {
		if !readable[e] {
			keepFolder[e.folder()] = true
		}
	}
	_, others, err := a.bundles(ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range others {
		if now.Sub(b.changed) > leftover { // else it may be read
			plan.Leftovers = append(plan.Leftovers, b.name)
		}
	}
	going := map[string]bool{}
	for _, x := range plan.Runs {
		for _, name := range x.objects() {
			going[name] = true
		}
	}
	err = a.bucket.list(ctx, runsFolder, func(o object) {
		if needed[o.name] || going[o.name] || keepFolder[folderOf(o.name)] || now.Sub(o.changed) < leftover {
			return
		}
		plan.Leftovers = append(plan.Leftovers, o.name)
	})
	return &plan, err
}

func (x *Index) objects() []string {
	var names []string
	for _, f := range x.Files {
		for _, p := range f.Parts {
			names = append(names, p.object(x.Entry))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// folderOf is the folder of an object below runs/.
func folderOf(name string) string {
	for i := len(runsFolder); i < len(name); i++ {
		if name[i] == '/' {
			return name[:i+1]
		}
	}
	return name
}

// Prune removes what a plan has. Indexes go first: a run disappears as a whole. What
// became visible since the plan was made stays.
func (a *Archive) Prune(ctx context.Context, plan *Pruning) error {
	gone := map[Entry]bool{}
	for _, x := range plan.Runs {
		gone[x.Entry] = true
	}
	for _, e := range plan.Superseded {
		gone[e] = true
	}
	digits := map[string]bool{}
	for e := range gone {
		digits[e.digits()] = true
		if err := a.bucket.remove(ctx, e.object()); err != nil {
			return err
		}
	}
	if err := a.removeBundles(ctx, digits); err != nil {
		return err
	}
	now, err := a.Versions(ctx)
	if err != nil {
		return err
	}
	kept, err := a.Indexes(ctx, now, func(error) {})
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, x := range kept {
		for _, name := range x.objects() {
			needed[name] = true
		}
	}
	names := plan.Leftovers
	for _, x := range plan.Runs {
		names = append(names, x.objects()...)
	}
	for _, name := range names {
		if needed[name] {
			continue
		}
		if err := a.bucket.remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
