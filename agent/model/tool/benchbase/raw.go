package benchbase

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// raw is the state within *.raw.csv, which has a row for each transaction in the order of their starts. Like BenchBase,
// it counts a transaction in the second of its start; the first start is the beginning. Memory does not grow with the file.
type raw struct {
	columns, start, latency, name int // the number of columns, and their indexes; name is -1 in old versions
	begun                         bool
	began                         int64 // in microseconds of Unix time
	second                        int64 // the current one
	end                           int64 // of the last transaction, relative to began
	names                         map[string]string
	now, all                      map[string]*tally // by operation
}

// tally is the latencies of an operation in microseconds.
type tally struct {
	n              uint64
	sum, low, high int64
	latencies      histogram.Recorder
}

const (
	earliest, latest = 1_000_000_000, 9_999_999_999 // Unix times of transactions: 2001 and 2286
	maxLatency       = 1e12                         // eleven days in microseconds
	// maxGap is the number of empty seconds within a run.
	maxGap = 86400
)

// newRaw reads the header of *.raw.csv; nil: it is another line.
func newRaw(header []byte) *raw {
	const start, latency, name = "start time (microseconds)", "latency (microseconds)", "transaction name"
	if header[0]|0x20 != 't' || len(header) > 512 || !bytes.Contains(header, []byte("atency (microseconds)")) {
		return nil
	}
	names := strings.Split(strings.ToLower(string(header)), ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	r := &raw{
		columns: len(names), start: slices.Index(names, start), latency: slices.Index(names, latency), name: slices.Index(names, name),
		names: map[string]string{}, now: map[string]*tally{}, all: map[string]*tally{},
	}
	if r.start < 0 || r.latency <= r.start || r.name > r.start || r.columns > maxColumns {
		return nil
	}
	return r
}

// openRaw begins the run of *.raw.csv.
func (p *Parser) openRaw(r *raw, emit func(*tool.Report)) tool.Verdict {
	p.Close(emit)
	p.number++
	p.run = run{verb: "run", phase: tool.Measure}
	p.raw = r
	return tool.Reported
}

// transaction reads a row of *.raw.csv.
func (p *Parser) transaction(text []byte, emit func(*tool.Report)) tool.Verdict {
	r := p.raw
	at, latency, name, ok := r.read(text)
	if !ok {
		return tool.Malformed
	}
	const second = 1_000_000
	if !r.begun {
		r.begun, r.began = true, at
		p.run.began = time.UnixMicro(at)
		p.start(0, emit)
	}
	if at -= r.began; at/second > r.second+maxGap {
		return tool.Malformed
	}
	for at/second > r.second {
		p.endSecond(emit)
	}
	r.end = max(r.end, at+latency)
	operation, known := r.names[string(name)]
	if !known && len(r.names) < mostProcedures {
		operation = procedure(string(name))
		r.names[string(name)] = operation
	}
	for _, tallies := range []map[string]*tally{r.now, r.all} {
		add(tallies, tool.Transaction, latency)
		if operation != "" {
			add(tallies, operation, latency)
		}
	}
	return tool.Reported
}

// read reads a row. A comma in the start time, in a language that separates decimals so, makes one more field.
func (r *raw) read(text []byte) (at, latency int64, name []byte, ok bool) {
	comma := bytes.Count(text, []byte(",")) == r.columns
	fields := 0
	for ; len(text) > 0 || fields == 0; fields++ {
		var field []byte
		field, text, _ = bytes.Cut(text, []byte(","))
		switch fields {
		case r.name:
			name = bytes.TrimSpace(field)
		case r.start:
			var fraction []byte
			if comma {
				fraction, text, _ = bytes.Cut(text, []byte(","))
			}
			if at, ok = microseconds(field, fraction); !ok {
				return 0, 0, nil, false
			}
		case r.latency:
			v, known := decimal.Parse(bytes.TrimSpace(field), 0)
			if !known || v < 0 || v > maxLatency {
				return 0, 0, nil, false
			}
			latency = int64(v)
		}
	}
	return at, latency, name, ok && fields == r.columns
}

// microseconds reads a Unix time such as 1795790096.688188, as precisely as it is printed.
func microseconds(whole, fraction []byte) (int64, bool) {
	whole = bytes.TrimSpace(whole)
	if fraction == nil {
		whole, fraction, _ = bytes.Cut(whole, []byte("."))
	}
	if len(whole) != len("1795790096") || len(fraction) > 9 || !scan.Only(whole, scan.Digits) || !scan.Only(fraction, scan.Digits) {
		return 0, false
	}
	at := int64(0)
	for i := range len(whole) + 6 {
		digit := byte('0')
		if i < len(whole) {
			digit = whole[i]
		} else if f := i - len(whole); f < len(fraction) {
			digit = fraction[f]
		}
		at = at*10 + int64(digit-'0')
	}
	return at, at >= earliest*1e6 && at <= latest*1e6
}

func add(tallies map[string]*tally, operation string, latency int64) {
	t := tallies[operation]
	if t == nil {
		t = &tally{low: latency, latencies: histogram.Recorder{Unit: 1e-6}}
		tallies[operation] = t
	}
	t.n++
	t.sum += latency
	t.low, t.high = min(t.low, latency), max(t.high, latency)
	t.latencies.Record(latency, 1)
}

// endSecond reports the current second.
func (p *Parser) endSecond(emit func(*tool.Report)) {
	r := p.raw
	r.second++
	end := series.Some(float64(r.second))
	p.histograms(r.now, end, emit)
	p.report.Reset(tool.Interval, p.number)
	p.report.Phase = tool.Measure
	p.report.ElapsedSeconds, p.report.IntervalSeconds = end, series.Some(1.0)
	fill(&p.report, r.now, 1)
	emit(&p.report)
	clear(r.now)
}

// histograms reports the latencies of the second that ends at end or, if it is unknown, of the run.
func (p *Parser) histograms(tallies map[string]*tally, end series.Optional[float64], emit func(*tool.Report)) {
	for _, operation := range slices.Sorted(maps.Keys(tallies)) {
		r := &p.report
		r.Reset(tool.Histogram, p.number)
		r.Operation, r.Cumulative = operation, !end.Known
		if r.ElapsedSeconds = end; end.Known {
			r.IntervalSeconds = series.Some(1.0)
		}
		r.AddBuckets(tallies[operation].latencies.Histogram())
		emit(r)
	}
}

// fill adds the counts and latencies of a time to a report. A percentile is the upper bound of its bucket.
func fill(r *tool.Report, tallies map[string]*tally, seconds float64) {
	if len(tallies) == 0 {
		r.AddCountOver(tool.Transaction, 0, seconds)
	}
	for _, operation := range slices.Sorted(maps.Keys(tallies)) {
		t := tallies[operation]
		r.AddCountOver(operation, t.n, seconds)
		r.AddLatency(operation, "min", histogram.Seconds(t.low, 1e-6))
		r.AddLatency(operation, "avg", float64(t.sum)/float64(t.n)/1e6)
		r.AddPercentiles(operation, t.latencies.Histogram(), histogram.Seconds(t.high, 1e-6))
		r.AddLatency(operation, "max", histogram.Seconds(t.high, 1e-6))
	}
}

// endRaw reports the run of *.raw.csv. Only the summary includes the rest after the last whole second.
func (p *Parser) endRaw(emit func(*tool.Report)) {
	r := p.raw
	p.raw = nil
	if r == nil || !r.begun {
		return
	}
	p.histograms(r.all, series.Optional[float64]{}, emit)
	p.report.Reset(tool.Summary, p.number)
	seconds := float64(r.end) / 1e6
	p.report.ElapsedSeconds = series.Some(seconds)
	fill(&p.report, r.all, seconds)
	emit(&p.report)
	p.run.ended = true
}
