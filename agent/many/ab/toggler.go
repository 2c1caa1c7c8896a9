package ab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Toggler carries out a comparison by switching a setting while one run goes on. Its blocks are the steps of the sweep,
// like blocks with their own runs.
type Toggler struct {
	Runner  *sweep.Runner
	Plan    *Plan
	Connect Connect

	dir      rundir.Directory
	done     chan struct{} // closed when the run has ended
	problem  string
	failed   error
	previous string  // the arm that is set
	interval float64 // usual seconds between two reports
}

// Run switches until the comparison is decided, the time is over, or the run ends. It always restores
// the setting.
func (t *Toggler) Run(ctx context.Context) (err error) {
	s := t.Runner.Sweep
	id, err := t.endOrphans(ctx, s)
	if err != nil || t.Plan.Over(Blocks(s)) != "" {
		return err
	}
	t.Runner.Notice("%s", t.Plan.Announce(s))
	originals, err := t.Plan.Toggle.originals(ctx, t.Connect)
	if err != nil {
		return err
	}
	j, err := openJournal(t.Runner.DataDir, id, originals)
	if err != nil {
		return err
	}
	defer func() {
		restored := j.restore(ctx, t.Connect)
		if restored == nil {
			t.Runner.Notice("restored: %s", texts(originals))
		}
		err = errors.Join(err, restored)
	}()
	if err := t.set(ctx, t.Plan.Arms[0].Name); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	t.dir, t.done = rundir.At(t.Runner.DataDir, id), make(chan struct{})
	go func() {
		defer close(t.done)
		t.problem, t.failed = t.Runner.Execute(running, &sweep.Step{RunID: id})
	}()
	err = t.switchBlocks(ctx)
	if err == nil { // the tool has still to report the end of the last block
		_, _ = t.pause(ctx, time.Duration(1.5*min(t.interval, t.Plan.Toggle.EverySeconds)*float64(time.Second)))
	}
	stop()
	<-t.done
	measured := t.measure(context.WithoutCancel(ctx), true)
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case err == nil && t.problem != "":
		err = errors.New(t.problem)
	case err == nil && t.failed != nil && !errors.Is(t.failed, context.Canceled):
		err = t.failed
	}
	return errors.Join(err, measured, s.Save())
}

func texts(changes []change) string {
	var all []string
	for i := range changes {
		all = append(all, strings.TrimSpace(changes[i].Server.Name+" "+changes[i].Text))
	}
	return strings.Join(all, "; ")
}

// endOrphans ends the runs that killed comparisons left, reads what their last blocks measured, and
// returns the id of the next run.
func (t *Toggler) endOrphans(ctx context.Context, s *sweep.Sweep) (next string, err error) {
	for n := 1; ; n++ {
		id := fmt.Sprintf("%s-run%d", s.ID, n)
		t.dir = rundir.At(t.Runner.DataDir, id)
		m, err := t.dir.Load()
		if errors.Is(err, fs.ErrNotExist) {
			t.dir = ""
			return id, nil
		}
		if err == nil && !m.Ended() && m.ToolAlive() {
			t.Runner.Notice("ending run %s, which a killed comparison left", id)
			_ = syscall.Kill(-m.PID, syscall.SIGINT) // it may have just ended
			if err := await(ctx, func() bool { return !m.ToolAlive() }); err != nil {
				return "", fmt.Errorf("run %s, which a killed comparison left, does not end: end process %d: %w", id, m.PID, err)
			}
		}
		isUnmeasured := func(step sweep.Step) bool {
			return step.RunID == id && step.State == sweep.Done && step.Measured == nil
		}
		if slices.ContainsFunc(s.Steps, isUnmeasured) {
			if err := errors.Join(t.measure(ctx, true), s.Save()); err != nil {
				return "", err
			}
		}
	}
}

// await waits until a condition holds, for 10 s at most.
func await(ctx context.Context, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for !holds() {
		if err := clock.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// set switches to the value of an arm.
func (t *Toggler) set(ctx context.Context, arm string) error {
	arm = t.Plan.alias(arm)
	if t.previous == arm {
		return nil
	}
	changes := t.Plan.Toggle.changes(t.Plan.values(arm)[ValueName])
	if err := apply(ctx, changes, t.Connect); err != nil {
		return err
	}
	t.previous = arm
	if t.dir != "" {
		err := marker.Append(t.dir, marker.Marker{Kind: marker.Point, Run: t.dir.ID(),
			Text: arm + ": " + texts(changes[:1]), Tags: []string{"ab"}, Start: time.Now()})
		if err != nil {
			t.Runner.Notice("  marker: %v", err)
		}
	}
	return nil
}

// switchBlocks runs one block after the other while the run goes on.
func (t *Toggler) switchBlocks(ctx context.Context) error {
	if err := t.awaitIntervals(ctx); err != nil {
		return err
	}
	s := t.Runner.Sweep
	for {
		step := s.Next()
		if step == nil {
			if !t.Plan.Extend(s) {
				return nil
			}
			step = s.Next()
		}
		if err := t.set(ctx, step.Values[sweep.ArmSet]); err != nil {
			return err
		}
		meta, err := t.dir.Load()
		if err != nil {
			return err
		}
		axis := meta.Axis(clock.System)
		step.State, step.RunID, step.Began = sweep.Running, t.dir.ID(), axis.At(clock.System.Boot()).UTC()
		if err := s.Save(); err != nil {
			return err
		}
		ended, err := t.pause(ctx, time.Duration(t.Plan.Toggle.EverySeconds*float64(time.Second)))
		if err != nil {
			return err
		}
		if ended {
			step.State, step.Reason = sweep.Skipped, "the run ended"
			t.Runner.Notice("the run ended before the comparison was decided: give the tool more time")
			return nil
		}
		step.State, step.Seconds = sweep.Done, axis.At(clock.System.Boot()).Sub(step.Began).Seconds()
		if err := t.measure(ctx, false); err != nil {
			return err
		}
		for _, line := range t.Plan.after(s, step) {
			t.Runner.Notice("[%d] %s", step.Number, line)
		}
		if err := s.Save(); err != nil {
			return err
		}
	}
}

// pause waits; ended is true if the run ended first.
func (t *Toggler) pause(ctx context.Context, d time.Duration) (ended bool, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-t.done:
		return true, nil
	case <-timer.C:
		return false, nil
	}
}

// awaitIntervals waits until the tool reports. Nothing is switched while the tool prepares or warms up.
func (t *Toggler) awaitIntervals(ctx context.Context) error {
	for {
		snapshot, err := ingest.Read(ctx, t.dir, t.Runner.Tools)
		if err == nil && snapshot.Interval != nil && snapshot.Phase == ingest.Measuring {
			return nil
		}
		ended, err := t.pause(ctx, 300*time.Millisecond)
		if err != nil {
			return err
		}
		if ended {
			return errors.New("the run ended before the tool reported an interval: --toggle needs a tool that reports while it runs")
		}
	}
}

// measure computes the values of all blocks of this run, without the seconds that carry over. isOver:
// the tool reports no more.
func (t *Toggler) measure(ctx context.Context, isOver bool) error {
	h, err := record.Read(ctx, t.dir, t.Runner.Tools)
	if err != nil {
		if _, damaged := t.dir.Load(); damaged != nil {
			return nil // the run itself reports it
		}
		return err
	}
	s := t.Runner.Sweep
	var segments []segment
	var steps []*sweep.Step
	previous := ""
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.RunID != t.dir.ID() || step.State != sweep.Done && step.State != sweep.Failed {
			continue
		}
		from, arm := h.Elapsed(step.Began), t.Plan.alias(step.Values[sweep.ArmSet])
		segments = append(segments, segment{from: from, to: from + step.Seconds, isSwitched: previous != "" && previous != arm})
		steps = append(steps, step)
		step.Measured, step.State, previous = map[string]float64{}, sweep.Done, arm
	}
	toggle, last := t.Plan.Toggle, 0.0
	for i, name := range t.Plan.measures() {
		intervals, err := intervalsOf(ctx, h, name)
		if err != nil {
			return err
		}
		if i == 0 {
			if n := len(intervals); n > 0 {
				last, t.interval = intervals[n-1].to, usualLength(intervals)
			}
			toggle.CarryOverSeconds, toggle.CarryOverShare = carryOver(segments, intervals, toggle.EverySeconds)
		}
		cut := math.Max(toggle.CarryOverSeconds, usualLength(intervals))
		for k := range segments {
			if v := segments[k].valueOf(intervals, cut); series.IsKnown(v) {
				steps[k].Measured[name] = v
			}
		}
	}
	for k, step := range steps {
		switch {
		case !isOver && last < segments[k].to-slack: // the tool reports the end of the block later
			step.Measured = nil
		case len(step.Measured) == 0:
			step.State, step.Measured, step.Reason = sweep.Failed, nil, "the tool reported no interval in this block"
		}
	}
	return t.Plan.Store(s)
}

// intervalsOf returns the intervals of a measure that the tool prints.
func intervalsOf(ctx context.Context, h *record.History, name string) ([]interval, error) {
	var all []interval
	previous := 0.0
	err := h.EachInterval(ctx, func(v *ingest.Intervals) error {
		values := columnOf(v, name)
		for i, to := range v.Elapsed {
			if values != nil {
				all = append(all, interval{previous, to, values[i]})
			}
			previous = to
		}
		return nil
	})
	return all, err
}

// columnOf returns the column of a measure; nil if the tool has none.
func columnOf(v *ingest.Intervals, name string) []float64 {
	switch name {
	case "tps":
		return v.Rate(tool.Transaction)
	case "qps":
		return v.Rate(tool.Query)
	}
	for _, c := range v.Of(tool.HeadlineLatency) {
		if c.Stat == name {
			return v.Values(c)
		}
	}
	return nil
}

// CanToggle returns an error for a measure that the intervals of a tool don't have.
func CanToggle(name string) error {
	c, err := review.ParseName(name)
	if err != nil {
		return err
	}
	if name == "tps" || name == "qps" || c.IsStatistic() {
		return nil
	}
	return fmt.Errorf("%s is not what a tool prints of each interval: with --toggle use tps, qps or a statistic of the latency", name)
}
