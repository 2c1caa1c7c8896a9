package mongodb

import (
	"testing"

	"github.com/xdg-go/stringprep"
)

// TestPreparedPasswords guards how the driver prepares passwords: the examples of RFC 4013, section 3, and what
// RFC 3454 says about directions.
func TestPreparedPasswords(t *testing.T) {
	for s, want := range map[string]string{
		"I\u00adX": "IX", "user": "user", "USER": "USER", "\u00aa": "a", "\u2168": "IX", "": "", "a\u00a0b c\u3000": "a b c ",
		"\u0627\u06311\u0628": "\u0627\u06311\u0628", "p\u00e4ss": "p\u00e4ss", "pa\u0308ss": "p\u00e4ss",
	} {
		if got, err := stringprep.SASLprep.Prepare(s); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", s, got, err, want)
		}
	}
	for _, s := range []string{"\u0007", "\u0627\u0031", "\u0627a\u0628", "a\u0627", "\ue000", "\ufffe", "\ufffd", "\u2028", "\U000e0041"} {
		if got, err := stringprep.SASLprep.Prepare(s); err == nil {
			t.Errorf("%q was taken as %q", s, got)
		}
	}
}
