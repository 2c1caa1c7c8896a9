package marker

import (
	"slices"
	"strings"
	"testing"
	"testing/quick"

	"github.com/benchwatch/benchwatch/internal/fakegrafana"
)

// TestFitTags: Grafana takes every set of tags that is sent, and gives it back
// unchanged; the tags by which a marker is found are always among them.
func TestFitTags(t *testing.T) {
	check := func(tags []string) bool {
		m := Marker{ID: strings.Repeat("a", 64), Kind: Point, Run: strings.Repeat("r", 100), Tags: tags, Start: start}
		got := annotationOf(&m).Tags
		return !fakegrafana.TagsTooLong(got) && slices.Equal(fakegrafana.Tags(got), got) &&
			slices.Equal(got[:4], []string{identityTag(m.ID), "benchwatch", "kind:point", "run:" + m.Run})
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
	if !check([]string{":", "a:", ":b", "a:b:c", " x : y ", "Benchwatch", strings.Repeat("ü", 300) + ":" + strings.Repeat("ü", 300)}) {
		t.Error("special tags")
	}
	for in, want := range map[string]string{
		"a": "a", "a:b": "a:b", "a:b:c": "a:b_c", "a:": "a", ":b": "b", ":": "", " a : b ": "a:b", "": "", "  ": "",
	} {
		if got := fitTag(in); got != want {
			t.Errorf("fitTag(%q) = %q, want %q", in, got, want)
		}
	}
}
