package dashboards

import (
	"regexp"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// rateInterval stands for $__rate_interval: a duration that nobody writes.
const rateInterval = "4211ms"

// stands are what Grafana would put in place of its own variables.
var stands = strings.NewReplacer(
	"$__rate_interval", rateInterval, "${__rate_interval}", rateInterval,
	"$__range", "900s", "${__range}", "900s",
	"$__interval", "1s", "${__interval}", "1s",
	"${__from}", "1795257331000", "${__to}", "1795258231000",
)

var variable = regexp.MustCompile(`\$\{?([a-z]+)\}?`)

// Expand puts values in place of Grafana's variables, as "All" would.
func Expand(expr string) string { return ExpandWith(expr, nil) }

// ExpandWith takes the values of some variables from given, the others are All.
func ExpandWith(expr string, given map[string]string) string {
	return variable.ReplaceAllStringFunc(stands.Replace(expr), func(found string) string {
		name := variable.FindStringSubmatch(found)[1]
		if value, ok := given[name]; ok {
			return value
		}
		return ".*"
	})
}

var promql = parser.NewParser(parser.Options{})

// Parse reads a query after its variables have been expanded.
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

// Names returns the metric names that a selector may stand for; a regular
// expression for the name stands for those of known that it matches.
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
