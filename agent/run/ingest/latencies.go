package ingest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/hdrlog"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Latencies are files into which a tool writes the latency of each operation.
type Latencies struct {
	Tool     *tool.Tool
	Patterns []string // from the tool's description
	PID      int
	// Since is when the tool was started. Files last written before belong to another run.
	Since time.Time
}

// ErrNoLatencies is returned by Keep without such files.
var ErrNoLatencies = errors.New("no file of this run")

// Keep reads the files after the tool's end and keeps their histograms in the run directory instead
// of the files, which have a line for each operation.
func (l *Latencies) Keep(ctx context.Context, dir rundir.Directory) error {
	paths, err := l.paths()
	if err != nil {
		return err
	}
	return keepLatencies(ctx, dir, l.Tool, paths)
}

// keepLatencies keeps the histograms of the latencies in files.
func keepLatencies(ctx context.Context, dir rundir.Directory, t *tool.Tool, paths []string) error {
	sum := distributions{length: 1, parts: map[string][]*histogram.Histogram{}, whole: map[string]*histogram.Histogram{}}
	for _, path := range paths {
		if err := sum.read(ctx, path, t); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
	if len(sum.whole) == 0 && len(sum.statistics) == 0 {
		return fmt.Errorf("%s: %w", strings.Join(paths, ", "), ErrNoLatencies)
	}
	return rundir.Replace(dir.Path(rundir.LatenciesFile), 0o644, sum.write)
}

func (l *Latencies) paths() ([]string, error) {
	var paths, patterns []string
	for _, pattern := range l.Patterns {
		pattern = strings.ReplaceAll(pattern, tool.PID, strconv.Itoa(l.PID))
		patterns = append(patterns, pattern)
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pattern, err)
		}
		paths = append(paths, found...)
	}
	// Some file systems store modification times in whole seconds.
	since := l.Since.Truncate(time.Second)
	paths = slices.DeleteFunc(paths, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || !info.Mode().IsRegular() || info.ModTime().Before(since)
	})
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: %w", strings.Join(patterns, ", "), ErrNoLatencies)
	}
	return paths, nil
}

func (d *distributions) read(ctx context.Context, path string, t *tool.Tool) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	parser := t.NewParser(tool.Description{})
	shift := 0.0 // on the file's axis
	distributed := false
	take := func(r *tool.Report) {
		switch r.Kind {
		case tool.Start:
			if d.began.IsZero() {
				d.began = r.Began
			}
			shift = r.Began.Sub(d.began).Seconds()
		case tool.Histogram:
			distributed = true
			d.add(r, shift)
		case tool.Summary:
			if !distributed {
				d.statistics, d.counted = slices.Clone(r.Latencies), r.Count(tool.Transaction) // of the last run in the file
				return
			}
			d.end = max(d.end, shift+r.ElapsedSeconds.Value)
		}
	}
	if err := eachLine(ctx, file, func(text []byte) { parser.Parse(tool.Line{Text: text}, take) }); err != nil {
		return err
	}
	parser.Close(take)
	return nil
}

// eachLine calls visit with each line of r.
func eachLine(ctx context.Context, r io.Reader, visit func([]byte)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, follow.DefaultMaxLine)
	for n := 0; lines.Scan(); n++ {
		if n%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		visit(lines.Bytes())
	}
	return lines.Err()
}

// maxParts bounds the parts of a run: beyond it, pairs of parts are merged.
const maxParts = 600

// distributions are the histograms of a run's operations, for the whole run and for parts of its
// time.
type distributions struct {
	began  time.Time
	end    float64 // seconds since the begin
	length float64 // of a part
	parts  map[string][]*histogram.Histogram
	whole  map[string]*histogram.Histogram
	// statistics come from a file that the tool wrote about the whole run, and counted is its number of transactions.
	statistics []tool.Latency
	counted    series.Optional[uint64]
}

func (d *distributions) add(r *tool.Report, shift float64) {
	if r.Cumulative {
		if d.whole[r.Operation] != nil || len(d.whole) < maxHistograms {
			d.whole[r.Operation] = histogram.Merge(d.whole[r.Operation], r.Distribution())
		}
		return
	}
	if !r.ElapsedSeconds.Known || d.parts[r.Operation] == nil && len(d.parts) == maxHistograms {
		return
	}
	at := max(0, shift+r.ElapsedSeconds.Value-r.IntervalSeconds.Value/2)
	for at >= maxParts*d.length {
		d.halve()
	}
	parts, i := d.parts[r.Operation], int(at/d.length)
	for len(parts) <= i {
		parts = append(parts, nil)
	}
	parts[i] = histogram.Merge(parts[i], r.Distribution())
	d.parts[r.Operation] = parts
}

// halve merges pairs of parts.
func (d *distributions) halve() {
	d.length *= 2
	for operation, parts := range d.parts {
		var half []*histogram.Histogram
		for pair := range slices.Chunk(parts, 2) {
			half = append(half, histogram.Merge(pair...))
		}
		d.parts[operation] = half
	}
}

// write writes an HdrHistogram log. Operations outside all parts, such as in the rest of the last
// second, get their own line.
func (d *distributions) write(w io.Writer) error {
	// This first line makes the unit the microsecond, as in YCSB's logs.
	_, err := fmt.Fprintf(w, "#[Logging for: %s]\n#[Histogram log format version 1.3]\n#[StartTime: %.3f (seconds since epoch)]\n", tool.Transaction, float64(d.began.UnixMilli())/1e3)
	if err != nil {
		return err
	}
	if err := d.writeStatistics(w); err != nil {
		return err
	}
	// The intervals of a log come from its lines without a tag that continue its time.
	operations := slices.DeleteFunc(sortedKeys(d.whole), func(o string) bool { return o == tool.Transaction })
	for _, operation := range append([]string{tool.Transaction}, operations...) {
		parts := slices.Clone(d.parts[operation])
		from := float64(len(parts)) * d.length
		rest := without(d.whole[operation], parts)
		if from >= d.end && len(parts) > 0 {
			last := &parts[len(parts)-1]
			*last, rest = histogram.Merge(*last, rest), nil
		}
		for i, h := range parts {
			// Times count from the first line, and a second without a transaction has a rate of 0.
			if i > 0 && h.Count() == 0 && operation != tool.Transaction {
				continue
			}
			if err := writeHistogram(w, operation, float64(i)*d.length, d.length, h); err != nil {
				return err
			}
		}
		if rest.Count() > 0 {
			if err := writeHistogram(w, operation, from, d.end-from, rest); err != nil {
				return err
			}
		}
	}
	return nil
}

// statisticsMark begins the comment with the statistics of the whole run, and countMark the one with their number of
// transactions.
const (
	statisticsMark = "#[Latency: "
	countMark      = "#[Transactions: "
)

// writeStatistics writes "#[Latency: transaction p95 0.013218]" and "#[Transactions: 11347]".
func (d *distributions) writeStatistics(w io.Writer) error {
	if d.counted.Known && len(d.statistics) > 0 {
		if _, err := fmt.Fprintf(w, countMark+"%d]\n", d.counted.Value); err != nil {
			return err
		}
	}
	for _, l := range d.statistics {
		if _, err := fmt.Fprintf(w, statisticsMark+"%s %s %v]\n", l.Operation, l.Stat, l.Seconds); err != nil {
			return err
		}
	}
	return nil
}

// comment reads what writeStatistics wrote.
func (k *keptIntervals) comment(text string) {
	if n, ok := strings.CutPrefix(text, countMark); ok {
		if v, err := strconv.ParseUint(strings.TrimSuffix(n, "]"), 10, 64); err == nil {
			k.counted = series.Some(v)
		}
		return
	}
	rest, ok := strings.CutPrefix(text, statisticsMark)
	if fields := strings.Fields(strings.TrimSuffix(rest, "]")); ok && len(fields) == 3 {
		if v, err := strconv.ParseFloat(fields[2], 64); err == nil && v >= 0 {
			k.statistics = append(k.statistics, tool.Latency{Operation: fields[0], Stat: fields[1], Seconds: v})
		}
	}
}

// without returns the values of h that none of the parts has.
func without(h *histogram.Histogram, parts []*histogram.Histogram) *histogram.Histogram {
	counted := map[[2]float64]uint64{}
	for _, b := range histogram.Merge(parts...).Buckets() {
		counted[[2]float64{b.Low, b.High}] = b.N
	}
	rest := slices.Clone(h.Buckets())
	for i, b := range rest {
		rest[i].N -= min(b.N, counted[[2]float64{b.Low, b.High}])
	}
	return histogram.New(rest...)
}

func writeHistogram(w io.Writer, operation string, from, length float64, h *histogram.Histogram) error {
	micros := func(seconds float64) int64 { return int64(math.Round(seconds * 1e6)) }
	all, highest := h.Buckets(), int64(2)
	for _, b := range all {
		highest = max(highest, micros(b.High))
	}
	encoder := hdrhistogram.New(1, highest, 3)
	for _, b := range all {
		if low, high := histogram.Bounds(micros(b.Low)); low != micros(b.Low) || high != micros(b.High) {
			return fmt.Errorf("latencies from %g to %g s are not counted in HdrHistogram's buckets", b.Low, b.High)
		}
		if err := encoder.RecordValues(micros(b.Low), int64(b.N)); err != nil {
			return err
		}
	}
	text, err := encoder.EncodeV2()
	if err != nil {
		return err
	}
	tag := ""
	if operation != tool.Transaction {
		tag = "Tag=" + operation + ","
	}
	_, err = fmt.Fprintf(w, "%s%.3f,%.3f,%.3f,%s\n", tag, from, length, float64(highest)/1e3, text)
	return err
}

// ReadLatencies adds the latencies stored by Keep, if any, to the state from the output. It is
// called once, after the tool's end and before Close.
func (f *Feed) ReadLatencies(ctx context.Context, dir rundir.Directory) error {
	file, err := rundir.Open(dir.Path(rundir.LatenciesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read latencies: %w", err)
	}
	defer file.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	parser := hdrlog.Tool.NewParser(tool.Description{})
	take := func(r *tool.Report) {
		switch r.Kind {
		case tool.Histogram:
			f.state.apply(r, time.Time{})
			f.Series.add(r, f.state)
			if r.Cumulative && r.Operation == tool.Transaction {
				f.kept.transactions = series.Some(r.Distribution().Count())
			}
		case tool.Interval:
			f.kept.intervals = append(f.kept.intervals, r.Clone())
		}
	}
	err = eachLine(ctx, file, func(text []byte) {
		if len(text) > 0 && text[0] == '#' {
			f.kept.comment(string(text))
		}
		parser.Parse(tool.Line{Text: text}, take)
	})
	if err != nil {
		return fmt.Errorf("read latencies: %w", err)
	}
	parser.Close(take)
	return nil
}

// keptIntervals are the intervals of the kept latencies, and the number of transactions in them; and the statistics that
// the tool wrote about the whole run, and their number of transactions.
type keptIntervals struct {
	intervals    []*tool.Report
	transactions series.Optional[uint64]
	statistics   []tool.Latency
	counted      series.Optional[uint64]
}

// addKept uses the intervals of the latencies if the output has none, unless the latencies are a
// sample of the transactions. mu is held.
func (f *Feed) addKept() {
	s := f.state
	s.addStatistics(f.kept.statistics, f.kept.counted)
	if s.interval != nil || s.summary == nil || s.summary.Report().Count(tool.Transaction) != f.kept.transactions {
		return
	}
	for _, r := range f.kept.intervals {
		s.apply(r, time.Time{})
		f.Series.add(r, s)
	}
}

// addStatistics adds statistics of the whole run that the tool's output lacks, if they are of as many transactions.
func (s *state) addStatistics(all []tool.Latency, counted series.Optional[uint64]) {
	if s.summary == nil || s.summary.Parts > 1 || counted.Known && s.summary.Report().Count(tool.Transaction) != counted {
		return
	}
	sum := *s.summary // snapshots share it
	sum.Latencies = slices.Clip(sum.Latencies)
	for _, l := range all {
		if !sum.Report().Latency(l.Operation, l.Stat).Known {
			sum.Latencies = append(sum.Latencies, l)
		}
	}
	s.summary = &sum
}
