package documents

import (
	"strings"
	"testing"
)

// TestShortAnswers guards that answers of "How do I …" stay short. Package tutorials runs their commands.
func TestShortAnswers(t *testing.T) {
	questions := strings.Split(read(t, "../../docs/how-do-i.md"), "\n### ")[1:]
	if len(questions) < 40 {
		t.Errorf("%d questions", len(questions))
	}
	for _, q := range questions {
		title, answer, _ := strings.Cut(q, "\n")
		answer, _, _ = strings.Cut(answer, "\n## ")
		n := 0
		for line := range strings.Lines(answer) {
			if line != "\n" && !strings.HasPrefix(line, "```") && !strings.HasPrefix(line, "<!--") {
				n++
			}
		}
		if n > 6 || !strings.HasSuffix(title, "?") {
			t.Errorf("%q has an answer of %d lines: at most 6", title, n)
		}
	}
}
