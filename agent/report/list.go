package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// longestCell bounds a title in a table for a terminal.
const longestCell = 40

// List prints a table of runs, a line each.
func List(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tTITLE\tTOOL\tWORKLOAD\tTHREADS\tSTARTED\tDURATION\tRESULT\tTPS\tP95 (ms)\tERRORS")
	for i := range rows {
		r := &rows[i]
		started := instant(r.StartedAt)
		if r.StartEstimated {
			started = "~" + started
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.ID, Clip(r.Title, longestCell), dash(r.Tool), Clip(dash(r.Workload), longestCell), threads(r.Threads), started,
			duration(r.DurationSeconds), Plain(r.State()), rate(r.TPS), percentile(r), count(r.Errors))
	}
	return t.Flush()
}

// JSON prints v for programs to read.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// percentile prints the p95, another one with its name.
func percentile(r *Row) string {
	stat, seconds, ok := r.Percentile()
	switch {
	case !ok:
		return "–"
	case stat == "p95":
		return milliseconds(seconds)
	default:
		return milliseconds(seconds) + " (" + stat + ")"
	}
}

func threads(n int) string {
	if n == 0 {
		return "–"
	}
	return strconv.Itoa(n)
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return Plain(s)
}
