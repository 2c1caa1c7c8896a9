// Package ingest turns the output of a benchmark tool into what is known of the
// run: counters, the newest interval, the summary and the columns of all
// intervals. Live, after a restart and on import the same code reads the bytes.
package ingest

import (
	"maps"
	"time"

	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// Phase is where a run stands.
type Phase string

const (
	Starting  Phase = "starting" // no report yet
	Warmup    Phase = "warmup"
	Measuring Phase = "measure"
	Draining  Phase = "draining" // the tool has ended, replicas catch up
	Over      Phase = "over"
)

const (
	keptErrors = 20 // messages kept of the first ones; the last is kept too
	// staleIntervals is after how many intervals without a report the last one
	// no longer says what is going on now.
	staleIntervals = 3
)

// state is what the reports of one run add up to. It depends on the reports
// alone, not on when they are read, so a restart arrives at the same totals.
type state struct {
	version, workload string
	threads           series.Optional[int]

	interval   *tool.Report // the last one
	intervalAt time.Time
	phase      tool.Phase

	// totals are integrated from the intervals (rate times length, where the
	// tool prints no count) and set right by the summaries. They never fall.
	totals     map[string]float64
	errors     float64
	reconnects float64
	// exact is what the summaries so far counted.
	exact           map[string]float64
	exactErrors     float64
	exactReconnects float64

	summary *Summary
	lines   Lines

	messages     []string
	lastMessage  string
	messageCount uint64
	failure      string // why the run failed according to the tool's output
	complete     bool   // the last summary has come
	starts       int
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

// Summary is a run's own totals: the tool's summary as printed or, of a run
// with several (checkpoints), their sum. Percentiles can't be summed: of
// several they are left out.
type Summary struct {
	ElapsedSeconds series.Optional[float64]
	Threads        series.Optional[int]
	Rates          []tool.Rate
	Counts         []tool.Count
	Latencies      []tool.Latency
	TpmC           series.Optional[float64]
	// Parts is how many summaries it is made of.
	Parts int
	// FromIntervals: the tool printed no summary (it was killed); counts and
	// rates are integrated from its interval reports.
	FromIntervals bool
}

func newState() *state {
	return &state{totals: map[string]float64{}, exact: map[string]float64{}}
}

// apply adds a report that was read at the instant at.
func (s *state) apply(r *tool.Report, at time.Time) {
	if r.Failed {
		s.failure = r.Message
		if s.failure == "" {
			s.failure = "the tool's output says that it failed"
		}
	}
	switch r.Kind {
	case tool.Start:
		s.start(r)
	case tool.Interval:
		s.addInterval(r, at)
	case tool.Summary:
		s.addSummary(r)
	case tool.Error:
		s.addMessage(r.Message, max(1, r.Count("error").Value))
	}
}

func (s *state) start(r *tool.Report) {
	s.starts++
	s.phase = r.Phase
	if r.Version != "" {
		s.version = r.Version
	}
	if r.Workload != "" {
		s.workload = r.Workload
	}
	if r.Threads.Known {
		s.threads = r.Threads
	}
}

// addMessage keeps a message that the tool printed n times.
func (s *state) addMessage(m string, n uint64) {
	s.messageCount += n
	s.lastMessage = m
	if len(s.messages) < keptErrors {
		s.messages = append(s.messages, m)
	}
}

func (s *state) addInterval(r *tool.Report, at time.Time) {
	s.interval, s.intervalAt = r.Clone(), at
	s.phase = r.Phase
	if r.Threads.Known {
		s.threads = r.Threads
	}
	for _, c := range r.Counts {
		if c.Operation == "error" {
			s.errors += float64(c.N)
			continue
		}
		s.totals[c.Operation] += float64(c.N)
	}
	if !r.IntervalSeconds.Known {
		return
	}
	seconds := r.IntervalSeconds.Value
	for _, rate := range r.Rates {
		if !r.Count(rate.Operation).Known {
			s.totals[rate.Operation] += rate.PerSecond * seconds
		}
	}
	if r.ErrorsPerSecond.Known && !r.Count("error").Known {
		s.errors += r.ErrorsPerSecond.Value * seconds
	}
	if r.ReconnectsPerSecond.Known {
		s.reconnects += r.ReconnectsPerSecond.Value * seconds
	}
}

func (s *state) addSummary(r *tool.Report) {
	if r.Threads.Known {
		s.threads = r.Threads
	}
	for _, c := range r.Counts {
		switch c.Operation {
		case "error":
			s.exactErrors += float64(c.N)
			s.errors = max(s.errors, s.exactErrors)
		case "reconnect":
			s.exactReconnects += float64(c.N)
			s.reconnects = max(s.reconnects, s.exactReconnects)
		default:
			s.exact[c.Operation] += float64(c.N)
			s.totals[c.Operation] = max(s.totals[c.Operation], s.exact[c.Operation])
		}
	}
	s.summary = s.summary.add(r)
	s.complete = s.complete || !r.Checkpoint
}

// final is the summary of a run that has ended; nil if nothing is known.
func (s *state) final() *Summary {
	if s.summary != nil {
		return s.summary
	}
	if s.interval == nil {
		return nil
	}
	sum := &Summary{FromIntervals: true, Threads: s.threads, ElapsedSeconds: s.interval.ElapsedSeconds}
	for _, op := range sortedKeys(s.totals) {
		sum.Counts = append(sum.Counts, tool.Count{Operation: op, N: uint64(s.totals[op])})
		if e := sum.ElapsedSeconds; e.Known && e.Value > 0 {
			sum.Rates = append(sum.Rates, tool.Rate{Operation: op, PerSecond: s.totals[op] / e.Value})
		}
	}
	sum.Counts = append(sum.Counts, tool.Count{Operation: "error", N: uint64(s.errors)})
	return sum
}

// totalsCopy are the counters now.
func (s *state) totalsCopy() map[string]float64 { return maps.Clone(s.totals) }

// output is what the reports so far show of how the run ended.
func (s *state) output() rundir.Output {
	return rundir.Output{Complete: s.complete, Failure: s.failure, Complaint: complaint(s.messages)}
}
