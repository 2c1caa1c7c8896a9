package report

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// TestSectionsOfAllForms guards that a report has the same sections in the same order on a terminal,
// in Markdown, in HTML and in JSON, among them the command and the tool's error messages. Folded charts
// are only in the two that have drawings.
func TestSectionsOfAllForms(t *testing.T) {
	h := recorded.Read(t, recorded.Galera(t))
	h.Snapshot.Meta.Command = []string{"sysbench", "oltp_write_only", "run"}
	h.Snapshot.Messages, h.Snapshot.MessageCount = []string{"FATAL: a message"}, 1
	d := reportOf(h)
	var want []string
	for _, s := range d.Runs[0].Sections {
		want = append(want, s.Title)
	}
	for _, title := range []string{"What limited this run", "Over time", "Parameters", "The tool's error messages"} {
		if !slices.Contains(want, title) {
			t.Errorf("no section %q", title)
		}
	}
	var text, markdown, html, data bytes.Buffer
	for _, err := range []error{d.Page().Text(&text, terminal.Terminal{Width: 100}), d.Page().Markdown(&markdown), d.Page().HTML(&html), table.JSON(&data, d)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	matches := func(text, pattern string) []string {
		var all []string
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			all = append(all, strings.ReplaceAll(m[1], "&#39;", "'"))
		}
		return all
	}
	titles := map[string][]string{
		"Markdown": matches(markdown.String(), `(?m)^### (.*)$`),
		"HTML":     matches(html.String(), `<h3>(.*)</h3>`),
		"JSON":     matches(data.String(), `"id": "[a-z]+",\n +"title": "(.*)",\n +"blocks"`),
		"terminal": slices.DeleteFunc(strings.Split(text.String(), "\n"), func(line string) bool { return !slices.Contains(want, line) }),
	}
	for form, got := range titles {
		want := want
		if form == "Markdown" || form == "terminal" {
			want = slices.DeleteFunc(slices.Clone(want), func(title string) bool { return title == "More over time" })
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", form, d)
		}
	}
	for form, out := range map[string]string{"terminal": text.String(), "Markdown": markdown.String(), "HTML": html.String()} {
		out = strings.NewReplacer("\\", "", "<span>", "", "</span>", "").Replace(out)
		for _, part := range []string{"sysbench oltp_write_only run", "FATAL: a message"} {
			if !strings.Contains(out, part) {
				t.Errorf("%s lacks %q", form, part)
			}
		}
	}
}
