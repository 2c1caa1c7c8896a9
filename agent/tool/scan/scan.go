// Package scan reads a line of a tool's output from left to right, without
// allocating.
package scan

import (
	"bytes"
	"math"

	"github.com/benchwatch/benchwatch/agent/tool/decimal"
)

// Line is what is left of a line. Its methods take from its beginning; where
// they return false, nothing was taken.
type Line []byte

// Literal takes exactly text.
func (l *Line) Literal(text string) bool {
	if len(*l) < len(text) || string((*l)[:len(text)]) != text {
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

// Until takes what stands before text, and text.
func (l *Line) Until(text string) ([]byte, bool) {
	i := bytes.Index(*l, []byte(text))
	if i < 0 {
		return nil, false
	}
	before := (*l)[:i]
	*l = (*l)[i+len(text):]
	return before, true
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
