package secret

import (
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strings"
)

// Redactor blanks known secrets in addition to the secrets that Text recognises. It is immutable
// and safe for concurrent use. A nil Redactor has no known secrets.
type Redactor struct {
	values []string // longest first
}

// New returns a Redactor for values. It ignores empty values, and also finds values escaped as in
// URLs or JSON.
func New(values ...string) *Redactor {
	var all []string
	for _, v := range values {
		for _, form := range forms(v) {
			// Asterisks alone could not be told from Blank.
			if strings.Trim(form, "*") != "" && !slices.Contains(all, form) {
				all = append(all, form)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) })
	return &Redactor{values: all}
}

// MinWord is the minimum length in bytes of a secret for NewWords: the password "1" must not blank
// every option with the value 1.
const MinWord = 4

// NewWords returns a Redactor for text in which short secrets may have another meaning, such as a
// command line. It ignores values shorter than MinWord; the caller has to blank these in the places
// where they are secret.
func NewWords(values ...string) *Redactor {
	return New(slices.DeleteFunc(slices.Clone(values), func(v string) bool { return len(v) < MinWord })...)
}

// forms returns v and its escaped forms.
func forms(v string) []string {
	all := []string{v, url.QueryEscape(v), url.PathEscape(v), strings.TrimPrefix(url.UserPassword("", v).String(), ":")}
	if quoted, err := json.Marshal(v); err == nil {
		all = append(all, string(quoted[1:len(quoted)-1]))
	}
	return all
}

// longSecret is the length in bytes from which a known secret is blanked within other words, too:
// no word contains that many bytes by chance.
const longSecret = 16

// Text blanks in s everything that the function Text blanks, and known secrets that are long or a
// whole token: the password "bench" does not change "sysbench". If there is nothing to blank it returns s
// itself, without allocating.
func (r *Redactor) Text(s string) string {
	for range maxPasses {
		t := Text(s)
		if r != nil {
			for _, v := range r.values {
				t = replaceToken(t, v)
			}
		}
		if t == s {
			break
		}
		s = t
	}
	return s
}

// replaceToken blanks v in s, a short one only where it is a whole token.
func replaceToken(s, v string) string {
	b := blanks{text: s}
	for at := 0; ; {
		i := strings.Index(s[at:], v)
		if i < 0 {
			break
		}
		i += at
		if len(v) < longSecret && !wholeToken(s, i, i+len(v)) {
			at = i + 1
			continue
		}
		at = i + len(v)
		b.add(i, at)
	}
	return b.result()
}

// wholeToken reports whether s[start:end] is not part of a longer word.
func wholeToken(s string, start, end int) bool {
	if end < len(s) && isWord(s[end-1]) && isWord(s[end]) {
		return false
	}
	if start == 0 || !isWord(s[start]) || !isWord(s[start-1]) {
		return true
	}
	// The value of a short option: -pbench.
	return s[start-1] == 'p' && start > 1 && s[start-2] == '-' &&
		(start == 2 || strings.IndexByte(" \t\n\"'", s[start-3]) >= 0)
}

// Writer blanks secrets in everything written to W. Each call of Write is read by itself, so it has
// to contain a whole line or message.
type Writer struct{ W io.Writer }

// Write implements io.Writer.
func (w Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.W, Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
