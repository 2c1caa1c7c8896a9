package documents

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	comment  = regexp.MustCompile(`(?m) +# .*$`)
	number   = regexp.MustCompile(`[0-9]+(?:[.,:][0-9]+)*`)
	switched = regexp.MustCompile(`(?m)^\[(English|简体中文)\]\((.*)\)\n`)
	hidden   = regexp.MustCompile(`(?m)^<!-- .* -->\n`)
)

// TestTranslations guards that the Chinese pages have the headings, commands, options, numbers and links of the English
// ones, and that both lead to each other.
func TestTranslations(t *testing.T) {
	all := map[string]string{"../../README.md": "../../README.zh.md"}
	for _, file := range pages(t, "../../docs/tutorials") {
		all[file] = filepath.Join("../../docs/zh/tutorials", filepath.Base(file))
	}
	if len(all) < 7 {
		t.Errorf("%d pages", len(all))
	}
	for english, chinese := range all {
		a, b := read(t, english), read(t, chinese)
		for from, to := range map[string]string{english: chinese, chinese: english} {
			m := switched.FindStringSubmatch(read(t, from))
			if m == nil || filepath.Join(filepath.Dir(from), m[2]) != filepath.Clean(to) {
				t.Errorf("%s does not lead to %s below its title", from, to)
			}
		}
		if d := cmp.Diff(facts(a, english), facts(b, chinese)); d != "" {
			t.Errorf("%s differs from %s:\n%s", chinese, english, d)
		}
	}
	const glossary, terms = "../../docs/glossary.md", "../../docs/zh/terms.md"
	if n := len(all); len(pages(t, "../../docs/zh")) != n {
		t.Errorf("docs/zh has a page without its English one")
	}
	for _, m := range heading.FindAllStringSubmatch(read(t, glossary), -1)[1:] {
		if !strings.Contains(read(t, terms), "\n| "+m[1]+" |") {
			t.Errorf("%s has no row for %s of %s", terms, m[1], glossary)
		}
	}
}

// pageFacts is what a page and its translation have in common.
type pageFacts struct {
	Headings       []string // their levels
	Commands       []string // in order, without comments
	Options, Links []string // in any order
	Numbers        []string
}

func facts(text, file string) pageFacts {
	var f pageFacts
	text = hidden.ReplaceAllString(switched.ReplaceAllString(text, ""), "")
	for _, block := range fenced.FindAllString(text, -1) {
		f.Commands = append(f.Commands, comment.ReplaceAllString(block, ""))
	}
	text = fenced.ReplaceAllString(text, "")
	for _, m := range heading.FindAllString(text, -1) {
		level, _, _ := strings.Cut(m, " ")
		f.Headings = append(f.Headings, level)
	}
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		to := m[1]
		if !strings.Contains(to, "://") {
			// A page leads to pages of its own language as far as there are any.
			to = strings.NewReplacer("docs/zh/tutorials", "docs/tutorials", "docs/zh/terms.md", "docs/glossary.md").
				Replace(filepath.Join(filepath.Dir(file), to))
		}
		f.Links = append(f.Links, to)
	}
	text = link.ReplaceAllString(text, "]")
	f.Options = quoted.FindAllString(text, -1)
	f.Numbers = number.FindAllString(quoted.ReplaceAllString(text, ""), -1)
	for _, list := range [][]string{f.Options, f.Links, f.Numbers} {
		slices.Sort(list)
	}
	return f
}
