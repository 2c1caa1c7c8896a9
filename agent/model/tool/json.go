package tool

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// AppendJSON appends r to dst as one JSON object on one line, without a line end, in the form of
// `benchwatch parse`. Absent values have no key; maps keep the order in which the parser added
// entries.
func AppendJSON(dst []byte, r *Report) []byte {
	o := object{dst: append(dst, '{')}
	o.text("kind", string(r.Kind))
	o.integer("run", int64(r.Run))
	o.text("tool", r.Tool)
	o.text("tool_version", r.Version)
	o.text("workload", r.Workload)
	o.text("command", r.Command)
	o.labels(r.Labels)
	o.number("elapsed_seconds", r.ElapsedSeconds)
	o.number("interval_seconds", r.IntervalSeconds)
	o.optionalInteger("threads", r.Threads)
	o.text("phase", string(r.Phase))
	if r.Kind == Summary {
		o.boolean("checkpoint", r.Checkpoint)
	}
	if r.Kind == Histogram {
		o.text("op", r.Operation)
		o.boolean("cumulative", r.Cumulative)
		o.buckets(r.Buckets)
	}
	o.rates(r.Rates)
	o.counts(r.Counts)
	o.latencies("latency_seconds", r.Latencies)
	o.latencies("latency_within_seconds", r.Within)
	for _, n := range numbers {
		o.number(n.ID, r.Values.Of(n.Measure))
	}
	if r.Failed {
		o.boolean("failed", true)
	}
	o.text("message", r.Message)
	return append(o.dst, '}')
}

// object is a JSON object under construction.
type object struct {
	dst   []byte
	comma bool
}

func (o *object) key(name string) {
	if o.comma {
		o.dst = append(o.dst, ',')
	}
	o.comma = true
	o.dst = append(appendString(o.dst, name), ':')
}

func (o *object) text(name, v string) {
	if v != "" {
		o.key(name)
		o.dst = appendString(o.dst, v)
	}
}

func (o *object) labels(all []Label) {
	if len(all) == 0 {
		return
	}
	o.key("labels")
	labels := object{dst: append(o.dst, '{')}
	for _, l := range all {
		labels.text(l.Name, l.Value)
	}
	o.dst = append(labels.dst, '}')
}

func (o *object) integer(name string, v int64) {
	o.key(name)
	o.dst = strconv.AppendInt(o.dst, v, 10)
}

func (o *object) optionalInteger(name string, v series.Optional[int]) {
	if v.Known {
		o.integer(name, int64(v.Value))
	}
}

func (o *object) boolean(name string, v bool) {
	o.key(name)
	o.dst = strconv.AppendBool(o.dst, v)
}

func (o *object) number(name string, v series.Optional[float64]) {
	if v.Known && finite(v.Value) {
		o.key(name)
		o.dst = appendNumber(o.dst, v.Value)
	}
}

// open begins a nested object; shut ends it.
func (o *object) open(name string) object {
	o.key(name)
	return object{dst: append(o.dst, '{')}
}

func (o *object) shut(inner object) { o.dst = append(inner.dst, '}') }

func (o *object) rates(rates []Rate) {
	if !slices.ContainsFunc(rates, Rate.isFinite) {
		return
	}
	in := o.open("rates")
	for i, r := range rates {
		same := func(b Rate) bool { return b.isFinite() && b.Operation == r.Operation }
		if r.isFinite() && !slices.ContainsFunc(rates[:i], same) {
			in.number(r.Operation, series.Some(r.PerSecond))
		}
	}
	o.shut(in)
}

// buckets appends pairs: [upper bound or null, count].
func (o *object) buckets(buckets []Bucket) {
	o.key("buckets")
	o.dst = append(o.dst, '[')
	for i, b := range buckets {
		if i > 0 {
			o.dst = append(o.dst, ',')
		}
		o.dst = append(o.dst, '[')
		if finite(b.Bound) {
			o.dst = appendNumber(o.dst, b.Bound)
		} else {
			o.dst = append(o.dst, "null"...)
		}
		o.dst = strconv.AppendUint(append(o.dst, ','), b.N, 10)
		o.dst = append(o.dst, ']')
	}
	o.dst = append(o.dst, ']')
}

func (o *object) counts(counts []Count) {
	if len(counts) == 0 {
		return
	}
	in := o.open("counts")
	for i, c := range counts {
		if !slices.ContainsFunc(counts[:i], func(b Count) bool { return b.Operation == c.Operation }) {
			in.key(c.Operation)
			in.dst = strconv.AppendUint(in.dst, c.N, 10)
		}
	}
	o.shut(in)
}

func (o *object) latencies(name string, all []Latency) {
	if !slices.ContainsFunc(all, Latency.isFinite) {
		return
	}
	operations := o.open(name)
	for i, first := range all {
		same := func(b Latency) bool { return b.isFinite() && b.Operation == first.Operation }
		if !first.isFinite() || slices.ContainsFunc(all[:i], same) {
			continue
		}
		stats := operations.open(first.Operation)
		for j, l := range all[i:] {
			if same(l) && !slices.ContainsFunc(all[i:i+j], func(b Latency) bool { return same(b) && b.Stat == l.Stat }) {
				stats.number(l.Stat, series.Some(l.Seconds))
			}
		}
		operations.shut(stats)
	}
	o.shut(operations)
}

func (r Rate) isFinite() bool { return finite(r.PerSecond) }

func (l Latency) isFinite() bool { return finite(l.Seconds) }

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// appendNumber writes the shortest decimal that reads back as v.
func appendNumber(dst []byte, v float64) []byte {
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, v, format, -1, 64)
}

func appendString(dst []byte, s string) []byte {
	if plain(s) {
		dst = append(dst, '"')
		dst = append(dst, s...)
		return append(dst, '"')
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// Encoding a string never fails; the encoder ends it with a newline.
	_ = e.Encode(s)
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// plain reports whether s needs no escaping.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
