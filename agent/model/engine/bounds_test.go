package engine

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// TestBudget guards the limits of a server per tick: bytes on all connections together, values, and
// bytes of text, without control characters.
func TestBudget(t *testing.T) {
	var budget Budget
	budget.Renew()
	for range 2 {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			_, _ = there.Write(make([]byte, maxAnswers/2))
		}()
		if n, err := io.Copy(io.Discard, budget.Conn(here)); n != maxAnswers/2 || budget.Check(err) != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
		here.Close()
	}
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		_, _ = there.Write([]byte("x"))
	}()
	if _, err := io.Copy(io.Discard, budget.Conn(here)); !errors.Is(err, ErrTooMuch) || !errors.Is(budget.Check(io.EOF), ErrTooMuch) {
		t.Error(err)
	}
	budget.Renew()
	if err := budget.Check(io.EOF); !errors.Is(err, io.EOF) {
		t.Errorf("the next tick: %v", err)
	}

	s := &Status{Version: strings.Repeat("8", 1<<20), Nodename: "a\x1b[2Jb\nc", Missing: []string{"x"}}
	for range 2 * maxValues {
		s.Set(MissingDetails, 1, strings.Repeat("l", 1<<14), "\x07")
	}
	s.bound()
	if len(s.Values) != maxValues || len(s.Version) > maxText+3 || s.Nodename != "a [2Jb c" || len(s.Missing) != 2 {
		t.Errorf("%d values, %d bytes, %q, %q", len(s.Values), len(s.Version), s.Nodename, s.Missing)
	}
	if l := s.Values[0].Labels; len(l[0]) > maxText+3 || l[1] != "" {
		t.Errorf("labels of %d bytes, %q", len(l[0]), l[1])
	}
}
