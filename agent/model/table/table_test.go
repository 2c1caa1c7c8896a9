package table

import (
	"bytes"
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

func Example() {
	t := New(Column{Name: "via"}, Column{Name: "threads"}, Column{Name: "latency_p95_seconds", Head: "p95 ms"})
	t.Add(Text("direct"), Whole(8), Number(0.0021, Milliseconds))
	t.Add(Text("proxy"), Whole(16), Number(series.Unknown(), Milliseconds))
	_ = t.Text(os.Stdout)
	_ = t.CSV(os.Stdout)
	// Output:
	// via     threads  p95 ms
	// direct        8    2.10
	// proxy        16       –
	// via,threads,latency_p95_seconds
	// direct,8,0.0021
	// proxy,16,
}

// TestForeignText guards that foreign text cannot change the terminal or the structure of a
// document, and is no formula in a spreadsheet.
func TestForeignText(t *testing.T) {
	table := New(Named("a|b", "c")...)
	table.Add(Text("=cmd|' /C calc'!A0\n\x1b[2J"), Text("<script>[x](y)"))
	table.Add(Number(-3, Digits), Cell{})
	for format, c := range map[string]struct {
		write func(*bytes.Buffer) error
		want  string
	}{
		"text":     {func(b *bytes.Buffer) error { return table.Text(b) }, "a|b                      c\n=cmd|' /C calc'!A0  [2J  <script>[x](y)\n-3.00                    –\n"},
		"markdown": {func(b *bytes.Buffer) error { return table.Markdown(b) }, "| a\\|b | c |\n|---|---|\n| =cmd\\|' /C calc'!A0  \\[2J | \\<script\\>\\[x\\](y) |\n| -3.00 | – |\n"},
		"csv":      {func(b *bytes.Buffer) error { return table.CSV(b) }, "a|b,c\n'=cmd|' /C calc'!A0  [2J,<script>[x](y)\n-3,\n"},
	} {
		var b bytes.Buffer
		if err := c.write(&b); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, b.String()); d != "" {
			t.Errorf("%s: %s", format, d)
		}
	}
}

func TestClip(t *testing.T) {
	for n, want := range map[int]string{-2: "", 0: "", 1: "…", 3: "ab…", 4: "abcd", 9: "abcd"} {
		if got := Clip("abcd", n); got != want {
			t.Errorf("Clip to %d: %q, want %q", n, got, want)
		}
	}
}

func TestDropUnknown(t *testing.T) {
	table := New(Named("a", "b", "c")...)
	table.Add(Whole(1), Text(""), Whole(3))
	table.Add(Whole(4), Number(math.NaN(), Digits), Cell{})
	table.DropUnknown()
	if got := strings.Join(table.Head(), " "); got != "a c" || len(table.Rows[0]) != 2 {
		t.Errorf("columns %s, rows %v", got, table.Rows)
	}
}

func TestFormats(t *testing.T) {
	for want, got := range map[string]string{
		"1 step": Plural(1, "step"), "0 steps": Plural(0, "step"), "a, b and c": Join([]string{"a", "b", "c"}),
		"12.3 s": Duration(12.3), "4m05s": Duration(245), "2h03m": Duration(7390), "−1:05": Clock(-65), "0:07": Clock(7), "0:00": Clock(-0.13),
		"6.2 %": Percent.Signed(0.0619), "99.97 %": Share(0.99971), "99.9 %": Share(0.999), "99 %": Share(0.9893),
		"-99.5 %": Share(-0.995), "100 %": Share(1 - 1e-12), "0.05": Milliseconds.Format(0.00005), "1235": Digits.Format(1234.6), Unknown: Count.Signed(math.Inf(1)),
	} {
		if got != want {
			t.Errorf("have %q, want %q", got, want)
		}
	}
}

// TestFit guards what a narrow terminal shows: spare columns go first, then spreads, then the last
// columns, all by name; texts are cut with a mark.
func TestFit(t *testing.T) {
	full := New(Column{Name: "combination"}, Column{Name: "measure", Cut: true}, Column{Name: "tps"}, Column{Name: "ratio", Spare: true}, Column{Name: "p95"})
	full.Add(Text("threads=1"), Text("a measure with a long name"), Number(100, Digits).As("100.0 [90.00 … 110.0] n=2"), Number(1, Digits), Number(20, Digits))
	for _, c := range []struct {
		width   int
		want    string
		dropped string
	}{
		{0, "combination  measure", ""},
		{74, "combination  measure", "ratio"},
		{64, "combination  measure", "ratio spread"},
		{50, "combination  measure", "ratio spread"},
		{36, "combination  measure", "p95 ratio spread"},
	} {
		fitted, dropped := full.Fit(c.width)
		var b strings.Builder
		if err := fitted.Text(&b); err != nil {
			t.Fatal(err)
		}
		if strings.Join(dropped, " ") != c.dropped || !strings.HasPrefix(b.String(), c.want) {
			t.Errorf("%d: dropped %q\n%s", c.width, dropped, b.String())
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); c.width > 0 && n > c.width {
				t.Errorf("%d: a line has %d characters:\n%s", c.width, n, b.String())
			}
		}
		if spread := strings.Contains(b.String(), "[90"); spread != (c.width == 0 || c.width == 74) {
			t.Errorf("%d: %s", c.width, b.String())
		}
	}
}

// TestFitKeeps guards that a kept column stays where shorter texts and heads make room.
func TestFitKeeps(t *testing.T) {
	full := New(Column{Name: "measure", Cut: true}, Column{Name: "tool=sysbench", Kept: true}, Column{Name: "tool=hammerdb", Kept: true},
		Column{Name: "ratio", Spare: true}, Column{Name: "difference", Cut: true})
	full.Add(Text("latency p95 of transactions ms"), Number(95.5, Digits), Number(1840, Digits), Number(19, Digits), Text("-5.5 % (p<0.001, these runs)"))
	fitted, dropped := full.Fit(40)
	if strings.Join(dropped, " ") != "ratio" || fitted.Width() > 40 || strings.Join(fitted.Head(), " ") != "measure sysbe… hamme… difference" {
		var b strings.Builder
		_ = fitted.Text(&b)
		t.Errorf("dropped %q, %d wide:\n%s", dropped, fitted.Width(), b.String())
	}
}

// TestAppendNumber guards that numbers have the same digits as those of package strconv.
func TestAppendNumber(t *testing.T) {
	values := []float64{0, math.Copysign(0, -1), 1e-6, 0.1 + 0.2, 1e9, 1e15, 1e21, math.MaxFloat64, math.SmallestNonzeroFloat64, 123456789.123456, 999999999.999999}
	for range 100_000 {
		v := rand.Float64() * math.Pow(10, float64(rand.IntN(24)-8))
		for _, decimals := range []float64{1, 100, 1e5, 1e6, 1e7} {
			values = append(values, v, math.Nextafter(v, 0), math.Round(v*decimals)/decimals, -math.Round(v*decimals)/decimals)
		}
	}
	for _, v := range values {
		if got, want := string(AppendNumber(nil, v)), strconv.FormatFloat(v, 'f', -1, 64); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}

// TestCSVQuotes guards that fields are quoted as package encoding/csv quotes them.
func TestCSVQuotes(t *testing.T) {
	for _, field := range []string{"", "a", " a", "\u2003a", "a b", `a"b`, "a,b", "a\nb", "a\r\nb", `\.`, `"`, "–"} {
		var want bytes.Buffer
		w := csv.NewWriter(&want)
		if err := w.Write([]string{field, field}); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		if got := string(appendCSV(append(appendCSV(nil, field), ','), field)) + "\n"; got != want.String() {
			t.Errorf("%q, want %q", got, want.String())
		}
	}
}

// TestUncapitalised guards that names and acronyms keep their capitals within a sentence.
func TestUncapitalised(t *testing.T) {
	for title, want := range map[string]string{
		"Rows read": "rows read", "Full-page images": "full-page images", "InnoDB writes": "InnoDB writes",
		"CPU": "CPU", "WAL synchronisations": "WAL synchronisations", "": "",
	} {
		if got := Uncapitalised(title); got != want {
			t.Errorf("%q: got %q, want %q", title, got, want)
		}
	}
}
