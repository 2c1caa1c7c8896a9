package secret

import (
	"regexp"
	"testing"
)

// TestExpressions compiles each expression, since a mistake in one would show only when a text needs it.
func TestExpressions(t *testing.T) {
	all := []func() *regexp.Regexp{namedLogin, escape, innerQuote, escaped, nextLine, elementName, entry, linked, nextOption}
	for _, s := range shapes {
		all = append(all, s.expr)
	}
	for _, compiled := range all {
		if compiled().String() == "" {
			t.Error("an expression is empty")
		}
	}
}
