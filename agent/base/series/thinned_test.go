package series

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// long fills a table with n rows of a gauge with a gap, extremes and a late column,
// and returns the gauge's values.
func long(n int) (*Thinned[string], []float64) {
	t := &Thinned[string]{ToolEnd: math.Inf(1), Sorted: func(k string) bool { return k == "gauge" }}
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, n)
	for i := range values {
		values[i] = math.Round(1000 + 100*random.NormFloat64())
		switch {
		case i == n/3:
			values[i] = 1e6
		case i == n/2:
			values[i] = -5
		case i > n/4 && i < n/4+n/100:
			values[i] = nan
		}
		t.Row(float64(i))
		t.Set("gauge", values[i])
		if i > 3*n/4 {
			t.Set("late", 1)
		}
	}
	t.Settle()
	return t, values
}

// TestThinned guards that a long table keeps its extremes in their place, its gaps, and the summary
// of all values.
func TestThinned(t *testing.T) {
	for _, n := range []int{1, 5, mostRows, mostRows + 1, 100_003, 1_000_000} {
		table, values := long(n)
		rows := len(table.Elapsed)
		if rows > mostRows+40 || n > mostRows && rows < mostRows/2 || table.Weight(0, rows) != n {
			t.Errorf("%d rows became %d with the weight %d", n, rows, table.Weight(0, rows))
		}
		if !slices.IsSorted(table.Elapsed) || len(table.Values("gauge")) != rows {
			t.Fatalf("%d rows, %d values", rows, len(table.Values("gauge")))
		}
		if n < 1000 {
			continue
		}
		width := table.Elapsed[1] - table.Elapsed[0]
		thin := table.Values("gauge")
		at := func(v float64) float64 { return table.Elapsed[slices.Index(thin, v)] }
		if math.Abs(at(1e6)-float64(n/3)) > 2*width || math.Abs(at(-5)-float64(n/2)) > 2*width {
			t.Errorf("the extremes of %d are at %v and %v", n, at(1e6), at(-5))
		}
		for i, v := range thin {
			if x := table.Elapsed[i] - float64(n/4); !IsKnown(v) != (x > width && x < float64(n/100)-width) && (x > 2*width && x < float64(n/100)-2*width) {
				t.Fatalf("the value at %v is %v, the gap is from %d to %d", table.Elapsed[i], v, n/4, n/4+n/100)
			}
		}
		late := table.Values("late")
		if first := slices.IndexFunc(late, IsKnown); math.Abs(table.Elapsed[first]-float64(3*n/4)) > 2*width {
			t.Errorf("the late column begins at %v of %d", table.Elapsed[first], n)
		}
		count, sum := 0, 0.0
		for _, v := range values {
			if IsKnown(v) {
				count, sum = count+1, sum+v
			}
		}
		got := table.Tally("gauge")
		if got.Count != count || got.Mean() != sum/float64(count) || got.Min != -5 || got.Max != 1e6 || got.MaxAt != float64(n/3) || got.Last != values[n-1] {
			t.Errorf("%d: %+v, mean %v", n, got, got.Mean())
		}
		if want := Median(values); math.Abs(got.Median()/want-1) > 0.002 {
			t.Errorf("median of %d is %v, want %v", n, got.Median(), want)
		}
	}
}

// TestThinnedSnapshot guards that a snapshot does not change while rows are added, both to a
// thinned table and to one that is about to be thinned. The race detector checks it.
func TestThinnedSnapshot(t *testing.T) {
	for _, n := range []int{100, mostRows, 3 * mostRows} {
		table, _ := long(n)
		snapshot := table.Snapshot()
		want, tally := slices.Clone(table.Values("gauge")), table.Tally("gauge")
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 3 * mostRows {
				table.Row(float64(n + i))
				table.Set("gauge", -1)
			}
		}()
		got := snapshot.Tally("gauge")
		median := got.Median()
		equal(t, "values", want, snapshot.Values("gauge"))
		<-done
		equal(t, "values later", want, snapshot.Values("gauge"))
		if median != got.Median() || tally.Count != got.Count {
			t.Errorf("%+v", got)
		}
	}
}

// TestLevels guards that levels keep the mean, the smallest value and the times of their values.
func TestLevels(t *testing.T) {
	var l Levels
	const n = 100_000
	for i := range n {
		v := 100.0 + float64(i%10)
		if i >= n/2 {
			v += 50
		}
		if i == n/4 {
			v = 1
		}
		l.Add(float64(i), float64(i+1), v)
	}
	all := l.All(1)
	low := 0
	for i, level := range all {
		want := 104.5
		if level.From >= n/2 {
			want = 154.5
		}
		if math.Abs(level.Mean-want) > 8 && level.To < n/2 || i > 0 && level.From != all[i-1].To || level.N != all[0].N {
			t.Fatalf("%+v", level)
		}
		if level.Low == 1 {
			low++
			if level.From > n/4 || level.To < n/4 {
				t.Errorf("%+v has the value at %d", level, n/4)
			}
		}
	}
	if len(all) > mostRows || len(all) < mostRows/2 || low != 1 {
		t.Errorf("%d levels, %d low", len(all), low)
	}
	if v := l.Variation(all); math.Abs(v-math.Sqrt(625+8.25)/129.5) > 0.001 {
		t.Errorf("variation %v", v)
	}
	var few Levels
	for i := range 30 {
		few.Add(float64(i), float64(i+1), 10)
	}
	few.Add(30, 30.2, 500) // the tool's end
	if all := few.All(1); len(all) != 30 || few.Variation(all) != 0 {
		t.Errorf("%d levels, variation %v", len(all), few.Variation(all))
	}
}
