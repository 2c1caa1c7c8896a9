// Package ingest turns the output of a benchmark tool into the state of its run: counters, the
// newest interval, the summary and the columns of all intervals. The same code reads the bytes
// live, after a restart and on import.
package ingest

import (
	"cmp"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Phase is what a run is doing.
type Phase string

const (
	Starting  Phase = "starting" // before the first report
	Warmup    Phase = "warmup"
	Measuring Phase = "measure"
	Draining  Phase = "draining" // the tool has ended, replicas are catching up
	Over      Phase = "over"
)

const (
	keptErrors = 20 // messages of a stream
	keptLabels = 64 // facts that the output shows
)

// StaleAfter is how long a report is current if none follows.
func StaleAfter(intervalSeconds float64) time.Duration {
	return time.Duration((3*max(1, intervalSeconds) + 1) * float64(time.Second))
}

// state accumulates the reports of one run. It depends only on the reports, not on when they are
// read, so a restart arrives at the same totals.
type state struct {
	version, workload, verb string
	files                   string // Report.Files
	run                     int    // the last one in the output that began
	several                 bool   // runs, such as the end of a load before the run
	labels                  []tool.Label
	targetRate              int
	threads                 series.Optional[int]
	announced               series.Optional[float64] // length of intervals

	interval   *tool.Report // the last one
	unsized    *tool.Report // the first one, while its length is unknown
	covered    float64      // the sum of the lengths of all intervals
	holes      bool         // an interval has neither a length nor counts
	usual      float64      // the length of the last interval that has one
	incomplete bool         // other intervals have no length
	intervalAt time.Time
	phase      tool.Phase

	totals             map[string]*counter // by operation
	rated              []rated             // of the last interval, in its order
	errors, reconnects counter

	summary *Summary
	// histograms of the whole run or, with checkpoints, of its parts.
	histograms []Distribution
	lines      Lines

	// stream of the line being parsed. Messages and failures are kept by stream, because the order
	// in which two streams are read is random.
	stream       tool.Stream
	messages     [2][]string
	failure      [2]string // why the run failed according to the tool's output
	lastMessages [2]string
	messageCount uint64
	complete     bool // the last summary is complete
	tool         *tool.Tool
	// countsFailures: the tool's transactions include failed ones.
	countsFailures bool
}

// counter is a count since the start. intervals adds up rate times length where the tool does not
// print counts; summaries corrects that. The order does not matter, since the two may come from
// different streams.
type counter struct{ intervals, summaries float64 }

// value never falls. It is 0 for a counter that does not exist.
func (c *counter) value() float64 {
	if c == nil {
		return 0
	}
	return max(c.intervals, c.summaries)
}

// rated is an operation that an interval has a rate of.
type rated struct {
	operation string
	total     *counter
}

// Lines counts the tool's output lines by what the parser made of them.
type Lines struct {
	Reported, Ignored, Malformed uint64
}

// add counts a line.
func (l *Lines) add(v tool.Verdict) {
	switch v {
	case tool.Reported:
		l.Reported++
	case tool.Malformed:
		l.Malformed++
	default:
		l.Ignored++
	}
}

func (l Lines) plus(n Lines) Lines {
	return Lines{l.Reported + n.Reported, l.Ignored + n.Ignored, l.Malformed + n.Malformed}
}

func (l Lines) minus(n Lines) Lines {
	return Lines{l.Reported - n.Reported, l.Ignored - n.Ignored, l.Malformed - n.Malformed}
}

// Summary has the run's totals: the tool's summary as printed or, with several (checkpoints), their
// sum. It has no percentiles if there are several, since percentiles can't be added.
type Summary struct {
	ElapsedSeconds series.Optional[float64]
	Threads        series.Optional[int]
	Rates          []tool.Rate
	Counts         []tool.Count
	Latencies      []tool.Latency
	Values         tool.Values
	// Parts is the number of summaries in it.
	Parts int
	// Histograms are the tool's own histograms of the whole run, one per operation. They may count
	// fewer operations than the run had: sysbench resets its counts after a checkpoint.
	Histograms []Distribution
	// FromIntervals: the tool printed no summary (it was killed); counts and rates are integrated
	// from its intervals.
	FromIntervals bool
	// Estimated is the number of generators of a group without a summary.
	Estimated int
	// CoveredSeconds is how much of the time the intervals cover if a part of the run is not in the output and there is no
	// summary; 0 otherwise.
	CoveredSeconds float64
}

// Distribution is the latency distribution of an operation.
type Distribution struct {
	Operation string
	*histogram.Histogram
}

func newState() *state {
	return &state{totals: map[string]*counter{}}
}

// setTool sets how to interpret the tool's reports in a run with this verb.
func (s *state) setTool(t *tool.Tool, verb string) {
	s.tool, s.countsFailures = t, t.IncludesFailures(verb)
}

// apply adds a report that was read at the instant at.
func (s *state) apply(r *tool.Report, at time.Time) {
	if r.Failed {
		s.failure[s.stream] = cmp.Or(r.Message, "the tool's output shows that it failed")
	}
	s.files = cmp.Or(r.Files, s.files)
	for _, l := range r.Labels {
		s.addLabel(l)
	}
	switch r.Kind {
	case tool.Start:
		s.start(r)
	case tool.Interval:
		s.addInterval(r, at)
	case tool.Summary:
		s.addSummary(r)
	case tool.Histogram:
		if r.Cumulative {
			s.addHistogram(r)
		}
	case tool.Error:
		s.addMessage(r.Message, max(1, r.Count(tool.ErrorCount).Value))
	}
}

// addLabel keeps the first value of each label that the output itself shows or, without one, that of the command before it.
func (s *state) addLabel(l tool.Label) {
	at := slices.IndexFunc(s.labels, func(known tool.Label) bool { return known.Name == l.Name })
	switch {
	case at < 0 && len(s.labels) < keptLabels:
		s.labels = append(slices.Clip(s.labels), l) // snapshots share it
	case at >= 0 && s.labels[at].FromCommand && !l.FromCommand:
		s.labels = slices.Clone(s.labels)
		s.labels[at] = l
	}
}

func (s *state) start(r *tool.Report) {
	s.several = s.several || s.run != 0 && s.run != r.Run
	s.run = r.Run
	s.phase = r.Phase
	if r.Version != "" {
		s.version = r.Version
	}
	if r.Workload != "" {
		s.workload = secret.Text(r.Workload)
	}
	if r.Command != "" {
		s.verb = secret.Text(r.Command)
		s.countsFailures = s.tool.IncludesFailures(s.verb)
	}
	if r.Threads.Known {
		s.threads = r.Threads
	}
	if r.TargetRate > 0 {
		s.targetRate = r.TargetRate
	}
	if r.IntervalSeconds.Known {
		s.announced = r.IntervalSeconds
	}
}

// addMessage keeps a message that the tool printed n times.
func (s *state) addMessage(m string, n uint64) {
	s.messageCount += n
	s.lastMessages[s.stream] = m
	if kept := &s.messages[s.stream]; len(*kept) < keptErrors {
		*kept = append(*kept, m)
	}
}

func (s *state) addInterval(r *tool.Report, at time.Time) {
	if s.interval == nil {
		s.interval = &tool.Report{}
	}
	s.interval.CopyFrom(r)
	s.intervalAt = at
	s.phase = r.Phase
	if r.Threads.Value > s.threads.Value { // threads that have ended are not printed any more
		s.threads = r.Threads
	}
	for _, c := range r.Counts {
		s.counter(c.Operation).intervals += float64(c.N)
	}
	s.cover(r)
	if !r.IntervalSeconds.Known {
		return
	}
	s.integrate(r, r.IntervalSeconds.Value)
}

// cover keeps account of the time that the intervals cover. The length of a first interval is known from the second one.
func (s *state) cover(r *tool.Report) {
	switch length := r.IntervalSeconds; {
	case length.Known:
		s.covered += length.Value
		s.usual = length.Value
		if first := s.unsized; first != nil {
			if s.unsized = nil; first.ElapsedSeconds.Value >= length.Value {
				s.integrate(first, length.Value)
				s.covered += length.Value
			}
		}
	case s.covered == 0 && s.unsized == nil && r.ElapsedSeconds.Known && !s.incomplete:
		s.unsized = r.Clone()
	case !r.Count(tool.Transaction).Known: // its rates are in no total
		s.holes = true
	default:
		s.incomplete = true
	}
}

// longestDrift is the share of a run by which the lengths of intervals may be too short because tools round them.
const longestDrift = 0.005

// seconds is how much time the intervals cover, according to the tool's clock or, if a part of the run is not in the
// output, to the sum of their lengths.
func (s *state) seconds() series.Optional[float64] {
	elapsed := s.interval.ElapsedSeconds
	if missing := elapsed.Value - s.covered; elapsed.Known && !s.incomplete && s.covered > 0 &&
		(s.holes || missing > 1.5*s.usual || missing > 0.5*s.usual && missing > longestDrift*elapsed.Value) {
		return series.Some(s.covered)
	}
	return elapsed
}

// integrate adds the rates of an interval to the counters of the operations without counts.
func (s *state) integrate(r *tool.Report, seconds float64) {
	n := 0
	for _, rate := range r.Rates {
		if r.Count(rate.Operation).Known {
			continue
		}
		if n == len(s.rated) || s.rated[n].operation != rate.Operation {
			s.rated = append(s.rated[:n], rated{rate.Operation, s.counter(rate.Operation)})
		}
		s.rated[n].total.intervals += rate.PerSecond * seconds
		n++
	}
	if errors := r.Values.Of(tool.ErrorRate); errors.Known && !r.Count(tool.ErrorCount).Known {
		s.errors.intervals += errors.Value * seconds
	}
	if reconnects := r.Values.Of(tool.ReconnectRate); reconnects.Known {
		s.reconnects.intervals += reconnects.Value * seconds
	}
}

// counter returns the counter of an operation, of errors or of reconnects.
func (s *state) counter(operation string) *counter {
	switch operation {
	case tool.ErrorCount:
		return &s.errors
	case tool.ReconnectCount:
		return &s.reconnects
	}
	c := s.totals[operation]
	if c == nil {
		c = &counter{}
		s.totals[operation] = c
	}
	return c
}

// maxHistograms bounds the operations with a histogram, because the tool chooses their names.
const maxHistograms = 64

// addHistogram merges a histogram into the previous ones of its operation.
func (s *state) addHistogram(r *tool.Report) {
	i := slices.IndexFunc(s.histograms, func(d Distribution) bool { return d.Operation == r.Operation })
	switch {
	case i >= 0:
		s.histograms = slices.Clone(s.histograms) // snapshots share it
		s.histograms[i].Histogram = histogram.Merge(s.histograms[i].Histogram, r.Distribution())
	case len(s.histograms) < maxHistograms:
		s.histograms = append(slices.Clip(s.histograms), Distribution{r.Operation, r.Distribution()})
	}
}

func (s *state) addSummary(r *tool.Report) {
	if r.Threads.Known {
		s.threads = r.Threads
	}
	for _, c := range r.Counts {
		s.counter(c.Operation).summaries += float64(c.N)
	}
	s.summary = s.summary.add(r)
	s.complete = s.complete || !r.Checkpoint
}

// final is the summary of an ended run; nil if nothing is known.
func (s *state) final() *Summary {
	if s.summary != nil {
		sum := *s.summary
		sum.Histograms = s.histograms
		return &sum
	}
	if s.interval == nil {
		return nil
	}
	sum := &Summary{FromIntervals: true, Histograms: s.histograms, Threads: s.threads, ElapsedSeconds: s.interval.ElapsedSeconds}
	if covered := s.seconds(); covered != s.interval.ElapsedSeconds {
		sum.CoveredSeconds = covered.Value
	}
	for _, op := range sortedKeys(s.totals) {
		total := s.totals[op].value()
		sum.Counts = append(sum.Counts, tool.Count{Operation: op, N: uint64(total)})
		if e := s.seconds(); e.Known && e.Value > 0 {
			sum.Rates = append(sum.Rates, tool.Rate{Operation: op, PerSecond: total / e.Value})
		}
	}
	if n := s.errors.value(); n > 0 || countsErrors(s.interval) {
		sum.Counts = append(sum.Counts, tool.Count{Operation: tool.ErrorCount, N: uint64(n)})
	}
	return sum
}

// output is what the reports so far show about how the run ended.
func (s *state) output() rundir.Output {
	return rundir.Output{Verb: s.verb, Labels: s.labels, Complete: s.complete, Failure: cmp.Or(s.failure[:]...), Complaint: complaint(s.firstMessages())}
}

// firstMessages returns the first messages, those on standard output first.
func (s *state) firstMessages() []string {
	all := slices.Concat(s.messages[:]...)
	return all[:min(len(all), keptErrors)]
}
