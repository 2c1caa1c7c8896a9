package generator

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// ErrNoGroup is returned by Find if no generator of a group has a run.
var ErrNoGroup = errors.New("no run of the group")

// Find returns the run directory of a group. If it does not exist, Find creates it from the
// generators' runs, which were started without a machine that knows all of them.
func Find(dataDir, name string) (rundir.Directory, error) {
	if err := rundir.CheckGroup(name, 1); err != nil {
		return "", err
	}
	dir := rundir.At(dataDir, name)
	meta, err := dir.Load()
	if err == nil {
		if !meta.IsGroup() {
			return "", fmt.Errorf("run %s is no group", name)
		}
		if meta.IsCopy() {
			return "", fmt.Errorf("group %s is recorded by %s: attach to it there", name, meta.Mirror.Host)
		}
		return dir, nil
	}
	ids, err := rundir.List(dataDir)
	if err != nil {
		return "", err
	}
	var all []rundir.Meta
	for _, id := range ids {
		if !strings.HasPrefix(id, rundir.GeneratorID(name, 0)[:len(name)+2]) {
			continue
		}
		m, err := rundir.At(dataDir, id).Load()
		if err != nil || !m.IsGenerator() || m.Group.Name != name {
			continue
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		return "", fmt.Errorf("%w %s in %s", ErrNoGroup, name, dataDir)
	}
	slices.SortStableFunc(all, func(a, b rundir.Meta) int { return a.StartedAt.Compare(b.StartedAt) })
	of := Meta(&all[0], name)
	of.Threads, of.RatePerSecond = together(all)
	dir, claim, err := rundir.Create(dataDir, of)
	if errors.Is(err, rundir.ErrExists) {
		return rundir.At(dataDir, name), nil // by another process
	}
	if err != nil {
		return "", err
	}
	claim.Release()
	return dir, nil
}

// together returns the threads and the rate of a group; 0 (unknown) if its generators differ and
// some have no run yet.
func together(known []rundir.Meta) (threads, rate int) {
	n, run, equal := known[0].Group.Generators, &known[0], true
	for i := range known {
		threads, rate = threads+known[i].Threads, rate+known[i].RatePerSecond
		equal = equal && known[i].Threads == run.Threads && known[i].RatePerSecond == run.RatePerSecond
	}
	switch {
	case len(known) == n:
		return threads, rate
	case equal:
		return run.Threads * n, run.RatePerSecond * n
	}
	return 0, 0
}

// Meta returns the facts of a group from one of its generators, without the facts that are sums
// over generators.
func Meta(run *rundir.Meta, name string) rundir.Meta {
	n := run.Group.Generators
	g := rundir.Meta{
		ID: name, Title: Title(strings.TrimSuffix(run.Title, TitleOf("", run.Group.Generator, n)), n),
		Labels: run.Labels, Parameters: run.Parameters,
		Benchmark: rundir.Benchmark{
			Tool: run.Tool, Verb: run.Verb, Workload: run.Workload, Target: run.Target, Database: run.Database,
			DurationSeconds: run.DurationSeconds, ReportIntervalSeconds: run.ReportIntervalSeconds,
			LatencyPercentile: run.LatencyPercentile,
		},
		Placement: rundir.Placement{Place: run.Place, Selection: run.Selection},
		Process:   rundir.Process{Command: run.Command},
		Closing:   rundir.Closing{DrainTimeoutSeconds: run.DrainTimeoutSeconds},
		Timing:    rundir.Timing{StartedAt: run.StartedAt, Clock: run.Clock},
		Origin:    rundir.Origin{Group: &rundir.Group{Name: name, Generators: n, StartAt: run.Group.StartAt}},
	}
	if at := run.Group.StartAt; at != nil {
		g.StartedAt = *at
	}
	return g
}

// Title returns the title of a group, derived from the title of a run.
func Title(title string, generators int) string {
	return fmt.Sprintf("%s, %d generators", title, generators)
}

// TitleOf returns the title of a generator's run.
func TitleOf(title string, number, generators int) string {
	return fmt.Sprintf("%s, generator %d of %d", title, number, generators)
}
