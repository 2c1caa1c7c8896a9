package metrics

import (
	"bufio"
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Backfill collects what ended runs would have exposed while they were live, to
// be written in the OpenMetrics text format with true timestamps.
type Backfill struct {
	families map[string]*backfilled // by name
	servers  map[string]*Family     // by metric
	labels   []byte                 // scratch
}

// backfilled is one family's series by their labels as text.
type backfilled struct {
	*Family
	series map[string]*spans
}

// spans are the samples of one series, in pieces.
type spans struct {
	labels string
	pieces []span
}

// span is values at rising times, in milliseconds since 1970. An unknown value is
// no sample.
type span struct {
	times  []int64
	values []float64
	shared bool // the columns are those of a history
}

// NewBackfill returns an empty Backfill.
func NewBackfill() *Backfill {
	return &Backfill{families: map[string]*backfilled{}, servers: map[string]*Family{}}
}

// series returns a series of a family, a new one if there is none yet.
func (b *Backfill) series(f *Family, names, values []string) *spans {
	all := b.families[f.Name]
	if all == nil {
		all = &backfilled{f, map[string]*spans{}}
		b.families[f.Name] = all
	}
	b.labels = appendLabels(b.labels[:0], names, values)
	s := all.series[string(b.labels)]
	if s == nil {
		s = &spans{labels: string(b.labels)}
		all.series[s.labels] = s
	}
	return s
}

// point adds one sample.
func (b *Backfill) point(f *Family, at int64, v float64, labels ...string) {
	s := b.series(f, f.Labels, labels)
	if n := len(s.pieces); n == 0 || s.pieces[n-1].shared || s.pieces[n-1].times[len(s.pieces[n-1].times)-1] >= at {
		s.pieces = append(s.pieces, span{})
	}
	p := &s.pieces[len(s.pieces)-1]
	p.times, p.values = append(p.times, at), append(p.values, v)
}

func appendLabels(b []byte, names, values []string) []byte {
	for i, name := range names {
		b = append(append(append(b, "{,"[min(i, 1)]), name...), `="`...)
		b = append(append(b, escapeLabel.Replace(strings.ToValidUTF8(values[i], "\uFFFD"))...), '"')
	}
	return append(b, '}')
}

var (
	escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	escapeHelp  = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
)

// WriteTo writes everything: the families by name, in each the series by their
// labels, in each the samples by time, as `promtool tsdb create-blocks-from
// openmetrics` takes them in one go.
func (b *Backfill) WriteTo(w io.Writer) (int64, error) {
	out := &counting{w: w}
	buf := bufio.NewWriterSize(out, 1<<18)
	names := make([]string, 0, len(b.families))
	for name := range b.families {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b.families[name].write(buf)
	}
	buf.WriteString("# EOF\n") // the first error stays in buf
	err := buf.Flush()
	return out.n, err
}

// write writes a family. OpenMetrics names counters without their _total.
func (f *backfilled) write(buf *bufio.Writer) {
	family := f.Name
	if f.Type == "counter" {
		family = strings.TrimSuffix(family, "_total")
	}
	if f.Help != "" {
		buf.WriteString("# HELP " + family + " " + escapeHelp.Replace(f.Help) + "\n")
	}
	buf.WriteString("# TYPE " + family + " " + f.Type + "\n")
	all := make([]*spans, 0, len(f.series))
	for _, s := range f.series {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *spans) int { return cmp.Compare(a.labels, b.labels) })
	for _, s := range all {
		s.write(buf, f.Name)
	}
}

// write writes a series. Two runs that overlap have samples of the same servers:
// those of the run that began first are written.
func (s *spans) write(buf *bufio.Writer, name string) {
	slices.SortStableFunc(s.pieces, func(a, b span) int { return cmp.Compare(a.times[0], b.times[0]) })
	line := append([]byte(name), s.labels...)
	line = append(line, ' ')
	head := len(line)
	last := int64(math.MinInt64)
	for _, p := range s.pieces {
		for i, t := range p.times {
			v := p.values[i]
			if t <= last || math.IsNaN(v) {
				continue
			}
			last = t
			line = appendValue(line[:head], v)
			line = append(line, ' ')
			line = appendMillis(line, t)
			line = append(line, '\n')
			buf.Write(line)
		}
	}
}

func appendValue(b []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(b, "+Inf"...)
	case math.IsInf(v, -1):
		return append(b, "-Inf"...)
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// appendMillis writes milliseconds as seconds.
func appendMillis(b []byte, ms int64) []byte {
	if ms < 0 {
		b, ms = append(b, '-'), -ms
	}
	b = strconv.AppendInt(b, ms/1000, 10)
	if rest := ms % 1000; rest != 0 {
		b = append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
	}
	return b
}

// counting counts what is written.
type counting struct {
	w io.Writer
	n int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
