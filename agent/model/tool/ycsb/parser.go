package ycsb

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/message"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// parser reads both streams of one YCSB process, one of them, or a file that contains both. Status
// lines are on stderr (with measurementtype timeseries also on stdout), the summary is on stdout;
// each is recognised on either stream.
type parser struct {
	streams [2]stream
	groups  groups
	// lead is the latest status line that was reported. With timeseries both streams contain the
	// same lines; the first occurrence is reported.
	lead   position
	report tool.Report // scratch
}

// position identifies a status line by its run and its index within the run.
type position struct{ run, index int }

func (p position) after(q position) bool {
	return p.run > q.run || p.run == q.run && p.index > q.index
}

func newParser() *parser { return &parser{} }

var (
	commandLine = []byte("Command line:")
	version     = []byte("YCSB Client ")
)

// Parse implements tool.Parser.
func (p *parser) Parse(line tool.Line, emit func(*tool.Report)) tool.Verdict {
	s := &p.streams[min(line.Stream, tool.Stderr)]
	s.stdout = line.Stream == tool.Stdout
	text := bytes.TrimSuffix(line.Text, []byte("\r"))
	if s.pending {
		if v, ok := p.goOn(s, text, line.Cut, emit); ok {
			return v
		}
	}
	if at := statusAt(text); at >= 0 {
		return p.status(s, text[at:], line.Cut, emit)
	}
	if len(text) == 0 {
		return tool.Ignored
	}
	switch {
	case bytes.HasPrefix(text, commandLine):
		return p.banner(s, text[len(commandLine):], true, emit)
	case bytes.HasPrefix(text, version):
		return p.banner(s, text[len(version):], false, emit)
	}
	s.emitStart(emit)
	if metric, measurement, value, ok := readRow(text); ok {
		return p.figure(s, metric, measurement, value, line.Cut, emit)
	}
	if isJSON(text) {
		return p.json(s, text, line.Cut, emit)
	}
	if s.phase(text) {
		return tool.Ignored
	}
	return p.failure(s, text, emit)
}

// status reads a status line, or the first line of a status with several lines.
func (p *parser) status(s *stream, text []byte, cut bool, emit func(*tool.Report)) tool.Verdict {
	s.emitStart(emit)
	l := scan.New(text)
	h, ok := readHead(&l)
	if cut || !ok {
		s.last.gap = true
		return tool.Malformed
	}
	if s.repeats(text, &h) {
		return tool.Ignored
	}
	last := s.last
	fresh := s.isFresh(&h)
	if fresh {
		last = sample{}
	}
	ops, ms := last.interval(&h, s.banner && s.index == 0)
	r := &s.report
	r.Reset(tool.Interval, 0)
	r.Phase = tool.Measure
	r.ElapsedSeconds = series.Some(float64(h.secs))
	if ms > 0 {
		r.IntervalSeconds = series.Some(ms / 1000)
	}
	switch {
	case h.rate.Known:
		r.AddRate(tool.Transaction, h.rate.Value)
	case !h.rated && h.ops == 0 && ms > 0:
		r.AddRate(tool.Transaction, 0)
	}
	r.AddKnownCount(tool.Transaction, ops)
	s.tally = tally{seconds: ms / 1000}
	if last.gap {
		s.tally.seconds = 0 // the groups cover a part of the interval
	}
	more, ok := p.groups.read(&l, r, &s.tally)
	if !ok {
		s.last.gap = true
		return tool.Malformed
	}
	if fresh {
		p.newRun(s, emit)
	}
	s.begin()
	s.last = sample{head: h, known: true}
	if s.stdout {
		s.line = append(s.line[:0], text...)
	}
	s.pending = true
	if !more {
		p.finishStatus(s, emit)
	}
	return tool.Reported
}

// goOn reads a further line of a status. ok is false if it is another line, which ends the status.
func (p *parser) goOn(s *stream, text []byte, cut bool, emit func(*tool.Report)) (v tool.Verdict, ok bool) {
	bucket := bytes.HasPrefix(text, []byte("[Bucket"))
	if !bucket && len(text) > 0 && text[0] != ' ' && !bytes.HasPrefix(text, []byte("Raw")) {
		p.finishStatus(s, emit)
		return 0, false
	}
	r := &s.report
	rates, counts, latencies, t := len(r.Rates), len(r.Counts), len(r.Latencies), s.tally
	l := scan.New(text)
	more, good := p.groups.read(&l, r, &s.tally)
	if good && !cut {
		if !more {
			p.finishStatus(s, emit)
		}
		return tool.Reported, true
	}
	r.Rates, r.Counts, r.Latencies, s.tally = r.Rates[:rates], r.Counts[:counts], r.Latencies[:latencies], t
	p.finishStatus(s, emit)
	return tool.Malformed, bucket
}

// finishStatus reports the pending status line of s.
func (p *parser) finishStatus(s *stream, emit func(*tool.Report)) {
	s.pending = false
	r := &s.report
	if f := s.tally.failed; f.Known {
		r.AddCountOver(tool.ErrorCount, f.Value, s.tally.seconds)
		s.failures += f.Value
	}
	s.good += s.tally.good
	s.index++
	if at := (position{s.run, s.index}); at.after(p.lead) {
		p.lead = at
		r.Run = s.run
		emit(r)
	}
}

// figure adds one figure of the summary.
func (p *parser) figure(s *stream, metric, measurement, value []byte, cut bool, emit func(*tool.Report)) tool.Verdict {
	if isFirst(metric, measurement) {
		if s.summary.open || s.done {
			p.newRun(s, emit)
		}
		s.begin()
		s.summary.reset()
		s.summary.open = true
	}
	switch {
	case !s.summary.open:
		return tool.Ignored
	case cut:
		return tool.Malformed
	}
	return s.summary.add(&p.groups, metric, measurement, value)
}

// json reads a line of a summary in JSON.
func (p *parser) json(s *stream, text []byte, cut bool, emit func(*tool.Report)) tool.Verdict {
	v := tool.Ignored
	ok := !cut && s.json.read(text, func(metric, measurement, value []byte) {
		v = max(v, p.figure(s, metric, measurement, value, false, emit))
	})
	switch {
	case !ok && s.summary.open:
		return tool.Malformed
	case s.summary.open && v == tool.Ignored && bytes.HasSuffix(bytes.TrimRight(text, " "), []byte("]")):
		p.finishSummary(s, emit) // the end of an array
	}
	return v
}

// finishSummary reports the pending summary of s.
func (p *parser) finishSummary(s *stream, emit func(*tool.Report)) {
	s.summary.open, s.done = false, true
	s.summary.emitDistributions(s.run, &p.report, emit)
	s.summary.fill(&p.groups, s.run, &p.report)
	if why := s.stopped(); why != "" {
		if p.report.Message != "" {
			why = p.report.Message + "; " + why
		}
		p.report.Message, p.report.Failed = why, true
	}
	emit(&p.report)
}

// failure reads a line that no other function recognised, perhaps an error message.
func (p *parser) failure(s *stream, text []byte, emit func(*tool.Report)) tool.Verdict {
	sev := severityOf(text)
	if sev == harmless {
		return tool.Ignored
	}
	pure := s.stdout && !s.mixed
	if pure && (s.summary.open || s.done) {
		p.newRun(s, emit) // of a run after the summary
	}
	s.begin()
	if sev == exception && pure {
		// Of all exceptions YCSB prints on stdout only copies of those that end a thread or the
		// program.
		s.stop(text)
		return tool.Reported
	}
	if s.flood.Add(text, sev == deadly || sev == exception && s.banner && !s.tested) {
		p.report.ResetError(s.run, message.CleanWith(text, s.redactor), s.flood.Failed)
		emit(&p.report)
	}
	return tool.Reported
}

// newRun ends the current run of s and begins the next.
func (p *parser) newRun(s *stream, emit func(*tool.Report)) {
	p.finish(s, emit)
	if s.stdout && s.mixed {
		p.reportFailure(emit, s)
	}
	s.next()
}

// finish reports what s holds back.
func (p *parser) finish(s *stream, emit func(*tool.Report)) {
	s.emitStart(emit)
	if s.pending {
		p.finishStatus(s, emit)
	}
	if rest := s.flood.Rest(s.redactor); rest != "" {
		p.report.ResetError(s.run, rest, false)
		emit(&p.report)
	}
	if s.summary.open {
		p.finishSummary(s, emit)
	}
}

// Close implements tool.Parser.
func (p *parser) Close(emit func(*tool.Report)) {
	out, err := &p.streams[tool.Stdout], &p.streams[tool.Stderr]
	p.finish(err, emit)
	p.finish(out, emit)
	switch {
	case out.run == 0 || err.run == out.run:
		p.reportFailure(emit, err, out)
	case err.run == 0:
		p.reportFailure(emit, out)
	}
}

// reportFailure reports that a run without a summary failed.
func (p *parser) reportFailure(emit func(*tool.Report), streams ...*stream) {
	var ops, good, failures, messages uint64
	var stopped, first string
	run := 0
	for _, s := range streams {
		if s.done || s.flood.Failed {
			return
		}
		run = max(run, s.run)
		ops = max(ops, s.last.ops)
		good = max(good, s.good)
		failures = max(failures, s.failures)
		messages += s.flood.Count
		if why := s.stopped(); why != "" {
			stopped = why
		}
		if s.flood.Count > 0 && first == "" {
			first = ": " + s.flood.First(s.redactor)
		}
	}
	why := stopped
	if stopped == "" {
		// Without -FAILED groups all operations succeeded.
		success := good > 0 || failures == 0 && ops > 0
		if run == 0 || success || messages+failures == 0 {
			return
		}
		why = "no operation succeeded" + first
	}
	p.report.ResetError(run, why, true)
	emit(&p.report)
}
