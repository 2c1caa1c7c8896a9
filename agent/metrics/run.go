package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/series"
)

// Metrics of a run while it lasts. Gauges of the last interval go as soon as
// the tool has ended or stalls, all of them when the run is closed.
var (
	runActive = desc("run_active", "1 while the benchmark tool runs, 0 while replicas catch up after its end.", "run")
	runPhase  = desc("run_phase", "1 for the phase that the run is in: starting, warmup, measure, draining.", "run", "phase")
	runStart  = desc("run_start_timestamp_seconds", "When the benchmark tool was started, Unix time.", "run")

	runThreads        = desc("run_threads", "Threads that the tool runs, as it says itself, else as its options ask for.", "run")
	runElapsed        = desc("run_elapsed_seconds", "Time since the start of the tool, up to its end.", "run")
	runReportInterval = desc("run_report_interval_seconds", "Distance of the tool's interval reports.", "run")
	runLastReport     = desc("run_last_report_timestamp_seconds", "When the tool's last interval report was written, Unix time.", "run")

	runRate       = desc("run_operations_per_second", "Operations per second in the tool's last report interval, as the tool printed it.", "run", "op")
	runLatency    = desc("run_latency_seconds", "Latency in the tool's last report interval, as the tool printed it. Percentiles are of that interval and this process only; closed-loop tools leave out the time an operation waited for its turn.", "run", "op", "stat")
	runQueue      = desc("run_queue_length", "Events waiting for a thread (open-loop runs).", "run")
	runConcurrent = desc("run_concurrency", "Threads at work (open-loop runs).", "run")

	runOperations = desc("run_operations_total", "Operations since the start: printed counts, else rates times interval length; set right by the summary.", "run", "op")
	runErrors     = desc("run_errors_total", "Errors that the tool ignored and counted, as its reports say.", "run")
	runReconnects = desc("run_reconnects_total", "Reconnects that the tool counted.", "run")
	runMessages   = desc("run_error_messages_total", "Error messages that the tool printed.", "run")
	runLines      = desc("run_lines_total", "Lines of the tool's output by what was made of them.", "run", "result")
	runFaults     = desc("run_record_failures_total", "Failures to read or record something about the run, such as a full disk.", "run")

	runDrain    = desc("run_drain_seconds", "Time from the tool's end until this replica had what the most advanced node had then. Absent until it is reached.", "run", "target")
	runExitCode = desc("run_exit_code", "The tool's exit status; absent if it was ended by a signal or nobody saw it.", "run")
	runResult   = desc("run_result", "1 for how the run ended: succeeded, failed, interrupted, lost.", "run", "result")
	runEnd      = desc("run_end_timestamp_seconds", "When the tool ended, Unix time.", "run")
)

// What is left of a run.
var (
	summaryRate       = desc("run_summary_operations_per_second", "Operations per second over the whole run, from the tool's summary.", "run", "op")
	summaryLatency    = desc("run_summary_latency_seconds", "Latency over the whole run, from the tool's summary.", "run", "op", "stat")
	summaryOperations = desc("run_summary_operations_total", "Operations of the whole run, from the tool's summary; of a tool that printed none, from its intervals.", "run", "op")
	summaryDuration   = desc("run_summary_duration_seconds", "Length of the run as the tool's summary says, else from start to end.", "run")
	summaryErrors     = desc("run_summary_errors_total", "Errors of the whole run.", "run")
	summaryReconnects = desc("run_summary_reconnects_total", "Reconnects of the whole run.", "run")
	summaryTpmC       = desc("run_summary_tpmc", "TPC-C's New-Order transactions per minute.", "run")
)

// runs writes the series of one run.
func (c *Collector) run(ch chan<- prometheus.Metric, s *ingest.Snapshot, now time.Time) {
	id := s.Meta.ID
	c.runInfo(ch, s)
	gauge(ch, runStart, seconds(s.Meta.StartedAt), id)
	if s.Meta.Ended() {
		c.ended(ch, s)
	}
	if s.Phase == ingest.Over {
		return
	}
	gauge(ch, runPhase, 1, id, string(s.Phase))
	gauge(ch, runActive, truth(s.Active()), id)
	gauge(ch, runElapsed, s.ElapsedSeconds(now), id)
	for op, n := range s.Totals {
		counter(ch, runOperations, n, id, op)
	}
	counter(ch, runErrors, s.Errors, id)
	counter(ch, runReconnects, s.Reconnects, id)
	counter(ch, runMessages, float64(s.MessageCount), id)
	counter(ch, runLines, float64(s.Lines.Reported), id, "report")
	counter(ch, runLines, float64(s.Lines.Ignored), id, "ignored")
	counter(ch, runLines, float64(s.Lines.Malformed), id, "malformed")
	counter(ch, runFaults, float64(s.Faults), id)
	if s.Active() {
		active(ch, s, id)
	}
}

// active writes what is true only while the tool runs.
func active(ch chan<- prometheus.Metric, s *ingest.Snapshot, id string) {
	if s.Threads.Known {
		gauge(ch, runThreads, float64(s.Threads.Value), id)
	}
	if s.IntervalSeconds.Known {
		gauge(ch, runReportInterval, s.IntervalSeconds.Value, id)
	}
	if !s.LastReport.IsZero() {
		gauge(ch, runLastReport, seconds(s.LastReport), id)
	}
	r := s.Interval
	if r == nil {
		return
	}
	for _, v := range r.Rates {
		gauge(ch, runRate, v.PerSecond, id, v.Operation)
	}
	for _, v := range r.Latencies {
		gauge(ch, runLatency, v.Seconds, id, v.Operation, v.Stat)
	}
	optional(ch, runQueue, r.QueueLength, id)
	optional(ch, runConcurrent, r.Concurrency, id)
}

// ended writes what is known once the tool has ended.
func (c *Collector) ended(ch chan<- prometheus.Metric, s *ingest.Snapshot) {
	id := s.Meta.ID
	gauge(ch, runEnd, seconds(*s.Meta.EndedAt), id)
	if s.Meta.ExitCode != nil {
		gauge(ch, runExitCode, float64(*s.Meta.ExitCode), id)
	}
	if s.Meta.Outcome != "" {
		gauge(ch, runResult, 1, id, string(s.Meta.Outcome))
	}
	for target, d := range s.Meta.Drain {
		if d.Seconds != nil {
			gauge(ch, runDrain, *d.Seconds, id, target)
		}
	}
	sum := s.Summary
	if sum == nil {
		gauge(ch, summaryDuration, s.ElapsedSeconds(*s.Meta.EndedAt), id)
		return
	}
	for _, v := range sum.Rates {
		gauge(ch, summaryRate, v.PerSecond, id, v.Operation)
	}
	for _, v := range sum.Latencies {
		gauge(ch, summaryLatency, v.Seconds, id, v.Operation, v.Stat)
	}
	for _, v := range sum.Counts {
		switch v.Operation {
		case "error":
			gauge(ch, summaryErrors, float64(v.N), id)
		case "reconnect":
			gauge(ch, summaryReconnects, float64(v.N), id)
		default:
			gauge(ch, summaryOperations, float64(v.N), id, v.Operation)
		}
	}
	if sum.ElapsedSeconds.Known {
		gauge(ch, summaryDuration, sum.ElapsedSeconds.Value, id)
	} else {
		gauge(ch, summaryDuration, s.ElapsedSeconds(*s.Meta.EndedAt), id)
	}
	if sum.TpmC.Known {
		gauge(ch, summaryTpmC, sum.TpmC.Value, id)
	}
}

func optional(ch chan<- prometheus.Metric, d *prometheus.Desc, v series.Optional[int], labels ...string) {
	if v.Known {
		gauge(ch, d, float64(v.Value), labels...)
	}
}
