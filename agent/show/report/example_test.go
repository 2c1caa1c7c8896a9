package report_test

import (
	"fmt"
	"os"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// Two groups of runs, by the label via, with two numbers of threads each.
func ExampleCompare() {
	group := func(via string, perThread ...float64) compare.Group {
		g := compare.Group{Name: "via=" + via}
		for _, threads := range []int{8, 16} {
			for _, tps := range perThread {
				g.Runs = append(g.Runs, review.Row{Threads: threads, Labels: map[string]string{"via": via}, Values: tool.Values{{Measure: tool.Throughput, Value: tps * float64(threads)}}})
			}
		}
		return g
	}
	c := compare.Compare([]compare.Group{group("direct", 100, 101, 102, 103), group("proxy", 80, 81, 82, 83)}, []string{"via"})
	if err := (&report.ComparisonPage{Comparison: c}).Page().Text(os.Stdout, terminal.Terminal{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// via=direct against via=proxy
	//
	// What differs
	// From via=direct to via=proxy: tps -20 %, proven in 2 of 2 combinations.
	// What limited them is not known.
	//
	// Measures
	// threads  measure                 via=direct                  via=proxy  ratio  difference
	// 8        tps      812.0 [800.0 … 824.0] n=4  652.0 [640.0 … 664.0] n=4  0.803  -19.7 % (p=0.029)
	// 16       tps         1624 [1600 … 1648] n=4     1304 [1280 … 1328] n=4  0.803  -19.7 % (p=0.029)
	//
	// How to read this
	// - the baseline is via=direct
	// - (p=…) is the probability by the Mann-Whitney U test, at the 5 % level; cells are medians with the smallest and the largest run
}
