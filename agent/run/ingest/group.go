package ingest

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/group"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// waitingIntervals bounds how many intervals of a generator wait for the reports of the others.
const waitingIntervals = 1000

// groupParser reads the journal of a group with a parser per generator and adds up their reports.
// An interval of the group is complete when all running generators have reported it, except those
// that the journal marks late. If one is missing, the interval only has the number of generators
// that reported: the sum would be too low.
type groupParser struct {
	generators []*generator
	seconds    float64 // of an interval; 0: not known yet
	next       int     // the next interval to report
	started    bool    // a start was reported
	summed     bool    // the summary was reported
}

// generator is one generator of the group. Intervals are counted from the group's start.
type generator struct {
	parser      tool.Parser
	state       *state
	begun       bool // its tool has started
	absent      bool // it never started: the group consists of the others
	ended, late bool
	shift       int // number of intervals by which it started after the group
	last        int // the newest interval that it reported
	run, base   int // the tool's runs within one output
	reports     map[int]*tool.Report
}

// Generator is the state of one generator of a group.
type Generator struct {
	State GeneratorState
	// Throughput of its last interval while it runs.
	Throughput series.Optional[float64]
}

// GeneratorState is what a generator of a group is doing.
type GeneratorState string

const (
	GeneratorWaiting GeneratorState = "waiting" // its tool has not started
	GeneratorRunning GeneratorState = "running"
	// GeneratorSilent has not ended, but has not reported for more than two intervals while others
	// have: it stalls, was killed with its agent, or is unreachable.
	GeneratorSilent GeneratorState = "silent"
	GeneratorEnded  GeneratorState = "ended"
)

// states returns the current state of each generator.
func (p *groupParser) states() []Generator {
	all := make([]Generator, len(p.generators))
	for i, g := range p.generators {
		switch {
		case g.ended:
			all[i].State = GeneratorEnded
		case !g.begun:
			all[i].State = GeneratorWaiting
		case g.late:
			all[i].State = GeneratorSilent
		default:
			all[i].State = GeneratorRunning
			if r := g.state.interval; r != nil {
				all[i].Throughput = r.Rate(tool.Transaction)
			}
		}
	}
	return all
}

// newGroupParser returns the parser for a group of runs of t.
func newGroupParser(t *tool.Tool, meta *rundir.Meta) *groupParser {
	p := &groupParser{seconds: meta.ReportIntervalSeconds, next: 1}
	d := meta.Description()
	if n := meta.Group.Generators; d.Threads > 0 {
		d.Threads = max(1, d.Threads/n)
	}
	for i := range meta.Group.Generators {
		g := &generator{parser: t.NewFront(d).Parser(), state: newState(), reports: map[int]*tool.Report{}}
		g.absent = i < len(meta.Group.Members) && meta.Group.Members[i].Absent
		g.ended = g.absent
		g.state.setTool(t, meta.Verb)
		p.generators = append(p.generators, g)
	}
	return p
}

// Parse implements tool.Parser.
func (p *groupParser) Parse(l tool.Line, emit func(*tool.Report)) tool.Verdict {
	n, mark, text, ok := group.Split(l.Text)
	if !ok || n > len(p.generators) {
		return tool.Malformed
	}
	g := p.generators[n-1]
	if mark == group.Control {
		return p.control(n, string(text), emit)
	}
	g.state.stream = tool.Stdout
	if mark == group.Stderr {
		g.state.stream = tool.Stderr
	}
	return g.parser.Parse(tool.Line{Stream: g.state.stream, Text: text, Cut: l.Cut}, func(r *tool.Report) { p.take(n, r, emit) })
}

func (p *groupParser) control(n int, text string, emit func(*tool.Report)) tool.Verdict {
	g := p.generators[n-1]
	switch {
	case text == group.Late:
		g.late = true
	case text == group.End:
		p.end(n, emit)
	case len(text) > len(group.Start) && text[:len(group.Start)+1] == group.Start+" ":
		seconds, err := strconv.ParseFloat(text[len(group.Start)+1:], 64)
		if err != nil || math.IsNaN(seconds) || math.Abs(seconds) > 1e6 {
			return tool.Malformed
		}
		g.begun = true
		if p.seconds > 0 {
			g.shift = max(0, int(math.Round(seconds/p.seconds)))
		}
	default:
		return tool.Malformed
	}
	p.advance(emit)
	return tool.Ignored
}

func (p *groupParser) end(n int, emit func(*tool.Report)) {
	g := p.generators[n-1]
	if g.ended {
		return
	}
	g.parser.Close(func(r *tool.Report) { p.take(n, r, emit) })
	g.ended = true
}

// take accepts a report of generator n.
func (p *groupParser) take(n int, r *tool.Report, emit func(*tool.Report)) {
	g := p.generators[n-1]
	g.state.apply(r, time.Time{})
	if r.Failed || r.Kind == tool.Error {
		e := tool.Report{Kind: tool.Error, Run: 1, Counts: r.Counts,
			Message: rundir.GeneratorName(n, "") + ": " + r.Message, Failed: r.Failed}
		if r.Kind != tool.Error {
			e.Counts = nil
		}
		emit(&e)
	}
	switch r.Kind {
	case tool.Start:
		if !p.started {
			p.started = true
			s := *r.Clone()
			s.Threads, s.Run = series.Optional[int]{}, 1
			emit(&s)
		}
	case tool.Interval:
		p.interval(g, r, emit)
	}
}

func (p *groupParser) interval(g *generator, r *tool.Report, emit func(*tool.Report)) {
	if p.seconds == 0 && r.IntervalSeconds.Value > 0 {
		p.seconds = r.IntervalSeconds.Value
	}
	if r.Run != g.run { // the tool's clock restarts
		g.run, g.base = r.Run, g.last
	}
	at := g.last + 1
	if p.seconds > 0 && r.ElapsedSeconds.Known {
		if elapsed := r.ElapsedSeconds.Value / p.seconds; elapsed < 1e9 {
			at = int(math.Round(elapsed)) + max(g.base, g.shift)
		}
	}
	g.late = false
	if at < max(1, g.last) || at < p.next {
		return // the group's interval is over; the generator's totals have it
	}
	g.last = at
	c := r.Clone()
	c.Threads = g.state.threads
	if before := g.reports[at]; before != nil {
		both := group.Follow(before, c)
		c = &both
	}
	g.reports[at] = c
	p.advance(emit)
}

// advance reports the intervals that are complete.
func (p *groupParser) advance(emit func(*tool.Report)) {
	for p.complete() {
		if first := p.first(); first > p.next {
			p.next = first // no generator has reported the earlier ones
		}
		var present []*tool.Report
		missing := false
		for _, g := range p.generators {
			if r := g.reports[p.next]; r != nil {
				present = append(present, r)
				delete(g.reports, p.next)
			} else if !g.ended || g.last > p.next {
				missing = true
			}
		}
		sum := group.Combine(present)
		if missing {
			sum = tool.Report{Phase: sum.Phase}
		}
		sum.Kind, sum.Run = tool.Interval, 1
		sum.Set(tool.Generators, float64(len(present)))
		if p.seconds > 0 {
			sum.ElapsedSeconds, sum.IntervalSeconds = series.Some(float64(p.next)*p.seconds), series.Some(p.seconds)
		}
		p.next++
		emit(&sum)
	}
}

// first returns the first interval that a generator has reported and the group has not; 0 without
// one.
func (p *groupParser) first() int {
	first := 0
	for _, g := range p.generators {
		for at := range g.reports {
			if first == 0 || at < first {
				first = at
			}
		}
	}
	return first
}

// complete reports whether the group's next interval has a report and no generator can still add to
// it.
func (p *groupParser) complete() bool {
	waiting := 0
	for _, g := range p.generators {
		waiting = max(waiting, len(g.reports))
	}
	if waiting == 0 {
		return false
	}
	if waiting > waitingIntervals {
		return true
	}
	// An interval without any report is decided by the next one.
	at := max(p.next, p.first())
	for _, g := range p.generators {
		if !g.ended && !g.late && g.last < at {
			return false
		}
	}
	return true
}

// Flush implements tool.Flusher.
func (p *groupParser) Flush(emit func(*tool.Report)) {
	for i, g := range p.generators {
		if f, ok := g.parser.(tool.Flusher); ok && !g.ended {
			f.Flush(func(r *tool.Report) { p.take(i+1, r, emit) })
		}
	}
}

// Close implements tool.Parser.
func (p *groupParser) Close(emit func(*tool.Report)) {
	for i := range p.generators {
		p.end(i+1, emit)
	}
	p.advance(emit)
	p.summarize(emit)
}

// summarize reports the sum of the generators' summaries. For a generator without a summary it uses
// the sum of its intervals.
func (p *groupParser) summarize(emit func(*tool.Report)) {
	if p.summed {
		return
	}
	p.summed = true
	var all []*tool.Report
	estimated := 0
	for _, g := range p.generators {
		if m := g.state.final(); m != nil {
			r := m.Report()
			r.Threads = g.state.threads
			all = append(all, r)
			if m.FromIntervals {
				estimated++
			}
		}
	}
	if len(all) == 0 {
		return
	}
	for _, d := range p.histograms() {
		emit(&d)
	}
	sum := group.Combine(all)
	sum.Kind, sum.Run, sum.Estimated = tool.Summary, 1, estimated
	emit(&sum)
}

// histograms returns the combined distributions of all generators, for each operation whose
// generators all printed one.
func (p *groupParser) histograms() []tool.Report {
	var all []tool.Report
	present := slices.DeleteFunc(slices.Clone(p.generators), func(g *generator) bool { return g.absent })
	for _, g := range present {
		m := g.state.final()
		if m == nil {
			return nil
		}
		for _, d := range m.Histograms {
			i := slices.IndexFunc(all, func(r tool.Report) bool { return r.Operation == d.Operation })
			if i < 0 {
				i = len(all)
				all = append(all, tool.Report{Kind: tool.Histogram, Run: 1, Operation: d.Operation, Cumulative: true})
			}
			all[i].AddBuckets(d.Histogram)
		}
	}
	return slices.DeleteFunc(all, func(r tool.Report) bool {
		return slices.ContainsFunc(present, func(g *generator) bool {
			has := slices.ContainsFunc(g.state.final().Histograms, func(d Distribution) bool { return d.Operation == r.Operation })
			n := g.state.final().Report().Count(r.Operation)
			return !has && !(n.Known && n.Value == 0)
		})
	})
}
