package report

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Plain makes foreign text safe to print: control characters, line ends and
// what turns the direction of writing become blanks, invalid UTF-8 becomes �.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// Clip is Plain, at most n runes long.
func Clip(s string, n int) string {
	s = Plain(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// number prints v with a precision that fits its size: about four digits, and
// never fewer than the whole ones. Absent is a dash.
func number(v float64) string {
	switch abs := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case abs >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs >= 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case abs >= 0.1 || v == 0:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}

// rate prints operations per second as tools do, with two decimals.
func rate(v *float64) string {
	if v == nil {
		return "–"
	}
	return strconv.FormatFloat(*v, 'f', 2, 64)
}

// milliseconds prints seconds in the unit that people read latency in.
func milliseconds(seconds float64) string {
	ms := seconds * 1000
	if ms != 0 && math.Abs(ms) < 0.1 {
		return strconv.FormatFloat(ms, 'g', 2, 64)
	}
	return strconv.FormatFloat(ms, 'f', 2, 64)
}

func count(v *float64) string {
	if v == nil {
		return "–"
	}
	return strconv.FormatFloat(*v, 'f', 0, 64)
}

// duration prints seconds as 12.3 s, 4m05s or 2h03m.
func duration(seconds float64) string {
	if seconds < 60 {
		return strconv.FormatFloat(seconds, 'f', 1, 64) + " s"
	}
	d := time.Duration(math.Round(seconds)) * time.Second
	h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	if h > 0 {
		return strconv.Itoa(h) + "h" + two(m) + "m"
	}
	return strconv.Itoa(m) + "m" + two(s) + "s"
}

func two(n int) string {
	if n < 10 {
		return "0" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

// instant prints a time of day as a person at this machine reads it.
func instant(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// percent is the number of a percentile such as p99.9; -1 if it is none.
func percent(stat string) float64 {
	v, err := strconv.ParseFloat(strings.TrimPrefix(stat, "p"), 64)
	if err != nil || !strings.HasPrefix(stat, "p") {
		return -1
	}
	return v
}
