package metrics

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Backfill collects what ended runs would have exposed while they were live, to
// be written with true timestamps: as Prometheus' blocks or in the OpenMetrics text
// format. The samples are in a temporary file.
type Backfill struct {
	families map[string]*backfilled // by name
	servers  map[string]*Family     // by metric
	labels   []byte                 // scratch
	samples  sampleStore
}

// backfilled is one family's series by their labels as text.
type backfilled struct {
	*Family
	series map[string]*spans
}

// NewBackfill returns an empty Backfill, which has to be closed.
func NewBackfill() *Backfill {
	return &Backfill{families: map[string]*backfilled{}, servers: map[string]*Family{}}
}

// Close removes the temporary file.
func (b *Backfill) Close() error { return b.samples.close() }

// series returns a series of a family, which it adds if necessary.
func (b *Backfill) series(f *Family, names, values []string) *spans {
	all := b.families[f.Name]
	if all == nil {
		all = &backfilled{f, map[string]*spans{}}
		b.families[f.Name] = all
	}
	b.labels = appendLabels(b.labels[:0], names, values)
	s := all.series[string(b.labels)]
	if s == nil {
		s = &spans{store: &b.samples, labels: string(b.labels), names: slices.Clone(names), values: slices.Clone(values)}
		all.series[s.labels] = s
	}
	return s
}

// point adds one sample and returns its series.
func (b *Backfill) point(f *Family, at int64, v float64, labels ...string) *spans {
	s := b.series(f, f.Labels, labels)
	s.add(at, v)
	return s
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
	return out.n, errors.Join(b.samples.err, buf.Flush())
}

// write writes a family. OpenMetrics names counters without their _total, and calls the type untyped unknown.
func (f *backfilled) write(buf *bufio.Writer) {
	family, kind := f.Name, f.Type
	switch kind {
	case "counter":
		family = strings.TrimSuffix(family, "_total")
	case "untyped":
		kind = "unknown"
	case "histogram": // three families here; _bucket is written first
		family = strings.TrimSuffix(family, bucketSuffix)
	}
	if f.Type == "histogram" && family == f.Name {
		f.writeSeries(buf)
		return
	}
	if f.Help != "" {
		buf.WriteString("# HELP " + family + " " + escapeHelp.Replace(f.Help) + "\n")
	}
	buf.WriteString("# TYPE " + family + " " + kind + "\n")
	f.writeSeries(buf)
}

func (f *backfilled) writeSeries(buf *bufio.Writer) {
	all := make([]*spans, 0, len(f.series))
	for _, s := range f.series {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *spans) int { return cmp.Compare(a.labels, b.labels) })
	for _, s := range all {
		s.write(buf, f.Name)
	}
}

// write writes a series. The text has no way to write its ends.
func (s *spans) write(buf *bufio.Writer, name string) {
	line := append([]byte(name), s.labels...)
	line = append(line, ' ')
	head := len(line)
	for t, v := range s.each {
		if math.IsNaN(v) {
			continue
		}
		line = appendValue(line[:head], v)
		line = append(line, ' ')
		line = appendMillis(line, t)
		line = append(line, '\n')
		buf.Write(line)
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
