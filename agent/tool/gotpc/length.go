package gotpc

import (
	"math"

	"github.com/benchwatch/benchwatch/agent/series"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// Bounds within which a time is taken for whole seconds: it is measured from
// the first sample of the interval on, and the tick may come late.
const (
	below = 0.1
	above = 0.02
)

// enough is how many samples an interval must have for the time from its first
// sample on to tell its length, within some 5 %.
const enough = 20

// lengths are what the intervals of a run seemed to last, in whole seconds,
// and how many did. It is bounded.
type lengths []struct {
	seconds float64
	votes   int
}

const maxLengths = 8

// usual is the length that most intervals had, if it was seen twice, else 0.
func (l lengths) usual() float64 {
	seconds, votes := 0.0, 1
	for _, c := range l {
		if c.votes > votes {
			seconds, votes = c.seconds, c.votes
		}
	}
	return seconds
}

func (l *lengths) vote(seconds float64) {
	for i := range *l {
		if (*l)[i].seconds == seconds {
			(*l)[i].votes++
			return
		}
	}
	if len(*l) < maxLengths {
		*l = append(*l, struct {
			seconds float64
			votes   int
		}{seconds, 1})
	}
}

// length works out how long the interval was: go-tpc does not print it. Its
// ticker runs on --interval; the longest row covers it all but the time until the
// first transaction ended. If the command line is not known it nearly always was
// whole seconds: where a row is near to them, these are meant. With few or slow
// transactions it is far from that: then the run's other intervals tell, or
// nothing does.
func (p *Parser) length(r *tool.Report, covered float64, samples uint64) {
	if p.interval > 0 && covered <= p.interval*(1+above) {
		r.IntervalSeconds = series.Some(p.interval)
		return
	}
	if covered <= 0 {
		return
	}
	whole := math.Round(covered)
	near := whole >= 1 && covered >= whole*(1-below) && covered <= whole*(1+above)
	if samples >= enough && near {
		p.run.lengths.vote(whole)
	}
	switch usual := p.run.lengths.usual(); {
	case usual > 0 && covered <= usual*(1+above):
		r.IntervalSeconds = series.Some(usual)
	case samples < enough:
	case near:
		r.IntervalSeconds = series.Some(whole)
	default:
		r.IntervalSeconds = series.Some(math.Round(covered*1000) / 1000)
	}
}
