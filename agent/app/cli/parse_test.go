package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// echo is a parser that reports the length of each line.
type echo struct{}

func (echo) Parse(l tool.Line, emit func(*tool.Report)) tool.Verdict {
	m := fmt.Sprint(len(l.Text))
	if l.Cut {
		m += " cut"
	}
	emit(&tool.Report{Kind: tool.Error, Run: 1, Message: m})
	return tool.Reported
}

func (echo) Close(func(*tool.Report)) {}

var echoTool = &tool.Tool{NewParser: func(tool.Description) tool.Parser { return echo{} }}

func lengths(t *testing.T, r io.Reader) (string, error) {
	t.Helper()
	var out strings.Builder
	_, err := parseLines(bufio.NewReaderSize(r, sniffed), echoTool, &out)
	var all []string
	for line := range strings.Lines(out.String()) {
		_, line, _ = strings.Cut(line, `"message":"`)
		all = append(all, strings.TrimSuffix(line, "\"}\n"))
	}
	return strings.Join(all, ","), err
}

func TestParseSplitsLines(t *testing.T) {
	const most = follow.DefaultMaxLine
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct{ input, want string }{
		{"", ""},
		{"\n", "0"},
		{"a", "1"},
		{"a\n\nbc\n", "1,0,2"},
		{long(sniffed-1) + "\nab", fmt.Sprint(sniffed-1, ",2")},
		{long(sniffed) + "\nab\n", fmt.Sprint(sniffed, ",2")},
		{long(3*sniffed) + "\n", fmt.Sprint(3 * sniffed)},
		{long(most) + "\nab", fmt.Sprint(most, ",2")},
		{long(most), fmt.Sprint(most)},
		{long(most+1) + "\nab", fmt.Sprint(most, " cut,2")},
		{long(most + 1), fmt.Sprint(most, " cut")},
		{long(4*most) + "\nab\n" + long(2*most), fmt.Sprint(most, " cut,2,", most, " cut")},
	} {
		want := strings.ReplaceAll(c.want, " ,", ",")
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(c.input), "halves": iotest.HalfReader(strings.NewReader(c.input))} {
			if got, err := lengths(t, r); err != nil || got != want {
				t.Errorf("%d bytes, %s: %s, %v; want %s", len(c.input), name, got, err, want)
			}
		}
	}
}

// TestParseIsBounded guards that a file without line ends costs no memory.
func TestParseIsBounded(t *testing.T) {
	const size = 256 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := lengths(t, io.LimitReader(xs{}, size))
	runtime.ReadMemStats(&after)
	if err != nil || got != fmt.Sprint(follow.DefaultMaxLine, " cut") {
		t.Errorf("%s, %v", got, err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
		t.Errorf("%d bytes allocated for %d bytes", used, size)
	}
}

type xs struct{}

func (xs) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestParseKeepsWhatItUnderstood guards the reports before a read error.
func TestParseKeepsWhatItUnderstood(t *testing.T) {
	broken := errors.New("broken")
	got, err := lengths(t, io.MultiReader(strings.NewReader("a\nbc\n"), iotest.ErrReader(broken)))
	if got != "1,2" || !errors.Is(err, broken) {
		t.Errorf("%s, %v", got, err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestParseReportsWriteErrors(t *testing.T) {
	if _, err := parseLines(bufio.NewReader(strings.NewReader("a\n")), echoTool, full{}); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("error %v", err)
	}
}

// TestParseDoesNotWait guards that a line read from a pipe is printed immediately.
func TestParseDoesNotWait(t *testing.T) {
	in, feed := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error)
	go func() {
		_, err := parseLines(bufio.NewReader(in), echoTool, out)
		out.Close()
		done <- err
	}()
	replies := bufio.NewReader(answers)
	for i := range 3 {
		fmt.Fprintf(feed, "%s\n", strings.Repeat("x", i))
		reply, err := replies.ReadString('\n')
		if err != nil || !strings.Contains(reply, fmt.Sprintf(`"message":"%d"`, i)) {
			t.Fatalf("%s, %v", reply, err)
		}
	}
	feed.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
