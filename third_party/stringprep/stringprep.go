// Package stringprep stands in for github.com/xdg-go/stringprep, with which the driver of MongoDB
// prepares user names and passwords. The original makes its tables at the start of every program,
// which takes 0.4 MB of code and memory. Here the tables are ranges, and those of package unicode.
// Code points that Unicode 3.2 does not assign are not refused.
package stringprep

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

// Profile is a way to prepare strings. There is only one.
type Profile struct{}

// SASLprep is the profile of RFC 4013, for user names and passwords.
var SASLprep Profile

// Prepare returns what s is for a login. It fails if a login can't have such a string.
func (Profile) Prepare(s string) (string, error) {
	s = norm.NFKC.String(strings.Map(mapped, s))
	first, last, left, right := bidi.L, bidi.L, false, false
	for i, r := range s {
		if prohibited(r) {
			return "", fmt.Errorf("prohibited character: %U", r)
		}
		properties, _ := bidi.LookupRune(r)
		last = properties.Class()
		if i == 0 {
			first = last
		}
		left = left || last == bidi.L
		right = right || toLeft(last)
	}
	if right && (left || !toLeft(first) || !toLeft(last)) {
		return "", errors.New("text from right to left is mixed with other text")
	}
	return s, nil
}

func toLeft(class bidi.Class) bool { return class == bidi.R || class == bidi.AL }

// mapped is section 2.1 of the RFC: a space, or -1 for nothing.
func mapped(r rune) rune {
	switch {
	case r == 0xad, r == 0x34f, r == 0x1806, 0x180b <= r && r <= 0x180d, 0x200b <= r && r <= 0x200d, r == 0x2060,
		0xfe00 <= r && r <= 0xfe0f, r == 0xfeff:
		return -1
	case unicode.Is(unicode.Zs, r):
		return ' '
	}
	return r
}

// prohibited is section 2.3 of the RFC.
func prohibited(r rune) bool {
	if r != ' ' && unicode.In(r, unicode.Zs, unicode.Cc, unicode.Co, unicode.Cs, unicode.Noncharacter_Code_Point) {
		return true
	}
	for _, other := range prohibitedRanges {
		if other[0] <= r && r <= other[1] {
			return true
		}
	}
	return false
}

// prohibitedRanges are in none of the categories.
var prohibitedRanges = [][2]rune{
	{0x340, 0x341}, {0x6dd, 0x6dd}, {0x70f, 0x70f}, {0x180e, 0x180e}, {0x200c, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x2063}, {0x206a, 0x206f},
	{0x2ff0, 0x2ffb}, {0xfeff, 0xfeff}, {0xfff9, 0xfffd}, {0x1d173, 0x1d17a}, {0xe0001, 0xe0001}, {0xe0020, 0xe007f},
}
