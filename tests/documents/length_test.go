package documents

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestLength guards that pages stay short enough to be read. Lists that are generated for looking up are in
// docs/reference.
func TestLength(t *testing.T) {
	if n := len(strings.Fields(read(t, "../../README.md"))); n > 900 {
		t.Errorf("README.md has %d words: at most 900", n)
	}
	for _, file := range pages(t, "../../docs") {
		if filepath.Base(filepath.Dir(file)) == "reference" {
			continue
		}
		if n := len(strings.Fields(read(t, file))); n > 2500 {
			t.Errorf("%s has %d words: at most 2500, split it by what readers ask", file, n)
		}
	}
}
