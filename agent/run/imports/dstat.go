package imports

import (
	"encoding/csv"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// dstatColumns are the columns of dstat besides CPU time.
var dstatColumns = []struct {
	name   string
	metric *measure.Metric
	device string
}{
	{"csw", host.Switches, ""},
	{"read", host.DiskRead, "all"}, {"writ", host.DiskWritten, "all"},
	{"recv", host.NetReceived, "all"}, {"send", host.NetSent, "all"},
}

// dstatReader is the state of reading what dstat printed, or what it wrote with --output.
type dstatReader struct {
	sheet *sheet
	clock clock
	names []string   // of the groups of columns, from the line before the headings
	heads [][]string // the headings of each group, for text
	csv   []string   // the headings, for CSV
}

// dstat reads lines such as " 67  11  20   0   1| 505k 6797k|   0     0 |…", whose headings are below their groups, and
// the CSV of --output.
func dstat(s *sheet) func(string) {
	d := &dstatReader{sheet: s}
	return func(line string) {
		if strings.HasPrefix(line, `"`) || len(d.csv) > 0 || strings.Contains(line, `"usr"`) {
			d.fields(line)
			return
		}
		d.text(line)
	}
}

// text reads a line of the terminal's output.
func (d *dstatReader) text(line string) {
	parts := strings.Split(line, "|")
	switch {
	case strings.Contains(line, "usr") && strings.Contains(line, "idl"):
		d.heads = d.heads[:0]
		for _, part := range parts {
			d.heads = append(d.heads, strings.Fields(part))
		}
		return
	case strings.HasPrefix(line, "-"):
		d.names = strings.Fields(line)
		return
	case len(d.heads) == 0 || len(parts) != len(d.heads):
		return
	}
	var at time.Time
	row := map[string]float64{}
	for i, heads := range d.heads {
		values := strings.Fields(parts[i])
		if len(heads) == 1 && heads[0] == "time" {
			at = d.clock.read(strings.Join(values, " "))
			continue
		}
		if len(values) != len(heads) {
			continue // pcp's dstat begins with an empty row
		}
		if len(d.names) == len(d.heads) && isRequests(strings.Trim(d.names[i], "-")) {
			continue
		}
		for j, head := range heads {
			if x := shortNumber(values[j]); series.IsKnown(x) {
				row[head] = x
			}
		}
	}
	d.row(at, row)
}

// isRequests reports whether a group of columns counts requests of disks: its headings equal the headings of their bytes.
func isRequests(group string) bool { return strings.HasPrefix(group, "io/") }

// fields reads a line of CSV: facts, the groups, the headings, or values. Whoever published the file may have put a
// number before each line, or the groups and the headings into one.
func (d *dstatReader) fields(line string) {
	r := csv.NewReader(strings.NewReader(line))
	r.LazyQuotes = true
	values, err := r.Read()
	if err != nil {
		return
	}
	for i, v := range values {
		if i+1 < len(values) {
			d.fact(v, values[i+1:])
		}
		if v = v[strings.LastIndex(v, ":")+1:]; v == "usr" { // pcp's: "total usage:usr"
			d.head(values, i)
			return
		}
	}
	first := len(values) - len(d.csv)
	switch {
	case len(d.csv) == 0:
		d.names = values
		return
	case first < 0 || first > 1:
		return
	}
	var at time.Time
	row := map[string]float64{}
	for i, head := range d.csv {
		v := values[first+i]
		switch head {
		case "time":
			at = d.clock.read(v)
		case "epoch":
			if x, err := strconv.ParseFloat(v, 64); err == nil {
				at = time.UnixMilli(int64(x * 1e3))
			}
		default:
			if x := numberOf(v); head != "" && series.IsKnown(x) {
				row[head] = x
			}
		}
	}
	d.row(at, row)
}

// fact reads what dstat writes above the values.
func (d *dstatReader) fact(name string, rest []string) {
	value := rest[0]
	switch name {
	case "Host:":
		d.sheet.nodename = value
	case "Date:":
		for _, layout := range []string{"02 Jan 2006 15:04:05 MST", "02 Jan 2006 15:04:05"} {
			if at, err := time.Parse(layout, value); err == nil {
				d.sheet.started = at
				return
			}
		}
	case "Cmdline:": // it ends with the delay, and perhaps the number of lines
		words := strings.Fields(value)
		for len(words) > 1 {
			n, err := strconv.Atoi(words[len(words)-1])
			if err != nil {
				return
			}
			d.sheet.every, words = float64(n), words[:len(words)-1]
		}
	}
}

// head reads the headings, which begin at an index of a line.
func (d *dstatReader) head(line []string, at int) {
	d.csv = nil
	group := ""
	for i, name := range line[at:] {
		if before := at + i; len(d.names) == len(line) && d.names[before] != "" {
			group = d.names[before]
		}
		_, name, found := strings.Cut(name, ":")
		if !found {
			name = line[at+i]
		}
		if isRequests(group) {
			name = ""
		}
		d.csv = append(d.csv, name)
	}
}

// row adds a line of values by their headings.
func (d *dstatReader) row(at time.Time, row map[string]float64) {
	s := d.sheet
	s.begin(at)
	s.setCPU(row["usr"], row["sys"], row["siq"], row["hiq"], row["stl"], row["wai"], row["idl"])
	for _, column := range dstatColumns {
		if x, ok := row[column.name]; ok {
			s.set(column.metric, column.device, x)
		}
	}
}

// shortNumber returns a number as dstat prints it: 79M, 17.9G, 505k, 2817B.
func shortNumber(text string) float64 {
	factor := 1.0
	if i := strings.IndexByte("BkMGT", text[len(text)-1]); i >= 0 {
		factor, text = math.Pow(1024, float64(i)), text[:len(text)-1]
	}
	return numberOf(text) * factor
}
