package limits

import (
	"fmt"
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// sameRate is the share of the configured rate that counts as all of it.
const sameRate = 0.98

// MadeRate reports whether a run of some seconds reached the configured transactions per second: nearly all, or as many
// as random intervals between transactions allow, whose number has a Poisson distribution. The queue at the end shows
// whether chance is the reason; without it, the result is not sure.
func MadeRate(throughput, rate, seconds, queue float64) (made, sure bool) {
	n := rate * seconds
	switch {
	case throughput >= sameRate*rate:
		return true, true
	case !(n > 0) || throughput < rate*(1-3/math.Sqrt(n)):
		return false, true
	case series.IsKnown(queue):
		return queue <= (1-sameRate)*n, true
	}
	return true, false
}

// compareRate compares the throughput with the configured rate. A run that reached it was not limited by anything but
// failures.
func (f *finder) compareRate() {
	if !(f.e.Rate > 0) || !series.IsKnown(f.e.Throughput) {
		return
	}
	of := fmt.Sprintf("%s of the %s transactions/s that it was asked for",
		table.Rounded(f.e.Throughput), table.Rounded(f.e.Rate))
	made, sure := MadeRate(f.e.Throughput, f.e.Rate, f.e.Seconds, f.e.Queue)
	switch {
	case !made:
		f.add(cause.Rate, finding(max(LeastShare, 1-f.explained()), "repeat with more threads, or a lower rate",
			"%s made %s: the others queued in it, as all of its threads were busy", f.e.Tool, of))
		return
	case !sure:
		f.v.Missing = append(f.v.Missing, Missing{What: fmt.Sprintf("why the run made %s: in %s s, random intervals between "+
			"transactions can make as large a difference, and %s printed no queue", of, table.Rounded(f.e.Seconds), f.e.Tool)})
		f.running, f.outside, f.byClass = 0, 0, nil // the clients may have had nothing to do
		return
	}
	f.v.Findings = slices.DeleteFunc(f.v.Findings, func(l LimitFinding) bool {
		return !slices.Contains([]cause.Limit{cause.Connections, cause.Ports, cause.Files}, l.Limit)
	})
	f.v.Unlimited = "the run made " + of
	if f.e.Throughput < sameRate*f.e.Rate {
		f.v.Unlimited += fmt.Sprintf(", all but %s of those that %s began at random intervals",
			table.Rounded(f.e.Queue), f.e.Tool)
	}
}
