package secret

import "strings"

// urls blanks the passwords of URLs in s: scheme://user:password@host. Users often do not escape
// the password, so it extends to the last @ that can end it.
func urls(s string) string {
	b := blanks{text: s}
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
		b.add(start+from, start+to)
		at = start + to
	}
	return b.result()
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
	return until(s, 0, " \t\r\n\v\f\"'`<>")
}

// userinfo finds the password in rest, the part of a URL after "://". If the URL was cut before the
// @, the text after the colon is the password unless it is a port.
func userinfo(scheme, rest string) (from, to int, ok bool) {
	authority := rest
	if i := strings.IndexAny(rest, "/?#;"); i >= 0 {
		authority = rest[:i]
	}
	// An @ is common in the paths and queries of web addresses.
	to = strings.LastIndexByte(rest, '@')
	if at := strings.LastIndexByte(authority, '@'); at >= 0 && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")) {
		return strings.IndexByte(authority[:at], ':') + 1, at, true
	}
	host, port, found := strings.Cut(authority, ":")
	switch {
	case found && !strings.ContainsAny(host, "@[") && !isPort(port):
		if to < len(host) {
			to = len(rest)
		}
		return len(host) + 1, to, true
	case to >= 0 && !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https"):
		from = strings.IndexByte(rest[:to], ':') + 1
		return from, to, from > 0
	}
	return 0, 0, false
}

// isPort reports whether the text after a colon begins with a port or the word "port", or is empty
// as in "http://host:/".
func isPort(s string) bool {
	rest := strings.TrimLeft(s, "0123456789")
	digits := len(s) - len(rest)
	if len(s) >= len("port") && strings.EqualFold(s[:len("port")], "port") {
		rest = s[len("port"):]
	}
	return digits <= 5 && (rest == "" || !isWord(rest[0]) && rest[0] < 0x80 && strings.IndexByte("!$%^*+~=@", rest[0]) < 0)
}

// logins blanks passwords in s in the form user:password@host, lists of hosts included.
func logins(s string) string {
	b := blanks{text: s}
	for at := 0; at < len(s); {
		end := at + tokenLen(s[at:])
		if from, to, ok := login(s[at:end]); ok {
			b.add(at+from, at+to)
		}
		at = end + 1
	}
	return b.result()
}

// login finds the password of user:password@host in a text without blanks: it extends from the
// first colon to the last @ before a host, or at the end, where a message may be cut. It skips URLs
// (see userinfo) and messages of MySQL servers that name 'user'@'host'.
func login(s string) (from, to int, ok bool) {
	to = len(s)
	for {
		if to = strings.LastIndexByte(s[:to], '@'); to < 0 {
			return 0, 0, false
		}
		if to+1 == len(s) || isWord(s[to+1]) || strings.IndexByte("[/],;.)", s[to+1]) >= 0 || s[to+1] >= 0x80 {
			break
		}
	}
	from = strings.IndexByte(s[:to], ':') + 1
	if jdbc := strings.Index(s[:to], "jdbc:"); jdbc >= 0 && jdbc+len("jdbc:") == from {
		n := strings.IndexByte(s[from:to], ':')
		from += n + 1
		if n < 0 {
			from = 0
		}
	}
	if from == 0 || strings.HasPrefix(s[from:], "//") || strings.HasPrefix(s[from:], Blank+"@") {
		return 0, 0, false
	}
	return from, to, from < to
}

// userinfoOf finds the password in a single word: a URL or user:password@host.
func userinfoOf(s string) (from, to int, ok bool) {
	if from, to, ok := login(s); ok {
		return from, to, true
	}
	i := strings.Index(s, "://")
	if i < 0 {
		return 0, 0, false
	}
	start := i + len("://")
	from, to, ok = userinfo(scheme(s[:i]), s[start:])
	return start + from, start + to, ok && from < to
}
