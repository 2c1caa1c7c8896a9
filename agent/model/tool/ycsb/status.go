package ycsb

import (
	"bytes"
	"math"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// head is the beginning of a status line, before the groups.
type head struct {
	ms   int64  // date and time of the line in the tool's own zone
	secs uint64 // whole seconds since the status thread started
	ops  uint64 // operations ended since then, in all threads
	// rate of this interval. rated is false while ops is 0. The rate is unknown if the tool divided
	// by an interval of 0 ms (∞, NaN).
	rated bool
	rate  series.Optional[float64]
}

// stampLen is the length of "2026-11-21 01:38:24:059 ".
const stampLen = 24

// stamp reads a date and time at the beginning of b. The colon before the milliseconds
// distinguishes a status line from a logger's line.
func stamp(b []byte) (ms int64, ok bool) {
	const shape = "0000-00-00 00:00:00:000 "
	if len(b) < stampLen {
		return 0, false
	}
	for i := range stampLen {
		if shape[i] == '0' {
			if b[i]-'0' > 9 {
				return 0, false
			}
		} else if b[i] != shape[i] {
			return 0, false
		}
	}
	two := func(i int) int { return int(b[i]-'0')*10 + int(b[i+1]-'0') }
	millis := two(20)*10 + int(b[22]-'0')
	at := time.Date(two(0)*100+two(2), time.Month(two(5)), two(8), two(11), two(14), two(17), millis*1e6, time.UTC)
	return at.UnixMilli(), true
}

// statusAt returns the index of the time stamp of a status line in text, which may follow a label
// (option -l); -1 if text is not even a damaged status line.
func statusAt(text []byte) int {
	if _, ok := stamp(text); ok {
		return 0
	}
	// A label is glued to the date without a separator.
	end := 0
	for {
		i := bytes.Index(text[end:], []byte(" sec: "))
		if i < 0 {
			return -1
		}
		end += i
		seconds := end
		for seconds > 0 && text[seconds-1]-'0' <= 9 {
			seconds--
		}
		if at := seconds - stampLen; seconds < end && at >= 0 {
			if _, ok := stamp(text[at:]); ok {
				return at
			}
		}
		end++
	}
}

// whole reads a number below 10^18.
func whole(l *scan.Line) (uint64, bool) {
	n, ok := l.Count()
	return n, ok && n < 1e18
}

// readHead reads the time stamp and everything up to the groups.
func readHead(l *scan.Line) (h head, ok bool) {
	if h.ms, ok = stamp(l.Rest()); !ok {
		return h, false
	}
	l.Skip(stampLen)
	if h.secs, ok = whole(l); !ok || !l.Literal(" sec: ") {
		return h, false
	}
	if h.ops, ok = whole(l); !ok || !l.Literal(" operations;") || !blank(l) || !h.readRate(l) {
		return h, false
	}
	return h, !l.Literal("est completion in ") || skipRemaining(l)
}

// blank reads a blank. The end of the line also counts, since editors remove trailing blanks.
func blank(l *scan.Line) bool { return l.Literal(" ") || l.End() }

// readRate reads "184.63 current ops/sec; " if present.
func (h *head) readRate(l *scan.Line) bool {
	if l.End() || l.Next() == '[' {
		return true
	}
	rest := *l
	token, ok := rest.Until(" ")
	if !ok {
		return false
	}
	if !rest.Literal("current ops/sec;") {
		return true // "est completion …" or a group
	}
	*l = rest
	h.rated = true
	if v, ok := decimal.ParseLocal(token, 0); ok && v >= 0 {
		h.rate = series.Some(v)
	} else if !unknownNumber(token) {
		return false
	}
	return blank(l)
}

// unknownNumber reports whether token is one of Java's spellings of ∞ and NaN. With the locale data
// of Java 8 NaN is U+FFFD; in a C locale non-ASCII characters are question marks.
func unknownNumber(token []byte) bool {
	switch string(token) {
	case "∞", "-∞", "NaN", "Infinity", "\uFFFD", "?", "-?":
		return true
	}
	return false
}

// skipRemaining reads a duration: "2 days 21 hours ", "37 seconds ", "106751991167300 days 15 hours
// ". The value is the tool's own estimate, and saturated until an operation has ended.
func skipRemaining(l *scan.Line) bool {
	for parts := 0; ; parts++ {
		if _, ok := l.Count(); !ok {
			return parts > 0
		}
		if !l.Literal(" day") && !l.Literal(" hour") && !l.Literal(" minute") && !l.Literal(" second") {
			return false
		}
		l.Literal("s")
		if !blank(l) {
			return false
		}
	}
}

// sample contains what the interval of the next status line needs.
type sample struct {
	head
	known bool
	// gap: the line after it could not be read.
	gap bool
}

// interval returns the difference between h and the previous sample: the number of operations, and
// the time in milliseconds, 0 if unknown.
func (last *sample) interval(h *head, first bool) (ops series.Optional[uint64], ms float64) {
	switch {
	case last.known:
		ops = series.Some(h.ops - last.ops)
	case first || h.secs == 0:
		ops = series.Some(h.ops)
	}
	// The tool takes the time stamp of a line after measuring the interval, half a second after it
	// for the first line. The divisor of the printed rate is the interval itself, if that is
	// precise to the millisecond.
	if ops.Known && ops.Value > 0 && h.rate.Known && h.rate.Value > 0 && !last.gap {
		d := float64(ops.Value) * 1000 / h.rate.Value
		if d*0.005/h.rate.Value < 0.5 {
			return ops, math.Round(d)
		}
	}
	if !last.known {
		return ops, 0
	}
	d, secs := h.ms-last.ms, int64(h.secs-last.secs)
	switch {
	case d > 0 && d-secs*1000 <= 2000 && d-secs*1000 >= -2000:
		return ops, float64(d)
	case secs > 0: // the clock was set, or summer time began
		return ops, float64(secs) * 1000
	}
	return ops, 0
}
