package mysql

import (
	"math"
	"strconv"
	"strings"
)

// Values are status or system variables by name, as the server gives them:
// numbers, words, dates, or nothing. A variable that the server does not have is
// not in the map.
type Values map[string]string

// Uint returns a whole number without sign, exact up to 2^64-1; false for
// anything else (words, dates, -1, -nan, empty).
func (v Values) Uint(name string) (uint64, bool) {
	n, err := strconv.ParseUint(v[name], 10, 64)
	return n, err == nil
}

// Number returns any finite decimal number; false for anything else.
func (v Values) Number(name string) (float64, bool) { return number(v[name]) }

// Bool returns a switch in any of the spellings that servers use.
func (v Values) Bool(name string) (value, ok bool) { return boolean(v[name]) }

func number(text string) (float64, bool) {
	if text == "" || strings.IndexByte("+-.0123456789", text[0]) < 0 || strings.ContainsAny(text, "xX_pP") {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return 0, false
	}
	return n, true
}

func boolean(text string) (value, ok bool) {
	switch strings.ToLower(text) {
	case "on", "yes", "true", "1", "enabled":
		return true, true
	case "off", "no", "false", "0", "disabled":
		return false, true
	}
	return false, false
}
