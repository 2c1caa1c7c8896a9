package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestWrap(t *testing.T) {
	text := "one two three four five six seven eight nine ten eleven twelve"
	if got := (Terminal{}).Wrap(text, 0, 2); got != text {
		t.Errorf("a file: %q", got)
	}
	got := Terminal{Width: 40}.Wrap(text, 10, 4)
	for i, line := range strings.Split(got, "\n") {
		width := len(line)
		if i == 0 {
			width += 10
		} else if !strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "     ") {
			t.Errorf("line %d is not indented by 4: %q", i, line)
		}
		if width > 40 {
			t.Errorf("line %d has %d characters: %q", i, width, line)
		}
	}
	if strings.Join(strings.Fields(got), " ") != text {
		t.Errorf("words are lost: %q", got)
	}
}

func TestWrapKeepsPercentSigns(t *testing.T) {
	got := Terminal{Width: 40}.Wrap("the tool waited for a core for about 18 % of the time", 0, 2)
	if !strings.Contains(got, "\n  18 % of") {
		t.Errorf("%q", got)
	}
}

func TestCommand(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"benchwatch report last", "benchwatch report last"},
		{"sysbench oltp_read_write --mysql-host=db1 --threads=16 run", "sysbench oltp_read_write \\\n    --mysql-host=db1 --threads=16 run"},
		{"tool '--title=one long text that stays together' run", "tool \\\n    '--title=one long text that stays together' \\\n    run"},
	} {
		if got := (Terminal{Width: 40}).Command(c.line, 2); got != c.want {
			t.Errorf("%q", got)
		}
		if got := (Terminal{}).Command(c.line, 2); got != c.line {
			t.Errorf("a file: %q", got)
		}
	}
}

func TestPaint(t *testing.T) {
	if got := (Terminal{Is: true}).Paint(Bad, "x"); got != "x" {
		t.Errorf("without colours: %q", got)
	}
	if got := (Terminal{Color: true}).Paint(Bad, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("%q", got)
	}
}

// TestNoTerminal guards that an output that is not a terminal has no width, colours or progress.
func TestNoTerminal(t *testing.T) {
	var b bytes.Buffer
	if got := Of(&b); got != (Terminal{}) {
		t.Errorf("%+v", got)
	}
	p := NewProgress(&b)
	p.Count("x", 1, 2, "y")
	p.Time("x", time.Second, time.Minute)
	p.Clear()
	if _, err := p.Above(&b).Write([]byte("text")); err != nil || b.String() != "text" {
		t.Errorf("%q %v", b.String(), err)
	}
}

// TestProgress guards that the line stays below printed text and never breaks into an unfinished
// line.
func TestProgress(t *testing.T) {
	var b bytes.Buffer
	p := &Progress{w: &b, width: 60, began: time.Now().Add(-10 * time.Second)}
	p.Count("import", 1, 4, "logs")
	if want := eraseLine + "import: 1 of 4 logs, 30s left"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	b.Reset()
	if _, err := p.Above(&b).Write([]byte("a line\n")); err != nil {
		t.Fatal(err)
	}
	if want := eraseLine + "a line\n" + eraseLine + "import: 1 of 4 logs, 30s left"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	b.Reset()
	p.Clear()
	if b.String() != eraseLine {
		t.Errorf("cleared by %q", b.String())
	}
	for d, want := range map[time.Duration]string{45 * time.Second: "45s", 725 * time.Second: "12m05s", 12010 * time.Second: "3h20m"} {
		if got := Short(d); got != want {
			t.Errorf("%v: %s", d, got)
		}
	}
	if got := bar(0.5); got != "[==========          ]" {
		t.Error(got)
	}
}
