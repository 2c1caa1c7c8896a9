package secret

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// Redactor blanks known secrets besides what Text blanks. It is immutable and
// safe for concurrent use; a nil Redactor knows no secrets.
type Redactor struct {
	values []string // longest first
}

// New returns a Redactor for values. Empty ones are ignored. Values are also
// found where they are escaped as in URLs and in JSON.
func New(values ...string) *Redactor {
	var all []string
	for _, v := range values {
		for _, form := range forms(v) {
			// What consists of asterisks only can't be told from Blank.
			if strings.Trim(form, "*") != "" && !slices.Contains(all, form) {
				all = append(all, form)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) })
	return &Redactor{values: all}
}

// forms are the ways in which v can be written.
func forms(v string) []string {
	all := []string{v, url.QueryEscape(v), url.PathEscape(v), strings.TrimPrefix(url.UserPassword("", v).String(), ":")}
	if quoted, err := json.Marshal(v); err == nil {
		all = append(all, string(quoted[1:len(quoted)-1]))
	}
	return all
}

// Text returns s with everything blanked that the package's Text blanks, and
// the known secrets wherever they stand as a whole token: not inside of a
// longer word, so that the password "bench" leaves "sysbench" alone. It
// returns s itself, without allocation, when there is nothing to blank.
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

// replaceToken blanks v in s where it is a whole token.
func replaceToken(s, v string) string {
	var b strings.Builder
	done := 0
	for at := 0; ; {
		i := strings.Index(s[at:], v)
		if i < 0 {
			break
		}
		i += at
		if !wholeToken(s, i, i+len(v)) {
			at = i + 1
			continue
		}
		b.WriteString(s[done:i])
		b.WriteString(Blank)
		at = i + len(v)
		done = at
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// wholeToken reports whether no word goes on beyond s[start:end].
func wholeToken(s string, start, end int) bool {
	if end < len(s) && isWord(s[end-1]) && isWord(s[end]) {
		return false
	}
	if start == 0 || !isWord(s[start]) || !isWord(s[start-1]) {
		return true
	}
	// Glued to a short option: -pbench.
	return s[start-1] == 'p' && start > 1 && s[start-2] == '-' &&
		(start == 2 || strings.IndexByte(" \t\n\"'", s[start-3]) >= 0)
}
