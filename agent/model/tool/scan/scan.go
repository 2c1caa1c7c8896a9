// Package scan reads a line of a tool's output from left to right, without
// allocating. A parser of a line is one expression of its parts:
//
//	l := scan.New(text)
//	ok := l.Literal("trx: ") && count(&l) && l.Literal(", 95%: ") && …
package scan

import (
	"math"
	"strconv"

	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
)

// Line is a line and how far it was read. Its methods take from there; a method
// that returns false took nothing.
type Line struct {
	text []byte
	at   int // an index: to move a slice costs a write barrier while memory is collected
}

// New returns the line text, of which nothing was read.
func New(text []byte) Line { return Line{text: text} }

// Rest returns what was not taken.
func (l *Line) Rest() []byte { return l.text[l.at:] }

// Skip takes n bytes.
func (l *Line) Skip(n int) { l.at += n }

// HasPrefix reports whether text begins with prefix.
func HasPrefix(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && string(text[:len(prefix)]) == prefix
}

// Next returns the next byte without taking it, 0 at the end.
func (l *Line) Next() byte {
	if l.at == len(l.text) {
		return 0
	}
	return l.text[l.at]
}

// Literal takes exactly text.
func (l *Line) Literal(text string) bool {
	if !HasPrefix(l.text[l.at:], text) {
		return false
	}
	l.at += len(text)
	return true
}

// Blanks takes spaces and tabs, or nothing.
func (l *Line) Blanks() {
	for l.at < len(l.text) && (l.text[l.at] == ' ' || l.text[l.at] == '\t') {
		l.at++
	}
}

// Until takes everything up to text, which is not empty, and text; it returns what is before text.
func (l *Line) Until(text string) ([]byte, bool) {
	// What is looked for is near: a loop is quicker than package bytes.
	rest, first := l.text[l.at:], text[0]
	for i, c := range rest {
		if c == first && HasPrefix(rest[i:], text) {
			l.at += i + len(text)
			return rest[:i], true
		}
	}
	return nil, false
}

// Quoted takes a JSON string without escapes and returns what is between the
// quotes.
func (l *Line) Quoted() ([]byte, bool) {
	if l.Next() != '"' {
		return nil, false
	}
	rest := l.text[l.at+1:]
	for i, c := range rest {
		if c == '"' {
			l.at += i + 2
			return rest[:i], true
		}
		if c == '\\' {
			break
		}
	}
	return nil, false
}

// End reports whether nothing but blanks is left.
func (l Line) End() bool {
	l.Blanks()
	return l.at == len(l.text)
}

// Count takes a whole number.
func (l *Line) Count() (uint64, bool) {
	n, i := uint64(0), l.at
	for ; i < len(l.text); i++ {
		d := uint64(l.text[i]) - '0'
		if d > 9 {
			break
		}
		if n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	ok := i > l.at
	l.at = i
	return n, ok
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
	b, i := l.text, l.at
	for i < len(b) && b[i] == ' ' {
		i++
	}
	start, n := i, uint64(0)
	for i < len(b) && b[i]-'0' <= 9 {
		n = n*10 + uint64(b[i]-'0')
		i++
	}
	if i == start {
		number := Line{b, i}
		if !number.NotANumber() {
			return 0, false
		}
		l.at = number.at
		return math.NaN(), true
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
	l.at = i
	return v, true
}

// Number takes a number with decimals and returns it times 10^shift, and how
// many decimals it has. An exponent is not part of it.
func (l *Line) Number(shift int) (v float64, decimals int, ok bool) {
	text := l.Rest()
	i, point := 0, -1
	for ; i < len(text); i++ {
		c := text[i]
		if c == '.' && point < 0 {
			point = i
		} else if c < '0' || c > '9' {
			break
		}
	}
	if i == 0 || point == 0 || point == i-1 {
		return 0, 0, false
	}
	if v, ok = decimal.Parse(text[:i], shift); !ok {
		return 0, 0, false
	}
	if point >= 0 {
		decimals = i - point - 1
	}
	l.at += i
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
