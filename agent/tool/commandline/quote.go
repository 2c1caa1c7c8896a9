package commandline

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// static returns a word's value, with what the shell would expand replaced by
// expansion.
func static(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			unescape(&b, p.Value, "")
		case *syntax.SglQuoted:
			if p.Dollar && strings.Contains(p.Value, `\`) {
				b.WriteString(expansion)
			} else {
				b.WriteString(p.Value)
			}
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				if lit, ok := inner.(*syntax.Lit); ok {
					unescape(&b, lit.Value, "$`\"\\\n")
				} else {
					b.WriteString(expansion)
				}
			}
		default:
			b.WriteString(expansion)
		}
	}
	return b.String()
}

// unescape writes s without backslashes: all of them, or, if special is not
// empty, those before one of its characters.
func unescape(b *strings.Builder, s, special string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (special == "" || strings.IndexByte(special, s[i+1]) >= 0) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
}

// quoteAll writes args as words of shell text.
func quoteAll(args []string) (string, bool) {
	quoted := make([]string, len(args))
	for i, a := range args {
		if quoted[i] = a; plain(a) {
			continue
		}
		q, err := syntax.Quote(a, syntax.LangBash)
		if err != nil {
			return "", false
		}
		quoted[i] = q
	}
	return strings.Join(quoted, " "), true
}

// plain reports whether no shell takes anything in an argument for more than
// it is.
func plain(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && strings.IndexByte("-_./=:,@%+", c) < 0 {
			return false
		}
	}
	return s != ""
}

// requote writes value as the word w was written, so that all that did not
// change in it stays the same byte for byte, if that is possible.
func requote(w *syntax.Word, src, value string) (string, bool) {
	if len(w.Parts) == 1 && len(src) >= 2 {
		old := static(w)
		switch p := w.Parts[0].(type) {
		case *syntax.SglQuoted:
			if !p.Dollar && !strings.Contains(value, "'") {
				return "'" + value + "'", true
			}
		case *syntax.DblQuoted:
			if !p.Dollar && src[1:len(src)-1] == old && !strings.ContainsAny(value, "\"$`\\") {
				return `"` + value + `"`, true
			}
		}
	}
	return quoteAll([]string{value})
}

// shown writes text as one word for people to read.
func shown(text string) string {
	if text == "" || strings.ContainsAny(text, " \t\n;|&<>()") && !strings.Contains(text, "'") {
		return "'" + text + "'"
	}
	return text
}
