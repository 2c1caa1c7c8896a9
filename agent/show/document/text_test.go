package document

import (
	"bytes"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
)

// TestTextOfNarrowTerminal guards that the lines of a tool are broken only where they are too long, and that
// equal drawings of several sections are named once.
func TestTextOfNarrowTerminal(t *testing.T) {
	d := Document{Title: "a run"}
	for _, name := range []string{"first", "second"} {
		d.Add(name, name, Prose("of the "+name), Block{Drawings: []Drawing{{Title: "tps"}}})
	}
	d.Add("messages", "Messages", Block{Code: "FATAL: unable to connect to the server on host 127.0.0.1\na   table  row\n"})
	want := `a run

first
of the first
Charts, with -o report.html: tps

second
of the second

Messages
FATAL: unable to connect to the server
  on host 127.0.0.1
a   table  row
`
	var b bytes.Buffer
	if err := (&Page{Documents: []Document{d}}).Text(&b, terminal.Terminal{Width: 40}); err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
}
