package scan

import "testing"

func TestLine(t *testing.T) {
	l := Line("  10, trx: 352, 95%: 108.825|-nan ")
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
		t.Errorf("%q is left", l)
	}
}

func TestLineRefuses(t *testing.T) {
	for _, s := range []string{"", ".", "5.", ".5", "x", "-1", " 1"} {
		l := Line(s)
		if v, _, ok := l.Number(0); ok {
			t.Errorf("Number took %v from %q", v, s)
		}
		if string(l) != s {
			t.Errorf("%q is left of %q", l, s)
		}
	}
	l := Line("99999999999999999999")
	if n, ok := l.Count(); ok {
		t.Errorf("Count = %d of a number out of range", n)
	}
	// The exponent is left, where no caller expects anything.
	l = Line("1e999")
	if _, _, ok := l.Number(0); !ok || string(l) != "e999" {
		t.Errorf("%q is left of 1e999", l)
	}
	if _, ok := l.Until("x"); ok {
		t.Error("Until found what isn't there")
	}
}
