package histogram

import (
	"maps"
	"math"
	"math/bits"
)

// Recorder counts whole numbers of a unit in the buckets of HdrHistogram with three
// significant digits: up to 2047 one for each number, above that as wide as a
// thousandth of the value at most.
type Recorder struct {
	// Unit is one, in seconds.
	Unit   float64
	counts map[int64]uint64 // by the lowest value of the bucket
}

// significant are the bits that a number keeps: HdrHistogram's subBucketCount of three
// digits is 2048.
const significant = 11

// Bounds returns the lowest and the highest number that are in one bucket with v,
// which is at least 0.
func Bounds(v int64) (low, high int64) {
	shift := max(0, bits.Len64(uint64(v))-significant)
	low = v >> shift << shift
	return low, low + 1<<shift - 1
}

// Record counts v n times. Values below 0 are not counted.
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

// Bucket returns the bucket of a number with n values, in seconds.
func (r *Recorder) Bucket(v int64, n uint64) Bucket {
	low, high := Bounds(v)
	return Bucket{Seconds(low, r.Unit), Seconds(high, r.Unit), n}
}

// Histogram returns what was recorded.
func (r *Recorder) Histogram() *Histogram {
	buckets := make([]Bucket, 0, len(r.counts))
	for low, n := range r.counts {
		buckets = append(buckets, r.Bucket(low, n))
	}
	return New(buckets...)
}

// Clone returns a copy.
func (r *Recorder) Clone() Recorder { return Recorder{r.Unit, maps.Clone(r.counts)} }

// Seconds returns a whole number of a unit of at most a second as the nearest number
// to its decimal: 7 µs are 0.000007.
func Seconds(v int64, unit float64) float64 { return float64(v) / math.Round(1/unit) }
