package sweep

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/benchwatch/benchwatch/agent/report"
)

// table is the head and the rows of text: the sets, then what people compare.
func (r *Result) table() ([]string, [][]string) {
	names := []string{}
	for _, s := range r.sets {
		names = append(names, s.Name)
	}
	var rows []report.Row
	for _, x := range r.Settings {
		rows = append(rows, report.Row{Latency: x.Latency})
	}
	stats := report.Stats(rows)
	head := append(slices.Clone(names), "runs", "tps", "qps")
	for _, s := range stats {
		head = append(head, s+" ms")
	}
	head = append(head, "errors")
	seen := r.seen()
	for _, m := range seen {
		head = append(head, m.column)
	}
	var cells [][]string
	for _, x := range r.Settings {
		row := []string{}
		for _, name := range names {
			row = append(row, x.Values[name])
		}
		row = append(row, runsCell(&x), spreadCell(x.TPS), spreadCell(x.QPS))
		for _, s := range stats {
			cell := "–"
			if v, ok := x.Latency[s]; ok {
				cell = strconv.FormatFloat(v*1000, 'f', 2, 64)
			}
			row = append(row, cell)
		}
		if x.Errors != nil {
			row = append(row, strconv.FormatFloat(*x.Errors, 'f', -1, 64))
		} else {
			row = append(row, "–")
		}
		for _, m := range seen {
			cell := "–"
			if v := x.seen(m.Name); v != nil {
				cell = strconv.FormatFloat(v.shown, 'f', 2, 64)
			}
			row = append(row, cell)
		}
		cells = append(cells, row)
	}
	return head, cells
}

// seen are the servers' measures that any setting has, in the order of their columns.
func (r *Result) seen() []Seen {
	var all []Seen
	for _, x := range r.Settings {
		for _, m := range x.Servers {
			if !slices.ContainsFunc(all, func(other Seen) bool { return other.Name == m.Name }) {
				all = append(all, m)
			}
		}
	}
	return all
}

func (x *Setting) seen(name string) *Seen {
	for i := range x.Servers {
		if x.Servers[i].Name == name {
			return &x.Servers[i]
		}
	}
	return nil
}

func runsCell(x *Setting) string {
	if len(x.Runs) > 0 {
		return strconv.Itoa(len(x.Runs))
	}
	if x.State == Done {
		return "removed"
	}
	return string(x.State)
}

func spreadCell(s *Spread) string {
	switch {
	case s == nil:
		return "–"
	case s.N == 1:
		return strconv.FormatFloat(s.Median, 'f', 2, 64)
	default:
		return fmt.Sprintf("%.2f [%.2f … %.2f]", s.Median, s.Min, s.Max)
	}
}

// Text prints the table and what it says.
func (r *Result) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	head, rows := r.table()
	for _, row := range append([][]string{head}, rows...) {
		for i := range row {
			row[i] = report.Plain(row[i])
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	shared := r.sharedAdvice()
	for _, a := range r.Advice {
		fmt.Fprintln(w)
		if len(a.Others) > 0 {
			fmt.Fprintf(w, "%s\n", report.Plain(r.others(&a)))
		}
		for _, line := range without(a.Lines, shared) {
			fmt.Fprintln(w, line)
		}
	}
	if len(shared) > 0 {
		fmt.Fprintf(w, "\nall of them\n%s\n", strings.Join(shared, "\n"))
	}
	for _, s := range r.Failed {
		fmt.Fprintf(w, "failed: step %d, %s: %s\n", s.Number, report.Plain(Describe(r.sets, s.Values)), report.Clip(s.Reason, 200))
	}
	return nil
}

// sharedAdvice are the lines that are the same for several combinations, all of them.
func (r *Result) sharedAdvice() []string {
	if len(r.Advice) < 2 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.Advice[0].Lines), func(line string) bool {
		return slices.ContainsFunc(r.Advice[1:], func(a Advice) bool { return !slices.Contains(a.Lines, line) })
	})
}

func without(lines, dropped []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(dropped, line) })
}

func (r *Result) others(a *Advice) string {
	var words []string
	for _, s := range r.sets {
		if v, ok := a.Others[s.Name]; ok {
			words = append(words, s.Name+"="+v)
		}
	}
	return strings.Join(words, " ")
}

// Markdown prints the table that one would paste.
func (r *Result) Markdown(w io.Writer) error {
	head, rows := r.table()
	if err := report.MarkdownTable(w, head, rows); err != nil {
		return err
	}
	list := func(title string, lines []string) {
		fmt.Fprintf(w, "\n%s\n\n", report.EscapeMarkdown(title))
		for _, line := range lines {
			fmt.Fprintf(w, "- %s\n", report.EscapeMarkdown(line))
		}
	}
	shared := r.sharedAdvice()
	for _, a := range r.Advice {
		list(strings.TrimSpace("Threads "+r.others(&a)), without(a.Lines, shared))
	}
	if len(shared) > 0 {
		list("All of them", shared)
	}
	return nil
}

// CSV prints the settings, a line each, in base units.
func (r *Result) CSV(w io.Writer) error {
	head := []string{}
	for _, s := range r.sets {
		head = append(head, s.Name)
	}
	var rows []report.Row
	for _, x := range r.Settings {
		rows = append(rows, report.Row{Latency: x.Latency})
	}
	stats := report.Stats(rows)
	head = append(head, "state", "runs", "transactions_per_second", "transactions_per_second_min", "transactions_per_second_max", "queries_per_second", "errors")
	for _, s := range stats {
		head = append(head, "latency_"+s+"_seconds")
	}
	seen := r.seen()
	for _, m := range seen {
		head = append(head, strings.ReplaceAll(m.Name, " ", "_")+"_"+m.Unit)
	}
	out := csv.NewWriter(w)
	_ = out.Write(head) // the error stays in out
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	for _, x := range r.Settings {
		row := []string{}
		for _, s := range r.sets {
			row = append(row, x.Values[s.Name])
		}
		row = append(row, string(x.State), strconv.Itoa(len(x.Runs)))
		if x.TPS != nil {
			row = append(row, number(x.TPS.Median), number(x.TPS.Min), number(x.TPS.Max))
		} else {
			row = append(row, "", "", "")
		}
		if x.QPS != nil {
			row = append(row, number(x.QPS.Median))
		} else {
			row = append(row, "")
		}
		if x.Errors != nil {
			row = append(row, number(*x.Errors))
		} else {
			row = append(row, "")
		}
		for _, s := range stats {
			cell := ""
			if v, ok := x.Latency[s]; ok {
				cell = number(v)
			}
			row = append(row, cell)
		}
		for _, m := range seen {
			cell := ""
			if v := x.seen(m.Name); v != nil {
				cell = number(v.Value)
			}
			row = append(row, cell)
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}
