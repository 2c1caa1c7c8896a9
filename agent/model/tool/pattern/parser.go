package pattern

import (
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/message"
)

// parser applies a program to the lines of both streams, each independently of the other.
type parser struct {
	program program
	streams [2]stream
	report  tool.Report
}

// stream is the state of one stream.
type stream struct {
	run     int
	elapsed series.Optional[float64] // end of the last interval
	summary tool.Report              // the part read so far
	open    bool                     // a part was read
	flood   message.Flood
}

// Parse implements tool.Parser.
func (p *parser) Parse(line tool.Line, emit func(*tool.Report)) tool.Verdict {
	s := &p.streams[min(line.Stream, tool.Stderr)]
	text := line.Text
	if n := len(text); n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
	}
	for _, e := range p.program.interval {
		if m := e.re.FindSubmatchIndex(text); m != nil {
			return p.interval(s, e, m, text, line.Cut, emit)
		}
	}
	verdict := tool.Ignored
	// Several expressions may match parts of the same line.
	for _, e := range p.program.summary {
		if m := e.re.FindSubmatchIndex(text); m != nil {
			verdict = max(verdict, p.summary(s, e, m, text, line.Cut, emit))
		}
	}
	if verdict != tool.Ignored {
		return verdict
	}
	for _, e := range p.program.failure {
		if m := e.re.FindSubmatchIndex(text); m != nil {
			p.failure(s, e, m, text, emit)
			return tool.Reported
		}
	}
	return tool.Ignored
}

// interval reports a line.
func (p *parser) interval(s *stream, e *expression, m []int, text []byte, cut bool, emit func(*tool.Report)) tool.Verdict {
	r := &p.report
	r.Reset(tool.Interval, 0)
	r.Phase = tool.Measure
	if cut || !e.fill(r, m, text) {
		return tool.Malformed
	}
	if s.open || s.elapsed.Known && r.ElapsedSeconds.Known && r.ElapsedSeconds.Value < s.elapsed.Value {
		p.nextRun(s, emit)
		r.Reset(tool.Interval, 0)
		r.Phase = tool.Measure
		e.fill(r, m, text)
	}
	s.begin()
	r.Run = s.run
	s.measure(r)
	addRates(r)
	emit(r)
	return tool.Reported
}

// clock is the limit above which an elapsed time is a Unix time: it is a date in 1973, or a run of
// three years.
const clock = 1e8

// measure sets the length of the interval in r from its elapsed time and the previous one.
func (s *stream) measure(r *tool.Report) {
	last, now := s.elapsed, r.ElapsedSeconds
	s.elapsed = now
	if now.Value >= clock {
		r.ElapsedSeconds = series.Optional[float64]{} // the start of the run is unknown
		if !last.Known {
			return
		}
	}
	// An interval without a previous one began with the run.
	if d := now.Value - last.Value; !r.IntervalSeconds.Known && now.Known && d > 0 {
		// Rounds away the error of the subtraction.
		r.IntervalSeconds = series.Some(math.Round(d*1e6) / 1e6)
	}
}

// addRate appends a rate. Only errors per second are a number of their own: the names of all other operations are the
// user's.
func addRate(r *tool.Report, operation string, perSecond float64) {
	if operation == tool.ErrorCount {
		r.Set(tool.ErrorRate, perSecond)
		return
	}
	r.AddRate(operation, perSecond)
}

// addRates divides the counts of an interval by its length if the tool prints no rate.
func addRates(r *tool.Report) {
	if !r.IntervalSeconds.Known || r.IntervalSeconds.Value <= 0 {
		return
	}
	for _, c := range r.Counts {
		printed := r.Rate(c.Operation)
		if c.Operation == tool.ErrorCount {
			printed = r.Value(tool.ErrorRate)
		}
		if !printed.Known {
			addRate(r, c.Operation, float64(c.N)/r.IntervalSeconds.Value)
		}
	}
}

// summary reads a line of the summary. A line that repeats a value belongs to the next run.
func (p *parser) summary(s *stream, e *expression, m []int, text []byte, cut bool, emit func(*tool.Report)) tool.Verdict {
	r := &p.report
	r.Reset(tool.Summary, 0)
	if cut || !e.fill(r, m, text) {
		return tool.Malformed
	}
	if s.open && repeats(&s.summary, r) {
		p.nextRun(s, emit)
		r.Reset(tool.Summary, 0)
		e.fill(r, m, text)
	}
	s.begin()
	if !s.open {
		s.summary.Reset(tool.Summary, s.run)
		s.open = true
	}
	merge(&s.summary, r)
	return tool.Reported
}

// repeats reports whether r contains a value that known already has.
func repeats(known, r *tool.Report) bool {
	if known.ElapsedSeconds.Known && r.ElapsedSeconds.Known || known.Threads.Known && r.Threads.Known {
		return true
	}
	for _, v := range r.Rates {
		if known.Rate(v.Operation).Known {
			return true
		}
	}
	for _, v := range r.Counts {
		if known.Count(v.Operation).Known {
			return true
		}
	}
	for _, v := range r.Latencies {
		if known.Latency(v.Operation, v.Stat).Known {
			return true
		}
	}
	return slices.ContainsFunc(r.Values, func(v tool.Value) bool { return known.Value(v.Measure).Known })
}

func merge(to, r *tool.Report) {
	to.Rates = append(to.Rates, r.Rates...)
	to.Counts = append(to.Counts, r.Counts...)
	to.Latencies = append(to.Latencies, r.Latencies...)
	for _, v := range r.Values {
		to.Set(v.Measure, v.Value)
	}
	if r.ElapsedSeconds.Known {
		to.ElapsedSeconds = r.ElapsedSeconds
	}
	if r.Threads.Known {
		to.Threads = r.Threads
	}
}

// failure reads an error message.
func (p *parser) failure(s *stream, e *expression, m []int, text []byte, emit func(*tool.Report)) {
	if len(e.fields) > 0 {
		if g := e.fields[0].group; m[2*g] >= 0 {
			text = text[m[2*g]:m[2*g+1]]
		}
	}
	s.begin()
	if s.flood.Add(text, false) {
		p.error(s.run, message.CleanWith(text, nil), emit)
	}
}

func (p *parser) error(run int, text string, emit func(*tool.Report)) {
	p.report.ResetError(run, text, false)
	emit(&p.report)
}

// begin makes sure that s is in a run.
func (s *stream) begin() { s.run = max(s.run, 1) }

// nextRun ends the run of s. It overwrites p.report.
func (p *parser) nextRun(s *stream, emit func(*tool.Report)) {
	p.end(s, emit)
	s.run++
	s.elapsed, s.flood = series.Optional[float64]{}, message.Flood{}
}

// end reports what was held back for the run.
func (p *parser) end(s *stream, emit func(*tool.Report)) {
	if rest := s.flood.Rest(nil); rest != "" {
		p.error(s.run, rest, emit)
	}
	if s.open {
		s.open = false
		emit(&s.summary)
	}
}

// Close implements tool.Parser.
func (p *parser) Close(emit func(*tool.Report)) {
	p.end(&p.streams[tool.Stderr], emit)
	p.end(&p.streams[tool.Stdout], emit)
}

// fill sets the values of a match; false if one is out of range.
func (e *expression) fill(r *tool.Report, m []int, text []byte) bool {
	for _, f := range e.fields {
		from, to := m[2*f.group], m[2*f.group+1]
		if from < 0 || from == to {
			continue // a group that did not match
		}
		if !f.set(r, text[from:to]) {
			return false
		}
	}
	return true
}

func (f *field) set(r *tool.Report, text []byte) bool {
	if f.kind == threads {
		n, ok := atoi(string(text))
		r.Threads = series.Some(n)
		return ok
	}
	v, ok := f.unit.value(text)
	switch f.kind {
	case elapsed:
		r.ElapsedSeconds = series.Some(v)
	case length:
		r.IntervalSeconds = series.Some(v)
	case tpmC:
		r.Set(tool.TpmC, v)
	case rate:
		addRate(r, f.operation, v)
	case count:
		n := uint64(v)
		r.AddCount(f.operation, n)
		return ok && float64(n) == v
	case latency:
		r.AddLatency(f.operation, f.stat, v)
	}
	return ok
}
