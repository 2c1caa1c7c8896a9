package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatModel checks that every sentence of the threat model in SECURITY.md, which
// is an item of its lists, names the tests that try it, and that these exist.
func TestThreatModel(t *testing.T) {
	doc, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, model, ok := strings.Cut(string(doc), "\n## Threat model\n")
	if !ok {
		t.Fatal("SECURITY.md has no threat model")
	}
	model, _, _ = strings.Cut(model, "\n## ")
	exist := map[string]bool{}
	for _, root := range []string{".", "../tests", "../internal"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(string(data), -1) {
				exist[m[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	items := 0
	for item := range strings.SplitSeq(strings.ReplaceAll(model, "\n\n", "\n- "), "\n- ") {
		item = strings.Join(strings.Fields(item), " ")
		if item == "" || strings.HasPrefix(item, "#") || strings.HasSuffix(item, ":") {
			continue
		}
		items++
		tests := named.FindAllStringSubmatch(item, -1)
		if len(tests) == 0 {
			t.Errorf("no test is named: %s", item)
		}
		for _, m := range tests {
			if !exist[m[1]] {
				t.Errorf("there is no %s: %s", m[1], item)
			}
		}
	}
	if items < 20 {
		t.Errorf("%d sentences", items)
	}
}
