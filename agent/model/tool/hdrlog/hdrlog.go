// Package hdrlog reads the logs of HdrHistogram's HistogramLogWriter, as written by YCSB
// (hdrhistogram.fileoutput), jHiccup and many other tools: one histogram per interval, in encoding
// V1 or V2, with or without tags.
package hdrlog

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// Name of the format, used as the tool's name.
const Name = "hdrlog"

// Tool is any program that writes such a log. No command line starts it.
var Tool = &tool.Tool{
	Name:       Name,
	AnyProgram: true,
	Describe:   func(tool.Invocation) tool.Description { return tool.Description{} },
	NewParser:  func(tool.Description) tool.Parser { return &parser{} },
	Sniff: func(head []byte) int {
		switch {
		case bytes.Contains(head, []byte(versionText)), bytes.Contains(head, []byte(`"Interval_Compressed_Histogram"`)):
			return 100
		}
		return 0
	},
}

const (
	versionText = "#[Histogram log format version "
	// maxTags limits the operations in a log.
	maxTags = 64
	// maxBuckets limits the buckets of one operation: HdrHistogram with five digits has more than a
	// million, but few are used.
	maxBuckets = 1 << 18
)

// parser reads one log.
type parser struct {
	run       int
	started   bool
	name      string // of operations without a tag
	unit      float64
	logged    series.Optional[float64] // StartTime of the log, seconds of the Unix epoch
	base      series.Optional[float64] // BaseTime, to which start times are relative
	from      series.Optional[float64] // start of the first interval
	elapsed   float64
	tags      []*tagged
	report    tool.Report
	intervals int
}

// tagged is one operation.
type tagged struct {
	operation string
	sum       *histogram.Histogram
}

// Parse implements tool.Parser.
func (p *parser) Parse(line tool.Line, emit func(*tool.Report)) tool.Verdict {
	text := bytes.TrimSuffix(line.Text, []byte("\r"))
	switch {
	case len(text) == 0:
		return tool.Ignored
	case text[0] == '#':
		return p.comment(string(text[:min(len(text), 256)]), emit)
	case text[0] == '"':
		p.begin()
		return tool.Ignored
	case line.Cut:
		return tool.Malformed
	}
	return p.interval(text, emit)
}

func (p *parser) begin() {
	if p.run == 0 {
		p.run, p.unit, p.name = 1, 1e-9, tool.Transaction
	}
}

// comment reads lines that begin with #. YCSB names the operation there and counts in microseconds;
// the format's own unit is the nanosecond.
func (p *parser) comment(text string, emit func(*tool.Report)) tool.Verdict {
	name, isYCSB := strings.CutPrefix(text, "#[Logging for: ")
	if (isYCSB || strings.HasPrefix(text, "#[Logged with ") || strings.HasPrefix(text, versionText)) && p.intervals > 0 {
		p.Close(emit)
		*p = parser{run: p.run + 1, unit: 1e-9, name: tool.Transaction}
	}
	p.begin()
	if at, ok := strings.CutPrefix(text, "#[StartTime: "); ok {
		p.logged = seconds(at)
	} else if at, ok := strings.CutPrefix(text, "#[BaseTime: "); ok {
		p.base = seconds(at)
	}
	if isYCSB {
		p.unit, p.name = 1e-6, operationName(strings.TrimSuffix(name, "]"))
	}
	return tool.Ignored
}

// seconds reads "1441812279.474 (seconds since epoch), …".
func seconds(text string) series.Optional[float64] {
	number, _, _ := strings.Cut(text, " ")
	v, ok := decimal.Parse([]byte(strings.TrimSuffix(number, "]")), 0)
	return series.Optional[float64]{Value: v, Known: ok}
}

// began returns when an interval began on the wall clock. Like HistogramLogReader it takes the time
// as relative to BaseTime or, without one, relative to StartTime if it is more than a year before
// it. The result is zero if it is not in this century.
func (p *parser) began(beginning float64) time.Time {
	const year = 365 * 24 * 3600.0
	at := beginning
	switch {
	case p.base.Known:
		at += p.base.Value
	case p.logged.Known && beginning < p.logged.Value-year:
		at += p.logged.Value
	}
	if at < 30*year || at > 130*year {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Round(at * 1e6)))
}

// unnamed matches what names of operations do not have.
var unnamed = regexp.MustCompile(`[^a-z0-9]`)

// operationName derives the name of an operation from a tag.
func operationName(s string) string {
	s = unnamed.ReplaceAllString(strings.ToLower(s[:min(len(s), scan.MaxName)]), "_")
	if s = strings.Trim(s, "_"); s == "" || s == tool.ErrorCount {
		return tool.Transaction
	}
	return s
}

// interval reads `Tag=A,0.127,1.007,2.769,HISTFAAAA…`: start, length, maximum and histogram of an
// interval.
func (p *parser) interval(text []byte, emit func(*tool.Report)) tool.Verdict {
	tag, isTagged := []byte(nil), false
	if rest, ok := bytes.CutPrefix(text, []byte("Tag=")); ok {
		if tag, text, isTagged = bytes.Cut(rest, []byte(",")); !isTagged {
			return tool.Malformed
		}
	}
	columns := bytes.SplitN(text, []byte(","), 4)
	if len(columns) != 4 {
		return tool.Ignored
	}
	begin, ok1 := decimal.Parse(columns[0], 0)
	length, ok2 := decimal.Parse(columns[1], 0)
	if !ok1 || !ok2 {
		return tool.Ignored
	}
	bars, err := decode(columns[3])
	if err != nil || !(begin >= 0) || !(length >= 0) || length > 1e9 {
		return tool.Malformed
	}
	p.begin()
	p.start(p.began(begin), emit)
	name := p.name
	if isTagged {
		name = operationName(string(tag))
	}
	t := p.tag(name)
	if t == nil {
		return tool.Malformed
	}
	r := &p.report
	r.Reset(tool.Histogram, p.run)
	h := p.histogram(bars)
	r.AddBuckets(h)
	if len(h.Buckets())+len(t.sum.Buckets()) > maxBuckets {
		return tool.Malformed
	}
	if !p.from.Known {
		// An absolute time, or the time of a process that started its log later.
		p.from = series.Some(begin)
	}
	end := begin - p.from.Value + length
	if end < 0 {
		return tool.Malformed // before the first line
	}
	t.sum = histogram.Merge(t.sum, h)
	r.Operation = name
	r.ElapsedSeconds, r.IntervalSeconds = series.Some(round(end)), series.Some(length)
	if len(r.Buckets) > 0 {
		emit(r)
	}
	p.intervals++
	if !isTagged && end >= p.elapsed {
		p.emitInterval(name, h, end, length, emit)
	}
	p.elapsed = max(p.elapsed, end)
	return tool.Reported
}

// histogram returns the bars in seconds.
func (p *parser) histogram(bars []bar) *histogram.Histogram {
	buckets := make([]histogram.Bucket, len(bars))
	for i, b := range bars {
		buckets[i] = histogram.Bucket{Low: histogram.Seconds(b.low, p.unit), High: histogram.Seconds(b.high, p.unit), N: b.n}
	}
	return histogram.New(buckets...)
}

func round(seconds float64) float64 { return math.Round(seconds*1e6) / 1e6 }

func (p *parser) start(began time.Time, emit func(*tool.Report)) {
	if p.started {
		return
	}
	p.started = true
	p.report.Reset(tool.Start, p.run)
	p.report.Tool, p.report.Began = Name, began
	emit(&p.report)
}

// tag returns the totals of an operation, nil if there are too many operations.
func (p *parser) tag(name string) *tagged {
	for _, t := range p.tags {
		if t.operation == name {
			return t
		}
	}
	if len(p.tags) == maxTags {
		return nil
	}
	t := &tagged{operation: name}
	p.tags = append(p.tags, t)
	return t
}

func (p *parser) emitInterval(name string, h *histogram.Histogram, end, length float64, emit func(*tool.Report)) {
	r := &p.report
	r.Reset(tool.Interval, p.run)
	r.Phase = tool.Measure
	r.ElapsedSeconds, r.IntervalSeconds = series.Some(round(end)), series.Some(length)
	n := h.Count()
	names := []string{tool.Transaction}
	if name != tool.Transaction {
		names = append(names, name)
	}
	for _, name := range names {
		r.AddCountOver(name, n, length)
	}
	addLatencies(r, name, h)
	emit(r)
}

// addLatencies adds the bounds of buckets, since the log contains nothing more exact.
func addLatencies(r *tool.Report, name string, h *histogram.Histogram) {
	all := h.Buckets()
	if len(all) == 0 {
		return
	}
	highest, _ := h.Quantile(1)
	r.AddLatency(name, "min", all[0].Low)
	r.AddPercentiles(name, h, highest.High)
	r.AddRange(name, "max", highest)
}

// Close implements tool.Parser. It reports the totals of the intervals.
func (p *parser) Close(emit func(*tool.Report)) {
	if p.intervals == 0 {
		return
	}
	r := &p.report
	total := uint64(0)
	for _, t := range p.tags {
		total += t.sum.Count()
		if t.sum.Count() == 0 {
			continue
		}
		r.Reset(tool.Histogram, p.run)
		r.Operation, r.Cumulative = t.operation, true
		r.AddBuckets(t.sum)
		emit(r)
	}
	r.Reset(tool.Summary, p.run)
	r.ElapsedSeconds = series.Some(round(p.elapsed))
	r.AddCountOver(tool.Transaction, total, p.elapsed)
	for _, t := range p.tags {
		if t.operation != tool.Transaction {
			r.AddCountOver(t.operation, t.sum.Count(), p.elapsed)
		}
		addLatencies(r, t.operation, t.sum)
	}
	emit(r)
	p.intervals = 0
}

// bar counts whole numbers between low and high, both included.
type bar struct {
	low, high int64
	n         uint64
}

var errEncoding = errors.New("not a histogram in HdrHistogram's encoding V1 or V2")

// decode reads the last column of a log line.
func decode(text []byte) ([]bar, error) {
	if len(text) < 8 || !bytes.HasPrefix(text, []byte("HIST")) {
		return nil, errEncoding
	}
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil || len(raw) < 8 {
		return nil, errEncoding
	}
	if cookie := binary.BigEndian.Uint32(raw); cookie&^0xf0 == compressedV1 {
		return decodeV1(raw[8:])
	}
	h, err := hdrhistogram.Decode(text)
	if err != nil {
		return nil, err //nolint:wrapcheck // of a line that is Malformed whatever it says
	}
	var bars []bar
	for _, b := range h.Distribution() {
		if b.Count > 0 {
			bars = append(bars, bar{b.From, b.To, uint64(b.Count)})
		}
	}
	return bars, nil
}

// Encoding V1, written by HdrHistogram 2.1.0 to 2.1.8 (AbstractHistogram.java), which the library
// does not read. The cookie gives the size of the counts.
const (
	compressedV1, plainV1 = 0x1c849302, 0x1c849301
	headerV1              = 40
	maxPayload            = 16 << 20
)

func decodeV1(compressed []byte) ([]bar, error) {
	z, err := zlib.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, errEncoding
	}
	data, err := io.ReadAll(io.LimitReader(z, headerV1+maxPayload))
	if err != nil || len(data) < headerV1 || binary.BigEndian.Uint32(data)&^0xf0 != plainV1 {
		return nil, errEncoding
	}
	word := int(binary.BigEndian.Uint32(data)&0xf0) >> 4
	length, digits := int(int32(binary.BigEndian.Uint32(data[4:]))), binary.BigEndian.Uint32(data[12:])
	lowest := int64(binary.BigEndian.Uint64(data[16:]))
	payload := data[headerV1:]
	if word != 2 && word != 4 && word != 8 || length < 0 || length > len(payload) || digits > 5 || lowest < 1 {
		return nil, errEncoding
	}
	// The layout: each further bucket has half as many values, twice as wide.
	unit := int(math.Floor(math.Log2(float64(lowest))))
	half := int(math.Ceil(math.Log2(2*math.Pow10(int(digits))))) - 1
	var bars []bar
	for i := 0; (i+1)*word <= length; i++ {
		var n uint64
		switch at := payload[i*word:]; word {
		case 2:
			n = uint64(binary.BigEndian.Uint16(at))
		case 4:
			n = uint64(binary.BigEndian.Uint32(at))
		default:
			n = binary.BigEndian.Uint64(at)
		}
		if n == 0 {
			continue
		}
		bucket, sub := i>>half-1, i&(1<<half-1)+1<<half
		if bucket < 0 {
			bucket, sub = 0, sub-1<<half
		}
		shift := bucket + unit
		if shift+half+1 > 62 || n > math.MaxInt64 {
			return nil, errEncoding
		}
		low := int64(sub) << shift
		bars = append(bars, bar{low, low + 1<<shift - 1, n})
	}
	return bars, nil
}
