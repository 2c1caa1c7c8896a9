package measure

import (
	"fmt"
	"slices"
	"testing"
)

func ExampleColumnName() {
	fmt.Println(ColumnName("db_queries_total"))
	fmt.Println(ColumnName("db_operations_total", "op", "select"))
	// Output:
	// db_queries_total
	// db_operations_total{op="select"}
}

func TestParseColumn(t *testing.T) {
	for _, labels := range [][]string{nil, {"op", "select"}, {"op", "a\"b\\c\n\xff,}=", "x", ""}} {
		name := ColumnName("some_metric", labels...)
		if metric, got, ok := ParseColumn(name); !ok || metric != "some_metric" || !slices.Equal(got, labels) {
			t.Errorf("%s: %q %q %v", name, metric, got, ok)
		}
	}
	for _, name := range []string{"", "a b", "1a", "a{", "a{}", "a{x}", `a{x=1}`, `a{x="1"`, `a{x="1";y="2"}`, `a{x="1"}b`, `a{1x="1"}`} {
		if _, _, ok := ParseColumn(name); ok {
			t.Errorf("%q was taken for a column", name)
		}
	}
}

// FuzzParseColumn checks that a parsed name stays the same when it is built and parsed again.
func FuzzParseColumn(f *testing.F) {
	f.Add(`a{op="se\"l\\ect\n",x="\u00fc\xff"}`)
	f.Add("a{")
	f.Add("a{x=`1`}")
	f.Fuzz(func(t *testing.T, name string) {
		metric, labels, ok := ParseColumn(name)
		if !ok {
			return
		}
		m, l, ok := ParseColumn(ColumnName(metric, labels...))
		if !ok || m != metric || !slices.Equal(l, labels) || len(labels)%2 != 0 {
			t.Errorf("%q: %q %q, again %q %q", name, metric, labels, m, l)
		}
	})
}
