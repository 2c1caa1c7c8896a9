package ycsb

import (
	"bytes"
	"math"
	"strconv"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
)

// variance is a figure that only measurementtype histogram prints.
const variance = "LatencyVariance(us)"

// distribution contains the rows that measurement.histogram.verbose adds to the summary of an
// operation, such as [READ], 1234, 5. The first number is the upper end of a bucket in µs with
// hdrhistogram (OneMeasurementHdrHistogram), and a bucket of 1 ms with histogram
// (OneMeasurementHistogram). With timeseries such rows are means over time.
type distribution struct {
	operation string
	// millis: a figure of measurementtype histogram was printed. percentiles: a percentile was
	// printed, which timeseries does not do.
	millis, percentiles bool
	damaged             bool
	rows                []row
}

// row is a bucket. over: the bucket contains all values from bound on.
type row struct {
	bound int64
	over  bool
	n     uint64
}

const (
	maxDistributions = 64
	maxRows          = 1 << 16
)

// distribution returns the distribution of an operation.
func (s *summary) distribution(operation string) *distribution {
	for i := range s.distributions {
		if s.distributions[i].operation == operation {
			return &s.distributions[i]
		}
	}
	if len(s.distributions) == maxDistributions {
		return &distribution{}
	}
	s.distributions = append(s.distributions, distribution{operation: operation})
	return &s.distributions[len(s.distributions)-1]
}

// addBucket adds a row of the histogram. It ignores other rows.
func (s *summary) addBucket(n *name, measurement, value []byte) tool.Verdict {
	text, over := bytes.CutPrefix(measurement, []byte(">"))
	if len(text) == 0 || text[0] < '0' || text[0] > '9' {
		return tool.Ignored
	}
	d := s.distribution(n.operation)
	if !d.percentiles {
		return tool.Ignored
	}
	bound, err := strconv.ParseInt(string(text), 10, 64)
	count, ok := decimal.Parse(value, 0)
	switch {
	case err != nil || !ok || count < 0 || count != math.Trunc(count) || count > 1e15 || len(d.rows) == maxRows,
		len(d.rows) > 0 && (d.rows[len(d.rows)-1].over || bound <= d.rows[len(d.rows)-1].bound && !over):
		d.damaged = true
		return tool.Malformed
	}
	d.rows = append(d.rows, row{bound, over, uint64(count)})
	return tool.Reported
}

// emitDistributions reports the complete histograms, which count as many operations as the summary.
func (s *summary) emitDistributions(run int, r *tool.Report, emit func(*tool.Report)) {
	for i := range s.distributions {
		d := &s.distributions[i]
		if d.damaged || len(d.rows) == 0 {
			continue
		}
		r.Reset(tool.Histogram, run)
		r.Operation, r.Cumulative = d.operation, true
		total := uint64(0)
		for _, counted := range d.rows {
			if total += counted.n; counted.n > 0 {
				r.Buckets = append(r.Buckets, d.bucket(counted))
			}
		}
		if n := s.report.Count(d.operation); n.Known && n.Value == total && total > 0 {
			emit(r)
		}
	}
}

// bucket converts a row to a bucket.
func (d *distribution) bucket(counted row) tool.Bucket {
	b := histogram.Bucket{N: counted.n}
	switch {
	case counted.over:
		b.Low, b.High = float64(counted.bound)/1e3, math.Inf(1)
	case d.millis:
		b.Low, b.High = float64(counted.bound)/1e3, float64(counted.bound+1)/1e3
	case counted.bound == math.MaxInt32: // larger values are printed as this one
		low, _ := histogram.Bounds(counted.bound)
		b.Low, b.High = histogram.Seconds(low, 1e-6), math.Inf(1)
	default:
		low, high := histogram.Bounds(counted.bound)
		b.Low, b.High = histogram.Seconds(low, 1e-6), histogram.Seconds(high, 1e-6)
	}
	return tool.Bucket{Bound: b.High, Bucket: b}
}
