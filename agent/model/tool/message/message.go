// Package message makes the error messages that tools print fit to be stored and
// shown: without secrets, on one line, of bounded length, and of thousands only a
// few.
package message

import (
	"bytes"
	"strings"
	"unicode"

	"github.com/benchwatch/benchwatch/agent/base/secret"
)

// Max bounds a message in bytes: statements in it can be long.
const Max = 1024

// Clean returns text without what looks like a secret, as valid UTF-8 on one line
// of at most about Max bytes.
func Clean(text []byte) string {
	text = bytes.TrimSpace(text)
	// More is redacted than is kept, so that no secret is cut in two first.
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
