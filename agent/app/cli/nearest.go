package cli

// nearest returns the name that a misspelled one probably means: the one that needs
// the fewest changes, at most two and not more than a third of its characters; ""
// if there is none or several are as near.
func nearest(name string, known []string) string {
	best, distance := "", min(2, len(name)/3)+1
	for _, k := range known {
		switch d := changes(name, k); {
		case d < distance:
			best, distance = k, d
		case d == distance:
			best = ""
		}
	}
	return best
}

// changes is how many characters of a have to be added, removed or replaced, or
// neighbours exchanged, to get b (optimal string alignment).
func changes(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
