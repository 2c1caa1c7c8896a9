package compare

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/run/review"
)

// KneeShare is the share of the best value at the knee.
const KneeShare = 0.95

// BestAndKnee returns the index of the largest of n values over a rising parameter (the first if several are equal), and
// of the knee: the first value above which more of the parameter brings little. There must be a value.
func BestAndKnee(n int, value func(i int) float64) (best, knee int) {
	for i := range n {
		if value(i) > value(best) {
			best = i
		}
	}
	for value(knee) < KneeShare*value(best) {
		knee++
	}
	return best, knee
}

// FigurePoint summarises the runs with one value of a parameter.
type FigurePoint struct {
	// Line names the point's line, X is the value of the parameter.
	Line string `json:"line,omitempty"`
	X    string `json:"x"`
	// Spread is in the measure's base unit.
	Spread
}

// Figure is the list of measures in one figure: one measure, or one per machine.
type Figure []review.Measure

// Figures groups measures by the figures that show them.
func Figures(measures []review.Measure) []Figure {
	var all []Figure
	for _, m := range measures {
		i := slices.IndexFunc(all, func(f Figure) bool { return m.Figure != "" && f[0].Figure == m.Figure })
		if i < 0 {
			all = append(all, Figure{m})
			continue
		}
		all[i] = append(all[i], m)
	}
	return all
}

// counted are parameters that count something, however large: the size of a table is its number of
// rows.
var counted = regexp.MustCompile(`^table_size$|rows|record|count|events|operations|rate$|threads|connections`)

// ShortSizes returns a function that formats the values of a parameter in figures: plain numbers of
// bytes, such as a server's 134217728, as 128 MiB, and other values unchanged. A single number
// could be anything, so all of them must be whole MiB.
func ShortSizes(name string, values []string) func(string) string {
	as := map[string]string{}
	for _, v := range values {
		if _, err := strconv.ParseFloat(v, 64); err != nil || v == "0" {
			continue // text, or a number with a unit
		}
		short, ok := review.ShortSize(v)
		if !ok || counted.MatchString(strings.ToLower(name)) {
			return func(v string) string { return v }
		}
		as[v] = short
	}
	return func(v string) string { return cmp.Or(as[v], v) }
}
