package compare

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/run/review"
)

// KneeShare is how much of the best throughput the knee reaches: the smallest value of a
// parameter from which on more brings little.
const KneeShare = 0.95

// FigurePoint is what runs with one value of a parameter have.
type FigurePoint struct {
	// Line names the line that the point belongs to, X is the value of the parameter.
	Line, X string
	// Spread is in the measure's base unit.
	Spread
}

// Figure is the measures that one figure shows: one, or that of each machine.
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

// counted are parameters whose values count something, however large: the size of a table is
// its rows.
var counted = regexp.MustCompile(`^table_size$|rows|record|count|events|operations|rate$|threads|connections`)

// ShortSizes returns how figures write the values of a parameter: sizes that are plain numbers
// of bytes, such as a server's 134217728, as 128 MiB, and others as they are. Of one number it
// can't be known, so all of them have to be whole MiB.
func ShortSizes(name string, values []string) func(string) string {
	as := map[string]string{}
	for _, v := range values {
		if _, err := strconv.ParseFloat(v, 64); err != nil || v == "0" {
			continue // a text, or one with a unit
		}
		short, ok := review.ShortSize(v)
		if !ok || counted.MatchString(strings.ToLower(name)) {
			return func(v string) string { return v }
		}
		as[v] = short
	}
	return func(v string) string { return cmp.Or(as[v], v) }
}
