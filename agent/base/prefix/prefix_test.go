package prefix

import (
	"strings"
	"testing"
	"time"
)

// Texts of benchmark tools that begin or end like something that could be a prefix.
var texts = []string{
	"sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)",
	"[ 10s ] thds: 4 tps: 1131.42 qps: 22631.34 (r/w/o: 15842.62/4525.88/2262.84) lat (ms,95%): 5.09 err/s: 0.00 reconn/s: 0.00",
	"    transactions:                        11310  (1130.71 per sec.)",
	"total time: 10s", "scaling factor: 1", "queries performed:",
	"progress: 1.0 s, 715.0 tps, lat 1.396 ms stddev 0.313",
	"[OVERALL], RunTime(ms), 10110",
	"[READ], 0, 105", "[Current] NEW_ORDER - Takes(s): 9.9, Count: 1284",
	"2017-01-01 12:00:00:123 10 sec: 1000 operations; 100 current ops/sec; [READ: Count=1]",
	"  10, trx: 1257, 95%: 41.5, 99%: 56.2, max_rt: 101.2, 1257|51.2, 126|5.6, 125|31.4, 125|79.9",
	"0 1 1234 0 1700000000 123456", "1700000000 5000 100 200 300", "1700000000.5 12 13 14",
	`{"metric":"OVERALL","measurement":"RunTime(ms)","value":10110}`,
	"", "  ",
}

func TestTextOfToolsIsKept(t *testing.T) {
	for _, text := range texts {
		var s Stripper
		s.Strip([]byte("a line without indentation"))
		if got := s.Strip([]byte(text)); string(got.Text) != strings.TrimRight(text, " ") && string(got.Text) != text {
			t.Errorf("%q became %q", text, got.Text)
		}
	}
}

func TestForms(t *testing.T) {
	for _, form := range Forms {
		for _, text := range texts[:12] {
			var s Stripper
			quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)
			example := form.Example
			if strings.Contains(example, `"`) {
				example = strings.ReplaceAll(example, "TEXT", quoted)
			} else {
				example = strings.ReplaceAll(example, "TEXT", text)
			}
			s.Strip([]byte(strings.ReplaceAll(form.Example, "TEXT", "sysbench 1.0")))
			if got := s.Strip([]byte(example)); string(got.Text) != text {
				t.Errorf("%s: %q became %q, want %q", form.Name, example, got.Text, text)
			}
		}
	}
}

func TestPrefixes(t *testing.T) {
	at := time.Date(2024, 5, 10, 11, 14, 15, 0, time.UTC)
	written := at.Add(time.Hour)
	for _, test := range []struct {
		line, text, source string
		at                 time.Time
	}{
		{line: "2024-05-10T11:14:15Z x", text: "x", at: at},
		{line: "2024-05-10T13:14:15+02:00 x", text: "x", at: at},
		{line: "2024-05-10T13:14:15+0200 db1 bench[12]: x", text: "x", at: at},
		{line: "2024-05-10T11:14:15.000000Z 00O x", text: "x", at: at},
		{line: "2024-05-10T11:14:15.000000Z 01E+x", text: "x", at: at},
		{line: "2024-05-10T11:14:15.000000000Z stdout F x", text: "x", at: at},
		{line: "[2024-05-10T11:14:15.000Z] x", text: "x", at: at},
		{line: "2024-05-10T11:14:15Z  INFO [main] a.b.C - x", text: "x", at: at},
		{line: "gen1-1  | x", text: "x", source: "gen1-1"},
		{line: "gen1-1  | ", text: "", source: "gen1-1"},
		{line: "gen1-1  |", text: "", source: "gen1-1"},
		{line: "\x1b[36mgen1-1  |\x1b[0m x", text: "x", source: "gen1-1"},
		{line: "gen1-1  | 2024-05-10T11:14:15Z x", text: "x", source: "gen1-1", at: at},
		{line: "[pod/a/b] 2024-05-10T11:14:15Z x", text: "x", source: "a/b", at: at},
		{line: "build\tRun\t2024-05-10T11:14:15.0000000Z x", text: "x", source: "build", at: at},
		{line: `{"log":"x\n","stream":"stdout","time":"2024-05-10T11:14:15Z"}`, text: "x", at: at},
		{line: `{"time":"2024-05-10T11:14:15Z","n":1,"log":"a \"b\" \u00e9"}`, text: `a "b" é`, at: at},
		{line: `{"log":"x\n","stream":"std`, text: "x"},
		{line: `{"log":"x`, text: `{"log":"x`},
		{line: "<13>1 2024-05-10T11:14:15Z db1 bench 12 - - x", text: "x", at: at},
		{line: `<13>1 2024-05-10T11:14:15Z db1 bench - - [a b="c"] x`, text: "x", at: at},
		{line: "[11:14:15] x", text: "x"},
		{line: "11:14:15.123 x", text: "x"},
		{line: "1715339655.000000 x", text: "x", at: at},
		{line: "\x1b]0;title\x07x", text: "x"},
		{line: "old\x1b[2K\rx", text: "x"},
		{line: "\x1b", text: ""},
	} {
		s := Stripper{Written: written}
		got := s.Strip([]byte(test.line))
		if string(got.Text) != test.text || string(got.Source) != test.source || !got.Time.Equal(test.at) {
			t.Errorf("%q: %q, source %q, time %v", test.line, got.Text, got.Source, got.Time)
		}
	}
}

// A date without a year belongs to the year before the log was written.
func TestYear(t *testing.T) {
	s := Stripper{Written: time.Date(2024, 1, 2, 0, 0, 0, 0, time.Local)}
	if got := s.Strip([]byte("Dec 31 23:59:59 x")); got.Time.Year() != 2023 {
		t.Error(got.Time)
	}
}

func TestIndentation(t *testing.T) {
	var s Stripper
	for _, line := range [][2]string{
		{"", ""}, {"    a", "a"}, {"      b", "  b"}, {"    ", ""}, {"  c", "c"}, {"    d", "  d"}, {"e", "e"}, {"  f", "  f"},
	} {
		if got := s.Strip([]byte(line[0])); string(got.Text) != line[1] {
			t.Errorf("%q: %q", line[0], got.Text)
		}
	}
}

func TestStripDoesNotAllocate(t *testing.T) {
	var s Stripper
	lines := [][]byte{[]byte(texts[1]), []byte("gen1-1  | " + texts[1]), []byte("2024-05-10T11:14:15.1234567Z " + texts[1]),
		[]byte(`{"log":"` + texts[1] + `\n","stream":"stdout","time":"2024-05-10T11:14:15Z"}`), []byte("\x1b[0;32m" + texts[1] + "\x1b[0m")}
	for _, line := range lines {
		s.Strip(line)
		if n := testing.AllocsPerRun(100, func() { s.Strip(line) }); n > 0 {
			t.Errorf("%q: %v allocations", line, n)
		}
	}
}

func FuzzStrip(f *testing.F) {
	for _, form := range Forms {
		f.Add([]byte(strings.ReplaceAll(form.Example, "TEXT", "x\n  y")))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got := All(text); len(got) > 4*len(text)+16 {
			t.Errorf("%d bytes became %d", len(text), len(got))
		}
	})
}
