package tests

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

// widest is the length in characters of the longest line that the program's source may have. Lines should fit a screen,
// about 120: a longer one is a declaration that is easier to read in one piece.
const widest = 200

func TestLinesFitAScreen(t *testing.T) {
	files, err := exec.CommandContext(t.Context(), "git", "-C", "..", "ls-files", "*.go", ":!*_test.go").Output()
	if err != nil {
		t.Skip("no git repository: ", err)
	}
	n := 0
	for name := range strings.Lines(string(files)) {
		name = strings.TrimSpace(name)
		f, err := os.Open("../" + name)
		if os.IsNotExist(err) {
			continue // not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for i := 1; lines.Scan(); i++ {
			if length := utf8.RuneCountInString(lines.Text()); length > widest {
				t.Errorf("%s:%d has %d characters, at most %d", name, i, length, widest)
			}
		}
		f.Close()
		if err := lines.Err(); err != nil {
			t.Fatal(name, err)
		}
	}
	if n < 100 {
		t.Errorf("only %d files were read", n)
	}
}
