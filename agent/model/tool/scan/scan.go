// Package scan reads a line of a tool's output from left to right, without
// allocating. A parser of a line is one expression of its parts:
//
//	l := scan.New(text)
//	ok := l.Literal("trx: ") && count(&l) && l.Literal(", 95%: ") && …
package scan

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/prefix"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
)

// Line is a line and the position up to which it was read. Methods read from there; a method that
// returns false has read nothing.
type Line struct {
	text []byte
	at   int // an index, since moving a slice costs a write barrier during garbage collection
}

// New returns text as an unread line.
func New(text []byte) Line { return Line{text: text} }

// Rest returns the unread part.
func (l *Line) Rest() []byte { return l.text[l.at:] }

// Skip skips n bytes.
func (l *Line) Skip(n int) { l.at += n }

// HasPrefix reports whether text begins with prefix.
func HasPrefix(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && string(text[:len(prefix)]) == prefix
}

// TrimEnd returns text without the blanks and carriage returns at its end.
func TrimEnd(text []byte) []byte {
	n := len(text)
	for n > 0 && (text[n-1] == ' ' || text[n-1] == '\r') {
		n--
	}
	return text[:n]
}

// TrimStart returns text without the blanks and carriage returns at its beginning.
func TrimStart(text []byte) []byte {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\r') {
		text = text[1:]
	}
	return text
}

// HasAnyPrefix reports whether text begins with one of prefixes.
func HasAnyPrefix(text []byte, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return HasPrefix(text, prefix) })
}

// ContainsAny reports whether text contains one of parts.
func ContainsAny(text []byte, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return bytes.Contains(text, []byte(part)) })
}

// Classes of characters in names.
const (
	Digits  = "0123456789"
	Capital = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	Small   = "abcdefghijklmnopqrstuvwxyz"
)

// Only reports whether text has only these characters, and at least one.
func Only[T string | []byte](text T, characters string) bool {
	return len(text) > 0 && strings.Trim(string(text), characters) == ""
}

// Next returns the next byte without reading it, 0 at the end.
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

// Until reads up to and including text, which must not be empty. It returns the part before text.
func (l *Line) Until(text string) ([]byte, bool) {
	// The text is usually near: a loop is faster than package bytes.
	rest, first := l.text[l.at:], text[0]
	for i, c := range rest {
		if c == first && HasPrefix(rest[i:], text) {
			l.at += i + len(text)
			return rest[:i], true
		}
	}
	return nil, false
}

// Quoted reads a JSON string without escapes and returns the text between the quotes.
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

// End reports whether only blanks are left, or blanks and a remark of the person who kept the line.
func (l Line) End() bool {
	from := l.at
	l.Blanks()
	return l.at == len(l.text) || l.at > from && prefix.IsRemark(l.text[l.at:])
}

// Count reads a whole number.
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

// CountTo is Count that sets n.
func (l *Line) CountTo(n *uint64) (ok bool) {
	*n, ok = l.Count()
	return ok
}

// IntTo is Int that sets n.
func (l *Line) IntTo(n *int) (ok bool) {
	*n, ok = l.Int()
	return ok
}

// FixedTo is Fixed that sets v.
func (l *Line) FixedTo(v *float64, places, shift int) (ok bool) {
	*v, ok = l.Fixed(places, shift)
	return ok
}

// Int reads a whole number up to [math.MaxInt32], after optional blanks. Larger numbers are
// damaged, such as a negative number printed as unsigned.
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

// maxDigits limits a number read by Fixed. C's %f prints up to 310 digits for a number out of
// range.
const maxDigits = 30

var powersOfTen = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11}

// Fixed reads a number with exactly this many decimals, as printed by C's %f, after optional
// blanks. It returns the number divided by 10^shift. It divides the whole digits once, so that 1.04
// ms becomes the float64 nearest to 0.00104. It accepts C's spellings of not-a-number and infinity
// as NaN: the tool has no value there.
func (l *Line) Fixed(places, shift int) (float64, bool) {
	b, i := l.text[l.at:], 0
	for i < len(b) && b[i] == ' ' {
		i++
	}
	start, n := i, int64(0)
	for i < len(b) && b[i]-'0' <= 9 {
		n = n*10 + int64(b[i]-'0')
		i++
	}
	if i == start {
		return l.notANumber(l.at + start)
	}
	if i == len(b) || b[i] != '.' {
		return 0, false
	}
	i++
	point := i
	for i < len(b) && b[i]-'0' <= 9 {
		n = n*10 + int64(b[i]-'0')
		i++
	}
	switch digits := i - start - 1; {
	case i-point != places || digits > maxDigits:
		return 0, false
	case digits > 15: // n is not exact
		return l.long(l.at+start, l.at+i, shift)
	}
	l.at += i
	return float64(n) / powersOfTen[places+shift], true
}

// notANumber reads from an index on.
func (l *Line) notANumber(from int) (float64, bool) {
	number := Line{l.text, from}
	if !number.NotANumber() {
		return 0, false
	}
	l.at = number.at
	return math.NaN(), true
}

// long reads the digits between two indexes.
func (l *Line) long(from, to, shift int) (float64, bool) {
	v, err := strconv.ParseFloat(string(l.text[from:to])+"e-"+strconv.Itoa(shift), 64)
	if err != nil {
		return 0, false
	}
	l.at = to
	return v, true
}

// Number reads a number with decimals, without an exponent. It returns the number times 10^shift
// and the number of decimals.
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

// NotANumber reads C's spellings of a missing value: nan, -nan, inf.
func (l *Line) NotANumber() bool {
	for _, text := range [...]string{"nan", "-nan", "inf", "-inf"} {
		if l.Literal(text) {
			return true
		}
	}
	return false
}

// The limits of a Memo.
const (
	MaxNames = 128
	MaxName  = 96
)

// Memo remembers the meaning of names in a tool's output, so that reading a line does not allocate.
// It is fastest if names come in the same order each time.
type Memo[T any] struct {
	known []entry[T]
	next  int // expected index of the next name
}

type entry[T any] struct {
	raw   string
	value *T
}

// Rewind expects the first name next, as at the beginning of a line.
func (m *Memo[T]) Rewind() { m.next = 0 }

// Find returns the meaning of raw, always the same pointer: the result of create at the first
// occurrence. It returns nil if create did, and for new names that are too long or too many.
func (m *Memo[T]) Find(raw []byte, create func(raw string) *T) *T {
	if m.next < len(m.known) && m.known[m.next].raw == string(raw) {
		m.next++
		return m.known[m.next-1].value
	}
	for i := range m.known {
		if m.known[i].raw == string(raw) {
			m.next = i + 1
			return m.known[i].value
		}
	}
	if len(m.known) == MaxNames || len(raw) > MaxName {
		return nil
	}
	name := string(raw)
	value := create(name)
	if value != nil {
		m.known = append(m.known, entry[T]{name, value})
		m.next = 0
	}
	return value
}

// expected takes the expected next name and the ": " after it, and returns its meaning; false if
// the line continues differently.
func (m *Memo[T]) expected(l *Line) (*T, bool) {
	if m.next >= len(m.known) {
		return nil, false
	}
	e, rest := &m.known[m.next], l.text[l.at:]
	n := len(e.raw)
	if len(rest) < n+2 || rest[n] != ':' || rest[n+1] != ' ' || string(rest[:n]) != e.raw {
		return nil, false
	}
	l.at += n + 2
	m.next++
	return e.value, true
}

// All calls yield for the meaning of each name, in order of first occurrence.
func (m *Memo[T]) All(yield func(*T) bool) {
	for _, e := range m.known {
		if !yield(e.value) {
			return
		}
	}
}
