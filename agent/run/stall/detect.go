// Package stall finds the dips of a run: intervals of the tool in which far less was done, or took far longer, than in
// the intervals before. It works on one interval after the other, the same while a run lasts and afterwards.
package stall

import (
	"math"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// Interval is one report of the tool. Times are seconds on the run's axis.
type Interval struct {
	From, To float64
	// Rate is in transactions per second, unknown if the tool did not print it.
	Rate float64
	// Latency is the headline latency in seconds, Quantile the share of the transactions that were at most as slow: 0.95
	// for p95. An unknown latency, or one that is no percentile, is not watched.
	Latency, Quantile float64
}

// Dip is a stretch of intervals below what was usual before them.
type Dip struct {
	// From and To bound the dip, Seconds is its length. In the interval in which a standstill begins or ends, they are
	// computed from its throughput.
	From, To, Seconds float64
	// Usual and Low are the median throughput before and the lowest one during the dip, in transactions per second.
	Usual, Low float64
	// Latency is the worst latency during the dip, UsualLatency the median before it: unknown if it is not watched.
	Latency, UsualLatency float64
	// Lost is the number of transactions below what was usual, Regained how many more than usual ended while the backlog
	// drained after it.
	Lost, Regained float64
	// Silent: no interval was reported, and nothing was missing in the next one.
	Silent bool
	// Slow: only the latency was higher.
	Slow bool
}

const (
	// window is the number of intervals that define what is usual. Fewer than fewest define nothing.
	window = 60
	fewest = 5
	// low is the share of the median throughput below which an interval belongs to a dip, high the factor of the median
	// latency above which it does.
	low, high = 0.5, 3
	// outlier is how many standard deviations a dip must be away from the median.
	outlier, slowOutlier = 5, 8
	// bursty is the factor above which the variance of the throughput is more than that of independent transactions.
	bursty = 4
	// slowest is the number of transactions above the percentile that an interval needs for its latency to count.
	slowest = 5
	// recovery is the number of usual intervals that end a dip.
	recovery = 2
	// longest is the time after which a lower throughput is not a dip but the run's new level. A standstill remains one.
	longest = 300 * time.Second
	// deepest is the share of the median throughput below which an interval may be a dip of a bursty load: if it is also
	// far below the lowest interval of the window.
	deepest = 0.25
	// still is the share of the median throughput below which a dip is a standstill.
	still = 0.05
	// less is the share of it that a time beside a standstill must have to be another dip.
	less = 0.15
	// late is the part of an interval by which one may be late, and rest that below which one is only the rest of one.
	late, rest = 0.5, 0.5
	// silence is the number of intervals that must be missing if the throughput of the next one is as usual.
	silence = 1.5
	// mostDips bounds the dips of a run, whatever is in a file.
	mostDips = 10_000
)

// Detector finds the dips of a run. The zero value is ready to use.
type Detector struct {
	// Dips are those that are over. Dropped counts those beyond a limit.
	Dips    []Dip
	Dropped int

	rates, latencies, lengths history
	last                      float64 // the end of the last interval
	begun                     bool    // last is known

	open    []reading // the intervals of a possible dip, with the one before it first
	isDip   bool      // it is one
	usual   usual     // before it
	regular int       // intervals at its end that are as usual

	draining bool // a backlog remains after a dip, so that latencies are not usual
}

// reading is an interval in a possible dip. gap is the time before it without an interval.
type reading struct {
	Interval
	gap        float64
	isLow, bad bool // isLow: by its throughput; bad: by that or by its latency
}

func (r *reading) seconds() float64 { return r.To - r.From }

// usual is what was usual before a dip.
type usual struct{ rate, deviation, lowest, latency, latencyDeviation, length float64 }

// Reset begins anew, because the tool was started again.
func (d *Detector) Reset() {
	d.Close()
	*d = Detector{Dips: d.Dips, Dropped: d.Dropped}
}

// Add takes the next interval after the warm-up. It reports whether a dip is in progress.
func (d *Detector) Add(i Interval) bool {
	if !(math.Abs(i.To) <= math.MaxFloat64) || d.begun && i.To <= d.last {
		return d.isDip
	}
	r := reading{Interval: i}
	length := d.lengths.median()
	if d.begun {
		r.From = max(r.From, d.last)
	}
	if !(r.From < r.To) { // unknown, or damaged
		r.From = max(d.last, r.To-length)
	}
	if d.begun && r.From-d.last > late*length {
		r.gap = r.From - d.last
	}
	d.last, d.begun = r.To, true
	if !(math.Abs(r.Rate) <= math.MaxFloat64) || !(r.seconds() > 0) {
		return d.isDip
	}
	isOpen := d.isDip || len(d.open) > 0 && d.open[len(d.open)-1].bad
	if !isOpen && d.mayBegin(&r, length) {
		d.usual = usual{rate: d.rates.median(), deviation: d.rates.deviation(), lowest: d.rates.sorted[0],
			latency: d.latencies.median(), latencyDeviation: d.latencies.deviation(), length: length}
		isOpen = true
	}
	if isOpen {
		r.isLow, r.bad = d.judge(&r)
	}
	switch {
	case d.isDip:
		d.extend(r)
	case r.bad:
		d.begin(r)
	case d.draining && r.Latency > high*d.usual.latency:
		d.open = append(d.open[:0], r)
	default:
		d.draining = false
		for _, o := range d.open[min(1, len(d.open)):] {
			d.remember(&o)
		}
		d.remember(&r)
		d.open = append(d.open[:0], r)
	}
	return d.isDip
}

// mayBegin reports whether a closer look at an interval may show a dip.
func (d *Detector) mayBegin(r *reading, length float64) bool {
	return d.rates.n() >= fewest &&
		(r.Rate < low*d.rates.median() || r.Latency > high*d.latencies.median() || r.gap > silence*length)
}

// begin takes an interval that may begin a dip.
func (d *Detector) begin(r reading) {
	d.open = append(d.open, r)
	missing, variance, n, lowest := 0.0, 0.0, 0, d.usual.lowest
	deep, least := 0.0, 0.0 // transactions missing in intervals far below all others, and how many chance explains
	for i := range d.open {
		o := &d.open[i]
		if !o.bad {
			continue
		}
		if !o.isLow || o.gap > silence*d.usual.length {
			d.isDip = true
		}
		expected := d.usual.rate * o.seconds()
		n, lowest = n+1, min(lowest, o.Rate)
		if o.Rate < still*d.usual.rate || o.Rate < deepest*d.usual.rate && o.Rate < low*d.usual.lowest {
			deep, least = deep+expected-o.Rate*o.seconds(), least+expected
		}
		missing += expected - o.Rate*o.seconds()
		variance += expected // as for independent transactions
		if noise := d.usual.deviation * d.usual.deviation * o.seconds() * o.seconds(); noise > bursty*expected {
			variance += noise*1.5 - expected
		}
	}
	if missing > outlier*math.Sqrt(variance) && (n > 1 || lowest < d.usual.lowest) ||
		deep > outlier*math.Sqrt(least) { // however bursty the load is
		d.isDip = true
	}
	d.regular = 0
}

// extend takes an interval during a dip.
func (d *Detector) extend(r reading) {
	d.open = append(d.open, r)
	if r.bad {
		d.regular = 0
	} else {
		d.regular++
	}
	if d.regular >= recovery {
		d.end()
		return
	}
	first, done, seconds := 0, 0.0, 0.0
	for first < len(d.open) && !d.open[first].bad {
		first++
	}
	if r.To-d.open[min(first, len(d.open)-1)].From < longest.Seconds() {
		return
	}
	for _, o := range d.open[first:] {
		done, seconds = done+o.Rate*o.seconds(), seconds+o.seconds()
	}
	if !(done/seconds < still*d.usual.rate) {
		d.rates, d.latencies = history{}, history{}
		d.open, d.isDip = d.open[:0], false
	}
}

// end adds the dip that is over, by its phases. Its last intervals are as usual.
func (d *Detector) end() {
	_, last := d.ends()
	all := d.phases()
	for i := last + 1; i < len(d.open); i++ {
		if o := &d.open[i]; o.bad {
			all[len(all)-1].Regained += max(0, o.Rate-d.usual.rate) * o.seconds()
		}
	}
	for _, x := range all {
		if len(d.Dips) < mostDips {
			d.Dips = append(d.Dips, x)
		} else {
			d.Dropped++
		}
	}
	var rest []reading
	for i := range d.open {
		if o := &d.open[i]; !o.bad && i > 0 && !(o.Latency > high*d.usual.latency) {
			d.remember(o)
			rest = []reading{*o}
		}
	}
	d.draining = d.open[len(d.open)-1].Latency > high*d.usual.latency
	d.open, d.isDip, d.regular = rest, false, 0
}

// Current returns the dip in progress; false if there is none.
func (d *Detector) Current() (Dip, bool) {
	if !d.isDip {
		return Dip{}, false
	}
	return d.dip(), true
}

// Length returns the usual length of an interval, unknown as long as there are few.
func (d *Detector) Length() float64 {
	if d.lengths.n() < fewest {
		return series.Unknown()
	}
	return d.lengths.median()
}

// Close ends the dip in progress at the end of the output. A dip that began in the last interval does not count: that interval
// ends when the tool does.
func (d *Detector) Close() {
	if !d.isDip {
		return
	}
	bad := 0
	for i := range d.open {
		if d.open[i].bad {
			bad++
		}
	}
	if bad > 1 || d.regular > 0 {
		d.end()
	}
	d.open, d.isDip = nil, false
}

// judge decides whether an interval is below what is usual.
func (d *Detector) judge(r *reading) (isLow, bad bool) {
	u := &d.usual
	isLow = r.Rate < low*u.rate
	isSlow := r.Latency > high*u.latency && r.Latency > u.latency+slowOutlier*u.latencyDeviation &&
		r.Rate*r.seconds()*(1-r.Quantile) >= slowest
	isSlow = isSlow && (!d.draining || d.isBelow(r))
	return isLow, isLow || isSlow || r.gap > silence*u.length
}

// remember adds a usual interval to what defines what is usual.
func (d *Detector) remember(r *reading) {
	if d.lengths.n() >= fewest && r.seconds() < rest*d.lengths.median() {
		return
	}
	d.rates.add(r.Rate)
	d.lengths.add(r.seconds())
	if series.IsKnown(r.Latency) && r.Quantile > 0 && r.Quantile < 1 {
		d.latencies.add(r.Latency)
	}
}
