// Package message prepares the error messages of tools for storing and showing: without secrets, on
// one line, of bounded length, and only a few of thousands.
package message

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/benchwatch/benchwatch/agent/base/secret"
)

// Max is the maximum length of a message in bytes. Messages may contain long statements.
const Max = 1024

// Clean returns text without secrets, as valid UTF-8 on one line of about Max bytes at most.
func Clean(text []byte) string {
	text = bytes.TrimSpace(text)
	// More text is redacted than is kept, so that cutting cannot split a secret before it is
	// blanked.
	text = text[:min(len(text), MaxRead)]
	s := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(text), "\uFFFD"))
	s = secret.Text(s)
	if len(s) > Max {
		s = strings.ToValidUTF8(s[:Max], "") + " …"
	}
	return s
}

// MaxRead is the number of bytes of a message that are read; Max is the number that is kept.
const MaxRead = 4 * Max

// Flood keeps the essential error messages of one run in one stream, since a tool can print a
// thousand per second: the first one, the last one, and their number.
type Flood struct {
	Count uint64
	// Failed is set after a message that ends the run.
	Failed bool

	first, last []byte
}

// Add takes a message and reports whether to emit it now. That is the case for the first message
// and for the first one that ends the run.
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
	return CleanWith(f.first, r)
}

// Rest returns the last message with the number of all messages, once; empty if every message was
// reported.
func (f *Flood) Rest(r *secret.Redactor) string {
	if len(f.last) == 0 {
		return ""
	}
	s := fmt.Sprintf("%s (last of %d messages)", CleanWith(f.last, r), f.Count)
	f.last = f.last[:0]
	return s
}

// CleanWith is Clean that also blanks the secrets of r. r may be nil.
func CleanWith(text []byte, r *secret.Redactor) string {
	return Clean([]byte(r.Text(string(text[:min(len(text), MaxRead)]))))
}
