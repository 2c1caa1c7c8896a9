package measure

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func ExampleNewColumn() {
	fmt.Println(NewColumn("db_queries_total").Name)
	fmt.Println(NewColumn("db_operations_total", "op", "select").Name)
	// Output:
	// db_queries_total
	// db_operations_total{op="select"}
}

func TestParseColumn(t *testing.T) {
	for _, labels := range [][]string{nil, {"op", "select"}, {"op", "a\"b\\c\n\xff,}=", "x", ""}} {
		want := NewColumn("some_metric", labels...)
		got, ok := ParseColumn(want.Name)
		if d := cmp.Diff(want, got); !ok || d != "" {
			t.Error(d)
		}
		for i := 0; i < len(labels); i += 2 {
			if value, has := got.Label(labels[i]); !has || value != labels[i+1] {
				t.Errorf("%s of %s is %q, %v", labels[i], got.Name, value, has)
			}
		}
		if _, has := got.Label("other"); has {
			t.Errorf("%s has a label that it lacks", got.Name)
		}
	}
	for _, name := range []string{"", "a b", "1a", "a{", "a{}", "a{x}", `a{x=1}`, `a{x="1"`, `a{x="1";y="2"}`, `a{x="1"}b`, `a{1x="1"}`} {
		if _, ok := ParseColumn(name); ok {
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
		c, ok := ParseColumn(name)
		if !ok {
			return
		}
		again, ok := ParseColumn(NewColumn(c.Metric, c.Labels...).Name)
		if !ok || again.Metric != c.Metric || !slices.Equal(again.Labels, c.Labels) || len(c.Labels)%2 != 0 {
			t.Errorf("%q: %q, again %q", name, c, again)
		}
	})
}
