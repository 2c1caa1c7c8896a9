package engine

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Onset is the beginning of a state in which a server holds clients back, such as flow control or a queue. When it begins,
// the servers of a run are asked what happens, even before the tool prints an interval.
type Onset struct {
	// Metric is summed over its labels. PerSecond: it is a counter, whose growth per second counts.
	Metric    *measure.Metric
	PerSecond bool
	// High is the value from which the state holds.
	High float64
	// Text describes it: "flow control began on %s".
	Text string
}

// onsets are what DeclareOnset was given, by metric.
var onsets = map[*measure.Metric]*Onset{}

// DeclareOnset adds an onset. Packages call it for a package variable.
func DeclareOnset(o Onset) *Onset {
	onsets[o.Metric] = &o
	return &o
}

// calm is the number of ticks without a state before it can begin.
const calm = 5

// Onsets finds the onsets in the samples of a run. The zero value is ready to use.
type Onsets struct {
	targets map[string]*onsetState
}

// onsetState is what was seen of a target.
type onsetState struct {
	before *Sample
	sums   map[*Onset]float64 // of the sample before
	calm   map[*Onset]int     // ticks in a row without the state
}

// Began returns a sentence about a state that began with a frame, empty if none did.
func (o *Onsets) Began(f *Frame) (text string) {
	for i := range f.Samples {
		if began := o.began(&f.Samples[i]); text == "" {
			text = began
		}
	}
	return text
}

func (o *Onsets) began(x *Sample) (text string) {
	if !x.Up() {
		return ""
	}
	if o.targets == nil {
		o.targets = map[string]*onsetState{}
	}
	t := o.targets[x.Target.Name]
	if t == nil {
		t = &onsetState{calm: map[*Onset]int{}}
		o.targets[x.Target.Name] = t
	}
	sums := map[*Onset]float64{}
	for i := range x.Status.Values {
		if found := onsets[x.Status.Values[i].Metric]; found != nil {
			sums[found] += x.Status.Values[i].V
		}
	}
	for found, v := range sums {
		if found.PerSecond {
			v = t.rate(found, v, x)
		}
		switch {
		case !series.IsKnown(v):
		case v < found.High:
			t.calm[found]++
		default:
			if t.calm[found] >= calm && text == "" {
				text = fmt.Sprintf(found.Text, x.Target.Name)
			}
			t.calm[found] = 0
		}
	}
	t.before, t.sums = x, sums
	return text
}

// rate is the growth of a counter since the sample before, unknown without one.
func (t *onsetState) rate(o *Onset, v float64, x *Sample) float64 {
	last, ok := t.sums[o]
	if !ok || t.before.Restarts != x.Restarts {
		return series.Unknown()
	}
	return series.PerSecond(last, v, x.Answered.Sub(t.before.Answered).Seconds())
}
