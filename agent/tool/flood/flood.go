// Package flood keeps what matters of many error messages: the first, the
// last and how many there were. A tool can print a thousand of them a second.
package flood

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/secret"
	"github.com/benchwatch/benchwatch/agent/tool/message"
)

// MaxRead is how many bytes of a message are looked at; fewer are kept.
const MaxRead = 4 * message.Max

// Flood is the error messages of one run in one stream. It holds at most two
// of them.
type Flood struct {
	Count uint64
	// Failed: a message that ends the run was reported.
	Failed bool

	first, last []byte
}

// Add takes a message and tells whether to report it now: the first, and the
// first that ends the run.
func (f *Flood) Add(text []byte, fatal bool) (report bool) {
	f.Count++
	text = text[:min(len(text), MaxRead)]
	if f.Count == 1 {
		f.first = append(f.first[:0], text...)
	}
	if f.Count == 1 || fatal && !f.Failed {
		f.Failed = f.Failed || fatal
		f.last = f.last[:0]
		return true
	}
	f.last = append(f.last[:0], text...)
	return false
}

// First returns the first message; empty if there was none.
func (f *Flood) First(r *secret.Redactor) string {
	if f.Count == 0 {
		return ""
	}
	return Message(f.first, r)
}

// Rest returns the last message with the number of all, once; empty if every
// message was reported.
func (f *Flood) Rest(r *secret.Redactor) string {
	if len(f.last) == 0 {
		return ""
	}
	s := fmt.Sprintf("%s (last of %d messages)", Message(f.last, r), f.Count)
	f.last = f.last[:0]
	return s
}

// Message returns text fit to be stored, without the shapes of secrets and
// without those that r knows.
func Message(text []byte, r *secret.Redactor) string {
	return message.Clean([]byte(r.Text(string(text[:min(len(text), MaxRead)]))))
}
