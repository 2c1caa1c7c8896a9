package series

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func ExampleTable() {
	var t Table[string]
	t.Row(1)
	t.Set("queries_total", 100)
	t.Row(2) // the server did not answer
	t.Row(3)
	t.Set("queries_total", 160)
	t.Row(4)
	t.Set("queries_total", 220)
	t.Set("threads", 8)
	fmt.Println(t.Elapsed)
	fmt.Println(t.Values("queries_total"))
	fmt.Println(t.Values("threads"))
	fmt.Println(Rates(t.Values("queries_total"), t.Elapsed, nil))
	// Output:
	// [1 2 3 4]
	// [100 NaN 160 220]
	// [NaN NaN NaN 8]
	// [NaN NaN NaN 60]
}

// A tool ran from 0 to 3.4. The first row after 0 mostly covers the time before 0, and the last row
// covers the drain.
func ExampleTally_Mean() {
	elapsed := []float64{-0.7, 0.3, 1.3, 2.3, 3.3, 4.3}
	queries := []float64{0, 300, 1000, 1000, 1000, 100}
	tally := TallyOf(elapsed, queries, 3.4)
	fmt.Println(tally.Mean())
	// Output: 1000
}

// A long line is drawn with two points for each piece of the axis. Peaks stay visible.
func ExampleBuckets() {
	elapsed := []float64{0, 1, 2, 3, 4, 5, 6, 7}
	values := []float64{5, 5, 90, 5, 5, 5, 1, 5}
	for _, b := range Buckets(elapsed, 0, 4) {
		first, second := Extremes(values, b)
		fmt.Println(elapsed[first], values[first], elapsed[second], values[second])
	}
	// Output:
	// 0 5 2 90
	// 4 5 6 1
}

var nan = math.NaN()

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateNaNs()); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

func TestTableRows(t *testing.T) {
	var table Table[string]
	for _, c := range []struct {
		elapsed float64
		want    bool
	}{{nan, false}, {2, true}, {1, false}, {2, true}, {nan, false}, {3, true}} {
		if got := table.Row(c.elapsed); got != c.want {
			t.Errorf("row at %v: %v", c.elapsed, got)
		}
	}
	equal(t, "axis", []float64{2, 2, 3}, table.Elapsed)
	if table.IsNext(3) || table.IsNext(nan) || !table.IsNext(3.5) {
		t.Error("IsNext")
	}
	table.Set("a", nan) // unknown is no value
	table.Set("a", 1)
	table.Set("a", 2) // the first counts
	equal(t, "set twice", []float64{nan, nan, 1}, table.Values("a"))
	table.Replace("a", 3)
	equal(t, "replaced", []float64{nan, nan, 3}, table.Values("a"))
	equal(t, "no column", []float64(nil), table.Values("b"))
	if IsKnown(table.At("b", 0)) || table.At("a", 2) != 3 {
		t.Error("At")
	}
	table.Add("b", []float64{1, 2, 3})
	table.Add("b", []float64{4, 5, 6})
	equal(t, "added", []float64{1, 2, 3}, table.Values("b"))
	equal(t, "keys", []string{"a", "b"}, table.Keys())
}

func TestTableIsBounded(t *testing.T) {
	table := Table[int]{MaxColumns: 2}
	table.Row(0)
	for i := range 5 {
		table.Set(i, float64(i))
	}
	if len(table.Keys()) != 2 || table.Dropped != 3 {
		t.Errorf("%d columns, %d values dropped", len(table.Keys()), table.Dropped)
	}
}

// A snapshot can be read while rows are appended, which the race detector checks.
func TestSnapshot(t *testing.T) {
	var table Table[string]
	for i := range 50 {
		table.Row(float64(i))
		table.Set("a", float64(i))
	}
	snapshot := table.Snapshot()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 50; i < 300; i++ {
			table.Row(float64(i))
			table.Set("a", -1)
			table.Set(fmt.Sprint(i), 1)
		}
	}()
	s := TallyOf(snapshot.Elapsed, snapshot.Values("a"), math.Inf(1))
	<-done
	if s.Count != 50 || s.Mean() != 24.5 || len(snapshot.Elapsed) != 50 || len(snapshot.Keys()) != 1 {
		t.Errorf("%+v, %d rows, columns %v", s, len(snapshot.Elapsed), snapshot.Keys())
	}
}

func TestBetween(t *testing.T) {
	table := Table[string]{Elapsed: []float64{1, 2, 3, 4, 5}}
	for _, c := range []struct {
		from, to   float64
		begin, end int
	}{{2.5, 3.5, 1, 4}, {0, 9, 0, 5}, {3, 3, 1, 4}, {9, 10, 4, 5}, {-2, -1, 0, 1}, {4, 2, 2, 3}} {
		if begin, end := table.Between(c.from, c.to); begin != c.begin || end != c.end {
			t.Errorf("%v to %v: rows %d to %d", c.from, c.to, begin, end)
		}
	}
	var empty Table[string]
	if begin, end := empty.Between(0, 1); begin != 0 || end != 0 {
		t.Errorf("empty: %d to %d", begin, end)
	}
}

func TestCounters(t *testing.T) {
	values := []float64{1, 3, nan, 7, 2, 5, 50, 60}
	times := []float64{0, 2, 3, 4, 5, 6, 6, 7}
	restarts := []float64{0, 0, 0, 0, 1, 1, 1, 2}
	equal(t, "rates", []float64{nan, 1, nan, nan, nan, 3, nan, nan}, Rates(values, times, restarts))
	equal(t, "without restarts", []float64{nan, 1, nan, nan, nan, 3, nan, 10}, Rates(values, times, nil))
	var grown, one Growth
	for i, v := range values {
		grown.Add(v, restarts[i])
	}
	one.Add(nan, 0)
	one.Add(5, 0)
	equal(t, "increase", 2+4+3+45.0, grown.Sum())
	equal(t, "increase of one value", nan, one.Sum())
	shares := []float64{0.5, 1.01, nan}
	Limit(shares, 1)
	equal(t, "limit", []float64{0.5, 1, nan}, shares)
}

func TestAxes(t *testing.T) {
	a, b := []float64{1, 2, 4}, []float64{2, 3}
	union := Union(a, b)
	equal(t, "union", []float64{1, 2, 3, 4}, union)
	equal(t, "spread", []float64{nan, 20, 30, nan}, Spread(union, b, []float64{20, 30}))
	if same := Union(a, []float64{1, 2, 4}); &same[0] != &a[0] {
		t.Error("equal axes were copied")
	}
	equal(t, "nothing first", b, Union(nil, b))
}

func TestExtremes(t *testing.T) {
	if first, second := Extremes([]float64{nan, nan}, Bucket{0, 2}); first != -1 || second != -1 {
		t.Errorf("extremes of nothing: %d, %d", first, second)
	}
}

// FuzzBuckets checks that thinning leaves no row and no extreme out.
func FuzzBuckets(f *testing.F) {
	f.Add(uint8(20), 3.5, 7.0, int64(1))
	f.Add(uint8(3), 0.0, 0.0, int64(2))
	f.Add(uint8(9), math.Inf(1), math.NaN(), int64(3))
	f.Fuzz(func(t *testing.T, n uint8, from, width float64, seed int64) {
		axis, values := make([]float64, n), make([]float64, n)
		for i := range axis {
			seed = seed*6364136223846793005 + 1442695040888963407
			axis[i] = float64(i) + float64(uint64(seed)>>60)/32
			values[i] = float64(seed >> 40)
			if seed&7 == 0 {
				values[i] = nan
			}
		}
		next := 0
		for _, b := range Buckets(axis, from, width) {
			if b.Begin != next || b.End <= b.Begin {
				t.Fatalf("bucket %+v after row %d", b, next)
			}
			next = b.End
			first, second := Extremes(values, b)
			s := TallyOf(axis[b.Begin:b.End], values[b.Begin:b.End], math.Inf(1))
			if s.Count == 0 {
				if first != -1 || second != -1 {
					t.Fatalf("extremes %d and %d without a value", first, second)
				}
				continue
			}
			if first > second || min(values[first], values[second]) != s.Min || max(values[first], values[second]) != s.Max {
				t.Fatalf("extremes of %+v are rows %d and %d, want %v and %v", b, first, second, s.Min, s.Max)
			}
		}
		if next != len(axis) {
			t.Fatalf("%d of %d rows", next, len(axis))
		}
	})
}

// A line over seconds in which nothing was reported has a gap.
func ExampleBreaks() {
	elapsed, values := []float64{1, 2, 2.2, 3, 6, 7}, []float64{10, 10, 10, 10, 20, 20}
	axis := Union(elapsed, Breaks(elapsed, 1))
	fmt.Println(axis)
	fmt.Println(Spread(axis, elapsed, values))
	// Output:
	// [1 2 2.2 3 4 5 6 7]
	// [10 10 10 10 NaN NaN 20 20]
}

func TestBreaksAreBounded(t *testing.T) {
	for _, step := range []float64{0, -1, nan} {
		if b := Breaks([]float64{0, 10}, step); b != nil {
			t.Errorf("step %v: %v", step, b)
		}
	}
	if n := len(Breaks([]float64{0, 1e12}, 1)); n != maxBreaks {
		t.Errorf("%d breaks in a gap of ages", n)
	}
}
