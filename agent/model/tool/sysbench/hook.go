package sysbench

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// hook reads the output of a script's report hooks that use sysbench.report_csv and
// sysbench.report_json (src/lua/internal/sysbench.lua). The same function may report intervals and
// the summary, and the line does not show which. A line that is not clearly an interval is
// therefore postponed until the next lines decide.
type hook struct {
	postponed *tool.Report
	form      form
	seconds   int
	doubt     doubt
	both      bool // the script prints each interval in two forms

	stat    string       // name of the latency statistic
	object  object       // the JSON object being read
	line    scan.Line    // of the object; a variable would be allocated for the functions in jsonKeys
	report  *tool.Report // values of the object
	tail    bool         // its closing brace is expected
	closed  bool         // a JSON array was closed
	partial bool         // a line of the object was unreadable
}

// doubt is the reason why a hook's line may not be an interval.
type doubt uint8

const (
	noDoubt      doubt = iota
	noIntervals        // no interval reports were requested
	sameClock          // same time as the previous interval
	otherForm          // other code prints the intervals of this run
	atCheckpoint       // a checkpoint was announced
)

// sequel is what follows a postponed line.
type sequel uint8

const (
	continues    sequel = iota // another interval or checkpoint
	summaryComes               // sysbench's own summary
	runEnds
)

// unnamedStat is the statistic of the latency in CSV and JSON, which do not name the percentile:
// the one on the command line, otherwise sysbench's default.
func unnamedStat(d tool.Description) string {
	if !d.LatencyPercentile.Known {
		return "p95"
	}
	return percentileName(d.LatencyPercentile.Value)
}

// postpone decides whether to postpone the interval in p.scratch.
func (h *hook) postpone(p *Parser, f form, seconds int, emit func(*tool.Report)) bool {
	h.settle(p, continues, emit)
	var why doubt
	switch r := &p.run; {
	case r.checkpoint:
		why = atCheckpoint
	case r.listed && r.every == 0:
		why = noIntervals
	case r.family != noFamily && (r.family != f.family || f.family == luaJSON && h.closed):
		why = otherForm
	case r.clock.Known && r.clock.Value == seconds:
		why = sameClock
	default:
		return false
	}
	p.release(emit)
	p.scratch.Run = p.number
	h.postponed, h.form, h.seconds, h.doubt = p.scratch.Clone(), f, seconds, why
	return true
}

// settle decides what the postponed line was.
func (h *hook) settle(p *Parser, next sequel, emit func(*tool.Report)) {
	r := h.postponed
	if r == nil {
		return
	}
	h.postponed = nil
	summary, interval := false, false
	switch h.doubt {
	case noIntervals:
		summary = true
	case atCheckpoint:
		summary = next != summaryComes
		interval = !summary && (p.run.family == noFamily || p.run.family == h.form.family)
	case otherForm:
		summary = next == runEnds && !h.both
		h.both = h.both || !summary
	case sameClock:
		summary = next == runEnds
		interval = !summary
	}
	switch {
	case summary:
		r.Kind, r.Phase = tool.Summary, ""
		r.Checkpoint = h.doubt == atCheckpoint
		p.run.checkpoint = false
		p.run.ended = !r.Checkpoint
		emit(r)
	case interval:
		*p.scratch, *r = *r, *p.scratch
		p.deliver(h.form, h.seconds, emit)
		// The interrupted interval continues.
		*p.scratch = *r
	}
}

// csv reads the ten columns of report_csv: time, threads, tps, qps, reads, writes, other, latency
// percentile in ms, errors, reconnects; rates are per second.
func (h *hook) csv(p *Parser, text []byte, emit func(*tool.Report)) (tool.Verdict, bool) {
	s := scan.New(text)
	seconds, okTime := s.Int()
	if !okTime || !s.Literal(",") {
		return 0, false
	}
	threads, okThreads := s.Int()
	if !okThreads || !s.Literal(",") {
		return 0, false
	}
	r := p.scratch
	r.Reset(tool.Interval, 0)
	r.ElapsedSeconds = series.Some(float64(seconds))
	r.Threads = series.Some(threads)
	if !rate(&s, r, tool.Transaction) {
		return 0, false // some other table
	}
	ok := s.Literal(",") && rate(&s, r, tool.Query) && s.Literal(",") && rate(&s, r, tool.Read) &&
		s.Literal(",") && rate(&s, r, tool.Write) && s.Literal(",") && rate(&s, r, tool.Other) && s.Literal(",")
	if ok {
		var latency float64
		latency, ok = s.Fixed(2, 3)
		addLatency(r, h.stat, latency)
	}
	ok = ok && s.Literal(",") && setNumber(&s, r, tool.ErrorRate) && s.Literal(",") && setNumber(&s, r, tool.ReconnectRate) && s.End()
	if ok {
		return p.interval(form{family: luaCSV}, emit), true
	}
	if p.run.family != luaCSV {
		return 0, false
	}
	p.run.gap = true
	return tool.Malformed, true
}

// object is the set of keys read from a JSON object: a bit for each entry of jsonKeys, and opened.
type object uint16

const opened object = 1 << 15

// json reads the array of report_json line by line. Since no newline follows a closing brace, the
// next output is glued to it; an object is therefore reported with its last value.
func (h *hook) json(p *Parser, text []byte, emit func(*tool.Report)) (tool.Verdict, bool) {
	trimmed := bytes.TrimSpace(text)
	switch {
	case h.object == 0 && string(text) == "]":
		h.closed = h.closed || p.run.family == luaJSON
		return 0, false
	case string(text) == "  {":
		p.lostObject(h)
		h.object, h.partial, h.tail = opened, false, false
		if h.report == nil {
			h.report = new(tool.Report)
		}
		h.report.Reset(tool.Interval, 0)
		return tool.Ignored, true
	case (h.tail || h.object != 0) && scan.HasPrefix(text, "  }"):
		lost := h.object != 0
		p.lostObject(h)
		h.tail = false
		rest := bytes.TrimPrefix(text[3:], []byte(","))
		if len(rest) > 0 {
			return p.line(rest, emit), true
		}
		if lost {
			return tool.Malformed, true
		}
		return tool.Ignored, true
	case h.object == 0 || !scan.HasPrefix(trimmed, "\"") && string(trimmed) != "}," && string(trimmed) != "}":
		return 0, false
	case string(trimmed) == "}," || string(trimmed) == "}":
		return tool.Ignored, true
	}
	if !h.value(trimmed) {
		h.partial = true
		return tool.Malformed, true
	}
	if h.object == complete && !h.partial {
		h.object, h.tail = 0, true
		h.report, p.scratch = p.scratch, h.report
		return p.interval(form{family: luaJSON}, emit), true
	}
	return tool.Reported, true
}

// lostObject drops an incomplete object.
func (p *Parser) lostObject(h *hook) {
	if h.object != 0 {
		h.object = 0
		p.run.gap = true
	}
}

// jsonKeys are the keys, with functions that read their values into a report. stat is the name of the latency.
var jsonKeys = []struct {
	text string
	read func(s *scan.Line, r *tool.Report, stat string) bool
}{
	{`"time": `, func(s *scan.Line, r *tool.Report, _ string) bool {
		n, ok := s.Int()
		r.ElapsedSeconds = series.Some(float64(n))
		return ok
	}},
	{`"threads": `, func(s *scan.Line, r *tool.Report, _ string) bool {
		r.Threads.Known = true
		return s.IntTo(&r.Threads.Value)
	}},
	{`"tps": `, rateOf(tool.Transaction)},
	{`"qps": {`, func(*scan.Line, *tool.Report, string) bool { return true }},
	{`"total": `, rateOf(tool.Query)},
	{`"reads": `, rateOf(tool.Read)},
	{`"writes": `, rateOf(tool.Write)},
	{`"other": `, rateOf(tool.Other)},
	{`"latency": `, func(s *scan.Line, r *tool.Report, stat string) bool {
		latency, ok := s.Fixed(2, 3)
		addLatency(r, stat, latency)
		return ok
	}},
	{`"errors": `, func(s *scan.Line, r *tool.Report, _ string) bool { return setNumber(s, r, tool.ErrorRate) }},
	{`"reconnects": `, func(s *scan.Line, r *tool.Report, _ string) bool { return setNumber(s, r, tool.ReconnectRate) }},
}

var complete = opened | 1<<len(jsonKeys) - 1

func rateOf(operation string) func(*scan.Line, *tool.Report, string) bool {
	return func(s *scan.Line, r *tool.Report, _ string) bool { return rate(s, r, operation) }
}

// value reads one line of a JSON object. It skips a script's own keys.
func (h *hook) value(text []byte) bool {
	h.line = scan.New(text)
	s := &h.line
	for i, k := range jsonKeys {
		if !s.Literal(k.text) {
			continue
		}
		if h.object&(1<<i) != 0 || !k.read(s, h.report, h.stat) {
			return false
		}
		s.Literal(",")
		h.object |= 1 << i
		return s.End()
	}
	return true
}
