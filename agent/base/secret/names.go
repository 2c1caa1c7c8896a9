package secret

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// Name reports whether an option, property, variable or field with this name contains a secret:
// --mysql-password, db.passwd, PGPASSWORD, apiKey. The name of a file that contains a secret is not
// a secret, such as a client's TLS key.
func Name(name string) bool {
	return named(name, true)
}

// named is Name for options, properties and fields. In free text a word such as "key" alone is not
// the name of a secret, because most keys there are not secret.
func named(name string, option bool) bool {
	if len(name) < 2 || len(name) > maxName || !nameTriggers.in(name) {
		return false
	}
	n := strings.ToLower(name)
	for _, harmless := range []string{"file", "path", "dir", "tokenizer", "ssl-key", "ssl_key", "sslkey"} {
		if strings.HasSuffix(n, harmless) {
			return false
		}
	}
	for _, part := range []string{"password", "passwd", "passphrase", "passwort", "pwd", "secret", "token", "credential"} {
		if strings.Contains(n, part) {
			return true
		}
	}
	for _, part := range []string{"apikey", "accesskey", "secretkey", "privatekey", "privkey", "authkey", "encryptionkey", "accountkey",
		"masterkey", "primarykey", "secondarykey", "sharedkey", "signingkey", "storagekey", "subscriptionkey", "accesssignature"} {
		if strings.Contains(strings.NewReplacer("-", "", "_", "", ".", "").Replace(n), part) {
			return true
		}
	}
	last := n[strings.LastIndexAny(n, "-_.")+1:]
	switch last {
	case "askpass", "bypass", "compass", "trespass", "surpass", "overpass", "underpass":
		return false
	case "psw", "pswd", "authorization", "authenticate", "cookie", "jwt", "bearer", "creds", "masterauth":
		return true
	case "key", "auth", "sig", "signature", "sas", "otp":
		return option
	}
	return strings.HasSuffix(last, "pass") || strings.HasSuffix(last, "pw")
}

// maxName is the maximum length in bytes of a secret's name.
const maxName = 128

// nameTriggers: the name of every secret contains at least one of these.
var nameTriggers = triggersOf("pass", "pw", "psw", "pswd", "secret", "token", "key", "cred", "auth", "cookie", "jwt", "bearer", "sig", "sas", "otp")

// textTriggers: every text that Text changes contains at least one of these. They are the triggers of everything that
// pass applies; a trigger that contains another one adds nothing.
var textTriggers = union(append([]*triggers{nameTriggers, loginTriggers, escapeTriggers, triggersOf("@", "://")}, shapeTriggers()...)...)

func shapeTriggers() []*triggers {
	var all []*triggers
	for _, s := range shapes {
		all = append(all, s.triggers)
	}
	return all
}

func union(all ...*triggers) *triggers {
	var parts []string
	for _, t := range all {
		parts = append(parts, slices.Concat(t[:]...)...)
	}
	slices.SortFunc(parts, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	var kept []string
	for _, p := range parts {
		if !slices.ContainsFunc(kept, func(shorter string) bool { return strings.Contains(p, shorter) }) {
			kept = append(kept, p)
		}
	}
	return triggersOf(kept...)
}

// triggers are lower-case strings by their first byte.
type triggers [256][]string

func triggersOf(parts ...string) *triggers {
	var t triggers
	for _, p := range parts {
		t[p[0]] = append(t[p[0]], p)
	}
	return &t
}

// in reports whether s contains one of t, ignoring the case of ASCII letters. It
// does not allocate.
func (t *triggers) in(s string) bool {
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		for _, p := range t[c] {
			if len(s)-i >= len(p) && strings.EqualFold(s[i:i+len(p)], p) {
				return true
			}
		}
	}
	return false
}

// Values returns the secrets that Text blanks in s, both as written and without URL escapes.
func Values(s string) []string {
	blanked := Text(s)
	if blanked == s {
		return nil
	}
	var all []string
	parts := strings.Split(blanked, Blank)
	rest, found := strings.CutPrefix(s, parts[0])
	for i, part := range parts[1:] {
		if !found {
			break // Text changed more than the secret
		}
		end := strings.Index(rest, part)
		if i == len(parts)-2 {
			end = len(rest) - len(part)
			found = strings.HasSuffix(rest, part)
		}
		if end < 0 || !found {
			break
		}
		if v := rest[:end]; strings.Trim(v, "*") != "" {
			all = append(all, unescaped(v)...)
		}
		rest = rest[end+len(part):]
	}
	return all
}

// unescaped returns v as written and without URL escapes.
func unescaped(v string) []string {
	if plain, err := url.PathUnescape(v); err == nil && plain != v {
		return []string{v, plain}
	}
	return []string{v}
}
