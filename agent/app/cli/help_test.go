package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
)

// TestHelpFits guards that the help of every command is on one screen, in ASCII, and has an example.
func TestHelpFits(t *testing.T) {
	const lines, columns = 24, 80
	for _, c := range everyCommand(newProgram()) {
		name := c.CommandPath()
		text := helpText(c, columns, false)
		if n := strings.Count(text, "\n"); n > lines {
			t.Errorf("%s --help has %d lines, at most %d fit:\n%s", name, n, lines, text)
		}
		if c.HasParent() && !c.HasSubCommands() && !strings.Contains(text, "Example:\n  benchwatch ") {
			t.Errorf("%s --help has no example", name)
		}
		for _, width := range []int{40, columns, 300} {
			for _, all := range []bool{false, true} {
				checkWidth(t, name, helpText(c, width, all), min(width, widestHelp))
			}
		}
	}
}

// checkWidth fails for a line that is too long, unless it is one word, and for what is no ASCII.
func checkWidth(t *testing.T, name, text string, width int) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if word := strings.TrimSuffix(strings.TrimSpace(line), ` \`); len(line) > width && strings.Contains(word, " ") {
			t.Errorf("%s: %d columns at a width of %d: %s", name, len(line), width, line)
		}
		if i := strings.IndexFunc(line, func(r rune) bool { return r > 0x7e || r < ' ' }); i >= 0 {
			t.Errorf("%s: not ASCII: %s", name, line)
		}
	}
}

// TestHelpAll guards that --help-all has every flag that --help leaves out, and that the headings only name flags that
// exist.
func TestHelpAll(t *testing.T) {
	known := map[string]bool{}
	for _, c := range everyCommand(newProgram()) {
		known[below(c)] = true
		for _, s := range screens[below(c)] {
			for name := range strings.FieldsSeq(s.flags) {
				if c.Flag(name) == nil {
					t.Errorf("%s has no flag %s", below(c), name)
				}
			}
		}
		if !c.HasParent() {
			continue
		}
		text := helpText(c, 80, true)
		sections, _, _ := flagsOf(c, true)
		for _, s := range sections {
			for _, f := range s.flags {
				if strings.Count(text, "--"+f.Name) == 0 {
					t.Errorf("%s --help-all lacks --%s", below(c), f.Name)
				}
			}
		}
	}
	for name := range screens {
		if !known[name] {
			t.Errorf("headings for %s, which is no command", name)
		}
	}
}

// TestNearMisses guards that a near miss leads to a command, and is not a command itself.
func TestNearMisses(t *testing.T) {
	root := newProgram()
	var names []string
	for _, c := range everyCommand(root) {
		names = append(names, below(c))
	}
	for _, miss := range nearMisses {
		for right := range strings.SplitSeq(miss.command, " or benchwatch ") {
			right, _, _ = strings.Cut(right, " --")
			if right = strings.TrimSuffix(right, " last"); !slices.Contains(names, right) {
				t.Errorf("%s leads to %s, which is no command", miss.names, right)
			}
		}
		for wrong := range strings.SplitSeq(miss.names, ", ") {
			if slices.Contains(names, wrong) {
				t.Errorf("%s is a command", wrong)
			}
		}
	}
}

func everyCommand(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, b := range c.Commands() {
		if !b.Hidden {
			all = append(all, everyCommand(b)...)
		}
	}
	return all
}

func helpText(c *cobra.Command, width int, all bool) string {
	var b bytes.Buffer
	newHelp(&b, terminal.Terminal{Width: width}, all).write(c)
	return b.String()
}
