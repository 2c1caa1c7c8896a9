package limits

import (
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/table"
)

func plural(n float64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return table.Rounded(n) + " " + one + "s"
}

func times(n float64) string {
	if n == 1 {
		return "once"
	}
	return table.Rounded(n) + " times"
}

// listed returns words as a list in a sentence.
func listed(words []string) string {
	n := len(words)
	if n < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
}
