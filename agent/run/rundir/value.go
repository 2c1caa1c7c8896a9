package rundir

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// SizeOf parses the value of a fact or setting that is a number, such as 16, 0.5, 8G, 512mb or 128
// MiB; false otherwise. Units are powers of 1024.
func SizeOf(value string) (float64, bool) {
	digits := strings.TrimRight(value, "KMGTkmgtiIbB")
	v, err := strconv.ParseFloat(strings.TrimSuffix(digits, " "), 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, false
	}
	switch unit := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(value[len(digits):]), "B"), "I"); unit {
	case "":
		return v, true
	case "K", "M", "G", "T":
		return v * math.Pow(1024, float64(strings.Index("KMGT", unit)+1)), true
	}
	return 0, false
}

// CompareValues is the order of values of a fact, parameter or setting in lists and charts: numbers
// by size, then other texts alphabetically.
func CompareValues(a, b string) int {
	x, isSizeA := SizeOf(a)
	y, isSizeB := SizeOf(b)
	switch {
	case isSizeA && isSizeB:
		return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
	case isSizeA:
		return -1
	case isSizeB:
		return 1
	}
	return strings.Compare(a, b)
}
