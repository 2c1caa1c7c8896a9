package secret

import "strings"

// urls blanks the passwords of URLs in s: scheme://user:password@host. Users
// often do not escape the password, so it extends to the last possible @.
func urls(s string) string {
	var b strings.Builder
	done := 0
	for at := 0; ; {
		i := strings.Index(s[at:], "://")
		if i < 0 {
			break
		}
		start := at + i + len("://")
		at = start
		end := start + tokenLen(s[start:])
		from, to, ok := userinfo(scheme(s[:start-len("://")]), s[start:end])
		if !ok {
			continue
		}
		b.WriteString(s[done : start+from])
		b.WriteString(Blank)
		done = start + to
		at = done
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// scheme returns the scheme at the end of before.
func scheme(before string) string {
	i := len(before)
	for i > 0 && (isWord(before[i-1]) || before[i-1] == '+' || before[i-1] == '-' || before[i-1] == '.') {
		i--
	}
	return before[i:]
}

// tokenLen returns the length of the longest URL at the start of s.
func tokenLen(s string) int {
	if i := strings.IndexAny(s, " \t\r\n\v\f\"'`<>"); i >= 0 {
		return i
	}
	return len(s)
}

// userinfo finds the secret in rest, the part of a URL after "://".
func userinfo(scheme, rest string) (from, to int, ok bool) {
	to = strings.LastIndexByte(rest, '@')
	if !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		from = strings.IndexByte(rest[:max(to, 0)], ':') + 1
		return from, to, from > 0
	}
	// An @ is common in the paths and queries of web addresses.
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		return strings.IndexByte(authority[:at], ':') + 1, at, true
	}
	host, port, found := strings.Cut(authority, ":")
	return len(host) + 1, to, found && !isPort(port) && to > len(host)
}

// isPort accepts an empty port too, as in "http://host:/".
func isPort(s string) bool {
	return len(s) <= 5 && strings.Trim(s, "0123456789") == ""
}
