package ycsb

import (
	"bytes"
	"regexp"

	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// figure is one object of the JSON exporters: {"metric" : "READ",
// "measurement" : "Operations", "value" : 2517}. Jackson spreads it over five
// lines; on one line it reads the same.
type figure struct {
	metric, measurement []byte
}

const maxFigure = 256

// member matches a key with its value: a text without escapes, or a number.
var member = regexp.MustCompile(`"(metric|measurement|value)"[ \t]*:[ \t]*(?:"([^"\\]*)"|([^",} \t][^,} \t]*))`)

// isJSON reports whether text may be a line of a JSON summary.
func isJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t")
	if len(text) == 0 {
		return false
	}
	switch text[0] {
	case '"':
		return scan.HasAnyPrefix(text, `"metric"`, `"measurement"`, `"value"`)
	case '{', '}', '[', ']', ',':
		return scan.Only(text, "{}[], \t") || scan.ContainsAny(text, `"metric"`)
	}
	return false
}

// read reads the keys of text in their order and calls take for each complete figure. It returns false at anything else
// in quotes.
func (f *figure) read(text []byte, take func(metric, measurement, value []byte)) bool {
	at := 0
	for _, m := range member.FindAllSubmatchIndex(text, -1) {
		if bytes.IndexByte(text[at:m[0]], '"') >= 0 {
			return false
		}
		at = m[1]
		value := text[max(m[4], m[6]):max(m[5], m[7])]
		switch key := text[m[2]]; {
		case key == 'v' && len(f.metric) > 0 && len(f.measurement) > 0:
			take(f.metric, f.measurement, value)
			f.metric, f.measurement = f.metric[:0], f.measurement[:0]
		case key == 'v' || len(value) == 0 || len(value) > maxFigure:
			return false
		case m[3]-m[2] == len("metric"):
			f.metric = append(f.metric[:0], value...)
		default:
			f.measurement = append(f.measurement[:0], value...)
		}
	}
	return bytes.IndexByte(text[at:], '"') < 0
}
