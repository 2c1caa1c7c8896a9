package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// Text prints the comparison for a terminal.
func (c *Comparison) Text(w io.Writer) error {
	for _, d := range c.Differs {
		words := make([]string, len(d.Values))
		for i, v := range d.Values {
			words[i] = c.Groups[i] + " " + dash(v)
		}
		fmt.Fprintf(w, "%s: %s\n", d.Name, Plain(strings.Join(words, ", ")))
	}
	for _, d := range c.ServerSettings {
		words := make([]string, len(d.Values))
		for i, v := range d.Values {
			words[i] = c.Groups[i] + " " + v
		}
		fmt.Fprintf(w, "servers' %s: %s\n", d.Name, Plain(strings.Join(words, "; ")))
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	g := c.grid()
	plain := func(row []string) string {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = dash(cell)
		}
		return strings.Join(cells, "\t")
	}
	fmt.Fprintln(t, plain(g.Head))
	for _, row := range g.Rows {
		fmt.Fprintln(t, plain(row))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, n := range c.Notes {
		fmt.Fprintf(w, "note: %s\n", Plain(n))
	}
	return nil
}

// Markdown prints the table that one would paste.
func (c *Comparison) Markdown(w io.Writer) error {
	m := &markdown{w: w}
	m.table(c.grid())
	if len(c.Notes)+len(c.Differs)+len(c.ServerSettings) > 0 {
		m.line("")
	}
	for _, d := range c.Differs {
		m.line("- %s: %s", escape(d.Name), escape(strings.Join(d.Values, " / ")))
	}
	for _, d := range c.ServerSettings {
		m.line("- servers' %s: %s", escape(d.Name), escape(strings.Join(d.Values, " / ")))
	}
	for _, n := range c.Notes {
		m.line("- %s", escape(n))
	}
	return m.err
}

// CSV prints a line for each measure, setting and group.
func (c *Comparison) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write(append(slices.Clone(c.Settings), "measure", "unit", "group", "n", "median", "min", "max", "ratio", "p", "verdict"))
	for i := range c.Lines {
		l := &c.Lines[i]
		for j := range l.Samples {
			s := &l.Samples[j]
			if s.N == 0 {
				continue
			}
			row := make([]string, 0, len(l.Settings)+10)
			for _, v := range l.Settings {
				row = append(row, cell(v))
			}
			row = append(row, l.Measure, l.Unit, cell(c.Groups[j]), strconv.Itoa(s.N), plainNumber(&s.Median), plainNumber(&s.Min), plainNumber(&s.Max),
				plainNumber(s.Ratio), plainNumber(s.P), string(s.Verdict))
			_ = out.Write(row) // the error stays in out
		}
	}
	out.Flush()
	return out.Error()
}

// ComparisonPage is a comparison with the runs' charts.
type ComparisonPage struct {
	Comparison
	Made    time.Time
	Version string
	Charts  []Chart
}

// HTML writes one file that needs nothing else.
func (p *ComparisonPage) HTML(w io.Writer) error {
	return page.ExecuteTemplate(w, "comparison", p)
}

// Grid is the table of the page.
func (p *ComparisonPage) Grid() grid { return p.grid() }

// CompareCharts draws runs over the same elapsed seconds, one chart a setting
// and measure. histories are in the order of the groups' runs.
func CompareCharts(c *Comparison, groups []Group, histories [][]*history.History) []Chart {
	var charts []Chart
	for _, key := range c.keys(groups) {
		throughput := Chart{Title: "Throughput", Unit: "transactions per second"}
		latency := Chart{Title: "Latency", Unit: "milliseconds", Spikes: true}
		for i, name := range c.Settings {
			suffix := ", " + name + " " + key[i]
			throughput.Title += suffix
			latency.Title += suffix
		}
		for i, g := range groups {
			for j := range g.Runs {
				if !slices.Equal(c.key(&g.Runs[j]), key) {
					continue
				}
				v := &histories[i][j].Intervals
				name := g.Name
				if len(g.Runs) > 1 {
					name += " " + g.Runs[j].ID
				}
				throughput.add(name, v.Elapsed, v.Rate(tool.Transaction))
				if stat, values := bestLatency(v); values != nil {
					latency.add(name+" "+stat, v.Elapsed, scaled(values, 1000))
				}
				if n := len(v.Elapsed); n > 0 {
					throughput.To = max(throughput.To, v.Elapsed[n-1])
					latency.To = throughput.To
				}
			}
		}
		for _, chart := range []Chart{throughput, latency} {
			if !chart.Empty() {
				charts = append(charts, chart)
			}
		}
	}
	return charts
}

// bestLatency is the p95 of transactions, else the highest percentile, else
// the mean.
func bestLatency(v *ingest.Intervals) (stat string, values []float64) {
	for _, s := range v.Of(ingest.Latency) {
		if s.Operation != tool.Transaction || s.Stat == "max" || s.Stat == "min" {
			continue
		}
		if s.Stat == "p95" {
			return s.Stat, v.Values(s)
		}
		if stat == "" || percent(s.Stat) > percent(stat) {
			stat, values = s.Stat, v.Values(s)
		}
	}
	return stat, values
}

// Text is a sample as a cell.
func (s *Sample) Text() string {
	switch s.N {
	case 0:
		return "–"
	case 1:
		return number(s.Median)
	default:
		return fmt.Sprintf("%s [%s … %s] n=%d", number(s.Median), number(s.Min), number(s.Max), s.N)
	}
}

// RatioText is the ratio to the first group.
func (s *Sample) RatioText() string {
	if s.Ratio == nil {
		return "–"
	}
	return strconv.FormatFloat(*s.Ratio, 'f', 3, 64)
}

// DifferenceText says the difference and how sure it is; never a percentage
// alone where that is not known.
func (s *Sample) DifferenceText() string {
	if s.Ratio == nil {
		return "–"
	}
	percent := fmt.Sprintf("%+.1f %%", (*s.Ratio-1)*100)
	switch s.Verdict {
	case Different:
		return fmt.Sprintf("%s (p=%.3f)", percent, *s.P)
	case Same:
		return fmt.Sprintf("~ noise (p=%.3f)", *s.P)
	case TooFew:
		return fmt.Sprintf("%s ? too few runs (p=%.3f)", percent, *s.P)
	default:
		return percent + " ? one run, may be noise"
	}
}

// grid is the comparison as a table: settings, measure, each group, and for
// each but the first its ratio and difference.
func (c *Comparison) grid() grid {
	t := grid{Head: append(slices.Clone(c.Settings), "measure")}
	t.Head = append(t.Head, c.Groups...)
	for _, g := range c.Groups[1:] {
		suffix := ""
		if len(c.Groups) > 2 {
			suffix = " " + g
		}
		t.Head = append(t.Head, "ratio"+suffix, "difference"+suffix)
	}
	for i := range c.Lines {
		l := &c.Lines[i]
		name := l.Measure
		if l.Unit != "" && l.Unit != "/s" {
			name += " " + l.Unit
		}
		row := append(slices.Clone(l.Settings), name)
		for j := range l.Samples {
			row = append(row, l.Samples[j].Text())
		}
		for j := range l.Samples[1:] {
			row = append(row, l.Samples[j+1].RatioText(), l.Samples[j+1].DifferenceText())
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
