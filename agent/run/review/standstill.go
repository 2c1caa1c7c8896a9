package review

import (
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// standstill is consecutive intervals of the tool in which no transaction ended. It lasted for Seconds, which may begin
// and end in the intervals beside them.
type standstill struct {
	series.Span
	Seconds float64
}

// leastEnds is how many transactions or statements would have ended in a standstill: of fewer, none may end by chance
// (e⁻⁵, less than 1 %), as in loads whose statements take seconds.
const leastEnds = 5

// standstills returns when no transaction ended. The longest one takes as long as the slowest
// transaction, if the tool printed that: no client waited longer.
func standstills(h *record.History, r *Row) []standstill {
	usual := h.Intervals.Lengths.Median()
	var all []standstill
	for _, level := range h.Intervals.Throughput.All(usual) {
		switch n := len(all); {
		case level.Mean > 0:
		case n > 0 && level.From <= all[n-1].To+usual/2:
			all[n-1].To = level.To
		default:
			all = append(all, standstill{Span: series.Span{From: level.From, To: level.To}})
		}
	}
	ends := min(meanAbove0(h.Intervals.Throughput.All(usual)), meanAbove0(h.Intervals.Queries.All(usual)))
	all = slices.DeleteFunc(all, func(s standstill) bool { return ends*(s.To-s.From) < leastEnds })
	longest := -1
	for i := range all {
		all[i].Seconds = all[i].To - all[i].From
		if longest < 0 || all[i].Seconds > all[longest].Seconds {
			longest = i
		}
	}
	if slowest, known := r.Latency["max"]; known && longest >= 0 {
		s := &all[longest]
		more := max(0, min(slowest-s.Seconds, 2*usual))
		s.From, s.To, s.Seconds = max(0, s.From-more/2), s.To+more/2, s.Seconds+more
	}
	return all
}

// meanAbove0 returns the mean of the levels above 0, infinite if there is none.
func meanAbove0(all []series.Level) float64 {
	sum, n := 0.0, 0.0
	for _, level := range all {
		if level.Mean > 0 {
			sum, n = sum+level.Mean, n+1
		}
	}
	if n == 0 {
		return math.Inf(1)
	}
	return sum / n
}

// allClients is the share of the clients that must be in a class of sessions for it to stop the run.
const allClients = 0.9

// stoppedBy returns the standstills that a class of sessions caused: nearly all clients were in it. A sample represents
// the time until the next one, so more samples may fall into a standstill than the tool's output allows. excess is the
// mean number of sessions by which they exceed it.
func stoppedBy(h *record.History, target string, m *measure.Measure,
	threads float64, stops []standstill) (by limits.Standstill, excess float64) {
	values, axis := h.Samples.Values(record.ServerMeasure{Target: target, Measure: m}), h.Samples.Elapsed
	step, usual, longest := series.Step(axis), h.Intervals.Lengths.Median(), 0.0
	if values == nil || !(threads > 0) || !(step > 0) {
		return by, 0
	}
	ticks := float64(sessionTicks(h, target))
	for _, s := range stops {
		n, sessions, continues := 0.0, 0.0, false
		for i, at := range axis {
			if !(values[i] >= allClients*threads) {
				continue
			}
			if at >= s.From-usual && at <= s.To+usual {
				n, sessions = n+1, sessions+values[i]
			}
			continues = continues || at >= s.From-usual-step && at <= s.To+usual+step && (at < s.From-usual || at > s.To+usual)
		}
		if continues || n*step < s.Seconds/2 { // also while transactions end: many short waits
			continue
		}
		by.Times++
		by.Seconds += min(s.Seconds, n*step)
		if s.Seconds > longest {
			longest, by.From, by.To = s.Seconds, s.From, s.To
		}
		if most := s.Seconds / step; n > most {
			excess += sessions * (1 - most/n) / ticks
		}
	}
	return by, excess
}

// sessionTicks is how many samples of a server have sessions.
func sessionTicks(h *record.History, target string) int {
	ticks := 0
	for _, m := range engine.SessionMeasures() {
		t := h.Samples.Tally(record.ServerMeasure{Target: target, Measure: m})
		ticks = max(ticks, t.Whole())
	}
	return ticks
}

// meanSessions is how many sessions of a class there were on average. A class has no value until a
// session is in it for the first time, which counts as 0.
func meanSessions(h *record.History, target string, m *measure.Measure) float64 {
	t := h.Samples.Tally(record.ServerMeasure{Target: target, Measure: m})
	if t.Whole() == 0 {
		return series.Unknown()
	}
	return t.Mean() * float64(t.Whole()) / float64(sessionTicks(h, target))
}

// isSessions reports whether a measure is how many sessions are in a class.
func isSessions(m *measure.Measure) bool { return slices.Contains(engine.SessionMeasures(), m) }
