// Package message prepares the error messages of tools for storing and showing: without secrets, on
// one line, of bounded length, and only a few of thousands.
package message

import (
	"bytes"
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
