package secret

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if _, err := ReadToken(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for content, want := range map[string]string{
		"glsa_x\n": "glsa_x", " glsa_x \r\n": "glsa_x", "": "", "\n": "", "a\nb": "", "a b": "", "bö": "",
		strings.Repeat("x", maxToken+1): "",
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadToken(file)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%.20q: %q, %v", content, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), file) {
			t.Errorf("%.20q: the error does not name the file: %v", content, err)
		}
	}
}
