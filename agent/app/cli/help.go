package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

// The width of a help text that goes to no terminal, and the bounds of the others: wider lines are hard to read.
const (
	helpWidth    = 80
	narrowHelp   = 40
	widestHelp   = 100
	stackedBelow = 60 // narrower: the text of a flag is below its name
)

// help writes the help of a command to out: on one screen, or everything.
func help(out io.Writer, c *cobra.Command, all bool) { newHelp(out, terminal.Of(out), all).write(c) }

func newHelp(out io.Writer, page terminal.Terminal, all bool) helpWriter {
	page.Width = min(max(cmp.Or(page.Width, helpWidth), narrowHelp), widestHelp)
	return helpWriter{out, page, all}
}

// helpWriter writes help texts in ASCII: they are read in any locale.
type helpWriter struct {
	out  io.Writer
	page terminal.Terminal
	all  bool // every flag with its whole text
}

func (w helpWriter) write(c *cobra.Command) {
	switch {
	case c.HasParent():
		w.command(c)
	case w.all:
		for i, leaf := range leaves(c) {
			if i > 0 {
				fmt.Fprintln(w.out)
			}
			w.command(leaf)
		}
	default:
		w.program(c)
	}
}

// line writes text at the beginning of a line.
func (w helpWriter) line(text string) { fmt.Fprintln(w.out, w.page.Wrap(text, 0, 2)) }

// program writes the summary of all commands, by job.
func (w helpWriter) program(root *cobra.Command) {
	w.line(w.text(root.Short))
	w.line("usage: benchwatch COMMAND [flags]")
	fmt.Fprintln(w.out)
	var others []string
	for _, c := range root.Commands() {
		if c.GroupID == "" && !c.Hidden {
			others = append(others, c.Name())
		}
	}
	for _, job := range root.Groups() {
		title := job.Title
		for _, c := range root.Commands() {
			if c.GroupID == job.ID {
				w.job(title, c)
				title = ""
			}
		}
	}
	slices.Sort(others)
	fmt.Fprintln(w.out)
	w.line("Also: " + strings.Join(others, ", ") + ". Help on one: benchwatch run --help")
	w.line("Begin with: benchwatch replay, or benchwatch run sysbench ... run")
}

// job writes the row of a command. title is empty unless it is the first one of its job.
func (w helpWriter) job(title string, c *cobra.Command) {
	const titles, names = 9, 11
	if w.page.Width >= stackedBelow {
		fmt.Fprintf(w.out, "%s%*s%-*s %s\n", w.page.Paint(terminal.Strong, title), titles-len(title), "", names, c.Name(),
			w.page.Wrap(summary(c), titles+names+1, titles+names+1))
		return
	}
	if title != "" {
		fmt.Fprintln(w.out, w.page.Paint(terminal.Strong, title))
	}
	fmt.Fprintf(w.out, "  %-*s %s\n", names, c.Name(), w.page.Wrap(summary(c), names+3, names+3))
}

// summary is the first sentence of the help of a command, without its period.
func summary(c *cobra.Command) string {
	first, _, _ := strings.Cut(c.Short, ". ")
	return strings.TrimSuffix(first, ".")
}

// command writes the help of a command: its sentence, an example, arguments, flags and the commands below it.
func (w helpWriter) command(c *cobra.Command) {
	usage := "usage: " + c.CommandPath() + " [flags]"
	form := c.Annotations[argumentForm]
	switch {
	case strings.Contains(form, "COMMAND"):
		usage += " [--] COMMAND [ARGUMENT...]"
	case form != "":
		usage += " " + form
	case c.HasSubCommands():
		usage += " [command]"
	}
	w.line(usage)
	fmt.Fprintln(w.out)
	w.prose(cmp.Or(c.Long, c.Short))
	if c.Example != "" {
		fmt.Fprintf(w.out, "\n%s\n  %s\n", w.page.Paint(terminal.Strong, "Example:"), w.page.Command(c.Example, 2))
	}
	fmt.Fprintln(w.out)
	if name := argumentName(c); name != "" && !(strings.Contains(form, "COMMAND") && !w.all) {
		w.entries("Arguments", [][2]string{{name, w.text(c.Annotations[argumentHelp])}})
	}
	sections, others, configuration := flagsOf(c, w.all)
	widest := 0
	for _, s := range sections {
		for _, f := range s.flags {
			widest = max(widest, len(flagName(f)))
		}
	}
	for _, s := range sections {
		w.flags(s, widest)
	}
	if c.HasSubCommands() {
		var rows [][2]string
		for _, b := range leaves(c) {
			rows = append(rows, [2]string{strings.TrimPrefix(b.CommandPath(), c.CommandPath()+" "), summary(b)})
		}
		w.entries("Commands, each with --help", rows)
	}
	if len(configuration) > 0 {
		w.line("Also: " + strings.Join(configuration, ", "))
	}
	if others+len(configuration) > 0 {
		w.line("Every flag, explained: " + c.CommandPath() + " --help-all")
	}
}

// prose writes paragraphs. Those of cobra's own commands are divided by empty lines, and commands are indented.
func (w helpWriter) prose(text string) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if command, is := strings.CutPrefix(paragraph, "\t"); is {
			fmt.Fprintln(w.out, "  "+w.page.Command(command, 2))
			continue
		}
		fmt.Fprintln(w.out, w.page.Wrap(strings.TrimPrefix(strings.Join(strings.Fields(paragraph), " "), "#### "), 0, 0))
	}
}

// flags writes a section of flags, whose names take up to widest columns.
func (w helpWriter) flags(s flagSection, widest int) {
	var rows [][2]string
	for _, f := range s.flags {
		help := w.text(f.Usage)
		if d := defaultOf(f); d != "" {
			help += " (default " + d + ")"
		}
		rows = append(rows, [2]string{flagName(f), help})
	}
	w.table(s.title, rows, widest)
}

// text is what the help shows of the text of a flag or an argument: on one screen, what is before the first semicolon
// or a computed default.
func (w helpWriter) text(text string) string {
	text = strings.ReplaceAll(text, "…", "...")
	if w.all {
		return text
	}
	text, _, _ = strings.Cut(text, "; ")
	text, _, _ = strings.Cut(text, " (default")
	return text
}

// flagName is a flag with its short form and its placeholder.
func flagName(f *pflag.Flag) string {
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	switch {
	case f.NoOptDefVal == "":
		name += " " + f.Value.Type()
	case f.NoOptDefVal != "true":
		name += "[=" + f.Value.Type() + "]"
	}
	return name
}

// entries writes a section of names with their help.
func (w helpWriter) entries(title string, rows [][2]string) {
	widest := 0
	for _, row := range rows {
		widest = max(widest, len(row[0]))
	}
	w.table(title, rows, widest)
}

func (w helpWriter) table(title string, rows [][2]string, widest int) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(w.out, w.page.Paint(terminal.Strong, title+":"))
	for _, row := range rows {
		if w.page.Width < stackedBelow {
			fmt.Fprintf(w.out, "  %s\n      %s\n", row[0], w.page.Wrap(row[1], 6, 6))
			continue
		}
		fmt.Fprintf(w.out, "  %-*s  %s\n", widest, row[0], w.page.Wrap(row[1], widest+4, widest+4))
	}
}
