package message

import (
	"strings"
	"testing"
	"unicode/utf8"

	_ "github.com/benchwatch/benchwatch/agent/model/tool/tooltest" // defines -update
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"  plain \r\n":          "plain",
		"a\tb\x00c":             "a b c",
		"bad \xff bytes":        "bad \uFFFD bytes",
		"--password=x refused":  "--password=*** refused",
		"":                      "",
		strings.Repeat(" ", 50): "",
	} {
		if got := Clean([]byte(in)); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
	long := Clean([]byte(strings.Repeat("é", 5*Max)))
	if len(long) > Max+10 || !utf8.ValidString(long) || !strings.HasSuffix(long, "…") {
		t.Errorf("a long message became %d bytes, %q at its end", len(long), long[len(long)-10:])
	}
}
