package secret

import (
	"slices"
	"strings"
)

// pairs blanks values after the name of a secret. It recognises name=value, --name value, name:
// value, "name": "value", "name"="value", [name]: value, <name>value<, and lists of name="name"
// value="value". In prose it blanks only values that are quoted or look generated.
func pairs(s string) string {
	b := blanks{text: s}
	for i := 0; i < len(s); {
		if !isName(s[i]) {
			i++
			continue
		}
		start := i
		for i < len(s) && isName(s[i]) {
			i++
		}
		if !isNamed(s, start, i) {
			continue
		}
		from, to, ok := value(s, start, i)
		if !ok {
			continue
		}
		b.add(from, to)
		i = to
	}
	return b.result()
}

// isNamed reports whether s[start:end] is the name of a secret in its context: a mere "key" is one
// in the query of a URL and after "api" or "private".
func isNamed(s string, start, end int) bool {
	name := s[start:end]
	if start > 0 && (s[start-1] == '?' || s[start-1] == '&') {
		return named(name, true)
	}
	if !strings.EqualFold(name, "key") {
		return named(name, false)
	}
	before := strings.ToLower(s[max(0, start-len("encryption ")):start])
	return slices.ContainsFunc([]string{"api ", "secret ", "access ", "private ", "account ", "encryption "}, func(kind string) bool {
		return strings.HasSuffix(before, kind)
	})
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isName(c byte) bool { return isWord(c) || c == '-' || c == '.' }

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// value finds the value that belongs to the name s[start:end].
func value(s string, start, end int) (from, to int, ok bool) {
	name := s[start:end]
	i := end
	// The name may be closed: "name", 'name', [name], \"name\".
	for i < len(s) && (s[i] == '"' || s[i] == '\'' || s[i] == ']' || s[i] == '\\') {
		i++
	}
	closed := i > end
	gap := i
	i = skipBlanks(s, i)
	switch {
	case i < len(s) && (s[i] == '=' || s[i] == ':'):
		if i, ok = afterSeparator(s, start, i); !ok {
			return 0, 0, false
		}
	case closed && entry().MatchString(s[i:]):
		i += len(entry().FindString(s[i:]))
	case i < len(s) && s[i] == ',' && entry().MatchString(s[i:]):
		i += len(entry().FindString(s[i:]))
	case i == end && i < len(s) && s[i] == '>' && start > 0 && s[start-1] == '<':
		i++
		return inElement(s, i)
	case closed && i < len(s) && s[i] == '>': // <entry key="password">
		return inElement(s, i+1)
	case elementName().MatchString(s[i:]):
		return inElement(s, i+len(elementName().FindString(s[i:])))
	case name[0] == '-' && closed && i < len(s) && s[i] == ',':
		// A list of arguments: "--password", "x".
		for i < len(s) && (isBlank(s[i]) || s[i] == ',') {
			i++
		}
	case name[0] == '-' && i > gap:
		if i < len(s) && s[i] == '-' {
			return 0, 0, false // the next option
		}
	case !closed && i > gap:
		return inProse(s, i)
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

// afterSeparator returns the place after the = or : at s[i]; false in prose.
func afterSeparator(s string, start, i int) (int, bool) {
	colon := s[i] == ':'
	i++
	for i < len(s) && (s[i] == '=' || s[i] == '>') {
		i++
	}
	i = skipBlanks(s, i)
	if !colon {
		return i, true
	}
	return i + len(nextLine().FindString(s[i:])), !prose(s, start, i)
}

// nextLine matches the text before a YAML value that begins on the next line.
var nextLine = expression(`^[|>][+-]?[ \t]*\r?\n[ \t]*`)

// elementName matches the end of the name in <name>password</name><value>x</value>.
var elementName = expression(`^</name>\s*<value>`)

// inElement finds the value that begins at i and ends where the next tag begins.
func inElement(s string, i int) (from, to int, ok bool) {
	n := strings.IndexAny(s[i:], "<\r\n")
	return i, i + n, n > 0
}

// entry matches the text between name and value in lists of both: "name": "password", "value": "x".
var entry = expression(`^[\s,]*["']?value["']?\s*[:=]\s*["']?`)

// linked matches a word between a name and its value in prose.
var linked = expression(`^(?:is|was|are|of|to|->|\|):?[ \t]+`)

// inProse finds a value at i that follows a name and a blank: user u, password "x". A value without
// quotes has to look generated, since "password expired" contains none.
func inProse(s string, i int) (from, to int, ok bool) {
	i += len(linked().FindString(s[i:]))
	if i >= len(s) {
		return 0, 0, false
	}
	for _, quotes := range []string{`""`, "''", "``", "“”", "„“"} {
		opening := []rune(quotes)[0]
		if rest, quoted := strings.CutPrefix(s[i:], string(opening)); quoted {
			closing := strings.TrimPrefix(quotes, string(opening))
			from = len(s) - len(rest)
			n := strings.IndexAny(rest, closing+"\r\n")
			return from, from + n, n > 0
		}
	}
	to = i
	for to < len(s) && strings.IndexByte(" \t\r\n,;|\"'`()<>", s[to]) < 0 {
		to++
	}
	return i, to, generated(strings.TrimRight(s[i:to], ".:"))
}

// generated reports whether a word contains letters and digits, as passwords do and names rarely
// do.
func generated(word string) bool {
	const digits = "0123456789"
	return len(word) >= 6 && word[0] != '-' && word[0] != '/' && strings.ContainsAny(word, digits) && strings.Trim(word, digits+".,:/xX") != ""
}

// prose reports whether a name and a colon belong to "using password: YES", a message of MySQL
// servers.
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
	case s[i] == '[' && i+1 < len(s):
		return i + 1, until(s, i, "]\r\n")
	case strings.HasPrefix(s[i:], `\"`):
		// JSON inside a JSON string.
		n := strings.Index(s[i+2:], `\"`)
		if n < 0 {
			return i + 2, line(s, i)
		}
		return i + 2, i + 2 + n
	case (before == '"' || before == '\'') && end < len(s) && s[end] != before:
		// The whole pair is quoted: '--password=a b'.
		return i, closing(s, i, before)
	case before == '?' || before == '&' || before == ';':
		return i, until(s, i, "&; \t\r\n\"'`<>")
	case before == '[' || s[start] != '-' && beginsLine(s, start) && s[start:end] != strings.ToUpper(s[start:end]):
		// A line of an option file; its value can contain blanks.
		return i, optionEnd(s, i)
	}
	return i, wordEnd(s, i)
}

// closing returns the index of the quote that ends the text beginning at i.
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
func line(s string, i int) int { return until(s, i, "\r\n") }

// until returns the index of the first of these characters from i on, or the end of s.
func until(s string, i int, characters string) int {
	if n := strings.IndexAny(s[i:], characters); n >= 0 {
		return i + n
	}
	return len(s)
}

// skipBlanks returns the index of the first character from i on that is not blank.
func skipBlanks(s string, i int) int {
	for i < len(s) && isBlank(s[i]) {
		i++
	}
	return i
}

func beginsLine(s string, start int) bool {
	for start > 0 && isBlank(s[start-1]) {
		start--
	}
	return start == 0 || s[start-1] == '\n' || s[start-1] == '\r'
}

// nextOption matches the text between two options on one line.
var nextOption = expression(`[ \t]+[\w.-]+=`)

// optionEnd returns the end of the value of an option: the end of the line or
// the start of the next name=value.
func optionEnd(s string, i int) int {
	value := s[i:line(s, i)]
	if next := nextOption().FindStringIndex(value); next != nil {
		return i + next[0]
	}
	return i + len(strings.TrimRight(value, " \t"))
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
