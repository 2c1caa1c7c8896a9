// Package ingest turns the output of a benchmark tool into what is known of the
// run: counters, the newest interval, the summary and the columns of all
// intervals. Live, after a restart and on import the same code reads the bytes.
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
	Starting  Phase = "starting" // no report yet
	Warmup    Phase = "warmup"
	Measuring Phase = "measure"
	Draining  Phase = "draining" // the tool has ended, replicas catch up
	Over      Phase = "over"
)

const (
	keptErrors = 20 // messages of a stream
)

// StaleAfter is how long a report is current if no other one follows.
func StaleAfter(intervalSeconds float64) time.Duration {
	return time.Duration((3*max(1, intervalSeconds) + 1) * float64(time.Second))
}

// state is what the reports of one run add up to. It depends on the reports
// alone, not on when they are read, so a restart arrives at the same totals.
type state struct {
	version, workload string
	targetRate        int
	threads           series.Optional[int]

	interval   *tool.Report // the last one
	intervalAt time.Time
	phase      tool.Phase

	totals             map[string]counter // by operation
	errors, reconnects counter

	summary *Summary
	// histograms are those of the whole run or, with checkpoints, of its parts.
	histograms []Distribution
	lines      Lines

	// stream is that of the line being parsed. Messages and failures are kept by
	// stream, since in which order two streams are read is a matter of chance.
	stream       tool.Stream
	messages     [2][]string
	failure      [2]string // why the run failed according to the tool's output
	lastMessages [2]string
	messageCount uint64
	complete     bool // the last summary has come
	// countsFailures is set if the tool's transactions include failed ones.
	countsFailures bool
	starts         int
}

// counter is a count since the start. The intervals are rate times length where
// the tool prints no count; the summaries set that right. Which of them is read
// first does not matter, since they may come from different streams.
type counter struct{ intervals, summaries float64 }

// value never falls.
func (c counter) value() float64 { return max(c.intervals, c.summaries) }

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

// Summary is a run's own totals: the tool's summary as printed or, of a run
// with several (checkpoints), their sum. Percentiles can't be summed: of
// several they are left out.
type Summary struct {
	ElapsedSeconds series.Optional[float64]
	Threads        series.Optional[int]
	Rates          []tool.Rate
	Counts         []tool.Count
	Latencies      []tool.Latency
	Values         tool.Values
	// Parts is how many summaries it is made of.
	Parts int
	// Histograms are the tool's own of the whole run, an operation each. They may count
	// fewer operations than the run had: after a checkpoint sysbench resets its counts.
	Histograms []Distribution
	// FromIntervals: the tool printed no summary (it was killed); counts and
	// rates are integrated from its interval reports.
	FromIntervals bool
	// Estimated is how many generators of a group printed none.
	Estimated int
}

// Distribution is how the latencies of an operation are distributed.
type Distribution struct {
	Operation string
	*histogram.Histogram
}

func newState() *state {
	return &state{totals: map[string]counter{}}
}

// setTool takes what the tool's reports mean in a run with this verb.
func (s *state) setTool(t *tool.Tool, verb string) {
	s.countsFailures = t.CountsFailures != nil && t.CountsFailures(verb)
}

// apply adds a report that was read at the instant at.
func (s *state) apply(r *tool.Report, at time.Time) {
	if r.Failed {
		s.failure[s.stream] = cmp.Or(r.Message, "the tool's output shows that it failed")
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

func (s *state) start(r *tool.Report) {
	s.starts++
	s.phase = r.Phase
	if r.Version != "" {
		s.version = r.Version
	}
	if r.Workload != "" {
		s.workload = secret.Text(r.Workload)
	}
	if r.Threads.Known {
		s.threads = r.Threads
	}
	if r.TargetRate > 0 {
		s.targetRate = r.TargetRate
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
	if r.Threads.Known {
		s.threads = r.Threads
	}
	for _, c := range r.Counts {
		s.add(c.Operation, counter{intervals: float64(c.N)})
	}
	if !r.IntervalSeconds.Known {
		return
	}
	seconds := r.IntervalSeconds.Value
	for _, rate := range r.Rates {
		if !r.Count(rate.Operation).Known {
			s.add(rate.Operation, counter{intervals: rate.PerSecond * seconds})
		}
	}
	if errors := r.Value(tool.ErrorRate); errors.Known && !r.Count(tool.ErrorCount).Known {
		s.add(tool.ErrorCount, counter{intervals: errors.Value * seconds})
	}
	if reconnects := r.Value(tool.ReconnectRate); reconnects.Known {
		s.add(tool.ReconnectCount, counter{intervals: reconnects.Value * seconds})
	}
}

// add adds n to the counter of an operation, of errors or of reconnects.
func (s *state) add(operation string, n counter) {
	c := s.totals[operation]
	switch operation {
	case tool.ErrorCount:
		c = s.errors
	case tool.ReconnectCount:
		c = s.reconnects
	}
	c.intervals += n.intervals
	c.summaries += n.summaries
	switch operation {
	case tool.ErrorCount:
		s.errors = c
	case tool.ReconnectCount:
		s.reconnects = c
	default:
		s.totals[operation] = c
	}
}

// maxHistograms bounds the operations with a histogram: their names are the tool's.
const maxHistograms = 64

// addHistogram merges a histogram with those of the operation before it.
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
		s.add(c.Operation, counter{summaries: float64(c.N)})
	}
	s.summary = s.summary.add(r)
	s.complete = s.complete || !r.Checkpoint
}

// final is the summary of a run that has ended; nil if nothing is known.
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
	for _, op := range sortedKeys(s.totals) {
		total := s.totals[op].value()
		sum.Counts = append(sum.Counts, tool.Count{Operation: op, N: uint64(total)})
		if e := sum.ElapsedSeconds; e.Known && e.Value > 0 {
			sum.Rates = append(sum.Rates, tool.Rate{Operation: op, PerSecond: total / e.Value})
		}
	}
	if n := s.errors.value(); n > 0 || countsErrors(s.interval) {
		sum.Counts = append(sum.Counts, tool.Count{Operation: tool.ErrorCount, N: uint64(n)})
	}
	return sum
}

// output is what the reports so far show of how the run ended.
func (s *state) output() rundir.Output {
	return rundir.Output{Complete: s.complete, Failure: cmp.Or(s.failure[:]...), Complaint: complaint(s.firstMessages())}
}

// firstMessages returns the first messages, those on standard output first.
func (s *state) firstMessages() []string {
	all := slices.Concat(s.messages[:]...)
	return all[:min(len(all), keptErrors)]
}
