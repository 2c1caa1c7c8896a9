package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/host"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/table"
	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/registry"
)

// Level is what a finding means for the numbers.
type Level string

const (
	Good    Level = "good"
	Note    Level = "note"
	Warning Level = "warning"
	Unknown Level = "unknown"
)

// Finding is a reason to trust a run's numbers, or not to.
type Finding struct {
	Level Level  `json:"level"`
	Text  string `json:"text"`
}

const (
	// shortRun is the duration in seconds below which start and end weigh too much.
	shortRun = 60.0
	// fewIntervals is the number below which steadiness is unknown.
	fewIntervals = 20
	// unsteady is the difference between two parts of a run from which on it counts
	// as unsteady.
	unsteady = 0.05
	// busyHost is the load from which on a machine's own threads wait for its CPUs,
	// stolenHost the stolen share from which on results suffer.
	busyHost   = 0.9
	stolenHost = 0.02
)

// trust returns what a reader has to know before believing a run's numbers.
func trust(h *history.History, row *Row) []Finding {
	j := &judge{h: h, row: row}
	j.outcome()
	j.errors()
	j.intervals()
	j.length()
	j.steadiness()
	j.omission()
	j.latencies()
	j.servers()
	for _, line := range h.DamageLines() {
		j.add(Warning, "%s", table.Clip(line, longestMessage))
	}
	j.generator()
	j.add(Note, "one run says nothing about spread: repeat it, and use benchwatch compare to distinguish a difference from noise")
	return j.findings
}

// longestMessage bounds text from a tool or a server in a finding.
const longestMessage = 300

type judge struct {
	h        *history.History
	row      *Row
	findings []Finding
}

func (j *judge) add(level Level, format string, args ...any) {
	j.findings = append(j.findings, Finding{level, fmt.Sprintf(format, args...)})
}

func (j *judge) outcome() {
	m := &j.h.Snapshot.Meta
	switch {
	case m.Outcome == "":
		j.add(Warning, "the run has not ended: these are its numbers so far")
	case m.Outcome != rundir.Succeeded:
		text := "the run " + j.row.Outcome()
		if m.Reason != "" {
			text += ": " + table.Clip(m.Reason, longestMessage)
		}
		j.add(Warning, "%s", text)
	}
	if j.row.FromIntervals {
		j.add(Warning, "the tool printed no summary: rates and counts are computed from its intervals, and the latency of the whole run is unknown")
	}
	if s := j.h.Snapshot.Summary; s != nil && s.Parts > 1 {
		j.add(Note, "the output has %d summaries: counts are added up; percentiles can't be and are left out", s.Parts)
	}
	if m.StartEstimated {
		j.add(Note, "the start of the run is estimated: times of day may be off")
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
		j.add(level, "%s, %.2g %% of all transactions: they took time but are in no rate", table.Plural(int(s.Errors), "error"), share)
	case s.Errors > 0:
		j.add(Warning, "%s", table.Plural(int(s.Errors), "error"))
	}
	if s.Reconnects > 0 {
		j.add(Warning, "%s", table.Plural(int(s.Reconnects), "reconnect"))
	}
	if s.MessageCount > 0 {
		j.add(Warning, "the tool printed %s, first: %s", table.Plural(int(s.MessageCount), "error message"), table.Clip(s.Messages[0], longestMessage))
	}
	if s.Errors == 0 && s.Reconnects == 0 && s.MessageCount == 0 && len(j.h.Damage.Problems) == 0 {
		j.add(Good, "no errors")
	}
}

// intervals looks for missing reports: then the tool or its machine stood still.
func (j *judge) intervals() {
	v := &j.h.Intervals
	n := len(v.Elapsed)
	if n == 0 {
		j.add(Warning, "the tool reported no intervals: whether the load was steady is unknown")
		return
	}
	step := median(v.Values(ingest.Column{Kind: ingest.Length}))
	if !(step > 0) {
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
		j.add(Warning, "%d of %d intervals are missing; the longest gap is %.1f s, at %s", missing, n+missing, longest, table.Clock(at))
		return
	}
	j.add(Good, "%s of %.3g s, none missing", table.Plural(n, "interval"), step)
}

func (j *judge) length() {
	if s := j.row.DurationSeconds; s < shortRun {
		j.add(Warning, "the run is short (%.1f s): caches, checkpoints and purge had no time to settle", s)
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
		} else if series.IsKnown(r) {
			measured = append(measured, r)
		}
	}
	if warm {
		j.add(Good, "the tool warmed up first; its summary leaves the warm-up out")
	}
	n := len(measured)
	if n < fewIntervals {
		if n > 0 {
			j.add(Note, "%s: too few to know whether the load was steady", table.Plural(n, "interval"))
		}
		return
	}
	whole := median(measured)
	if whole <= 0 {
		return
	}
	start := median(measured[:n/10]) / median(measured[n/10:])
	if !warm && math.Abs(start-1) > unsteady {
		j.add(Warning, "the first tenth had %.0f %% of the throughput of the rest and is in the summary: warm up first", start*100)
	}
	half := median(measured[n/2:])/median(measured[n/10:n/2]) - 1
	if math.Abs(half) > unsteady {
		j.add(Warning, "throughput was not steady: %+.0f %% in the second half compared with the first", half*100)
	}
	stalls := 0
	for _, r := range measured {
		if r < 0.5*whole {
			stalls++
		}
	}
	if stalls > 0 {
		j.add(Note, "in %d of %d intervals throughput was less than half of the median", stalls, n)
	}
	if math.Abs(half) <= unsteady && stalls == 0 && (warm || math.Abs(start-1) <= unsteady) {
		j.add(Good, "throughput was steady: parts of the run differ by %.0f %% at most", unsteady*100)
	}
}

// omission looks at whether the latency includes the time that an operation waited
// for its turn: see docs/tools.md for each tool.
func (j *judge) omission() {
	m := &j.h.Snapshot.Meta
	if len(j.row.Latency) == 0 && len(j.h.Intervals.Of(ingest.Latency)) == 0 {
		return
	}
	if t := registry.Tools.ByName(m.Tool); t != nil && t.OpenLoop != nil && t.OpenLoop(j.row.Version, m.Labels) {
		j.add(Good, "an open loop: latency counts from when an event was due, waiting included")
		return
	}
	for _, l := range j.h.Intervals.Of(ingest.Latency) {
		if strings.HasPrefix(l.Operation, tool.IntendedPrefix) {
			j.add(Good, "latencies named %s… count from when an operation was due, waiting included; the others don't", tool.IntendedPrefix)
			return
		}
	}
	j.add(Note, "a closed loop: while the database stalled the tool asked nothing new, so the latency leaves out what would have waited (coordinated omission). Read percentiles as a lower bound")
}

func (j *judge) latencies() {
	switch l := j.row.headline; {
	case l.Known && strings.HasPrefix(l.Value.Stat, "p"):
		j.add(Note, "percentiles are the tool's own, from its histogram; those of intervals are not averaged into one")
	case len(j.row.Latency) == 0 && j.row.TPS.Known:
		j.add(Note, "the tool printed no latency for the whole run")
	}
}

func (j *judge) servers() {
	for i := range j.row.Servers {
		s := &j.row.Servers[i]
		if s.Unanswered > 0 {
			j.add(Warning, "%s did not answer %d of %s: its lines have gaps", s.Target, s.Unanswered, table.Plural(s.Ticks, "sample"))
		}
		if s.Restarts > 0 {
			j.add(Warning, "%s restarted during the run", s.Target)
		}
		if len(s.Versions) > 1 {
			j.add(Warning, "%s changed its version during the run: %s", s.Target, strings.Join(s.Versions, ", "))
		}
	}
	if len(j.row.Servers) > 0 {
		j.add(Good, "reports and samples are aligned by one clock, that of the agent's machine")
	}
}

// generator looks at whether the machine that made the load was itself the limit.
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
		j.add(Unknown, "the CPU of the generator was not recorded: if it was busy, the numbers are the generator's, not the database's")
		return
	}
	busy, full := host.Busy.Values(v)[first:last], 0
	for _, b := range busy {
		if b >= busyHost {
			full++
		}
	}
	text := fmt.Sprintf("the generator (%s) was %.0f %% busy", table.Plural(v.Cores, "core"), series.StatsOf(busy).Mean()*100)
	switch share := float64(full) / float64(last-first); {
	case share >= 0.1:
		j.add(Warning, "%s, and full %.0f %% of the time: the numbers may be its limit, not the database's", text, share*100)
	default:
		j.add(Good, "%s: it had CPU to spare", text)
	}
	if stolen := series.StatsOf(host.Steal.Values(v)[first:last]).Mean(); stolen >= stolenHost {
		j.add(Warning, "other virtual machines took %.0f %% of the generator's CPU", stolen*100)
	}
}
