package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/host"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// Level says how a finding bears on the numbers.
type Level string

const (
	Good    Level = "good"
	Note    Level = "note"
	Warning Level = "warning"
	Unknown Level = "unknown"
)

// Finding is one reason to trust a run's numbers, or not to.
type Finding struct {
	Level Level  `json:"level"`
	Text  string `json:"text"`
}

const (
	// shortRun is below which the start and the end weigh too much.
	shortRun = 60.0 // seconds
	// fewIntervals is below which nothing can be said of steadiness.
	fewIntervals = 20
	// unsteady is by how much two parts of a run may differ.
	unsteady = 0.05
)

// trust is what the reader should know before believing the numbers.
func trust(h *history.History, row *Row, all []Server) []Finding {
	j := &judge{h: h, row: row}
	j.result()
	j.errors()
	j.intervals()
	j.length()
	j.steadiness()
	j.waiting()
	j.percentiles()
	j.servers(all)
	j.damage()
	j.generator()
	j.say(Note, "one run says nothing about spread: repeat it, and let benchwatch compare tell a difference from noise")
	return j.findings
}

type judge struct {
	h        *history.History
	row      *Row
	findings []Finding
}

func (j *judge) say(level Level, format string, args ...any) {
	j.findings = append(j.findings, Finding{level, fmt.Sprintf(format, args...)})
}

func (j *judge) result() {
	m := &j.h.Snapshot.Meta
	switch {
	case m.Outcome == "":
		j.say(Warning, "the run has not ended: these are its numbers so far")
	case m.Outcome != rundir.Succeeded:
		text := "the run " + j.row.Became()
		if m.Reason != "" {
			text += ": " + Clip(m.Reason, 300)
		}
		j.say(Warning, "%s", text)
	}
	if j.row.FromIntervals {
		j.say(Warning, "the tool printed no summary: rates and counts are added up from its interval reports, and there is no latency of the whole run")
	}
	if s := j.h.Snapshot.Summary; s != nil && s.Parts > 1 {
		j.say(Note, "the output holds %d summaries: counts are added up; percentiles can't be and are left out", s.Parts)
	}
	if m.StartEstimated {
		j.say(Note, "when the run began was worked out, not recorded: times of day may be off")
	}
}

func (j *judge) errors() {
	s := &j.h.Snapshot
	done := s.Totals[tool.Transaction]
	switch {
	case s.Errors > 0 && done > 0:
		share := s.Errors / (s.Errors + done) * 100
		level := Note
		if share >= 1 {
			level = Warning
		}
		j.say(level, "%.0f errors, %.2g %% of all transactions: they took time and count in no rate", s.Errors, share)
	case s.Errors > 0:
		j.say(Warning, "%.0f errors", s.Errors)
	}
	if s.Reconnects > 0 {
		j.say(Warning, "%.0f reconnects", s.Reconnects)
	}
	if s.MessageCount > 0 {
		j.say(Warning, "the tool printed %d error messages, the first: %s", s.MessageCount, Clip(s.Messages[0], 300))
	}
	if s.Errors == 0 && s.Reconnects == 0 && s.MessageCount == 0 {
		j.say(Good, "no errors")
	}
}

// intervals looks for reports that are missing: the tool, or the machine it
// runs on, stood still.
func (j *judge) intervals() {
	v := &j.h.Intervals
	n := len(v.Elapsed)
	if n == 0 {
		j.say(Warning, "the tool reported no intervals: whether the load was steady can't be told")
		return
	}
	step := median(v.Values(ingest.Column{Kind: ingest.Length}))
	if math.IsNaN(step) || step <= 0 {
		return
	}
	missing, longest, at := 0, 0.0, 0.0
	for i := 1; i < n; i++ {
		if v.Part[i] != v.Part[i-1] {
			continue
		}
		if gap := v.Elapsed[i] - v.Elapsed[i-1]; gap > 1.5*step {
			missing += int(math.Round(gap/step)) - 1
			if gap > longest {
				longest, at = gap, v.Elapsed[i-1]
			}
		}
	}
	if missing > 0 {
		j.say(Warning, "%d of %d intervals are missing, the longest gap is %.1f s at %s", missing, n+missing, longest, clockText(at))
		return
	}
	j.say(Good, "%d intervals of %.3g s, none missing", n, step)
}

func (j *judge) length() {
	if s := j.row.DurationSeconds; s < shortRun {
		j.say(Warning, "the run is short (%.1f s): caches, checkpoints and purge had no time to settle", s)
	}
}

// steadiness compares parts of the measured time.
func (j *judge) steadiness() {
	v := &j.h.Intervals
	rates := v.Rate(tool.Transaction)
	var measured []float64
	warm := v.QuietWarmup
	for i, r := range rates {
		if v.Warmup[i] {
			warm = true
		} else if !math.IsNaN(r) {
			measured = append(measured, r)
		}
	}
	if warm {
		j.say(Good, "the tool warmed up first; its summary leaves that out")
	}
	n := len(measured)
	if n < fewIntervals {
		if n > 0 {
			j.say(Note, "%d intervals are too few to tell whether the load was steady", n)
		}
		return
	}
	whole := median(measured)
	if whole <= 0 {
		return
	}
	start := median(measured[:n/10]) / median(measured[n/10:])
	if !warm && math.Abs(start-1) > unsteady {
		j.say(Warning, "the first tenth ran at %.0f %% of the rest's throughput and is in the summary: warm up first", start*100)
	}
	half := median(measured[n/2:])/median(measured[n/10:n/2]) - 1
	if math.Abs(half) > unsteady {
		j.say(Warning, "throughput was not steady: the second half ran %+.0f %% against the first", half*100)
	}
	low, stalls := 0.5*whole, 0
	for _, r := range measured {
		if r < low {
			stalls++
		}
	}
	if stalls > 0 {
		j.say(Note, "in %d of %d intervals throughput was below half of the median", stalls, n)
	}
	if math.Abs(half) <= unsteady && stalls == 0 && (warm || math.Abs(start-1) <= unsteady) {
		j.say(Good, "throughput was steady within %.0f %% from part to part", unsteady*100)
	}
}

// waiting tells whether the latency holds the time that an operation waited
// for its turn: see docs/tools.md for each tool.
func (j *judge) waiting() {
	m := &j.h.Snapshot.Meta
	if len(j.row.Latency) == 0 && len(j.h.Intervals.Of(ingest.Latency)) == 0 {
		return
	}
	if m.Tool == "sysbench" && !strings.HasPrefix(j.row.Version, "0.4") && positiveLabel(m.Labels["rate"]) {
		j.say(Good, "an open loop (--rate): latency counts from when an event was due, waiting included")
		return
	}
	for _, l := range j.h.Intervals.Of(ingest.Latency) {
		if strings.HasPrefix(l.Operation, "intended_") {
			j.say(Good, "latencies named intended_… count from when an operation was due, waiting included; the others don't")
			return
		}
	}
	j.say(Note, "a closed loop: while the database stalled nothing new was asked, so the latency leaves out what would have waited (coordinated omission). Read percentiles as a lower bound")
}

func positiveLabel(s string) bool { return s != "" && s != "0" }

func (j *judge) percentiles() {
	if _, _, ok := j.row.Percentile(); ok {
		j.say(Note, "percentiles are the tool's own, from its histogram; those of intervals are not averaged into one")
	} else if len(j.row.Latency) == 0 && j.row.TPS != nil {
		j.say(Note, "the tool told no latency for the whole run")
	}
}

func (j *judge) servers(all []Server) {
	for i := range all {
		s := &all[i]
		if s.Unanswered > 0 {
			j.say(Warning, "%s did not answer %d of %d samples: its lines have gaps", s.Target, s.Unanswered, s.Ticks)
		}
		if s.Restarts > 0 {
			j.say(Warning, "%s restarted during the run", s.Target)
		}
		if len(s.Version) > 1 {
			j.say(Warning, "%s changed its version during the run: %s", s.Target, strings.Join(s.Version, ", "))
		}
	}
	if len(all) > 0 {
		j.say(Good, "reports and samples are put side by side by one machine's clock, the agent's")
	}
}

const (
	// busyHost is from where on a machine's own threads wait for its CPUs, and
	// stolenHost from where on others' use of them shows.
	busyHost   = 0.9
	stolenHost = 0.02
)

// generator tells whether the machine that made the load was itself the limit.
func (j *judge) generator() {
	v := &j.h.Host
	first, last := 0, len(v.Elapsed)
	for first < last && v.Elapsed[first] < 0 {
		first++
	}
	if end := j.h.Snapshot.Meta.EndedAt; end != nil {
		for last > first && v.Elapsed[last-1] > j.h.Elapsed(*end) {
			last--
		}
	}
	if first == last {
		j.say(Unknown, "the CPU of the load generator's machine was not recorded: if it was busy, the numbers are its, not the database's")
		return
	}
	busy, stolen := mean(host.Busy.Values(v)[first:last]), mean(host.Steal.Values(v)[first:last])
	full := 0
	for _, b := range host.Busy.Values(v)[first:last] {
		if b >= busyHost {
			full++
		}
	}
	text := fmt.Sprintf("the load generator's machine (%d cores) was %.0f %% busy", v.Cores, busy*100)
	switch share := float64(full) / float64(last-first); {
	case share >= 0.1:
		j.say(Warning, "%s, and full %.0f %% of the time: the numbers may be its limit, not the database's", text, share*100)
	default:
		j.say(Good, "%s: it had CPU to spare", text)
	}
	if stolen >= stolenHost {
		j.say(Warning, "other virtual machines took %.0f %% of the load generator's CPU", stolen*100)
	}
}

func (j *judge) damage() {
	for _, line := range j.h.DamageLines() {
		j.say(Warning, "%s", Clip(line, 300))
	}
}
