package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
)

// leaves returns the visible commands without subcommands, except cobra's own.
func leaves(c *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, below := range c.Commands() {
		switch {
		case below.Hidden || below.Name() == "completion":
		case below.HasSubCommands():
			all = append(all, leaves(below)...)
		default:
			all = append(all, below)
		}
	}
	return all
}

// below returns the name of a command without the name of the program.
func below(c *cobra.Command) string {
	_, name, _ := strings.Cut(c.CommandPath(), " ")
	return name
}

// printHelp writes the help of a command: its sentence, an example, flags, arguments and
// the commands below it.
func printHelp(cmd *cobra.Command, _ []string) {
	out := cmd.OutOrStdout()
	page := terminal.Terminal{Width: max(80, terminal.Of(out).Width)}
	fmt.Fprintf(out, "usage: %s [flags]", cmd.CommandPath())
	if form := cmd.Annotations[argumentForm]; form != "" {
		fmt.Fprint(out, " ", form)
	} else if cmd.HasSubCommands() {
		fmt.Fprint(out, " [command]")
	}
	fmt.Fprintln(out)
	if cmd.Long != "" {
		fmt.Fprintf(out, "\n%s\n", cmd.Long)
	} else {
		fmt.Fprintf(out, "\n%s\n", page.Wrap(cmd.Short, 0, 0))
	}
	if cmd.Example != "" {
		fmt.Fprintf(out, "\nExample:\n  %s\n", page.Command(cmd.Example, 2))
	}
	fmt.Fprintf(out, "\nFlags:\n%s", cmd.Flags().FlagUsagesWrapped(page.Width))
	if name := argumentName(cmd); name != "" {
		entries(out, page, "Arguments", [][2]string{{name, cmd.Annotations[argumentHelp]}})
	}
	var commands [][2]string
	for _, c := range leaves(cmd) {
		commands = append(commands, [2]string{strings.TrimPrefix(c.CommandPath(), cmd.CommandPath()+" "), c.Short})
	}
	if !cmd.HasParent() {
		commands = append(commands, [2]string{"completion", "Write the completion script of bash, zsh, fish or powershell."})
	}
	entries(out, page, "Commands", commands)
}

// entries writes a section of names with their help.
func entries(out io.Writer, page terminal.Terminal, title string, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	widest := 0
	for _, row := range rows {
		widest = max(widest, len(row[0]))
	}
	fmt.Fprintf(out, "\n%s:\n", title)
	for _, row := range rows {
		fmt.Fprintf(out, "  %-*s   %s\n", widest, row[0], page.Wrap(row[1], widest+5, widest+5))
	}
}

// nearest returns the name that a misspelled name probably means: it needs the fewest changes, at most two and not more
// than a third of its characters; "" without such a name, or if several are equally near.
func nearest(name string, known []string) string {
	best, distance := "", min(2, len(name)/3)+1
	for _, k := range known {
		switch d := changes(name, k); {
		case d < distance:
			best, distance = k, d
		case d == distance:
			best = ""
		}
	}
	return best
}

// changes is how many characters of a have to be added, removed or replaced, or
// neighbours exchanged, to get b (optimal string alignment).
func changes(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// The Makefile sets version and revision; after a plain `go build` or `go install`, Go's record of them is used.
func init() {
	if info, ok := debug.ReadBuildInfo(); ok && version.Version == "" {
		version.Version, version.BuildDate = recorded(info)
	}
}

// recorded returns the version of the main module, which comes from the tag, and the
// date of the commit. Without a repository the version is "devel".
func recorded(info *debug.BuildInfo) (release, date string) {
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			date = s.Value
		}
	}
	release = strings.TrimPrefix(info.Main.Version, "v")
	if release == "" || release == "(devel)" {
		release = "devel"
	}
	return release, date
}

// versionText is what --version prints.
func versionText() string {
	revision := "revision: " + version.GetRevision()
	if version.Branch != "" {
		revision = "branch: " + version.Branch + ", " + revision
	}
	return fmt.Sprintf("benchwatch, version %s (%s)\n  build date: %s\n  go version: %s\n  platform:   %s/%s",
		version.Version, revision, cmp.Or(version.BuildDate, "unknown"), version.GoVersion, version.GoOS, version.GoArch)
}
