package sysbench

import (
	"bytes"
	"math"
	"strconv"
)

// scanner reads one line from left to right. Its methods return false, and may
// have moved, when the line goes on with something else.
type scanner struct {
	b []byte
	i int
}

// lit takes exactly t.
func (s *scanner) lit(t string) bool {
	if len(s.b)-s.i < len(t) || string(s.b[s.i:s.i+len(t)]) != t {
		return false
	}
	s.i += len(t)
	return true
}

// begins reports whether text begins with prefix.
func begins(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && string(text[:len(prefix)]) == prefix
}

// spaces skips blanks.
func (s *scanner) spaces() {
	for s.i < len(s.b) && s.b[s.i] == ' ' {
		s.i++
	}
}

// end reports whether only blanks are left.
func (s *scanner) end() bool {
	for i := s.i; i < len(s.b); i++ {
		if c := s.b[i]; c != ' ' && c != '\t' {
			return false
		}
	}
	return true
}

// next returns the next byte without taking it, 0 at the end.
func (s *scanner) next() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// count takes a whole number, which may have blanks before it.
func (s *scanner) count() (uint64, bool) {
	s.spaces()
	start, n := s.i, uint64(0)
	for ; s.i < len(s.b); s.i++ {
		d := uint64(s.b[s.i]) - '0'
		if d > 9 {
			break
		}
		if n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, s.i > start
}

// maxSmall bounds threads, queue lengths and seconds: what is beyond it is a
// damaged number (a negative one printed as unsigned, for example).
const maxSmall = math.MaxInt32

// small takes a whole number up to maxSmall.
func (s *scanner) small() (int, bool) {
	n, ok := s.count()
	return int(n), ok && n <= maxSmall
}

// maxDigits bounds a number with decimals. sysbench prints with %f, so that a
// number out of range is a long one; it never prints an exponent.
const maxDigits = 30

var powersOfTen = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11}

// decimal takes a number with exactly so many decimals, blanks before it
// allowed, and returns it divided by 10^shift. The division is done once, on the
// whole digits, so that 1.04 ms becomes the float64 next to 0.00104. Not a number
// and infinity, as printed by C, are accepted and come out as NaN: the tool said
// nothing there.
func (s *scanner) decimal(places, shift int) (float64, bool) {
	s.spaces()
	start, n, digits := s.i, uint64(0), 0
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		n = n*10 + uint64(s.b[s.i]-'0')
		s.i++
		digits++
	}
	if digits == 0 {
		return s.undefined()
	}
	if !s.lit(".") {
		return 0, false
	}
	point := s.i
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		n = n*10 + uint64(s.b[s.i]-'0')
		s.i++
		digits++
	}
	if s.i-point != places || digits > maxDigits {
		return 0, false
	}
	if digits <= 15 {
		return float64(n) / powersOfTen[places+shift], true
	}
	v, err := strconv.ParseFloat(string(s.b[start:s.i])+"e-"+strconv.Itoa(shift), 64)
	return v, err == nil
}

// undefined takes what C prints for not a number and infinity.
func (s *scanner) undefined() (float64, bool) {
	s.lit("-")
	return math.NaN(), s.lit("nan") || s.lit("inf")
}

// percentile takes P as in 95 or 99.90 and returns its name, such as p95 or
// p99.9; it is "p0" when the percentile is off.
func (s *scanner) percentile(names *percentileNames) (string, bool) {
	s.spaces()
	start := s.i
	for s.i < len(s.b) && (s.b[s.i]-'0' <= 9 || s.b[s.i] == '.') {
		s.i++
	}
	return names.name(s.b[start:s.i])
}

// percentileNames makes names of percentiles and remembers the last one, as a
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
