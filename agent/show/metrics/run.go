package metrics

import (
	"strconv"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Metrics of a run while it lasts. Gauges of the last interval go as soon as
// the tool has ended or stalls, all of them when the run is closed.
var (
	runActive = stateFamily("run_active", "1 while the benchmark tool runs, 0 while replicas catch up after its end.", "run")
	runPhase  = stateFamily("run_phase", "1 for the phase that the run is in: starting, warmup, measure, draining.", "run", "phase")
	runStart  = stateFamily("run_start_timestamp_seconds", "When the benchmark tool was started, Unix time.", "run")

	runRequestedRate = stateFamily("run_requested_operations_per_second",
		"Configured rate of the tool (sysbench --rate, YCSB -target); absent in a closed loop.", "run")
	runRequestedDuration = stateFamily("run_requested_duration_seconds", "Configured length of the run; absent if another condition ends it.", "run")

	runThreads        = stateFamily("run_threads", "Threads of the tool: as it reports, otherwise as requested by its options.", "run")
	runElapsed        = family("run_elapsed_seconds", "Time since the start of the tool, up to its end.", "run")
	runReportInterval = stateFamily("run_report_interval_seconds", "Time between two interval reports of the tool.", "run")
	runLastReport     = family("run_last_report_timestamp_seconds", "When the tool's last interval report was written, Unix time.", "run")

	runRate    = family("run_operations_per_second", "Operations per second in the tool's last report interval, as the tool printed it.", "run", "op")
	runLatency = family("run_latency_seconds",
		"Latency in the tool's last report interval, as the tool printed it. Percentiles cover that interval and "+
			"this process only; percentiles of closed-loop tools exclude the time that an operation waited.", "run", "op", "stat")

	runOperations = family("run_operations_total",
		"Operations since the start: printed counts, otherwise rates times interval length; corrected by the summary.", "run", "op")
	runErrors     = family("run_errors_total", "Errors that the tool counted and ignored, from its reports.", "run")
	runReconnects = family("run_reconnects_total", "Reconnects that the tool counted.", "run")
	runMessages   = family("run_error_messages_total", "Error messages that the tool printed.", "run")
	runLines      = family("run_lines_total", "Lines of the tool's output, by how they were parsed.", "run", "result")
	runFaults     = family("run_record_failures_total", "Failures to read or record something about the run, such as a full disk.", "run")

	runStalls = family("run_stalls_total",
		"Stalls of the run that are over, by their reason: what was captured of servers and machines while the tool "+
			"did far less than before.", "run", "reason")
	runStallSeconds = family("run_stall_seconds_total", "How long the stalls of the run lasted together.", "run")
	runStallInfo    = family("run_stall_info",
		"1 for the last stall of the run that is over, for a minute: its reason, and what was captured in words.", "run", "reason", "evidence")

	runDrain = family("run_drain_seconds",
		"Time from the tool's end until this replica reached the position that the most advanced node had then. "+
			"Absent until then.", "run", "target")
	runExitCode = family("run_exit_code", "The tool's exit status; absent if a signal ended it or it is unknown.", "run")
	runResult   = family("run_result", "1 for the outcome of the run: succeeded, failed, interrupted, aborted, lost.", "run", "result")
	runFailure  = family("run_failure_info",
		"1 for a run that has not succeeded, with the reason: the exit status or signal, and the tool's error "+
			"message.", "run", "reason")
	runEnd = family("run_end_timestamp_seconds", "When the tool ended, Unix time.", "run")
)

// Which servers and machines take part in a run, kept with its summary.
var (
	runTarget = stateFamily("run_target_info",
		"A server that takes part in the run, or a sampled proxy between tool and servers; value 1. Absent if the "+
			"servers are not known.", "run", "target", "cluster", "engine")
	runHost = stateFamily("run_host_info",
		"A machine that takes part in the run as generator, server or proxy, by its name in node_uname_info; value "+
			"1. Absent if the name is unknown.", "run", "nodename", "role")
)

// Generators of a group, kept with its summary. The generators' own runs have the
// group's name in benchwatch_run_info too.
var (
	runGenerators = stateFamily("run_generators", "Generators of a group.", "run")
	generatorInfo = stateFamily("run_generator_info",
		"A generator of a group, by its number: its own run, and the machine as the user named it; value 1.", "run", "generator_run", "number", "host")
	generatorState = stateFamily("run_generator_state",
		"What a generator does while its group is active, value 1: waiting, its tool has not started; running; "+
			"silent, it has not reported for more than two intervals while others have; ended.", "run", "generator_run", "state")
	generatorLate = stateFamily("run_generator_start_delay_seconds",
		"When the tool of a generator started after the group, by the clock of the machine that combines them; "+
			"absent until it has.", "run", "generator_run")
)

// The summary of a run.
var (
	summaryRate       = family("run_summary_operations_per_second", "Operations per second over the whole run, from the tool's summary.", "run", "op")
	summaryLatency    = family("run_summary_latency_seconds", "Latency over the whole run, from the tool's summary.", "run", "op", "stat")
	summaryOperations = family("run_summary_operations_total",
		"Operations of the whole run, from the tool's summary or, if it printed none, from its intervals.", "run", "op")
	summaryDuration   = family("run_summary_duration_seconds", "Length of the run: from the tool's summary, otherwise from start to end.", "run")
	summaryErrors     = family("run_summary_errors_total", "Errors of the whole run.", "run")
	summaryReconnects = family("run_summary_reconnects_total", "Reconnects of the whole run.", "run")
	summaryHistogram  = histogramFamily("run_summary_latency_distribution_seconds",
		"How the latencies of the whole run are distributed, from the tool's own histogram (sysbench --histogram, "+
			"YCSB's verbose histograms); a value counts as the upper bound of its bucket in the tool's histogram.", "run", "op")
)

// emitRun emits the series of one run. After a restart they appear when its output
// is read again: a counter that is lower than before would be a reset.
func emitRun(emit emit, distribution emitHistogram, s *ingest.Snapshot, now time.Time) {
	if s.CatchingUp || s.Meta.Mirror != nil && s.Meta.Mirror.Scraped {
		return
	}
	id := s.Meta.ID
	emitInfo(emit, &s.Meta)
	emitRequested(emit, &s.Meta)
	emitIdentity(emit, &s.Meta)
	emit(runStart, seconds(s.Meta.StartedAt.Add(s.ClockAhead)), id)
	if s.Meta.Ended() {
		emitEnd(emit, s)
		emitHistograms(distribution, s)
	}
	if s.Phase == ingest.Over {
		return
	}
	emit(runPhase, 1, id, string(s.Phase))
	emit(runActive, truth(s.Active()), id)
	emit(runElapsed, s.ElapsedSeconds(now), id)
	for op, n := range s.Totals {
		emit(runOperations, n, id, op)
	}
	emit(runErrors, s.Errors, id)
	emit(runReconnects, s.Reconnects, id)
	emit(runMessages, float64(s.MessageCount), id)
	emit(runLines, float64(s.Lines.Reported), id, "report")
	emit(runLines, float64(s.Lines.Ignored), id, "ignored")
	emit(runLines, float64(s.Lines.Malformed), id, "malformed")
	emit(runFaults, float64(s.Faults), id)
	emitStalls(emit, s, id, now)
	if s.Active() {
		emitActive(emit, s, id)
	}
}

// stallShown is how long the last stall is described.
const stallShown = time.Minute

func emitStalls(emit emit, s *ingest.Snapshot, id string, now time.Time) {
	sum := 0.0
	for _, c := range s.Stalls {
		emit(runStalls, float64(c.Count), id, label(c.Reason))
		sum += c.Seconds
		if c.Text != "" && now.Sub(c.Ended) < stallShown {
			emit(runStallInfo, 1, id, label(c.Reason), label(c.Text))
		}
	}
	emit(runStallSeconds, sum, id)
}

func emitIdentity(emit emit, m *rundir.Meta) {
	if m.Servers != nil && m.Mirror == nil { // a copy's are of another configuration
		for _, t := range m.Servers.Targets {
			emit(runTarget, 1, m.ID, t.Target, t.Cluster, t.Engine)
		}
	}
	if m.IsGroup() {
		emit(runGenerators, float64(m.Group.Generators), m.ID)
		for i := range m.Group.Members {
			o, id := &m.Group.Members[i], rundir.GeneratorID(m.Group.Name, i+1)
			if o.Log == "" { // it has a run of its own
				emit(generatorInfo, 1, m.ID, id, strconv.Itoa(i+1), label(o.Host))
			}
			if o.StartSeconds != nil {
				emit(generatorLate, *o.StartSeconds, m.ID, id)
			}
		}
	}
	for _, h := range m.Hosts() {
		emit(runHost, 1, m.ID, h.Nodename, string(h.Role))
	}
}

// emitActive emits series that exist only while the tool runs.
func emitActive(emit emit, s *ingest.Snapshot, id string) {
	for i, g := range s.Generators {
		emit(generatorState, 1, id, rundir.GeneratorID(s.Meta.Group.Name, i+1), string(g.State))
	}
	if s.Threads.Known {
		emit(runThreads, float64(s.Threads.Value), id)
	}
	if s.IntervalSeconds.Known {
		emit(runReportInterval, s.IntervalSeconds.Value, id)
	}
	if !s.LastReport.IsZero() {
		emit(runLastReport, seconds(s.LastReport.Add(s.ClockAhead)), id)
	}
	r := s.Interval
	if r == nil {
		return
	}
	for _, v := range r.Rates {
		emit(runRate, v.PerSecond, id, v.Operation)
	}
	for _, v := range r.Latencies {
		emit(runLatency, v.Seconds, id, v.Operation, v.Stat)
	}
	emitNumbers(emit, liveNumbers, r, id)
}

// emitEnd emits series that exist once the tool has ended.
func emitEnd(emit emit, s *ingest.Snapshot) {
	id := s.Meta.ID
	emit(runEnd, seconds(*s.Meta.EndedAt), id)
	if s.Meta.ExitCode != nil {
		emit(runExitCode, float64(*s.Meta.ExitCode), id)
	}
	if s.Meta.Outcome != "" {
		emit(runResult, 1, id, string(s.Meta.Outcome))
	}
	if s.Meta.Outcome != rundir.Succeeded && s.Meta.Reason != "" {
		emit(runFailure, 1, id, label(s.Meta.Reason))
	}
	for target, d := range s.Meta.Drain {
		if d.Seconds != nil {
			emit(runDrain, *d.Seconds, id, target)
		}
	}
	sum := s.Summary
	if sum == nil {
		emit(summaryDuration, s.ElapsedSeconds(*s.Meta.EndedAt), id)
		return
	}
	for _, v := range sum.Rates {
		emit(summaryRate, v.PerSecond, id, v.Operation)
	}
	for _, v := range sum.Latencies {
		emit(summaryLatency, v.Seconds, id, v.Operation, v.Stat)
	}
	for _, v := range sum.Counts {
		switch v.Operation {
		case "error":
			emit(summaryErrors, float64(v.N), id)
		case "reconnect":
			emit(summaryReconnects, float64(v.N), id)
		default:
			emit(summaryOperations, float64(v.N), id, v.Operation)
		}
	}
	if sum.ElapsedSeconds.Known {
		emit(summaryDuration, sum.ElapsedSeconds.Value, id)
	} else {
		emit(summaryDuration, s.ElapsedSeconds(*s.Meta.EndedAt), id)
	}
	emitNumbers(emit, finalNumbers, sum.Report(), id)
}

// emitHistograms emits the tool's own histograms.
func emitHistograms(emit emitHistogram, s *ingest.Snapshot) {
	if s.Summary == nil {
		return
	}
	sum := s.Summary.Report()
	for _, d := range s.Summary.Histograms {
		// The tool's own mean, if it is of the same operations.
		total := series.Unknown()
		if mean, n := sum.Latency(d.Operation, "avg"), sum.Count(d.Operation); mean.Known && n.Known && n.Value == d.Count() {
			total = mean.Value * float64(n.Value)
		}
		emit(summaryHistogram, d.Histogram, total, s.Meta.ID, d.Operation)
	}
}

// number is the family of a number that tools print.
type number struct {
	measure *measure.Measure
	family  *Family
}

// Numbers that tools print: of the last interval, and of the summary.
var (
	liveNumbers  = numberFamilies(func(n *tool.Number) *measure.Metric { return n.Live })
	finalNumbers = numberFamilies(func(n *tool.Number) *measure.Metric { return n.Final })
)

func numberFamilies(metric func(*tool.Number) *measure.Metric) []number {
	var all []number
	for _, n := range tool.Numbers() {
		if m := metric(n); m != nil {
			all = append(all, number{n.Measure, family(m.Name, m.Help, "run")})
		}
	}
	return all
}

func emitNumbers(emit emit, all []number, r *tool.Report, run string) {
	for _, n := range all {
		if v := r.Value(n.measure); v.Known {
			emit(n.family, v.Value, run)
		}
	}
}

// emitRequested emits the configured rate and length of the run.
func emitRequested(emit emit, m *rundir.Meta) {
	if m.RatePerSecond > 0 {
		emit(runRequestedRate, float64(m.RatePerSecond), m.ID)
	}
	if m.DurationSeconds > 0 {
		emit(runRequestedDuration, m.DurationSeconds, m.ID)
	}
}
