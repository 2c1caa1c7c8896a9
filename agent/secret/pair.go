package secret

import "strings"

// pairs blanks the values of names of secrets. It recognises name=value, --name value,
// name: value, "name": "value", "name"="value", [name]: value.
func pairs(s string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); {
		if !isName(s[i]) {
			i++
			continue
		}
		start := i
		for i < len(s) && isName(s[i]) {
			i++
		}
		if !named(s[start:i], false) {
			continue
		}
		from, to, ok := value(s, start, i)
		if !ok {
			continue
		}
		b.WriteString(s[done:from])
		b.WriteString(Blank)
		done, i = to, to
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isName(c byte) bool { return isWord(c) || c == '-' || c == '.' }

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// value finds the value of the name s[start:end].
func value(s string, start, end int) (from, to int, ok bool) {
	name := s[start:end]
	i := end
	// The name may be closed: "name", 'name', [name], \"name\".
	for i < len(s) && (s[i] == '"' || s[i] == '\'' || s[i] == ']' || s[i] == '\\') {
		i++
	}
	closed := i > end
	gap := i
	for i < len(s) && isBlank(s[i]) {
		i++
	}
	switch {
	case i < len(s) && (s[i] == '=' || s[i] == ':'):
		colon := s[i] == ':'
		i++
		for i < len(s) && (s[i] == '=' || s[i] == '>') {
			i++
		}
		for i < len(s) && isBlank(s[i]) {
			i++
		}
		if colon && prose(s, start, i) {
			return 0, 0, false
		}
	case name[0] == '-' && closed && i < len(s) && s[i] == ',':
		// A list of arguments: "--password", "x".
		for i < len(s) && (isBlank(s[i]) || s[i] == ',') {
			i++
		}
	case name[0] == '-' && i > gap:
		if i < len(s) && s[i] == '-' {
			return 0, 0, false // the next option
		}
	default:
		return 0, 0, false
	}
	if i >= len(s) || s[i] == '\n' || s[i] == '\r' {
		return 0, 0, false
	}
	if name == "PWD" || name == "OLDPWD" {
		if s[i] == '/' {
			return 0, 0, false // the shell's working directory
		}
	}
	from, to = extent(s, start, end, i)
	return from, to, to > from
}

// prose reports whether a name and a colon belong to the message "using
// password: YES" of MySQL servers.
func prose(s string, start, at int) bool {
	return strings.HasSuffix(s[:start], "using ") &&
		(strings.HasPrefix(s[at:], "YES") || strings.HasPrefix(s[at:], "NO"))
}

// extent finds where the value that begins at i ends. The name is
// s[start:end].
func extent(s string, start, end, i int) (from, to int) {
	var before byte
	if start > 0 {
		before = s[start-1]
	}
	if rest, done := strings.CutPrefix(s[i:], Blank); done && (rest == "" || strings.IndexByte(" \t\r\n,;&|()[]{}<>'\"`", rest[0]) >= 0) {
		return i, i + len(Blank) // already blanked
	}
	switch {
	case (s[i] == '"' || s[i] == '\'') && i+1 < len(s):
		return i + 1, closing(s, i+1, s[i])
	case strings.HasPrefix(s[i:], `\"`):
		// JSON in JSON.
		n := strings.Index(s[i+2:], `\"`)
		if n < 0 {
			return i + 2, line(s, i)
		}
		return i + 2, i + 2 + n
	case (before == '"' || before == '\'') && end < len(s) && s[end] != before:
		// The whole pair is quoted: '--password=a b'.
		return i, closing(s, i, before)
	case before == '?' || before == '&' || before == ';':
		if n := strings.IndexAny(s[i:], "&; \t\r\n\"'`<>"); n >= 0 {
			return i, i + n
		}
		return i, len(s)
	case before == '[' || s[start] != '-' && beginsLine(s, start) && s[start:end] != strings.ToUpper(s[start:end]):
		// A line of an option file; its value can contain blanks.
		return i, optionEnd(s, i)
	}
	return i, wordEnd(s, i)
}

// closing returns the index of the quote that ends what begins at i.
func closing(s string, i int, quote byte) int {
	for ; i < len(s) && s[i] != '\n'; i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] != '\n':
			i++
		case s[i] == quote:
			return i
		}
	}
	return i
}

// line returns the end of the line at i.
func line(s string, i int) int {
	if n := strings.IndexAny(s[i:], "\r\n"); n >= 0 {
		return i + n
	}
	return len(s)
}

func beginsLine(s string, start int) bool {
	for start > 0 && isBlank(s[start-1]) {
		start--
	}
	return start == 0 || s[start-1] == '\n' || s[start-1] == '\r'
}

// optionEnd returns the end of the value of an option: the end of the line or
// the start of the next name=value.
func optionEnd(s string, i int) int {
	end := line(s, i)
	for j := i; j < end; j++ {
		if !isBlank(s[j]) {
			continue
		}
		blank, k := j, j
		for k < end && isBlank(s[k]) {
			k++
		}
		name := k
		for k < end && isName(s[k]) {
			k++
		}
		if k > name && k < end && s[k] == '=' {
			return blank
		}
		j = name - 1
	}
	for end > i && isBlank(s[end-1]) {
		end--
	}
	return end
}

// wordEnd returns the end of a word without quotes. A quote ends the word only
// before a separator or the end of s; elsewhere it is part of the word.
func wordEnd(s string, i int) int {
	for ; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\n', '\r':
			return i
		case '\\':
			if i+1 < len(s) && s[i+1] != '\n' && s[i+1] != '\r' {
				i++
			}
		case '"', '\'', '`':
			if i+1 == len(s) || strings.IndexByte(" \t\r\n,;)]}", s[i+1]) >= 0 {
				return i
			}
		}
	}
	return min(i, len(s))
}
