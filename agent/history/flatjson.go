package history

import (
	"time"

	"github.com/benchwatch/benchwatch/agent/tool/decimal"
)

// flatMembers goes through the members of a JSON object as encoding/json writes
// it of plain facts: no blanks, and values that are numbers, booleans or strings of
// ASCII without escapes. It calls take with each name and its value as it stands
// there, until take returns false. It returns what follows the object; false if
// the object is anything else, or take did not want it.
func flatMembers(b []byte, take func(name, value []byte) bool) (rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '{' {
		return nil, false
	}
	if len(b) > 1 && b[1] == '}' {
		return b[2:], true
	}
	for {
		name, rest, ok := flatText(b[1:])
		if !ok || len(rest) == 0 || rest[0] != ':' {
			return nil, false
		}
		b = rest[1:]
		end := 0
		if len(b) > 0 && b[0] == '"' {
			_, rest, ok := flatText(b)
			if !ok {
				return nil, false
			}
			end = len(b) - len(rest)
		} else {
			for end < len(b) && b[end] != ',' && b[end] != '}' {
				end++
			}
		}
		if end == 0 || end == len(b) || !take(name, b[:end]) {
			return nil, false
		}
		b = b[end:]
		switch b[0] {
		case ',':
		case '}':
			return b[1:], true
		default:
			return nil, false
		}
	}
}

// flatText reads a string in quotes; rest is what follows it.
func flatText(b []byte) (text, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return b[1:i], b[i+1:], true
		case c == '\\' || c < ' ' || c >= 0x7f:
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// flatNumber reads a JSON number.
func flatNumber(b []byte) (float64, bool) {
	if len(b) == 0 || b[0] == '+' || b[0] == '.' {
		return 0, false
	}
	return decimal.Parse(b, 0)
}

func flatTime(value []byte) (at time.Time, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return at, false
	}
	return at, at.UnmarshalText(value[1:len(value)-1]) == nil
}

// texts keeps one copy of each of a few texts that come again and again.
type texts map[string]string

// of returns the text of a value in quotes.
func (t texts) of(value []byte) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	value = value[1 : len(value)-1]
	if text, ok = t[string(value)]; ok {
		return text, true
	}
	text = string(value)
	if len(t) < maxTexts {
		t[text] = text
	}
	return text, true
}
