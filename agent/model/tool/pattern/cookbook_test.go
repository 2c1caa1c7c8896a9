package pattern

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

// TestCookbook applies each pattern of the cookbook to the output above it.
func TestCookbook(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/patterns-cookbook.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	recipes := regexp.MustCompile("(?s)```\n(.*?)```\n\n```yaml\n(tools:.*?)```").FindAllSubmatch(text, -1)
	for _, m := range recipes {
		tl, err := load(string(m[2]))
		if err != nil {
			t.Fatalf("%v:\n%s", err, m[2])
		}
		result := tooltest.Parse(tl, tooltest.Lines(tool.Stdout, m[1])).String()
		if !strings.Contains(result, `"rates":{`) {
			t.Errorf("%s: no rate:\n%s", tl.Name, result)
		}
		if Known(m[1]) != tl.Name {
			t.Errorf("%s: its output is recognised as %q", tl.Name, Known(m[1]))
		}
		all.WriteString(result)
	}
	if len(recipes) != 8 {
		t.Errorf("%d recipes", len(recipes))
	}
	tooltest.Golden(t, "testdata/cookbook.golden.txt", all.String())
}
