package review

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
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
	// busyHost is the load above which a machine's own threads wait for its CPUs, stolenHost the stolen share above
	// which results suffer.
	busyHost   = 0.9
	stolenHost = 0.02
)

// Trust returns what a reader has to know before believing a run's numbers.
func Trust(h *record.History, row *Row) []Finding {
	j := &judge{h: h, row: row}
	if isEmpty(h) {
		j.add(Warning, "the run %s before it measured anything", row.Outcome())
		return j.findings
	}
	j.outcome()
	j.errors()
	j.machines()
	j.intervals()
	j.length()
	j.steadiness()
	j.omission()
	j.latencies()
	j.statements()
	j.servers()
	for _, line := range h.DamageLines() {
		j.add(Warning, "%s", table.Clip(line, longestMessage))
	}
	j.generator()
	j.machine()
	j.add(Note, "one run says nothing about spread: repeat it, and use benchwatch compare to distinguish a difference from noise")
	return j.findings
}

// longestMessage bounds text from a tool or a server in a finding.
const longestMessage = 300

type judge struct {
	h        *record.History
	row      *Row
	findings []Finding
}

func (j *judge) add(level Level, format string, args ...any) {
	j.findings = append(j.findings, Finding{level, fmt.Sprintf(format, args...)})
}

// isEmpty reports whether a run ended without success and without a value, and no file is damaged.
func isEmpty(h *record.History) bool {
	outcome := h.Snapshot.Meta.Outcome
	return outcome != "" && outcome != rundir.Succeeded && h.Intervals.N == 0 && h.Snapshot.Summary == nil &&
		len(h.DamageLines()) == 0
}

func (j *judge) outcome() {
	m := &j.h.Snapshot.Meta
	switch {
	case m.Outcome == "":
		j.add(Warning, "the run has not ended: these are its numbers so far")
	case m.Outcome != rundir.Succeeded:
		j.add(Warning, "the run %s", j.row.Outcome())
	}
	if imported := m.Import != nil || m.Log != nil; j.row.FromIntervals && imported && m.Outcome == rundir.Lost {
		j.add(Warning, "the log ends at %s without a summary: if the run went on, the rest is not in the log", table.Clock(j.row.DurationSeconds))
	}
	if j.row.FromIntervals {
		j.add(Warning, "the tool printed no summary: rates and counts are computed from its intervals, and the latency of the whole run is unknown")
	}
	if s := j.h.Snapshot.Summary; s != nil && s.Estimated > 0 {
		j.add(Warning, "%s printed no summary: its part of rates and counts is computed from its intervals, and the latency of the whole run is unknown", table.Plural(s.Estimated, "generator"))
	}
	if names := j.h.Snapshot.LeftOut; len(names) > 0 {
		j.add(Note, "the log has lines of several containers: those of %s are left out", table.Join(names))
	}
	if s := j.h.Snapshot.Summary; s != nil && s.Parts > 1 {
		j.add(Note, "the output has %d summaries: counts are added up; percentiles can't be and are left out", s.Parts)
	}
	if m.StartEstimated {
		j.add(Note, "the start of the run is estimated: times of day may be off")
	}
}

// machines reports the source of the machines' values if benchwatch did not measure them.
func (j *judge) machines() {
	for _, one := range j.h.Hosts {
		if one.Engine == record.CloudWatchEngine {
			j.add(Note, "what the machine of %s did is from CloudWatch, by Prometheus: one value a minute, of whole minutes of the run", one.Target)
		}
		if one.Engine == record.MachineLogEngine {
			j.add(Note, "what %s did is from the output of %s, which is assumed to have started with the tool",
				one.Target, strings.Join(one.Versions, ", "))
		}
	}
}

func (j *judge) errors() {
	s := &j.h.Snapshot
	switch share := s.FailedShare.Value; {
	case s.Errors > 0 && share < 1:
		level, text := Note, table.Plural(int(s.Errors), "error")
		if share >= ManyFailures {
			level = Warning
		}
		if !j.h.Tool().IncludesFailures(s.Meta.Verb) {
			j.add(level, "%s: %s of all transactions failed; they took time but are in no rate", text, table.Share(share))
		} else {
			j.add(level, "%s: %s of all transactions failed; the rates include them", text, table.Share(share))
		}
	case s.Errors > 0:
		j.add(Warning, "%s", table.Plural(int(s.Errors), "error"))
	}
	if s.Reconnects > 0 {
		j.add(Warning, "%s", table.Plural(int(s.Reconnects), "reconnect"))
	}
	if s.MessageCount > 0 {
		text := "the tool printed " + table.Plural(int(s.MessageCount), "error message")
		if len(failure(s)) == 0 { // which has a message
			text += ", first: " + table.Clip(s.Messages[0], longestMessage)
		}
		j.add(Warning, "%s", text)
	}
	if n := s.ErrorTotal(); n.Known && n.Value == 0 && s.Reconnects == 0 && s.MessageCount == 0 && len(j.h.Damage.Problems) == 0 {
		j.add(Good, "no errors")
	}
}

// intervals looks for missing reports: they mean that the tool or its machine was stalled.
func (j *judge) intervals() {
	v := &j.h.Intervals
	if v.N == 0 {
		j.add(Warning, "the tool reported no intervals: whether the load was steady is unknown")
		return
	}
	step := v.Lengths.Median()
	if !(step > 0) {
		return
	}
	missing, head := 0, 0.0
	if len(v.Elapsed) > 0 {
		head = v.Elapsed[0] - step
	}
	if head > 0.5*step && !v.QuietWarmup {
		missing = int(math.Round(head / step))
		j.add(Warning, "0:00 to %s is not in the log: rates and means are of the rest", table.Clock(head))
	}
	for gap, count := range v.Distances.Each {
		if gap > 1.5*step {
			missing += count * (int(math.Round(gap/step)) - 1)
		}
	}
	switch {
	case missing > 0 && v.Distances.Max > 1.5*step:
		j.add(Warning, "%d of %d intervals are missing; the longest gap is %.1f s, at %s",
			missing, v.N+missing, v.Distances.Max, table.Clock(v.Distances.MaxAt))
		return
	case missing > 0:
		j.add(Warning, "%d of %d intervals are missing", missing, v.N+missing)
		return
	}
	j.add(Good, "%s of %.3g s, none missing", table.Plural(v.N, "interval"), step)
}

func (j *judge) length() {
	if s := j.row.DurationSeconds; s < shortRun {
		j.add(Warning, "the run is short (%.1f s): caches, checkpoints and purge had no time to settle", s)
	}
}

const openLoop = "an open loop: latency counts from when an event was due, waiting included"

// omission looks at whether the latency includes the time that an operation waited
// for its turn: see docs/tools/ for each tool.
func (j *judge) omission() {
	m := &j.h.Snapshot.Meta
	if len(j.row.Latency) == 0 && len(j.h.Intervals.Of(tool.HeadlineLatency)) == 0 {
		return
	}
	t := j.h.Tool()
	if t != nil && t.OpenLoop != nil && t.OpenLoop(j.row.Version, m.RatePerSecond) {
		j.add(Good, openLoop)
		return
	}
	for _, l := range j.h.Intervals.Of(tool.HeadlineLatency) {
		if l.Operation == tool.ScheduleLag {
			j.add(Good, openLoop)
			return
		}
		if strings.HasPrefix(l.Operation, tool.IntendedPrefix) {
			j.add(Good, "latencies named %s… count from when an operation was due, waiting included; the others don't",
				tool.IntendedPrefix)
			return
		}
	}
	if t != nil && t.AnyProgram {
		j.add(Unknown, "the log does not say whether its latencies include the time that operations waited for their turn")
		return
	}
	j.add(Note, "a closed loop: if the database stalls, the tool asks nothing new, so the latency leaves out what would have waited (coordinated omission). Read percentiles as a lower bound")
}

func (j *judge) latencies() {
	switch l := j.row.headline; {
	case l.Known && l.Value.Stat != tool.StatName(l.Value.Stat):
		if stat, merged := j.mergedPercentile(l.Value); merged != "" {
			j.add(Note, "%s of all generators is %s, from their merged histograms; those called worst generator's are the largest of single generators, per interval and for the whole run", stat, merged)
			return
		}
		j.add(Note, "percentiles of several generators can't be combined without their histograms: those shown are the worst generator's, per interval and for the whole run")
	case l.Known && strings.HasPrefix(l.Value.Stat, "p"):
		j.add(Note, "percentiles are the tool's own, from its histogram; those of intervals are not averaged into one")
	case len(j.row.Latency) == 0 && j.row.Values.Of(tool.Throughput).Known:
		j.add(Note, "the tool printed no latency for the whole run")
	}
}

// statements describes what the rate of statements counts if intervals and the summary differ.
func (j *judge) statements() {
	s := j.h.Snapshot.Summary
	if s == nil || !j.row.Values.Of(tool.QueryRate).Known {
		return
	}
	others, over := s.Report().Count(tool.Other).Value, j.h.Intervals.Keys()
	if others > 0 && slices.Contains(over, ingest.RateOf(tool.Query)) && !slices.Contains(over, ingest.RateOf(tool.Other)) {
		j.add(Note, "queries of the whole run are all statements, %s of them neither reads nor writes, such as BEGIN and COMMIT; intervals only count reads and writes",
			table.Count.Format(float64(others)))
	}
}

// mergedPercentile returns the name and the bounds of a percentile over all generators: the same percentile as worst
// or, with too few values for it, p95. There are no bounds unless the merged histogram has all operations.
func (j *judge) mergedPercentile(worst tool.Latency) (stat, bounds string) {
	stat, _ = tool.SplitWorst(worst.Stat)
	for _, d := range distributions(j.h.Snapshot.Summary) {
		if d.Operation != worst.Operation || d.Of != series.Some(float64(d.Count)) {
			continue
		}
		for _, name := range []string{stat, "p95"} {
			for _, p := range d.Percentiles {
				if p.Stat == name && p.High.Known {
					return name, fmt.Sprintf("%s to %s ms", table.Digits.Format(p.Low*1e3), table.Digits.Format(p.High.Value*1e3))
				}
			}
		}
	}
	return stat, ""
}

func (j *judge) servers() {
	if notice := j.h.Snapshot.Meta.Servers.Notice(); notice != "" {
		j.add(Unknown, "%s", notice)
	}
	silent := j.silence()
	j.coverage(silent)
	for i := range j.row.Servers {
		s := &j.row.Servers[i]
		if s.Unanswered > 0 && !silent[s.Target] {
			j.add(Warning, "%s did not answer %d of %s: its lines have gaps", s.Target, s.Unanswered, table.Plural(s.Ticks, "sample"))
		}
		if s.Restarts > 0 {
			j.add(Warning, "%s restarted during the run", s.Target)
		}
		if len(s.Versions) > 1 {
			j.add(Warning, "%s changed its version during the run: %s", s.Target, strings.Join(s.Versions, ", "))
		}
	}
	sampled := false
	for i := range j.row.Servers {
		s := &j.row.Servers[i]
		sampled = sampled || s.Engine != record.DumpEngine
		if s.Engine == record.DumpEngine {
			j.add(Note, "what %s did is the difference of two dumps of its status, as if they were of the begin and the end of the run: means only, with all that happened between them", s.Target)
		}
	}
	if sampled {
		j.add(Good, "reports and samples are aligned by one clock, that of the agent's machine")
	}
}

// lateSampler is the share of a run for which samples must be late to be reported.
const lateSampler = 0.05

// sampled returns the servers and machines that have samples.
func (j *judge) sampled() []*record.Server {
	all := slices.Clone(j.h.Servers)
	for _, one := range j.h.Hosts {
		all = append(all, one.Server)
	}
	return all
}

// silence reports why servers and machines never answered, and returns their names.
func (j *judge) silence() map[string]bool {
	silent := map[string]bool{}
	for _, s := range j.sampled() {
		if why := s.Silence(); why != "" {
			silent[s.Target] = true
			j.add(Warning, "%s did not answer: %s", s.Target, why)
		}
	}
	return silent
}

// coverage checks in how many seconds the other servers and machines were sampled, and whether the agent had time to
// sample them.
func (j *judge) coverage(silent map[string]bool) {
	all := j.sampled()
	// A tick is missed at the start of a run that the agent finds a moment later.
	all = slices.DeleteFunc(all, func(s *record.Server) bool {
		return silent[s.Target] || s.Missed <= 1 && s.Coverage.Represents()
	})
	late := ""
	if seconds := j.h.Snapshot.Meta.SamplerLateSeconds; seconds.Value >= lateSampler*j.row.DurationSeconds {
		late = fmt.Sprintf("for %.1f s a sample was due and not begun: the agent had no core, or its machine stood still", seconds.Value)
	}
	for len(all) > 0 {
		first := all[0]
		var names []string
		all = slices.DeleteFunc(all, func(s *record.Server) bool {
			same := s.Coverage == first.Coverage && s.Missed == first.Missed
			if same {
				names = append(names, s.Target)
			}
			return same
		})
		verb := " was"
		if len(names) > 1 {
			verb = " were"
		}
		text := table.Join(names) + verb + " sampled for " + first.Coverage.String()
		if first.Missed > 0 && j.h.Snapshot.Meta.Import == nil { // no agent sampled beside an imported log
			text += fmt.Sprintf("; the agent missed %s", table.Plural(first.Missed, "sample"))
			if late == "" {
				text += ", because it or its machine stood still, or it did not follow the run all the time"
			}
		}
		if first.Coverage.Represents() {
			text += ": rates, means and costs are of these seconds"
		} else {
			text += ": that is too little for rates, means and costs, which are left out"
		}
		j.add(Warning, "%s", text)
	}
	if late != "" {
		j.add(Warning, "%s; round trips and latencies of servers may be the agent's own", late)
	}
	if servers := j.h.Snapshot.Meta.Servers; servers != nil && len(j.h.Servers) > 0 {
		for _, target := range servers.Targets {
			if j.h.Server(target.Target) == nil {
				j.add(Warning, "%s was not sampled", target.Target)
			}
		}
	}
}

// machine looks at what is known to limit a machine.
func (j *judge) machine() {
	for _, s := range j.h.Settings {
		name, ok := strings.CutPrefix(s.Target, record.MachineSettings)
		if !ok {
			continue
		}
		if governor := s.Settings[host.Governor]; governor == "powersave" {
			j.add(Warning, "the CPU governor of %s was %s: its cores may have been slower than they can be", name, governor)
		}
		if j.isGenerator(name) {
			j.connections(s.Settings)
		}
		j.queues(name, s.Settings)
	}
}

// isGenerator reports whether the load was generated on a machine.
func (j *judge) isGenerator(name string) bool {
	return slices.ContainsFunc(j.h.Hosts, func(one *record.Host) bool { return one.Target == name && one.Has(rundir.GeneratorHost) })
}

// otherFiles is how many files a tool has open beside its connections, at least.
const otherFiles = 16

// connections compares the connections of the tool, one for each thread, with what its machine allows.
func (j *judge) connections(facts map[string]string) {
	wanted := j.row.Threads
	if files, err := strconv.Atoi(facts[host.OpenFiles]); err == nil && wanted+otherFiles > files {
		j.add(Warning, "the tool was allowed to open %s (ulimit -n), too few for %s",
			table.Plural(files, "file"), table.Plural(wanted, "connection"))
	}
	if processes, err := strconv.Atoi(facts[host.Processes]); err == nil && wanted > processes {
		j.add(Warning, "the tool's user was allowed to have %s (ulimit -u), too few for %s",
			table.Plural(processes, "thread"), table.Plural(wanted, "thread"))
	}
	var first, last int
	if n, err := fmt.Sscan(facts[host.PortRange], &first, &last); err == nil && n == 2 && wanted > last-first+1 {
		j.add(Warning, "the generator had %s for outgoing connections (%s), too few for %s",
			table.Plural(last-first+1, "port"), host.PortRange, table.Plural(wanted, "connection"))
	}
}

// queues reports a network interface whose packets one core handles, if one core was full.
func (j *judge) queues(name string, facts map[string]string) {
	i := slices.IndexFunc(j.h.Hosts, func(one *record.Host) bool { return one.Target == name })
	if i < 0 || j.h.Hosts[i].Cores < 2 {
		return
	}
	core, irq := j.h.Hosts[i].Tally(host.BusiestCore), j.h.Hosts[i].Tally(host.SoftIRQ)
	// The share of all cores that is half of one.
	if !(core.Share(fullCore) >= 0.1) || !(irq.Mean() >= 0.5/float64(j.h.Hosts[i].Cores)) {
		return
	}
	for _, fact := range slices.Sorted(maps.Keys(facts)) {
		if link, ok := strings.CutPrefix(fact, host.ReceiveQueues); ok && facts[fact] == host.OneQueue {
			j.add(Warning, "one core of %s handled all packets that %s received, and a core was full: it has one queue and no RPS", name, link)
		}
	}
}

// fullCore is the use above which a core has no time left.
const fullCore = 0.95

// generator checks whether the machine that generated the load was itself the limit.
func (j *judge) generator() {
	if m := &j.h.Snapshot.Meta; m.IsGroup() {
		j.group(m.Group)
		return
	}
	v := &j.h.Host
	busy, steal := v.Tally(host.Busy), v.Tally(host.Steal)
	share := busy.Share(busyHost)
	if !series.IsKnown(share) {
		if slices.ContainsFunc(j.h.Hosts, func(one *record.Host) bool { return one.Has(rundir.GeneratorHost) }) { // coverage has said how little
			return
		}
		j.add(Unknown, "the CPU of the generator was not recorded: if it was busy, the numbers are the generator's, not the database's")
		return
	}
	text := fmt.Sprintf("the generator's machine (%s) was %s busy", table.Plural(v.Cores, "core"), table.Share(busy.Mean()))
	waited := j.toolWaited()
	if share >= 0.1 {
		text += fmt.Sprintf(", and full %s of the time", table.Share(share))
	}
	user := j.row.Limits.CPUUser(cmp.Or(j.h.Snapshot.Meta.Tool, "the tool"))
	level, conclusion := generatorCPU(user, waited, share)
	j.add(level, "%s%s", text, conclusion)
	if stolen := steal.Mean(); stolen >= stolenHost {
		j.add(Warning, "other virtual machines took %s of the CPU of the generator's machine", table.Share(stolen))
	}
}

// generatorCPU concludes what the use of the generator's CPU means for the numbers: user is who used most of it by what
// limited the run, waited the share of the clients' time in which the tool waited for a core, full the share of the time
// in which all cores were busy.
func generatorCPU(user limits.User, waited, full float64) (Level, string) {
	waits, only := "", ""
	if series.IsKnown(waited) {
		only = fmt.Sprintf(": it waited for a core for only %s of the clients' time", table.Share(waited))
		waits = fmt.Sprintf("; the tool waited for a core for %s of the clients' time", table.Share(waited))
	}
	switch {
	case user == limits.ByServers && full >= 0.1 && !(waited >= leastWait):
		return Note, ", mostly by the servers beside it: the tool itself was not short of CPU" + only
	case user == limits.ByServers:
		return Warning, ", mostly by the servers beside it" + waits + ", which is part of the latency"
	case user == limits.ByOthers && waited >= leastWait:
		return Warning, ", and other programs cost the clients time" + waits + ", which is part of the latency and not the database's"
	case user == limits.ByTool, waited >= mostWait:
		return Warning, waits + ": the numbers show a generator short of CPU, not the database"
	case waited >= leastWait:
		return Warning, waits + ", which is part of the latency and not the database's"
	case full >= 0.1 && series.IsKnown(waited):
		return Note, ", but the tool itself was not short of CPU" + only
	case full >= 0.1:
		return Warning, ": the numbers may be the machine's limit, not the database's"
	}
	return Good, ": it had CPU to spare"
}

// leastWait is the share of the clients' time from which on the tool's wait for a core matters. From mostWait on,
// the wait is most of what the run measured.
const leastWait, mostWait = 0.05, 0.5

// toolWaited returns the share of the clients' time in which a thread of the tool waited for a core.
func (j *judge) toolWaited() float64 {
	for _, one := range j.h.Hosts {
		if t := one.Tally(host.ToolWaiting); one.Has(rundir.GeneratorHost) && t.Whole() >= limits.LeastSamples && j.row.Threads > 0 {
			return min(1, t.Mean()/float64(j.row.Threads))
		}
	}
	return series.Unknown()
}

// group checks whether the generators formed one load.
func (j *judge) group(g *rundir.Group) {
	if skew, ok := g.Skew(); ok {
		text := fmt.Sprintf("%s started within %s", table.Plural(g.Generators, "generator"), table.Milliseconds.Format(skew)+" ms")
		if !slices.ContainsFunc(g.Members, func(m rundir.Member) bool { return m.ClockOffsetSeconds == nil }) {
			text += ", the difference of their clocks corrected for"
		}
		level := Good
		if skew > lateStart {
			level = Warning
		}
		j.add(level, "%s", text)
	}
	if v := j.h.Intervals.Tally(ingest.Column{Measure: tool.Generators}); v.Min < float64(g.Generators) {
		j.add(Warning,
			"not all generators reported all intervals, at least %.0f of %d: an interval without one that still ran has "+
				"no sum, and after the end of one the sum is of the others", v.Min, g.Generators)
	}
	if j.h.Snapshot.Meta.Import != nil { // only their logs are known
		return
	}
	j.add(Note, "how busy the generators were is in their own runs, %s to %s",
		rundir.GeneratorID(g.Name, 1), rundir.GeneratorID(g.Name, g.Generators))
}

// lateStart is the difference in seconds between the starts of two generators above which they are not one load.
const lateStart = 0.1
