package analysis

import (
	"bufio"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// generated is a series of PyPI's otava-test-data 0.1.9 as `otava-gen generate` makes them
// (50 and 500 values, seed 42, rounded to two decimals), the changes that Apache Otava 0.8
// finds in it (max_pvalue 0.001, window 50) and those that were put into it.
type generated struct {
	Name    string
	Values  []float64
	Otava   []int
	Changes []int
}

func readGenerated(t *testing.T) []generated {
	t.Helper()
	f, err := os.Open("testdata/otava.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []generated
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var g generated
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	if len(all) != 110 {
		t.Fatalf("%d series", len(all))
	}
	return all
}

func changesOf(values []float64) []int {
	var changes []int
	for _, p := range Levels(values)[1:] {
		changes = append(changes, p.Begin)
	}
	return changes
}

// The changes are the ones that Otava finds, at the same places. The rest are changes that it finds in series of noise.
func TestLevelsAreOtavas(t *testing.T) {
	found, missed, added := 0, 0, 0
	for _, g := range readGenerated(t) {
		got := changesOf(g.Values)
		for _, c := range g.Otava {
			if slices.Contains(got, c) {
				found++
			} else {
				missed++
			}
		}
		for _, c := range got {
			if !slices.Contains(g.Otava, c) {
				added++
			}
		}
	}
	f1 := 2 * float64(found) / float64(2*found+missed+added)
	t.Logf("F1 %.3f: %d found, %d missed, %d added", f1, found, missed, added)
	if f1 < 0.95 || found < 100 {
		t.Errorf("F1 %.3f of %d changes", f1, found)
	}
}

// At most 1 % of shuffled series seem to change.
func TestShuffledSeriesDoNotChange(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	series := readGenerated(t)
	for range 10 {
		skewed, normal := make([]float64, 80), make([]float64, 200)
		for i := range skewed {
			skewed[i] = math.Exp(random.NormFloat64())
		}
		for i := range normal {
			normal[i] = 1000 + 20*random.NormFloat64()
		}
		series = append(series, generated{Values: skewed}, generated{Values: normal})
	}
	n, alarms := 0, 0
	for _, g := range series {
		for range 20 {
			random.Shuffle(len(g.Values), func(i, j int) { g.Values[i], g.Values[j] = g.Values[j], g.Values[i] })
			n++
			if len(Levels(g.Values)) > 1 {
				alarms++
			}
		}
	}
	t.Logf("%d of %d", alarms, n)
	if alarms*100 > n {
		t.Errorf("%d of %d shuffled series seem to change", alarms, n)
	}
}

func TestLevelsOfLittle(t *testing.T) {
	if p := Levels(nil); len(p) != 0 {
		t.Error(p)
	}
	for _, values := range [][]float64{{1}, {1, 2}, {3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, {1, 2, 1, 2, 9}} {
		if p := Levels(values); len(p) != 1 || p[0].End != len(values) {
			t.Errorf("%v: %v", values, p)
		}
	}
	if got := changesOf(append(slices.Repeat([]float64{10}, 12), slices.Repeat([]float64{20}, 12)...)); !slices.Equal(got, []int{12}) {
		t.Errorf("a step without noise: %v", got)
	}
}

func BenchmarkLevels(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	values := make([]float64, 10_000)
	for i := range values {
		values[i] = 1000 + 50*random.NormFloat64() + float64(i/1000)*100
	}
	for b.Loop() {
		if len(Levels(values)) < 10 {
			b.Fatal("no changes")
		}
	}
}
