package review

import (
	"fmt"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/analysis"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

const (
	// FewIntervals is the number below which steadiness is unknown unless two parts do not overlap.
	FewIntervals = 20
	// unsteady is the share of the mean throughput by which it must change to be
	// reported.
	unsteady = 0.05
	// reaction is how many seconds after a marker a change may be its effect.
	reaction = 5
	// slowStart is the share of the run within which a lower throughput at the beginning counts as its start.
	slowStart = 0.25
	// noisy is the coefficient of variation above which changes may be hidden.
	noisy = 0.2
	// listedChanges bounds the changes that are listed.
	listedChanges = 6
)

// steadiness looks for changes of the throughput.
func (j *judge) steadiness() {
	v := &j.h.Intervals
	usual := v.Lengths.Median()
	levels := v.Throughput.All(usual)
	warm := v.QuietWarmup || len(v.Warmup) > 0
	if warm {
		j.add(Good, "the tool warmed up first; its summary leaves the warm-up out")
	}
	n := len(levels)
	if n == 0 {
		return
	}
	means := make([]float64, n)
	for i, l := range levels {
		means[i] = l.Mean
	}
	parts := analysis.Parts(means, unsteady)
	if n < FewIntervals && len(parts) == 1 {
		j.add(Note, "%s: too few to know whether the load was steady", table.Plural(n, "interval"))
		return
	}
	for i := 1; i < len(parts); i++ {
		if i > listedChanges {
			j.add(Warning, "throughput changed %s more", table.Plural(len(parts)-i, "time"))
			break
		}
		j.change(levels, parts, i, warm)
	}
	longest := slices.MaxFunc(parts, func(a, b analysis.Part) int { return (a.End - a.Begin) - (b.End - b.Begin) })
	if len(parts) > 1 {
		from, to := levels[longest.Begin].From, levels[longest.End-1].To
		j.add(Note, "the longest stretch without a change is from %s to %s, %s of the time, with a mean of %s transactions/s",
			table.Clock(from), table.Clock(to), table.Share((to-from)/max(levels[n-1].To-levels[0].From, 1e-9)),
			table.Digits.Format(longest.Mean))
	}
	j.dips(levels[longest.Begin:longest.End])
	stalls := 0
	for _, p := range parts {
		for _, l := range levels[p.Begin:p.End] {
			if l.Low < p.Mean/2 {
				stalls++
			}
		}
	}
	variation := v.Throughput.Variation(levels)
	switch {
	case stalls > 0 && levels[0].N > 1:
		j.add(Note, "in %d of %d stretches of %d intervals throughput was once or more less than half of the mean",
			stalls, n, levels[0].N)
	case stalls > 0 && len(parts) > 1:
		j.add(Note, "in %d of %d intervals throughput was less than half of the mean between two changes", stalls, n)
	case stalls > 0:
		j.add(Note, "in %d of %d intervals throughput was less than half of the mean", stalls, n)
	case len(parts) == 1 && variation > noisy:
		j.add(Note, "throughput varied from interval to interval (coefficient of variation %s): a change of its mean may be hidden in that", table.Share(variation))
	case len(parts) == 1:
		j.add(Good, "throughput was steady: no change of its mean by more than %s stands out from its noise", table.Share(unsteady))
	}
}

// dips reports dips of a stretch without a change that come at equal distances.
func (j *judge) dips(levels []series.Level) {
	values := make([]float64, len(levels))
	for i, l := range levels {
		values[i] = l.Low
	}
	d, ok := analysis.PeriodicDips(values)
	if !ok {
		return
	}
	seconds := d.Period * (levels[len(levels)-1].To - levels[0].From) / float64(len(levels))
	j.add(Note, "throughput dips by %s about every %s (%d times): something periodic on a server or the generator, such as a checkpoint",
		table.Share(d.Depth), table.Duration(seconds), d.Count)
}

// change reports where a part begins: a change at a marker has an explanation; a
// slow start without one asks for a warm-up.
func (j *judge) change(levels []series.Level, parts []analysis.Part, i int, warm bool) {
	before, after := &parts[i-1], &parts[i]
	at := levels[after.Begin].From
	verb, dropped := "rose", after.Mean < before.Mean
	if dropped {
		verb = "dropped"
	}
	text := fmt.Sprintf("throughput %s from %s to %s transactions/s at %s", verb,
		table.Digits.Format(before.Mean), table.Digits.Format(after.Mean), table.Clock(at))
	if before.Mean > 0 {
		text += fmt.Sprintf(", %+.0f %%", (after.Mean/before.Mean-1)*100)
	}
	end := levels[after.Begin].To
	switch p := markerAt(j.h, at, end); {
	case p != nil:
		j.add(Note, "%s; marker %q at %s", text, table.Clip(p.Text, longestMessage), table.Clock(j.h.Elapsed(p.Start)))
	case i == 1 && !dropped && !warm && at <= slowStart*levels[len(levels)-1].To:
		j.add(Warning, "%s: the slow start is in the summary; warm up first", text)
	default:
		j.add(Warning, "%s", text)
	}
}

// markerAt returns the last marker that may explain a change of the interval from
// begin to end: one in it or shortly before. Alerts are no causes.
func markerAt(h *record.History, begin, end float64) *marker.Marker {
	var found *marker.Marker
	for i := range h.Markers {
		p := &h.Markers[i]
		if at := h.Elapsed(p.Start); p.Kind == marker.Point && at >= begin-reaction && at <= end+1 {
			found = p
		}
	}
	return found
}
