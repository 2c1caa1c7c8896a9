package ingest

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Snapshot is the state of a run at one instant. It shares no data with the run and can be kept.
type Snapshot struct {
	Meta  rundir.Meta
	Phase Phase
	// Edition identifies the content of an ended run: no other content has the same number. It is 0
	// while the run can change.
	Edition uint64

	// Threads as reported by the tool, else as configured.
	Threads series.Optional[int]
	// Interval is the last report while it is current: nil before the first, after the tool's end
	// and while the tool stalls.
	Interval *tool.Report
	// LastReport is when the newest interval was read; zero before the first.
	LastReport time.Time
	// IntervalSeconds is the time between reports: as configured or announced, else as observed.
	IntervalSeconds series.Optional[float64]

	// Announced is the length of intervals that the output named at the run's start.
	Announced series.Optional[float64]

	// Totals count operations since the start, by name.
	Totals     map[string]float64
	Errors     float64 // also 0 if the tool does not count errors: see ErrorTotal
	Reconnects float64
	// FailedShare is the share of failed transactions, counting each attempt; unknown before the
	// first.
	FailedShare series.Optional[float64]
	Lines       Lines

	// Messages are the first error messages. LastMessage is the newest of MessageCount; standard
	// error has precedence, because which stream was written last is not known afterwards.
	Messages     []string
	LastMessage  string
	MessageCount uint64

	// Summary is nil until the tool has ended, and if it reported nothing.
	Summary *Summary

	// LeftOut are the containers whose lines are in the output, but not in the run.
	LeftOut []string

	// Files is the common part of the names of the files that the tool wrote about the run; empty if the output does not
	// show it.
	Files string

	// Generators of a group, in their order.
	Generators []Generator

	// ClockAhead is how far the wall clock is ahead of the run's times because it was set during
	// the run.
	ClockAhead time.Duration

	// CatchingUp: output from before this process looked is still being read. Counters are lower
	// than an earlier process may have shown.
	CatchingUp bool

	// Stalls are the dips of an active run by their reason.
	Stalls []StallCount

	// Faults counts failures to record data of this run, such as a full disk.
	Faults uint64
}

// StallCount is the stalls of a run with one reason, and how long they lasted together.
type StallCount struct {
	Reason  string
	Count   int
	Seconds float64
	// Text describes the last stall of the run, which ended at Ended, by the wall clock; empty if that had another
	// reason.
	Text  string
	Ended time.Time
}

// Current returns the tool's summary or, before the summary, its last interval; nil without either.
func (s *Snapshot) Current() *tool.Report {
	if m := s.Summary; m != nil {
		return m.Report()
	}
	return s.Interval
}

// Active reports whether the tool is running.
func (s *Snapshot) Active() bool { return s.Phase != Draining && s.Phase != Over }

// ElapsedSeconds is the time since the start, up to the tool's end.
func (s *Snapshot) ElapsedSeconds(now time.Time) float64 {
	end := now.Add(-s.ClockAhead)
	if s.Meta.EndedAt != nil {
		end = *s.Meta.EndedAt
	}
	return max(0, end.Sub(s.Meta.StartedAt).Seconds())
}

// snapshot returns the state for a run with the given metadata.
func (s *state) snapshot(meta rundir.Meta, now time.Time) Snapshot {
	snap := Snapshot{
		Meta:         meta,
		Threads:      s.threads,
		LastReport:   s.intervalAt,
		Totals:       make(map[string]float64, len(s.totals)),
		Errors:       s.errors.value(),
		Reconnects:   s.reconnects.value(),
		Lines:        s.lines,
		Files:        s.files,
		Announced:    s.announced,
		Messages:     s.firstMessages(),
		LastMessage:  cmp.Or(s.lastMessages[tool.Stderr], s.lastMessages[tool.Stdout]),
		MessageCount: s.messageCount,
	}
	snap.FailedShare = tool.FailedShare(s.errors.value(), s.totals[tool.Transaction].value(), s.countsFailures)
	for operation, c := range s.totals {
		snap.Totals[operation] = c.value()
	}
	if meta.ToolVersion == "" {
		snap.Meta.ToolVersion = s.version
	}
	if meta.Workload == "" {
		snap.Meta.Workload = s.workload
	}
	if meta.Verb == "" {
		snap.Meta.Verb = s.verb
	}
	s.correct(&snap.Meta)
	snap.Meta.AddLabels(s.labels)
	if meta.RatePerSecond == 0 {
		snap.Meta.RatePerSecond = s.targetRate
	}
	if !snap.Threads.Known && meta.Threads > 0 {
		snap.Threads = series.Some(meta.Threads)
	}
	switch {
	case meta.ReportIntervalSeconds > 0:
		snap.IntervalSeconds = series.Some(meta.ReportIntervalSeconds)
	case s.announced.Known:
		snap.IntervalSeconds = s.announced
	case s.interval != nil:
		snap.IntervalSeconds = s.interval.IntervalSeconds
	}
	snap.Phase = s.phaseOf(&meta)
	if !snap.Active() {
		snap.Summary = s.final()
	} else if s.interval != nil && now.Sub(s.intervalAt) <= StaleAfter(snap.IntervalSeconds.Value) {
		snap.Interval = s.interval.Clone()
	}
	return snap
}

// correct replaces what 0.1.0 recorded of a run without a command line: it named each of them "run", and called one that
// only prepares data lost because its output has no summary.
func (s *state) correct(m *rundir.Meta) {
	if m.Import == nil && m.Log == nil || s.verb == "" || s.verb == m.Verb || s.several {
		return
	}
	if m.Verb = s.verb; m.IsPreparation() && m.Outcome == rundir.Lost {
		m.Conclude(s.output())
	}
}

func (s *state) phaseOf(meta *rundir.Meta) Phase {
	switch {
	case meta.Closed():
		return Over
	case meta.Ended():
		return Draining
	case s.phase == tool.Warmup:
		return Warmup
	case s.interval == nil:
		return Starting
	default:
		return Measuring
	}
}

// Complaint is the first sign of trouble in the tool's output: its first two messages, since the
// first often names only the failed call ("mysql_stmt_prepare() failed", sysbench 1.0) and the
// second the cause. It is empty without messages.
func (s *Snapshot) Complaint() string { return complaint(s.Messages) }

func complaint(messages []string) string {
	first := slices.Compact(slices.Clone(messages))
	return strings.Join(first[:min(2, len(first))], "; ")
}

// ErrorTotal returns the errors since the start; unknown before the first report and if the tool
// does not count errors.
func (s *Snapshot) ErrorTotal() series.Optional[float64] {
	switch {
	case s.Summary != nil:
		if n := s.Summary.Report().Count(tool.ErrorCount); n.Known {
			return series.Some(float64(n.Value))
		}
	case s.Interval != nil && countsErrors(s.Interval):
		return series.Some(math.Round(s.Errors)) // rates times seconds
	}
	if s.Errors > 0 {
		return series.Some(math.Round(s.Errors))
	}
	return series.Optional[float64]{}
}

func countsErrors(r *tool.Report) bool {
	return r.Value(tool.ErrorRate).Known || r.Count(tool.ErrorCount).Known
}
