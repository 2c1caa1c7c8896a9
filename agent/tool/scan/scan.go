// Package scan reads a line of a tool's output from left to right, without
// allocating. A parser of a line is one expression of its parts:
//
//	l := scan.Line(text)
//	ok := l.Literal("trx: ") && count(&l) && l.Literal(", 95%: ") && …
package scan

import (
	"bytes"
	"math"
	"strconv"

	"github.com/benchwatch/benchwatch/agent/tool/decimal"
)

// Line is the rest of a line. Its methods take from its beginning; a method that
// returns false took nothing.
type Line []byte

// HasPrefix reports whether text begins with prefix.
func HasPrefix(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && string(text[:len(prefix)]) == prefix
}

// Next returns the next byte without taking it, 0 at the end.
func (l Line) Next() byte {
	if len(l) == 0 {
		return 0
	}
	return l[0]
}

// Literal takes exactly text.
func (l *Line) Literal(text string) bool {
	if !HasPrefix(*l, text) {
		return false
	}
	*l = (*l)[len(text):]
	return true
}

// Blanks takes spaces and tabs, or nothing.
func (l *Line) Blanks() {
	i := 0
	for i < len(*l) && ((*l)[i] == ' ' || (*l)[i] == '\t') {
		i++
	}
	*l = (*l)[i:]
}

// Until takes everything up to text, and text; it returns what is before text.
func (l *Line) Until(text string) ([]byte, bool) {
	i := bytes.Index(*l, []byte(text))
	if i < 0 {
		return nil, false
	}
	before := (*l)[:i]
	*l = (*l)[i+len(text):]
	return before, true
}

// Quoted takes a JSON string without escapes and returns what is between the
// quotes.
func (l *Line) Quoted() ([]byte, bool) {
	rest := *l
	if !rest.Literal(`"`) {
		return nil, false
	}
	text, ok := rest.Until(`"`)
	if !ok || bytes.IndexByte(text, '\\') >= 0 {
		return nil, false
	}
	*l = rest
	return text, true
}

// Cells appends the cells of a table's row, "| a | b |", to dst, without the
// blanks around them; false if text is none or has more than most cells.
func Cells(dst [][]byte, text []byte, most int) ([][]byte, bool) {
	n := len(text)
	if n < 3 || text[0] != '|' || text[n-1] != '|' {
		return dst, false
	}
	for cell := range bytes.SplitSeq(text[1:n-1], []byte("|")) {
		if len(dst) == most {
			return dst, false
		}
		dst = append(dst, bytes.TrimSpace(cell))
	}
	return dst, true
}

// End reports whether nothing but blanks is left.
func (l Line) End() bool {
	l.Blanks()
	return len(l) == 0
}

// Count takes a whole number.
func (l *Line) Count() (uint64, bool) {
	n, i := uint64(0), 0
	for ; i < len(*l); i++ {
		d := uint64((*l)[i]) - '0'
		if d > 9 {
			break
		}
		if n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	if i == 0 {
		return 0, false
	}
	*l = (*l)[i:]
	return n, true
}

// Int takes a whole number up to [math.MaxInt32], which may have blanks before
// it. What is larger is damaged, such as a negative number printed as unsigned.
func (l *Line) Int() (int, bool) {
	rest := *l
	rest.Blanks()
	n, ok := rest.Count()
	if !ok || n > math.MaxInt32 {
		return 0, false
	}
	*l = rest
	return int(n), true
}

// maxDigits bounds a number of Fixed. What C prints with %f for a number out of
// range has up to 310 digits.
const maxDigits = 30

var powersOfTen = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11}

// Fixed takes a number with exactly so many decimals, as C's %f prints it, which
// may have blanks before it, and returns it divided by 10^shift. The division is
// done once, on the whole digits, so that 1.04 ms becomes the float64 next to
// 0.00104. What C prints for not a number and infinity is accepted as NaN: the
// tool has no value there.
func (l *Line) Fixed(places, shift int) (float64, bool) {
	b, i := *l, 0
	for i < len(b) && b[i] == ' ' {
		i++
	}
	start, n := i, uint64(0)
	for i < len(b) && b[i]-'0' <= 9 {
		n = n*10 + uint64(b[i]-'0')
		i++
	}
	if i == start {
		b = b[i:]
		if b.NotANumber() {
			*l = b
			return math.NaN(), true
		}
		return 0, false
	}
	point := i
	if point == len(b) || b[point] != '.' {
		return 0, false
	}
	for i++; i < len(b) && b[i]-'0' <= 9; i++ {
		n = n*10 + uint64(b[i]-'0')
	}
	digits := i - start - 1
	if i-point-1 != places || digits > maxDigits {
		return 0, false
	}
	v := float64(n) / powersOfTen[places+shift]
	if digits > 15 { // n is not exact
		var err error
		if v, err = strconv.ParseFloat(string(b[start:i])+"e-"+strconv.Itoa(shift), 64); err != nil {
			return 0, false
		}
	}
	*l = b[i:]
	return v, true
}

// Number takes a number with decimals and returns it times 10^shift, and how
// many decimals it has. An exponent is not part of it.
func (l *Line) Number(shift int) (v float64, decimals int, ok bool) {
	i, point := 0, -1
	for ; i < len(*l); i++ {
		c := (*l)[i]
		if c == '.' && point < 0 {
			point = i
		} else if c < '0' || c > '9' {
			break
		}
	}
	if i == 0 || point == 0 || point == i-1 {
		return 0, 0, false
	}
	if v, ok = decimal.Parse((*l)[:i], shift); !ok {
		return 0, 0, false
	}
	if point >= 0 {
		decimals = i - point - 1
	}
	*l = (*l)[i:]
	return v, decimals, true
}

// NotANumber takes what C prints for a value that is none: nan, -nan, inf.
func (l *Line) NotANumber() bool {
	for _, text := range [...]string{"nan", "-nan", "inf", "-inf"} {
		if l.Literal(text) {
			return true
		}
	}
	return false
}
