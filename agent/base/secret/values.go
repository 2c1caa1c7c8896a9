package secret

import (
	"net/url"
	"strings"
)

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
