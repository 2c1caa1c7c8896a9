// Package decimal reads the numbers that benchmark tools print and scales them to base units, as
// exactly as a float64 allows: 17321.08 microseconds are 0.01732108 seconds, not
// 0.017321080000000003.
package decimal

import (
	"math"
	"strconv"
)

// Parse returns text × 10^shift as the nearest float64. text has digits and at most one point, and
// may have a sign and an exponent. ok is false for any other text (NaN, infinities, hexadecimal
// numbers, digit grouping) and for a number too large for a float64. Parse does not allocate if the
// digits are below 2^53 and the scale is at most 10^22.
func Parse(text []byte, shift int) (float64, bool) { return parse(text, shift, false) }

// ParseLocal is Parse for tools that print numbers in the user's locale: the decimal separator may
// be a comma.
func ParseLocal(text []byte, shift int) (float64, bool) { return parse(text, shift, true) }

var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// maxText limits the length of a number. No tool prints longer ones.
const maxText = 400

func parse(text []byte, shift int, comma bool) (float64, bool) {
	if len(text) > maxText {
		return 0, false
	}
	i := 0
	negative := i < len(text) && text[i] == '-'
	if negative {
		i++
	}
	var mantissa uint64
	digits, fraction, point := 0, 0, false
	exact := true
scan:
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			if mantissa < 1<<58 {
				mantissa = mantissa*10 + uint64(c-'0')
			} else {
				exact = false
			}
			digits++
			if point {
				fraction++
			}
		case (c == '.' || comma && c == ',') && !point:
			point = true
		case c == 'e' || c == 'E':
			break scan
		default:
			return 0, false
		}
	}
	if digits == 0 {
		return 0, false
	}
	end := i
	exponent := 0
	if i < len(text) {
		var ok bool
		if exponent, ok = parseExponent(text[i+1:]); !ok {
			return 0, false
		}
	}
	v, ok := 0.0, true
	if e := exponent + shift - fraction; exact && mantissa < 1<<53 && -22 <= e && e <= 22 {
		// Both factors are exact, so the result is rounded once.
		if e < 0 {
			v = float64(mantissa) / pow10[-e]
		} else {
			v = float64(mantissa) * pow10[e]
		}
		if negative {
			v = -v
		}
	} else {
		v, ok = round(text[:end], exponent+shift)
	}
	return v, ok
}

func parseExponent(text []byte) (int, bool) {
	if len(text) > 5 {
		return 0, false
	}
	e, err := strconv.Atoi(string(text))
	return e, err == nil
}

// round is the slow path: up to all digits of mantissa, times 10^exponent.
func round(mantissa []byte, exponent int) (float64, bool) {
	b := make([]byte, 0, len(mantissa)+8)
	for _, c := range mantissa {
		if c == ',' {
			c = '.'
		}
		b = append(b, c)
	}
	b = strconv.AppendInt(append(b, 'e'), int64(exponent), 10)
	v, err := strconv.ParseFloat(string(b), 64)
	return v, err == nil && !math.IsInf(v, 0)
}
