package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// sweptRows are two repeats at each number of threads, of two kinds.
func sweptRows() []review.Row {
	var rows []review.Row
	for _, via := range []string{"direct", "atlas"} {
		for i, threads := range []int{1, 2, 4, 8, 16} {
			for repeat := range 2 {
				tps := []float64{100, 190, 340, 400, 390}[i] * (1 + 0.01*float64(repeat))
				if via == "atlas" {
					tps *= 0.6
				}
				rows = append(rows, review.Row{
					ID: fmt.Sprint(via, threads, repeat), Threads: threads, Labels: map[string]string{"via": via, "repeat": fmt.Sprint(repeat), "buffer_pool": []string{"512M", "2G"}[repeat]},
					Values: tool.Values{{Measure: tool.Throughput, Value: tps}}, Latency: map[string]float64{"p95": float64(threads) / tps},
				})
			}
		}
	}
	return rows
}

func TestFigures(t *testing.T) {
	groups := []compare.Group{
		{Name: "via=direct", Facts: []rundir.Fact{{Name: "via", Value: "direct"}}}, {Name: "via=atlas", Facts: []rundir.Fact{{Name: "via", Value: "atlas"}}},
	}
	for _, r := range sweptRows() {
		i := 0
		if r.Labels["via"] == "atlas" {
			i = 1
		}
		groups[i].Runs = append(groups[i].Runs, r)
	}
	c := compare.Compare(groups, []string{"via"})
	set, err := compare.NewFigureSet(&c, groups, compare.FigureOptions{Lines: []string{"via"}})
	if err != nil {
		t.Fatal(err)
	}
	plots := FigurePlots(set)
	if len(plots) != 2 {
		t.Fatalf("%d figures", len(plots))
	}
	p := plots[0]
	if p.X.Title != "threads" || !p.X.Log || len(p.Lines) != 2 || p.Lines[0].Name != "via=direct" {
		t.Errorf("%s, %+v, %d lines, %s", p.Title, p.X, len(p.Lines), p.Lines[0].Name)
	}
	if q := p.Lines[0].Points[3]; q.X != 8 || q.Low != 400 || q.High != 404 || q.Y != 402 {
		t.Errorf("the point at 8 threads is %+v", q)
	}
	var marks []string
	for _, m := range p.Marks {
		marks = append(marks, m.Text)
	}
	if want := []string{"via=direct: best, 402.0 tps at threads 8", "via=atlas: best, 241.2 tps at threads 8"}; !slices.Equal(marks, want) {
		t.Errorf("%q", marks)
	}
	if _, err := compare.NewFigureSet(&c, groups, compare.FigureOptions{X: "nothing"}); err == nil {
		t.Error("a fact that no run has is accepted")
	}
	if _, err := compare.NewFigureSet(&c, groups, compare.FigureOptions{Measures: []string{"p99"}}); err == nil {
		t.Error("a measure that no run has is accepted")
	}
}

// Sizes are ordered as numbers, other values are placed side by side, and a knee is marked.
func TestFigureAxes(t *testing.T) {
	rows := sweptRows()
	m, err := review.MeasureNamed(rows, "tps")
	if err != nil {
		t.Fatal(err)
	}
	p := newFigure(&m, "buffer_pool", compare.FigureRows(rows, &m, "buffer_pool", func(int) string { return "" }), compare.ByMedian)
	if p.X.Ticks[0].Text != "512M" || p.X.Ticks[1].At != 2<<30 || p.X.Log {
		t.Errorf("%+v", p.X)
	}
	p = newFigure(&m, "via", compare.FigureRows(rows, &m, "via", func(int) string { return "" }), compare.ByMedian)
	if len(p.X.Ticks) != 2 || p.X.Ticks[1].At != 1 || len(p.Marks) != 0 { // runs with 1 to 8 threads in each point
		t.Errorf("%+v %+v", p.X, p.Marks)
	}
	var points []compare.FigurePoint
	for i, tps := range []float64{100, 390, 400, 401} {
		points = append(points, compare.FigurePoint{X: fmt.Sprint(1 << i), Spread: compare.NewSpread([]float64{tps})})
	}
	p = newFigure(&m, "threads", points, compare.ByMedian)
	if len(p.Marks) != 2 || p.Marks[1].X != 2 || p.Marks[1].Text != "knee, 97 % of the best at threads 2" {
		t.Errorf("%+v", p.Marks)
	}
}

// Sizes in bytes are ordered by size. Plain numbers are written as MiB or GiB, others as they
// are, and numbers that count something as numbers.
func TestFigureSizes(t *testing.T) {
	m := review.Measure{Name: "tps", Unit: table.PerSecond}
	for _, c := range []struct {
		name         string
		values, want []string
	}{
		{"buffer_pool", []string{"12G", "512M", "1g", "128MiB", "2gb"}, []string{"128MiB", "512M", "1g", "2gb", "12G"}},
		{"innodb_buffer_pool_size", []string{"12884901888", "134217728", "1610612736"}, []string{"128 MiB", "1536 MiB", "12 GiB"}},
		{"bp", []string{"8G", "134217728", "0"}, []string{"0", "128 MiB", "8G"}},
		{"innodb_log_buffer_size", []string{"1048576", "1500000"}, []string{"1048576", "1500000"}},
		{"table_size", []string{"2097152", "1048576"}, []string{"1048576", "2097152"}},
		{"tmp_table_size", []string{"16777216", "33554432"}, []string{"16 MiB", "32 MiB"}},
		{"threads", []string{"1024", "64"}, []string{"64", "1024"}},
		{"gcache", []string{"off", "1G", "128M"}, []string{"128M", "1G", "off"}},
	} {
		var points []compare.FigurePoint
		for _, v := range c.values {
			points = append(points, compare.FigurePoint{X: v, Spread: compare.NewSpread([]float64{1})})
		}
		p := newFigure(&m, c.name, points, compare.ByMedian)
		var texts []string
		for i, tick := range p.X.Ticks {
			texts = append(texts, tick.Text)
			if i > 0 && tick.At <= p.X.Ticks[i-1].At {
				t.Errorf("%s: %s is not to the right of %s", c.name, tick.Text, p.X.Ticks[i-1].Text)
			}
		}
		if !slices.Equal(texts, c.want) {
			t.Errorf("%s: ticks %q, want %q", c.name, texts, c.want)
		}
		var b bytes.Buffer
		if err := p.WriteSVG(&b); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{c.want[0], c.want[len(c.want)-1]} {
			if !strings.Contains(b.String(), ">"+text+"</text>") {
				t.Errorf("%s: the drawing has no %s", c.name, text)
			}
		}
	}
}

// Over a setting of the servers, the label of a sweep that set it makes no line of each value;
// lines by the setting are named by short sizes.
func TestFigureLinesOfSizes(t *testing.T) {
	var g compare.Group
	for _, pool := range []string{"128M", "2G"} {
		bytes := map[string]string{"128M": "134217728", "2G": "2147483648"}[pool]
		for _, threads := range []int{1, 4} {
			g.Runs = append(g.Runs, review.Row{Threads: threads, Values: tool.Values{{Measure: tool.Throughput, Value: 100.0}}, Labels: map[string]string{"bp": pool}, ServerSettings: map[string]string{"innodb_buffer_pool_size": bytes}})
		}
	}
	groups := []compare.Group{g}
	c := compare.Compare(groups, nil)
	for _, test := range []struct {
		o    compare.FigureOptions
		want []string
	}{
		{compare.FigureOptions{X: "innodb_buffer_pool_size"}, []string{"threads 1", "threads 4"}},
		{compare.FigureOptions{X: "threads", Lines: []string{"innodb_buffer_pool_size"}}, []string{"innodb_buffer_pool_size 128 MiB", "innodb_buffer_pool_size 2 GiB"}},
	} {
		set, err := compare.NewFigureSet(&c, groups, test.o)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, l := range FigurePlots(set)[0].Lines {
			names = append(names, l.Name)
		}
		if !slices.Equal(names, test.want) {
			t.Errorf("over %s: lines %q, want %q", test.o.X, names, test.want)
		}
	}
}

// TestScaleEnds guards that each scale has few ticks, also for numbers that a step does not change.
func TestScaleEnds(t *testing.T) {
	for _, values := range [][]float64{
		{}, {0}, {5}, {0, 5e-324}, {1e16, 1e16 + 2}, {math.MaxFloat64, -math.MaxFloat64}, {1, 2}, {-3, 7}, {1e-320, 1e-319},
	} {
		for _, toZero := range []bool{false, true} {
			if s := newScale(&Axis{}, values, 0, 100, toZero); len(s.ticks) > axisTicks {
				t.Errorf("%v: %d ticks", values, len(s.ticks))
			}
		}
	}
}

// A figure by itself is well-formed XML whose texts are escaped.
func TestFigureIsXML(t *testing.T) {
	rows := sweptRows()
	m, err := review.MeasureNamed(rows, "p95")
	if err != nil {
		t.Fatal(err)
	}
	p := newFigure(&m, `<threads> & "more"`, compare.FigureRows(rows, &m, "threads", func(i int) string { return rows[i].Labels["via"] + ` <&">` }), compare.ByMedian)
	var b bytes.Buffer
	if err := p.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for d := xml.NewDecoder(&b); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	if strings.Contains(text, "NaN") || !strings.Contains(text, "direct &lt;&amp;") {
		t.Error(text)
	}
}
