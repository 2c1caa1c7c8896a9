package ycsb

import "bytes"

// figure is one object of the JSON exporters: {"metric" : "READ",
// "measurement" : "Operations", "value" : 2517}. Jackson spreads it over five
// lines; on one line it reads the same.
type figure struct {
	metric, measurement []byte
}

const maxFigure = 256

var (
	metricKey      = []byte(`"metric"`)
	measurementKey = []byte(`"measurement"`)
	valueKey       = []byte(`"value"`)
)

// isJSON reports whether text may be a line of a JSON summary.
func isJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t")
	if len(text) == 0 {
		return false
	}
	switch text[0] {
	case '"':
		return bytes.HasPrefix(text, metricKey) || bytes.HasPrefix(text, measurementKey) || bytes.HasPrefix(text, valueKey)
	case '{', '}', '[', ']', ',':
		return bytes.Trim(text, "{}[], \t") == nil || len(bytes.Trim(text, "{}[], \t")) == 0 || bytes.Contains(text, metricKey)
	}
	return false
}

// read reads the keys of text in their order and calls take for each complete figure.
func (f *figure) read(text []byte, take func(metric, measurement, value []byte)) (ok bool) {
	for {
		i := bytes.IndexByte(text, '"')
		if i < 0 {
			return true
		}
		text = text[i:]
		var key []byte
		for _, k := range [...][]byte{metricKey, measurementKey, valueKey} {
			if bytes.HasPrefix(text, k) {
				key = k
			}
		}
		if key == nil {
			return false
		}
		text = bytes.TrimLeft(text[len(key):], " \t")
		if len(text) == 0 || text[0] != ':' {
			return false
		}
		var value []byte
		if value, text, ok = scalar(bytes.TrimLeft(text[1:], " \t")); !ok {
			return false
		}
		switch key[1] {
		case 'v':
			if len(f.metric) == 0 || len(f.measurement) == 0 {
				return false
			}
			take(f.metric, f.measurement, value)
			f.metric, f.measurement = f.metric[:0], f.measurement[:0]
		default:
			if len(value) == 0 || len(value) > maxFigure {
				return false
			}
			if string(key) == string(metricKey) {
				f.metric = append(f.metric[:0], value...)
			} else {
				f.measurement = append(f.measurement[:0], value...)
			}
		}
	}
}

// scalar splits off a string without escapes, or a number, from text.
func scalar(text []byte) (value, rest []byte, ok bool) {
	if len(text) > 0 && text[0] == '"' {
		end := bytes.IndexByte(text[1:], '"')
		if end < 0 {
			return nil, nil, false
		}
		value, rest = text[1:1+end], text[2+end:]
		return value, rest, bytes.IndexByte(value, '\\') < 0
	}
	end := bytes.IndexAny(text, ",} \t")
	if end < 0 {
		end = len(text)
	}
	return text[:end], text[end:], end > 0
}
