// Package properties reads Java property files, which contain the workloads of YCSB and go-ycsb.
package properties

import (
	"strconv"
	"strings"
)

// MaxSize is the number of bytes read from a file. A real workload has some hundred.
const MaxSize = 1 << 20

// Each calls set for every property in text, in order, so that later ones win. The format is
// java.util.Properties: comments with # or !, the separators = and : and blank, continued lines,
// \uXXXX. It skips other lines.
func Each(text string, set func(key, value string)) {
	if len(text) > MaxSize {
		text = text[:MaxSize]
	}
	for len(text) > 0 {
		var line string
		line, text = logicalLine(text)
		if line == "" {
			continue
		}
		end := keyEnd(line)
		value := strings.TrimLeft(line[end:], " \t\f")
		if value != "" && (value[0] == '=' || value[0] == ':') {
			value = strings.TrimLeft(value[1:], " \t\f")
		}
		if key := unescape(line[:end]); key != "" {
			set(key, unescape(value))
		}
	}
}

// logicalLine joins a line with its continuation lines; comments and blank lines become empty.
func logicalLine(text string) (line, rest string) {
	var b strings.Builder
	for first := true; ; first = false {
		natural, after := text, ""
		if i := strings.IndexAny(text, "\r\n"); i >= 0 {
			natural, after = text[:i], strings.TrimPrefix(text[i:], "\r")
			after = strings.TrimPrefix(after, "\n")
		}
		natural = strings.TrimLeft(natural, " \t\f")
		if first && (natural == "" || natural[0] == '#' || natural[0] == '!') {
			return "", after
		}
		if !continued(natural) {
			b.WriteString(natural)
			return b.String(), after
		}
		b.WriteString(natural[:len(natural)-1])
		if after == "" {
			return b.String(), ""
		}
		text = after
	}
}

// continued reports whether line ends in an odd number of backslashes.
func continued(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

func keyEnd(line string) int {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '=', ':', ' ', '\t', '\f':
			return i
		}
	}
	return len(line)
}

func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			if i+4 < len(s) {
				if r, err := strconv.ParseUint(s[i+1:i+5], 16, 32); err == nil {
					b.WriteRune(rune(r))
					i += 4
				}
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
