package sysbench

import (
	"bytes"
	"strconv"

	"github.com/benchwatch/benchwatch/agent/tool/scan"
)

// count takes a whole number, which may have blanks before it.
func count(s *scan.Line) (uint64, bool) {
	s.Blanks()
	return s.Count()
}

// percentile takes a percentile such as 95 or 99.90 and returns its name, such as
// p95 or p99.9; it is "p0" when the percentile is off.
func (p *Parser) percentile(s *scan.Line) (string, bool) {
	s.Blanks()
	n := 0
	for n < len(*s) && ((*s)[n]-'0' <= 9 || (*s)[n] == '.') {
		n++
	}
	stat, ok := p.names.name((*s)[:n])
	*s = (*s)[n:]
	return stat, ok
}

// percentileNames makes names of percentiles. It remembers the last one, since a
// run has only one.
type percentileNames struct {
	text []byte
	last string
}

func (p *percentileNames) name(text []byte) (string, bool) {
	if p.last != "" && bytes.Equal(p.text, text) {
		return p.last, true
	}
	if len(text) > 8 {
		return "", false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(v >= 0 && v <= 100) || text[0] == '.' || text[len(text)-1] == '.' {
		return "", false
	}
	p.text = append(p.text[:0], text...)
	p.last = percentileName(v)
	return p.last, true
}

func percentileName(percent float64) string { return "p" + strconv.FormatFloat(percent, 'f', -1, 64) }
