package documents

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestNavigation guards that each page has a place in the navigation.
func TestNavigation(t *testing.T) {
	navigation := read(t, "../../site/mkdocs.yml")
	for _, file := range pages(t, "../../docs") {
		page, err := filepath.Rel("../../docs", file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(page, "zh/") && !strings.Contains(navigation, " "+page+"\n") {
			t.Errorf("site/mkdocs.yml has no place for %s", page)
		}
	}
}
