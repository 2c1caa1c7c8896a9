package metrics

import (
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/measure"
)

// Family describes one family of series, for the list in docs/metrics.md.
type Family struct {
	Name   string // with prefix
	Type   string // gauge or counter
	Labels []string
	Help   string
}

// declared are this package's own families, in the order of their declaration.
var declared []Family

// Families lists every family that benchwatch itself may expose, by name.
func Families() []Family {
	all := slices.Clone(declared)
	shared := map[string]bool{}
	for _, f := range all {
		shared[f.Name] = true
	}
	for _, m := range measure.Metrics() {
		if shared[prefix+m.Name] {
			continue // the sampler's, written by this package
		}
		all = append(all, Family{prefix + m.Name, typeOf(m.Name), append(targetLabels[:4:4], m.Labels...), m.Help})
	}
	slices.SortFunc(all, func(a, b Family) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func typeOf(name string) string {
	if strings.HasSuffix(name, "_total") && !strings.HasPrefix(name, "run_summary_") {
		return "counter"
	}
	return "gauge"
}
