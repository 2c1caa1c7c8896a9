package scan

import (
	"fmt"
	"math"
	"strings"
	"testing"

	_ "github.com/benchwatch/benchwatch/agent/model/tool/tooltest" // defines -update
)

func TestLine(t *testing.T) {
	l := New([]byte("  10, trx: 352, 95%: 108.825|-nan "))
	l.Blanks()
	if n, ok := l.Count(); !ok || n != 10 {
		t.Errorf("Count = %d, %v", n, ok)
	}
	if l.Literal(", tx") || !l.Literal(", trx: ") {
		t.Error("Literal took what isn't there, or not what is")
	}
	if before, ok := l.Until(", 95%: "); !ok || string(before) != "352" {
		t.Errorf("Until = %q, %v", before, ok)
	}
	if v, decimals, ok := l.Number(-3); !ok || v != 0.108825 || decimals != 3 {
		t.Errorf("Number = %v, %d, %v", v, decimals, ok)
	}
	if l.NotANumber() || !l.Literal("|") || !l.NotANumber() || !l.End() {
		t.Errorf("%q is left", l.Rest())
	}
}

func TestLineRefuses(t *testing.T) {
	for _, s := range []string{"", ".", "5.", ".5", "x", "-1", " 1"} {
		l := New([]byte(s))
		if v, _, ok := l.Number(0); ok {
			t.Errorf("Number took %v from %q", v, s)
		}
		if string(l.Rest()) != s {
			t.Errorf("%q is left of %q", l.Rest(), s)
		}
	}
	l := New([]byte("99999999999999999999"))
	if n, ok := l.Count(); ok {
		t.Errorf("Count = %d of a number out of range", n)
	}
	// The exponent is left over; no caller expects one.
	l = New([]byte("1e999"))
	if _, _, ok := l.Number(0); !ok || string(l.Rest()) != "e999" {
		t.Errorf("%q is left of 1e999", l.Rest())
	}
	if _, ok := l.Until("x"); ok {
		t.Error("Until found what isn't there")
	}
}

func TestFixed(t *testing.T) {
	for _, c := range []struct {
		text          string
		places, shift int
		want          float64
		rest          string
	}{
		{"  1.04 x", 2, 3, 0.00104, " x"},
		{"12345678901234567.89", 2, 0, 12345678901234567.89, ""},
		{"-nan|", 2, 0, math.NaN(), "|"},
	} {
		l := New([]byte(c.text))
		if v, ok := l.Fixed(c.places, c.shift); !ok || v != c.want && !math.IsNaN(c.want) || string(l.Rest()) != c.rest {
			t.Errorf("Fixed of %q = %v, %v, left %q", c.text, v, ok, l.Rest())
		}
	}
	for _, text := range []string{"1.0", "1.000", "1", "1.", ".50", "-1.00", "x", "", strings.Repeat("9", 30) + ".00"} {
		l := New([]byte(text))
		if v, ok := l.Fixed(2, 0); ok || string(l.Rest()) != text {
			t.Errorf("Fixed took %v from %q", v, text)
		}
	}
}

func TestInt(t *testing.T) {
	l := New([]byte("  16,"))
	if n, ok := l.Int(); !ok || n != 16 || l.Next() != ',' {
		t.Errorf("Int = %d, %v", n, ok)
	}
	for _, text := range []string{"2147483648", "18446744073709551615", "", " x"} {
		l := New([]byte(text))
		if n, ok := l.Int(); ok || string(l.Rest()) != text {
			t.Errorf("Int took %d from %q", n, text)
		}
	}
}

func TestQuoted(t *testing.T) {
	l := New([]byte(`"a b":`))
	if s, ok := l.Quoted(); !ok || string(s) != "a b" || string(l.Rest()) != ":" {
		t.Errorf("Quoted = %q, %v", s, ok)
	}
	for _, text := range []string{`"a`, `a"`, `"\""`, ""} {
		l := New([]byte(text))
		if s, ok := l.Quoted(); ok || string(l.Rest()) != text {
			t.Errorf("Quoted took %q from %q", s, text)
		}
	}
}

// All three styles give the same fields.
func TestStyles(t *testing.T) {
	var got string
	set := func(key *string, value []byte) bool {
		got += fmt.Sprintf("%s=%s ", *key, value)
		return string(value) != "bad"
	}
	end := func() bool { return true }
	columns := NewColumns(func(name string) *string { return &name })
	if !columns.Head([]byte("| a |  b|")) {
		t.Error("no headings")
	}
	for _, style := range []struct {
		name string
		read func(text string) bool
		good string
		bad  []string
	}{
		{"plain", func(text string) bool { l := New([]byte(text)); return columns.Fields(&l, set) }, "a: 1, b: 2", []string{"", "a", "a: 1, ", "a: 1, b", "a: bad"}},
		{"table", func(text string) bool { return columns.Row([]byte(text), set) }, "| 1 |  2|", []string{"| 1 | 2 | 3 |", "1|2", "| 1", "||", "", "| 1 | bad |"}},
		{"JSON", func(text string) bool { l := New([]byte(text)); return columns.Objects(&l, set, end) }, `[{"a":"1","b":"2"}]`,
			[]string{"", "[]", `[{}]`, `[{"a":"1"},`, `[{"a":1}]`, `[{"a":"1"}]x`, `[{"a":"bad"}]`}},
	} {
		if got = ""; !style.read(style.good) || got != "a=1 b=2 " {
			t.Errorf("%s: %s", style.name, got)
		}
		for _, text := range style.bad {
			if style.read(text) {
				t.Errorf("%s: read %q", style.name, text)
			}
		}
	}
	if columns.Head([]byte(strings.Repeat("| a ", maxCells+1) + "|")) {
		t.Error("a row may have any number of cells")
	}
}

func TestMemo(t *testing.T) {
	var m Memo[string]
	created := 0
	create := func(raw string) *string {
		if raw == "" {
			return nil
		}
		created++
		s := strings.ToLower(raw)
		return &s
	}
	line := []string{"READ", "UPDATE", "", "READ"}
	raw := []byte("READ")
	first := m.Find(raw, create)
	raw[0] = '#' // the reader keeps no bytes of the caller
	for range 3 {
		m.Rewind()
		for _, name := range line {
			if v := m.Find([]byte(name), create); (v == nil) != (name == "") || v != nil && *v != strings.ToLower(name) {
				t.Errorf("%s is %v", name, v)
			}
		}
	}
	if m.Find([]byte("READ"), create) != first || created != 2 {
		t.Errorf("%d values were created", created)
	}
	if m.Find([]byte(strings.Repeat("X", MaxName+1)), create) != nil {
		t.Error("a long name was taken")
	}
	for i := range 2 * MaxNames {
		m.Find(fmt.Append(nil, "N", i), create)
	}
	n := 0
	for range m.All {
		n++
	}
	if n != MaxNames {
		t.Errorf("%d names are known", n)
	}
}
