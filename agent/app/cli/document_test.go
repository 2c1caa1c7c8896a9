package cli

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/benchwatch/benchwatch/agent/app/config"
	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
)

var update = flag.Bool("update", false, "write the lists in docs/reference and the expected output in testdata/script anew")

// The documents that list every key, and every flag and exit status.
const (
	keysDocument     = "../../../docs/reference/configuration.md"
	commandsDocument = "../../../docs/reference/commands.md"
)

// TestDocument guards that the reference has every key, flag and exit status with its default.
func TestDocument(t *testing.T) {
	fillBlocks(t, keysDocument, map[string]string{"keys": keysTable(t, readDocument(t, keysDocument))})
	fillBlocks(t, commandsDocument, map[string]string{"commands": commandsText(t), "statuses": statusesTable()})
}

func readDocument(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fillBlocks compares blocks of a file, by name, with what they should contain; with -update it writes them.
func fillBlocks(t *testing.T, file string, blocks map[string]string) {
	t.Helper()
	is := readDocument(t, file)
	want := is
	for name, text := range blocks {
		block := regexp.MustCompile(fmt.Sprintf(`(?s)(<!-- generated: %s -->\n).*?(\n<!-- end -->)`, name))
		if !block.MatchString(want) {
			t.Fatalf("%s has no block %s", file, name)
		}
		want = block.ReplaceAllString(want, "${1}"+strings.ReplaceAll(text, "$", "$$")+"${2}")
	}
	if want == is {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date: go test ./agent/app/cli -run 'Document|JSON|Schema' -update", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// keysTable has a row for each key. The document itself has what the key means, and the default where
// that is computed.
func keysTable(t *testing.T, doc string) string {
	written := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.\\[\\]]+)` \\| [^|]* \\| (.*?) \\| (?:yes|restart) \\| (.*) \\|$").FindAllStringSubmatch(doc, -1) {
		written[row[1]] = row[2:]
	}
	var b strings.Builder
	b.WriteString("| key | value | default | reload | meaning |\n|---|---|---|---|---|\n")
	for _, k := range config.Keys() {
		reload := "yes"
		if k.Restart {
			reload = "restart"
		}
		if written[k.Path] == nil {
			written[k.Path] = []string{"", ""}
		}
		initial, meaning := written[k.Path][0], written[k.Path][1]
		if meaning == "" || strings.HasSuffix(meaning, ".") {
			t.Errorf("%s has no row for the key %s with what it means, or a period at its end", keysDocument, k.Path)
		}
		for _, name := range engines.Names() {
			if k.Path == "targets[].engine" && !strings.Contains(meaning, "`"+name+"`") {
				t.Errorf("%s: %s does not name %s", keysDocument, k.Path, name)
			}
		}
		if k.Default != "" {
			initial = "`" + k.Default + "`"
		}
		kind, _, _ := strings.Cut(strings.TrimPrefix(k.Kind, "a "), " such as")
		row(&b, "`"+k.Path+"`", kind, initial, reload, meaning)
	}
	return b.String()
}

func statusesTable() string {
	var b strings.Builder
	b.WriteString("| status | meaning |\n|---|---|\n")
	for _, s := range exitStatuses {
		row(&b, s.status, s.meaning)
	}
	return b.String()
}

func row(b *strings.Builder, cells ...string) {
	for _, c := range cells {
		fmt.Fprintf(b, "| %s ", strings.ReplaceAll(c, "|", `\|`))
	}
	b.WriteString("|\n")
}

func commandsText(t *testing.T) string {
	var b strings.Builder
	for _, c := range leaves(newProgram()) {
		name := below(c)
		if !strings.HasSuffix(c.Short, ".") || !strings.HasPrefix(c.Example+" ", "benchwatch "+strings.TrimSuffix(name, " list")+" ") {
			t.Errorf("%s: help %q is not a sentence, or example %q is not of the command", name, c.Short, c.Example)
		}
		fmt.Fprintf(&b, "## benchwatch %s\n\n%s\n\n```sh\n%s\n```\n\n| flag or argument | default | meaning |\n|---|---|---|\n", name, c.Short, c.Example)
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			if f.Usage == "" || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s --%s: help %q is empty or has a period at its end", name, f.Name, f.Usage)
			}
			if n := len(strings.Fields(defaultInHelp.ReplaceAllString(f.Usage, ""))); n > 25 {
				t.Errorf("%s --%s: help has %d words: at most 25", name, f.Name, n)
			}
			flag := "`--" + f.Name
			if f.NoOptDefVal != "true" {
				flag += "=" + f.Value.Type()
			}
			if f.Shorthand != "" {
				flag = fmt.Sprintf("`-%s`, ", f.Shorthand) + flag
			}
			documentValue(&b, flag+"`", defaultOf(f), f.Usage)
		})
		if argument := argumentName(c); argument != "" {
			documentValue(&b, "`"+argument+"`", "", c.Annotations[argumentHelp])
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var defaultInHelp = regexp.MustCompile(` \(default:? (.*)\)$`)

// documentValue writes the row of a flag or an argument. A computed default is
// at the end of its help.
func documentValue(b *strings.Builder, name string, standard, help string) {
	value := ""
	if m := defaultInHelp.FindStringSubmatch(help); m != nil {
		help, value = strings.TrimSuffix(help, m[0]), m[1]
	}
	if standard != "" {
		value = "`" + standard + "`"
	}
	row(b, name, value, help)
}
