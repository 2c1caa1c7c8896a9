package decimal

import (
	"strconv"
	"testing"

	_ "github.com/benchwatch/benchwatch/agent/model/tool/tooltest" // defines -update
)

func TestParse(t *testing.T) {
	tests := []struct {
		text  string
		shift int
		want  string // shortest decimal; empty: refused
	}{
		{"0", -6, "0"},
		{"17321.08", -6, "0.01732108"},
		{"40276.1", -6, "0.0402761"},
		{"1.04", -3, "0.00104"},
		{"3.0081024E7", -6, "30.081024"},
		{"2036.1569328565754", -6, "0.0020361569328565753"},
		{"195.84802193497845", 0, "195.84802193497845"},
		{"9223372036854775807", 0, "9.223372036854776e+18"},
		{"123456789012345678901234567890", 0, "1.2345678901234568e+29"},
		{"-12.5", 0, "-12.5"},
		{"-0.000000000000000000000000000000125", 0, "-1.25e-31"},
		{"1e5", 0, "100000"},
		{"1e-400", 0, "0"},
		{".5", 0, "0.5"},
		{"5.", 0, "5"},
		{"1e999", 0, ""},
		{"1e99999999", 0, ""},
		{"1e", 0, ""},
		{"", 0, ""},
		{".", 0, ""},
		{"-", 0, ""},
		{"NaN", 0, ""},
		{"Infinity", 0, ""},
		{"∞", 0, ""},
		{"0x10", 0, ""},
		{"1_000", 0, ""},
		{"1,5", 0, ""},
		{"1.2.3", 0, ""},
		{"+1", 0, ""},
		{" 1", 0, ""},
	}
	for _, test := range tests {
		got := ""
		if v, ok := Parse([]byte(test.text), test.shift); ok {
			got = strconv.FormatFloat(v, 'g', -1, 64)
		}
		if got != test.want {
			t.Errorf("Parse(%q, %d) = %q, want %q", test.text, test.shift, got, test.want)
		}
	}
}

func TestParseLocal(t *testing.T) {
	for text, want := range map[string]float64{
		"247,51": 247.51, "12404,59": 12404.59, "7.5": 7.5, "20429": 20429,
	} {
		if v, ok := ParseLocal([]byte(text), 0); !ok || v != want {
			t.Errorf("ParseLocal(%q) = %v, %v, want %v", text, v, ok, want)
		}
	}
	for _, text := range []string{"1.234,5", "1,234,5", "∞", "?", "٢٤٧٫٥١", "\xef\xbf\xbd", "\xff"} {
		if v, ok := ParseLocal([]byte(text), 0); ok {
			t.Errorf("ParseLocal(%q) = %v, want refusal", text, v)
		}
	}
}

// The standard library is the reference: Parse must return the same float64.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"0", "17321.08", "3.0081024E7", "1e999", "-1", "99999999999999999999.9"} {
		f.Add([]byte(s), int8(-6))
	}
	f.Fuzz(func(t *testing.T, text []byte, shift int8) {
		ParseLocal(text, int(shift))
		v, ok := Parse(text, 0)
		want, err := strconv.ParseFloat(string(text), 64)
		if ok && (err != nil || v != want) {
			t.Fatalf("Parse(%q) = %v, the standard library says %v, %v", text, v, want, err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	text := []byte("17321.08")
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Parse(text, -6); !ok {
			b.Fatal("refused")
		}
	}
}
