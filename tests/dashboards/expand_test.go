package dashboards

import (
	"regexp"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// rateInterval replaces $__rate_interval: a duration that no query contains.
const rateInterval = "4211ms"

// builtins replaces Grafana's own variables.
var builtins = strings.NewReplacer(
	"$__rate_interval", rateInterval, "${__rate_interval}", rateInterval,
	"$__range", "900s", "${__range}", "900s",
	"$__interval", "1s", "${__interval}", "1s",
	"${__from}", "1795257331000", "${__to}", "1795258231000",
)

var variable = regexp.MustCompile(`\$\{?([a-z]+)(:raw)?\}?`)

// Expand replaces Grafana's variables as "All" does.
func Expand(expr string) string { return ExpandWith(expr, nil) }

// ExpandWith replaces some variables by the given values, the others as "All" does. A text that Grafana inserts
// unchanged, such as a list of matchers, is empty unless it is given.
func ExpandWith(expr string, given map[string]string) string {
	return variable.ReplaceAllStringFunc(builtins.Replace(expr), func(found string) string {
		m := variable.FindStringSubmatch(found)
		if value, ok := given[m[1]]; ok {
			return value
		}
		if m[2] != "" {
			return ""
		}
		return ".*"
	})
}

var promql = parser.NewParser(parser.Options{})

// Parse parses a query after expanding its variables.
func Parse(expr string) (parser.Expr, error) { return promql.ParseExpr(Expand(expr)) }

// Selectors returns the selectors of a query.
func Selectors(expr parser.Expr) []*parser.VectorSelector {
	var found []*parser.VectorSelector
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			found = append(found, s)
		}
		return nil
	})
	return found
}

// Names returns the metric names that a selector matches. A regular expression for the name
// matches those of known.
func Names(s *parser.VectorSelector, known map[string][]string) []string {
	if s.Name != "" {
		return []string{s.Name}
	}
	var found []string
	for _, m := range s.LabelMatchers {
		if m.Name != model.MetricNameLabel {
			continue
		}
		for name := range known {
			if m.Matches(name) {
				found = append(found, name)
			}
		}
	}
	return found
}
