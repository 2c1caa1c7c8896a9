package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
)

// leaves returns the visible commands that have none below them, except cobra's own.
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

// below returns the name of a command without the program's.
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
		fmt.Fprintf(out, "\nExample:\n  %s\n", cmd.Example)
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
