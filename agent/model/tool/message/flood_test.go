package message

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/secret"
)

func TestFlood(t *testing.T) {
	var f Flood
	if f.First(nil) != "" || f.Rest(nil) != "" {
		t.Error("something of nothing")
	}
	var reported []string
	for i := range 1000 {
		text := fmt.Appendf(nil, "message %d", i)
		if f.Add(text, i == 500 || i == 600) {
			reported = append(reported, string(text))
		}
	}
	if got := strings.Join(reported, ", "); got != "message 0, message 500" {
		t.Errorf("reported at once: %s", got)
	}
	if got := f.First(nil); got != "message 0" {
		t.Errorf("first: %s", got)
	}
	if got := f.Rest(nil); got != "message 999 (last of 1000 messages)" {
		t.Errorf("rest: %s", got)
	}
	if got := f.Rest(nil); got != "" {
		t.Errorf("rest, again: %s", got)
	}
}

func TestCleanWith(t *testing.T) {
	if got := CleanWith([]byte("x geheim \xff y"), secret.New("geheim")); got != "x *** \uFFFD y" {
		t.Errorf("%q", got)
	}
	// A secret at the limit is not cut in two.
	long := strings.Repeat("x", Max-3) + " geheim " + strings.Repeat("y", Max)
	if got := CleanWith([]byte(long), secret.New("geheim")); strings.Contains(got, "ge") || len(got) > Max+10 {
		t.Errorf("%d bytes: …%q", len(got), got[len(got)-30:])
	}
}
