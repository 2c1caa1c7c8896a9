package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/series"
)

// sweptRows are two repeats at each number of threads, of two kinds.
func sweptRows() []Row {
	var rows []Row
	for _, via := range []string{"direct", "atlas"} {
		for i, threads := range []int{1, 2, 4, 8, 16} {
			for repeat := range 2 {
				tps := []float64{100, 190, 340, 400, 390}[i] * (1 + 0.01*float64(repeat))
				if via == "atlas" {
					tps *= 0.6
				}
				rows = append(rows, Row{
					ID: fmt.Sprint(via, threads, repeat), Threads: threads, Labels: map[string]string{"via": via, "repeat": fmt.Sprint(repeat), "buffer_pool": []string{"512M", "2G"}[repeat]},
					TPS: series.Some(tps), Latency: map[string]float64{"p95": float64(threads) / tps},
				})
			}
		}
	}
	return rows
}

func TestFigures(t *testing.T) {
	groups := []Group{{Name: "via=direct"}, {Name: "via=atlas"}}
	for _, r := range sweptRows() {
		i := 0
		if r.Labels["via"] == "atlas" {
			i = 1
		}
		groups[i].Runs = append(groups[i].Runs, r)
	}
	c := Compare(groups, []string{"via"})
	set, err := NewFigureSet(&c, groups, FigureOptions{Lines: []string{"via"}})
	if err != nil {
		t.Fatal(err)
	}
	plots := set.Plots()
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
	if _, err := NewFigureSet(&c, groups, FigureOptions{X: "nothing"}); err == nil {
		t.Error("a fact that no run has is accepted")
	}
	if _, err := NewFigureSet(&c, groups, FigureOptions{Measures: []string{"p99"}}); err == nil {
		t.Error("a measure that no run has is accepted")
	}
}

// Sizes are ordered as numbers, other values stand side by side, a knee is marked.
func TestFigureAxes(t *testing.T) {
	rows := sweptRows()
	m, err := MeasureNamed(rows, "tps")
	if err != nil {
		t.Fatal(err)
	}
	p := newFigure(&m, "buffer_pool", FigureRows(rows, &m, "buffer_pool", func(int) string { return "" }), ByMedian)
	if p.X.Ticks[0].Text != "512M" || p.X.Ticks[1].At != 2<<30 || p.X.Log {
		t.Errorf("%+v", p.X)
	}
	p = newFigure(&m, "via", FigureRows(rows, &m, "via", func(int) string { return "" }), ByMedian)
	if len(p.X.Ticks) != 2 || p.X.Ticks[1].At != 1 || len(p.Marks) != 1 {
		t.Errorf("%+v %+v", p.X, p.Marks)
	}
	var points []FigurePoint
	for i, tps := range []float64{100, 390, 400, 401} {
		points = append(points, FigurePoint{X: fmt.Sprint(1 << i), Spread: NewSpread([]float64{tps})})
	}
	p = newFigure(&m, "threads", points, ByMedian)
	if len(p.Marks) != 2 || p.Marks[1].X != 2 || p.Marks[1].Text != "knee, 97.3 % of the best at threads 2" {
		t.Errorf("%+v", p.Marks)
	}
}

// A figure by itself is well-formed XML whose texts are escaped.
func TestFigureIsXML(t *testing.T) {
	rows := sweptRows()
	m, err := MeasureNamed(rows, "p95")
	if err != nil {
		t.Fatal(err)
	}
	p := newFigure(&m, `<threads> & "more"`, FigureRows(rows, &m, "threads", func(i int) string { return rows[i].Labels["via"] + ` <&">` }), ByMedian)
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
