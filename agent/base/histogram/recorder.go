package histogram

import (
	"maps"
	"math"
	"math/bits"
)

// Recorder counts multiples of a unit in the buckets of HdrHistogram with three significant digits:
// one bucket for each number up to 2047, above that a bucket is at most a thousandth of its values
// wide.
type Recorder struct {
	// Unit is the length of one unit in seconds.
	Unit   float64
	counts map[int64]uint64 // by the lowest value of the bucket
}

// significant is the number of leading bits that distinguish buckets: HdrHistogram's subBucketCount
// is 2048 for three digits.
const significant = 11

// Bounds returns the lowest and the highest number in the bucket of v, which must not be negative.
func Bounds(v int64) (low, high int64) {
	shift := max(0, bits.Len64(uint64(v))-significant)
	low = v >> shift << shift
	return low, low + 1<<shift - 1
}

// Record counts n times the value v. It ignores negative values.
func (r *Recorder) Record(v int64, n uint64) {
	if v < 0 {
		return
	}
	if r.counts == nil {
		r.counts = map[int64]uint64{}
	}
	low, _ := Bounds(v)
	r.counts[low] += n
}

// Bucket returns the bucket of v with n values; its bounds are in seconds.
func (r *Recorder) Bucket(v int64, n uint64) Bucket {
	low, high := Bounds(v)
	return Bucket{Seconds(low, r.Unit), Seconds(high, r.Unit), n}
}

// Histogram returns a histogram of the recorded values.
func (r *Recorder) Histogram() *Histogram {
	buckets := make([]Bucket, 0, len(r.counts))
	for low, n := range r.counts {
		buckets = append(buckets, r.Bucket(low, n))
	}
	return New(buckets...)
}

// Clone returns a copy.
func (r *Recorder) Clone() Recorder { return Recorder{r.Unit, maps.Clone(r.counts)} }

// Seconds returns v units in seconds, for a unit of at most 1 s. The result is the float nearest to
// the decimal number: 7 µs are 0.000007.
func Seconds(v int64, unit float64) float64 { return float64(v) / math.Round(1/unit) }
