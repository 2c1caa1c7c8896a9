package table

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Unit is the unit in which people see a number that is kept in base units.
type Unit struct {
	// Sign is shown after a number or in a column's head; empty for counts.
	Sign string
	// Factor converts from the base unit.
	Factor float64

	format func(float64) string
}

// The units of this project's tables.
var (
	Digits       = Unit{"", 1, fourDigits}
	Count        = Unit{"", 1, decimals(0)}
	PerSecond    = Unit{"/s", 1, decimals(2)}
	PerMinute    = Unit{"", 1, fourDigits} // tpmC, whose name contains the unit
	Microseconds = Unit{"µs", 1e6, fourDigits}
	BytesExact   = Unit{"B", 1, fourDigits}
	Seconds      = Unit{"s", 1, fourDigits}
	Milliseconds = Unit{"ms", 1000, milliseconds}
	Percent      = Unit{"%", 100, percent}
	Mebibytes    = Unit{"MiB", 1.0 / (1 << 20), fourDigits}
)

// UnitOf returns the unit in which people see m: milliseconds for latencies (means and
// percentiles), seconds for other times.
func UnitOf(m *measure.Measure) Unit {
	switch m.Unit {
	case measure.PerSecond:
		if m.Summary == measure.Increase {
			return Count
		}
		return PerSecond
	case measure.PerMinute:
		return PerMinute
	case measure.Seconds:
		if m.Summary == measure.Cost {
			return Microseconds
		}
		if m.Summary == measure.Mean || m.Summary == measure.Median {
			return Milliseconds
		}
		return Seconds
	case measure.Ratio:
		return Percent
	case measure.Bytes:
		if m.Summary == measure.Cost {
			return BytesExact
		}
		return Mebibytes
	}
	if m.Summary == measure.Mean || m.Summary == measure.Cost {
		return Digits
	}
	return Count
}

// Format returns v, in the base unit, as people see it, without the sign.
func (u Unit) Format(v float64) string {
	if !finite(v) {
		return Unknown
	}
	return u.format(v * u.Factor)
}

// Signed returns Format with the sign.
func (u Unit) Signed(v float64) string {
	if u.Sign == "" || !finite(v) {
		return u.Format(v)
	}
	return u.Format(v) + " " + u.Sign
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func decimals(n int) func(float64) string {
	return func(v float64) string { return strconv.FormatFloat(v, 'f', n, 64) }
}

// fourDigits prints v with about four significant digits, and never rounds its integer part.
func fourDigits(v float64) string {
	switch abs := math.Abs(v); {
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

// Share prints a share in a sentence, as tables do.
func Share(share float64) string { return Percent.Signed(share) }

// Rounded prints a number in a sentence: two digits, and all of those before the point.
func Rounded(v float64) string {
	if math.Abs(v) < 10 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// percent rounds like Rounded, but never to 100 what is less by more than an error of computation.
func percent(v float64) string {
	if rest := 100 - math.Abs(v); rest >= 1e-4 && rest < 1 {
		return strconv.FormatFloat(v, 'f', int(math.Ceil(-math.Log10(rest)-1e-9)), 64)
	}
	return Rounded(v)
}

func milliseconds(ms float64) string {
	if ms != 0 && math.Abs(ms) < 0.1 {
		return strconv.FormatFloat(ms, 'g', 2, 64)
	}
	return strconv.FormatFloat(ms, 'f', 2, 64)
}

// Duration prints seconds as 12.3 s, 4m05s or 2h03m.
func Duration(seconds float64) string {
	if seconds < 60 {
		return strconv.FormatFloat(seconds, 'f', 1, 64) + " s"
	}
	d := time.Duration(math.Round(seconds)) * time.Second
	two := func(n int) string { return strconv.Itoa(n/10) + strconv.Itoa(n%10) }
	h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	if h > 0 {
		return strconv.Itoa(h) + "h" + two(m) + "m"
	}
	return strconv.Itoa(m) + "m" + two(s) + "s"
}

// Clock prints a place on a run's time axis: 0:07, 1:05, 2:00:00.
func Clock(seconds float64) string {
	sign, s := "", int(math.Round(seconds))
	if s < 0 {
		sign, s = "−", -s
	}
	two := func(n int) string { return strconv.Itoa(n/10) + strconv.Itoa(n%10) }
	if s < 3600 {
		return sign + strconv.Itoa(s/60) + ":" + two(s%60)
	}
	return sign + strconv.Itoa(s/3600) + ":" + two(s/60%60) + ":" + two(s%60)
}

// Instant prints a time of day in the zone of this machine.
func Instant(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// Moment is Instant with the name of the zone.
func Moment(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

// Plural returns a count with its noun: 1 step, 2 steps.
func Plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// Join returns words as a list in a sentence: a, b and c.
func Join(words []string) string {
	n := len(words)
	if n < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
}

// Plain returns s as printable text: control characters, line ends and changes of the writing
// direction become blanks, invalid UTF-8 becomes �.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return printable(r)
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// printable returns r, or a blank if r affects the terminal or the text around it.
func printable(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029':
		return ' '
	}
	return r
}

// PlainWriter writes to W and replaces whatever could affect a terminal by blanks, since documents
// may be printed on one.
type PlainWriter struct{ W io.Writer }

// Write implements io.Writer.
func (w PlainWriter) Write(p []byte) (int, error) {
	if _, err := w.W.Write(bytes.Map(printable, p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Clip returns Plain with at most n runes, nothing if n is below 1.
func Clip(s string, n int) string {
	s = Plain(s)
	switch {
	case utf8.RuneCountInString(s) <= n:
		return s
	case n < 1:
		return ""
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Dash returns Plain, and a dash for an empty text.
func Dash(s string) string {
	if s == "" {
		return Unknown
	}
	return Plain(s)
}

// ShellWord quotes s for sh unless it needs no quotes.
func ShellWord(s string) string {
	if s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:=,@%+") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Size prints a number of bytes with three digits: "64 KiB".
func Size(bytes float64) string {
	unit := "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if math.Abs(bytes) < 1024 {
			break
		}
		bytes, unit = bytes/1024, larger
	}
	return fmt.Sprintf("%.3g %s", bytes, unit)
}
