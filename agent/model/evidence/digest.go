package evidence

import (
	"strings"
)

// longestStatement is the number of bytes of a statement that are kept.
const longestStatement = 1000

// Digest returns a statement of SQL without literals, in one line: "UPDATE t SET a = ? WHERE id = ?". Servers return
// texts that may be cut within a literal, so that an open quote hides the rest.
func Digest(sql string) string {
	if len(sql) > longestStatement {
		sql = sql[:longestStatement] + "…"
	}
	var out strings.Builder
	word := false // the last byte belongs to a name, so that a digit does too
	for i := 0; i < len(sql); {
		c := sql[i]
		switch {
		case c == '\'' || c == '"':
			out.WriteByte('?')
			i = closing(sql, i)
			word = false
		case c == '`':
			end := closing(sql, i)
			out.WriteString(sql[i:end])
			i, word = end, false
		case c == '$' && dollar(sql[i:]) > 0:
			tag := sql[i : i+dollar(sql[i:])]
			out.WriteByte('?')
			if end := strings.Index(sql[i+len(tag):], tag); end >= 0 {
				i += 2*len(tag) + end
			} else {
				i = len(sql)
			}
			word = false
		case strings.HasPrefix(sql[i:], "/*"):
			if end := strings.Index(sql[i+2:], "*/"); end >= 0 {
				i += end + 4
			} else {
				i = len(sql)
			}
			space(&out)
			word = false
		case strings.HasPrefix(sql[i:], "-- ") || c == '#' && !word:
			if end := strings.IndexByte(sql[i:], '\n'); end >= 0 {
				i += end
			} else {
				i = len(sql)
			}
		case !word && (isDigit(c) || c == '.' && i+1 < len(sql) && isDigit(sql[i+1])):
			out.WriteByte('?')
			for i < len(sql) && (isWord(sql[i]) || sql[i] == '.' ||
				(sql[i] == '+' || sql[i] == '-') && (sql[i-1] == 'e' || sql[i-1] == 'E')) {
				i++
			}
		case c <= ' ':
			space(&out)
			i, word = i+1, false
		default:
			out.WriteByte(c)
			word = isWord(c) || c == '$' || c >= 0x80
			i++
		}
	}
	return listed(strings.TrimRight(strings.ToValidUTF8(out.String(), ""), " ;"))
}

// closing returns the place after the quoted text that begins at i. A quote within it is doubled or escaped.
func closing(s string, i int) int {
	quote := s[i]
	for i++; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quote != '`':
			i++
		case s[i] == quote && i+1 < len(s) && s[i+1] == quote:
			i++
		case s[i] == quote:
			return i + 1
		}
	}
	return len(s)
}

// dollar returns the length of the tag of a text quoted by dollars, 0 if s begins with none: $1 is a parameter.
func dollar(s string) int {
	for i := 1; i < len(s); i++ {
		if s[i] == '$' {
			return i + 1
		}
		if !isWord(s[i]) || i == 1 && isDigit(s[i]) {
			return 0
		}
	}
	return 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// space ends a word.
func space(out *strings.Builder) {
	if s := out.String(); s != "" && s[len(s)-1] != ' ' {
		out.WriteByte(' ')
	}
}

// listed shortens lists of values: "IN (?, ?, ?)" is "IN (…)".
func listed(s string) string {
	s = strings.ReplaceAll(s, "` . `", "`.`") // MySQL's digests
	for _, sep := range []string{", ", ","} {
		for strings.Contains(s, "?"+sep+"?") {
			s = strings.ReplaceAll(s, "?"+sep+"?", "?")
		}
	}
	return s
}
