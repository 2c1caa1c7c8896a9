package rundir

import (
	"slices"
	"testing"
)

// Each list is in order; sorting any permutation gives it again.
func TestCompareValues(t *testing.T) {
	for _, want := range [][]string{
		{"512M", "8G", "16G"},
		{"0.5", "2", "16", "128 MiB", "512mb", "1T"},
		{"-1", "0", "9", "10", "direct", "proxy"},
		{"8", "8.0", "", "NaN", "off"}, // equal numbers by letters
	} {
		for range want {
			got := append(slices.Clone(want[1:]), want[0])
			slices.SortFunc(got, CompareValues)
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			slices.Reverse(got)
			slices.SortFunc(got, CompareValues)
			if !slices.Equal(got, want) {
				t.Errorf("reversed: got %q, want %q", got, want)
			}
		}
	}
}
