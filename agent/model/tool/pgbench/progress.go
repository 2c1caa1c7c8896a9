package pgbench

import (
	"math"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// progress is the state of a run's progress lines.
type progress struct {
	seen bool
	last float64 // time of the last line
	// every is the length of an interval, 0 if unknown. first is the wall-clock time at the end of
	// the first interval, 0 without --progress-timestamp.
	every, first float64
}

// timestamp is the limit above which a time comes from --progress-timestamp: it is a date in 1973,
// or a run of three years.
const timestamp = 1e8

// progressLine is one line, in seconds. Values missing in the line are absent.
type progressLine struct {
	at, tps, mean, stddev           float64
	lag                             series.Optional[float64]
	failed, skipped, retried, retry series.Optional[uint64]
}

// read reads a line after "progress: ":
//
//	1.0 s, 191.4 tps, lat 5.905 ms stddev 8.998, 0 failed, lag 2.400 ms, 7 skipped, 3 retried, 3 retries
//
// Failures are printed since version 15, the lag with --rate, skipped transactions if there is also
// --latency-limit, and retries with --max-tries. With --progress-timestamp the time has three
// decimals.
func (p *progressLine) read(l scan.Line) bool {
	decimals, ok := 0, false
	if p.at, decimals, ok = l.Number(0); !ok || decimals != 1 && decimals != 3 || !l.Literal(" s, ") {
		return false
	}
	if !l.FixedTo(&p.tps, 1, 0) || !l.Literal(" tps, lat ") || !l.FixedTo(&p.mean, 3, 3) ||
		!l.Literal(" ms stddev ") || !l.FixedTo(&p.stddev, 3, 3) {
		return false
	}
	for !l.End() {
		if !l.Literal(", ") {
			return false
		}
		if l.Literal("lag ") {
			v, ok := l.Fixed(3, 3)
			if !ok || !l.Literal(" ms") || p.lag.Known {
				return false
			}
			p.lag = series.Optional[float64]{Value: v, Known: true}
			continue
		}
		n, ok := l.Count()
		if !ok {
			return false
		}
		known := false
		for _, c := range []struct {
			name string
			to   *series.Optional[uint64]
		}{{" failed", &p.failed}, {" skipped", &p.skipped}, {" retried", &p.retried}, {" retries", &p.retry}} {
			if l.Literal(c.name) {
				known = !c.to.Known
				*c.to = series.Some(n)
				break
			}
		}
		if !known {
			return false
		}
	}
	return true
}

// addProgress reports a progress line; every is the requested interval in seconds, 0 if unknown.
func (s *stream) addProgress(l scan.Line, every float64, emit func(*tool.Report)) tool.Verdict {
	var line progressLine
	if !line.read(l) {
		return tool.Malformed
	}
	if p := &s.progress; s.summary.open || s.log.active() || p.seen && line.at < p.last {
		s.next(emit)
	}
	s.start("", series.Optional[int]{}, emit)
	r := &s.report
	r.Reset(tool.Interval, s.run)
	r.Phase = tool.Measure
	s.progress.place(r, line.at, every)
	line.fill(r)
	emit(r)
	return tool.Reported
}

// place sets the end and the length of the interval. Wall-clock times do not show the start of the
// run, but the first interval is as long as the distance between lines.
func (p *progress) place(r *tool.Report, at, every float64) {
	since := at - p.last
	if !p.seen {
		since, p.every = at, every
		if at >= timestamp {
			p.first, since = at, every
		}
	}
	p.seen, p.last = true, at
	if p.first > 0 && p.every == 0 {
		p.every = math.Round(since) // from the second line: --progress takes whole seconds
	}
	if since > 0 {
		r.IntervalSeconds = series.Some(round(since))
	}
	switch {
	case p.first == 0:
		r.ElapsedSeconds = series.Some(at)
	case p.every > 0:
		r.ElapsedSeconds = series.Some(round(at - p.first + p.every))
		r.Began = time.UnixMilli(int64(math.Round((p.first - p.every) * 1e3)))
	}
}

// round removes the error of a subtraction: times have no digits below a microsecond.
func round(seconds float64) float64 { return math.Round(seconds*1e6) / 1e6 }

// fill adds the line's values to r. Without transactions there is no latency, although pgbench
// prints 0 or nan.
func (p *progressLine) fill(r *tool.Report) {
	r.AddKnownRate(tool.Transaction, series.Of(p.tps))
	if p.tps > 0 {
		r.AddKnownLatency(tool.Transaction, "avg", series.Of(p.mean))
		r.AddKnownLatency(tool.Transaction, statStddev, series.Of(p.stddev))
		if p.lag.Known {
			r.AddKnownLatency(tool.ScheduleLag, "avg", series.Of(p.lag.Value))
		}
	}
	if p.failed.Known {
		r.AddCountOver(tool.ErrorCount, p.failed.Value, r.IntervalSeconds.Value)
	}
	r.AddKnownCount(opSkipped, p.skipped)
	r.AddKnownCount(opRetried, p.retried)
	r.AddKnownCount(opRetry, p.retry)
}
